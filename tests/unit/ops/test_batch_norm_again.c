// SPDX-License-Identifier: Apache-2.0
// What BatchNormReluAgain makes has the bits that BatchNormRelu made: masks taken from either
// agree.
#include "evaluate.h"
#include "exec/exec.h"

enum { MAX_INPUTS = 6 };

#define GRAPH_OF(T, input, z)                                                                      \
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnxtrain\" : 1]>"                             \
    "g (" T "[3,5,7,9] x, " T "[5] scale, " T "[5] b, " T "[5] mean, " T "[5] var" input ")"       \
    " => (" T "[3,5,7,9] y, " T "[3,5,7,9] again)"                                                 \
    "{ y, , , saved, inv = ai.onnxtrain.BatchNormRelu(x, scale, b, mean, var" z ")"                \
    "  again = ai.onnxtrain.BatchNormReluAgain(x, scale, b, saved, inv" z ") }"
#define GRAPH(T) GRAPH_OF(T, "", "")
#define GRAPH_WITH_SUM(T) GRAPH_OF(T, ", " T "[3,5,7,9] z", ", z")

static void fill(ot_tensor *t, uint64_t seed)
{
    const ot__rng_key key = ot__rng_key_make(seed, 0, 0, "batch norm");

    for (int64_t k = 0; k < ot_tensor_count(t); k++) {
        const double v = ot__rng_uniform(key, (uint64_t)k) - 0.3;

        if (ot_tensor_dtype(t) == OT_F32)
            ((float *)ot_tensor_data(t))[k] = (float)v;
        else
            ((double *)ot_tensor_data(t))[k] = v;
    }
}

static void expect_same_bits(const char *text, bool reference_only)
{
    const ot__plan_options options = {.n_threads = 2, .reference_only = reference_only};
    ot_model *model = read_prepared(text);
    const ot_graph *g = model->graph;
    ot_tensor *inputs[MAX_INPUTS];
    ot__plan *plan;

    assert_ok(ot__plan_create(model->graph, &options, NULL, NULL, &plan));
    for (int i = 0; i < g->n_inputs; i++) {
        assert_ok(ot_tensor_create(g->inputs[i]->dtype, &g->inputs[i]->shape, &inputs[i]));
        fill(inputs[i], (uint64_t)i);
        ot__plan_bind_input(plan, i, 0, ot_tensor_data(inputs[i]));
    }
    assert_ok(ot__plan_run(plan, &(ot_step){.training = true}));
    const ot_arg *y = ot__plan_output(plan, 0), *again = ot__plan_output(plan, 1);

    assert_memory_equal(y->data, again->data, (size_t)y->count * ot_dtype_size(y->dtype));
    for (int i = 0; i < g->n_inputs; i++)
        ot_tensor_destroy(inputs[i]);
    ot__plan_destroy(plan);
    ot_model_destroy(model);
}

static void vector_code_makes_the_same_bits_again(void **state)
{
    (void)state;
    expect_same_bits(GRAPH("float"), false);
    expect_same_bits(GRAPH_WITH_SUM("float"), false);
}

static void the_reference_makes_the_same_bits_again(void **state)
{
    (void)state;
    expect_same_bits(GRAPH("float"), true);
    expect_same_bits(GRAPH("double"), true);
    expect_same_bits(GRAPH_WITH_SUM("float"), true);
    expect_same_bits(GRAPH_WITH_SUM("double"), true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vector_code_makes_the_same_bits_again),
        cmocka_unit_test(the_reference_makes_the_same_bits_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
