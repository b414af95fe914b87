// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "evaluate.h"
#include "exec/exec.h"
#include "passes/fuse.h"

// Scores as a bf16 product leaves them, and what mixed precision makes of the loss.
#define LOSS                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g (float[3,4] x, int64[3] " \
    "labels) => (float loss, float[3,4] dx) <float one = {1}> {"                                   \
    "  s = Cast <to: int = 16> (x)"                                                                \
    "  wide = Cast <to: int = 1> (s)"                                                              \
    "  loss, log_prob = SoftmaxCrossEntropyLoss (wide, labels)"                                    \
    "  d = com.microsoft.SoftmaxCrossEntropyLossGrad (one, log_prob, labels)"                      \
    "  narrow = Cast <to: int = 16> (d)"                                                           \
    "  dx = Cast <to: int = 1> (narrow)"                                                           \
    "}"

static int count_casts(const ot_model *model)
{
    int n = 0;

    for (int i = 0; i < model->graph->n_nodes; i++)
        n += ot__node_is(model->graph->nodes[i], "", "Cast");
    return n;
}

enum { ROWS = 3, CLASSES = 4 };
typedef struct results {
    float loss, dx[ROWS * CLASSES];
} results;

static void run_model(ot_model *model, results *out)
{
    static float x[] = {0.1F, -1.3F, 2.2F, 0.7F, 1.1F, 1.9F, -0.4F, 0.3F, -2, 0.6F, 0.2F, 1.4F};
    static int64_t labels[] = {2, 0, 3};
    const ot__plan_options options = {.n_threads = 1};
    const ot_step step = {.training = true};
    ot__plan *plan;

    assert_ok(ot__plan_create(model->graph, &options, NULL, NULL, &plan));
    ot__plan_bind_input(plan, 0, 0, x);
    ot__plan_bind_input(plan, 1, 0, labels);
    ot__plan_bind_output(plan, 0, &out->loss);
    ot__plan_bind_output(plan, 1, out->dx);
    assert_ok(ot__plan_run(plan, &step));
    ot__plan_destroy(plan);
}

static void a_loss_reads_and_writes_narrow_scores_itself(void **state)
{
    ot_model *model = read_prepared(LOSS), *fused = read_prepared(LOSS);
    results before, after;

    (void)state;
    fused->narrow = OT_BF16;
    assert_ok(ot__fuse_cast(fused));
    assert_ok(ot__graph_verify(fused->graph));
    assert_int_equal(count_casts(model), 4);
    assert_int_equal(count_casts(fused), 2);
    run_model(model, &before);
    run_model(fused, &after);
    assert_memory_equal(&after, &before, sizeof before);
    ot_model_destroy(model);
    ot_model_destroy(fused);
}

static void without_mixed_precision_casts_stay(void **state)
{
    ot_model *model = read_prepared(LOSS);

    (void)state;
    assert_ok(ot__fuse_cast(model));
    assert_int_equal(count_casts(model), 4);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_reads_and_writes_narrow_scores_itself),
        cmocka_unit_test(without_mixed_precision_casts_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
