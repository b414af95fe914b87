// SPDX-License-Identifier: Apache-2.0
// Gradients that are made in their accumulation buffers.
#include <math.h>

#include "evaluate.h"
#include "exec/plan.h"

#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1, \"ai.onnxtrain\" : 1]> "

#if OT_WITH_ONEDNN
enum { HAS_ONEDNN = 1 };
#else
enum { HAS_ONEDNN = 0 };
#endif

static const char accumulation[] =
    HEAD "g (float[4] x, float[4] buffer, bool[1] replace) => (bool[1] done)"
         "{ d = Neg(x) done = com.microsoft.InPlaceAccumulatorV2(buffer, d, replace) }";

static void accumulate_twice(ot_model *model, bool replace, float *buffer)
{
    const ot__plan_options options = {.n_threads = 1};
    const ot_step step = {.training = true};
    float x[] = {1, 2, 3, 4};
    ot__plan *plan;

    assert_ok(ot__plan_create(model->graph, &options, NULL, NULL, &plan));
    assert_int_equal(plan->n_direct, 1);
    ot__plan_bind_input(plan, 0, 0, x);
    ot__plan_bind_input(plan, 1, 0, buffer);
    ot__plan_bind_input(plan, 2, 0, &replace);
    assert_ok(ot__plan_run(plan, &step));
    assert_int_equal(plan->entries[plan->direct[0].value].arg.data == (void *)buffer, replace);
    replace = false;
    assert_ok(ot__plan_run(plan, &step));
    ot__plan_destroy(plan);
}

static void a_gradient_that_replaces_is_made_in_its_buffer(void **state)
{
    ot_model *model = read_prepared(accumulation);
    float buffer[] = {10, 20, 30, 40};

    (void)state;
    accumulate_twice(model, true, buffer);
    for (int k = 0; k < 4; k++)
        assert_float_equal(buffer[k], -2.0F * (float)(k + 1), 0);
    ot_model_destroy(model);
}

static void a_gradient_that_adds_up_keeps_what_is_in_its_buffer(void **state)
{
    ot_model *model = read_prepared(accumulation);
    float buffer[] = {10, 20, 30, 40};

    (void)state;
    accumulate_twice(model, false, buffer);
    for (int k = 0; k < 4; k++)
        assert_float_equal(buffer[k], 8.0F * (float)(k + 1), 0);
    ot_model_destroy(model);
}

// Pages that a run does not touch take no memory.
static void a_gradient_that_replaces_leaves_its_own_memory_alone(void **state)
{
    ot_model *model = read_prepared(accumulation);
    const ot__plan_options options = {.n_threads = 1, .borrow_block = true};
    const bool replace = true;
    const float x[] = {1, 2, 3, 4};
    float buffer[4] = {0};
    unsigned char *block, untouched[sizeof buffer];
    ot__plan *plan;

    (void)state;
    assert_ok(ot__plan_create(model->graph, &options, NULL, NULL, &plan));
    block = ot__alloc_aligned(ot__plan_bytes(plan));
    memset(block, 0xa5, ot__plan_bytes(plan));
    memset(untouched, 0xa5, sizeof untouched);
    ot__plan_set_block(plan, block);
    ot__plan_bind_input(plan, 0, 0, x);
    ot__plan_bind_input(plan, 1, 0, buffer);
    ot__plan_bind_input(plan, 2, 0, &replace);
    assert_ok(ot__plan_run(plan, &(ot_step){.training = true}));
    assert_float_equal(buffer[3], -4, 0);
    const size_t offset = plan->entries[plan->direct[0].value].offset;
    assert_memory_equal(block + offset, untouched, sizeof untouched);
    assert_in_range(offset, 64, ot__plan_bytes(plan) - sizeof buffer); // behind the flag
    ot__plan_destroy(plan);
    ot__free_aligned(block);
    ot_model_destroy(model);
}

static void a_buffer_that_others_read_is_written_in_its_turn(void **state)
{
    ot_model *model = read_prepared(
        HEAD "g (float[4] x, float[4] buffer, bool[1] replace) => (bool[1] done, float[4] before)"
             "{ before = Abs(buffer) d = Neg(x)"
             "  done = com.microsoft.InPlaceAccumulatorV2(buffer, d, replace) }");
    const ot__plan_options options = {.n_threads = 1};
    ot__plan *plan;

    (void)state;
    assert_ok(ot__plan_create(model->graph, &options, NULL, NULL, &plan));
    assert_int_equal(plan->n_direct, 0);
    ot__plan_destroy(plan);
    ot_model_destroy(model);
}

// ---- every kind of kernel that adds ----

enum { MICRO_BATCHES = 4, ROUNDS = 2, MAX_INPUTS = 8 };

// A graph whose first inputs are accumulation buffers, and how many of them its kernels add to:
// the best ones, the reference.
typedef struct kind {
    const char *graph;
    int n_buffers, n_added[2];
} kind;

#define ACCUMULATE "done = com.microsoft.InPlaceAccumulatorV2(buffer, dw, replace)"
static const kind kinds[] = {
    {HEAD
     "g (float[3,4] buffer, bool[1] replace, float[600,4] x, float[600,3] dy) => (bool[1] done)"
     "{ dw = Gemm<transA = 1, alpha = 0.5>(dy, x) " ACCUMULATE " }",
     1,
     {1, 1}},
    {HEAD "g (float[3,4] buffer, bool[1] replace, float[5,4] x, float[5,3] dy, float[4] c)"
          " => (bool[1] done)"
          "{ dw = Gemm<transA = 1, beta = 2.0>(dy, x, c) " ACCUMULATE " }",
     1,
     {1, 1}},
    {HEAD "g (float[2,3,4] buffer, bool[1] replace, float[2,5,4] x, float[3,5] dy)"
          " => (bool[1] done) { dw = MatMul(dy, x) " ACCUMULATE " }",
     1,
     {1, 1}},
    {HEAD "g (float[3,4] buffer, bool[1] replace, float[5,4] x, float[5,3] dy) => (bool[1] done)"
          "{ dw = com.microsoft.FusedMatMul<transA = 1>(dy, x) " ACCUMULATE " }",
     1,
     {1, 1}},
    {HEAD "g (float[6,2] buffer, bool[1] replace, float[5,4] x, float[5,3] dy) => (bool[1] done)"
          "<int64[2] shape = {6, 2}>"
          "{ d = Gemm<transA = 1>(dy, x) dw = Reshape(d, shape) " ACCUMULATE " }",
     1,
     {1, 1}},
    {HEAD "g (float[6,3,3,3] buffer, float[6] other, bool[1] replace, float[2,6,5,7] dy,"
          "   float[2,3,7,9] x, float[6,3,3,3] w) => (bool[1] done, bool[1] too)"
          "{ , dw, db = com.microsoft.ConvGrad<kernel_shape = [3, 3]>(dy, x, w) " ACCUMULATE
          "  too = com.microsoft.InPlaceAccumulatorV2(other, db, replace) }",
     2,
     {HAS_ONEDNN ? 0 : 2, 2}},
    {HEAD "g (float[5,3] buffer, bool[1] replace, float[4,3] x) => (bool[1] done)"
          "<int64[2] shape = {5, 3}, int64[4] at = {4, 0, 4, 1}>"
          "{ dw = com.microsoft.GatherGrad<axis = 0>(shape, at, x) " ACCUMULATE " }",
     1,
     {1, 1}},
    {HEAD "g (float[5,3] buffer, bool[1] replace, float[4,2] x) => (bool[1] done)"
          "<int64[2] shape = {5, 3}, int64[4,2] at = {4, 0, 4, 1, 0, 1, 4, 0}>"
          "{ dw = com.microsoft.GatherElementsGrad<axis = 0>(x, shape, at) " ACCUMULATE " }",
     1,
     {1, 1}},
    {HEAD "g (float[5,3] buffer, bool[1] replace, float[4] x) => (bool[1] done)"
          "<int64[2] shape = {5, 3}, int64[4,2] at = {4, 0, 4, 1, 0, 1, 4, 0}>"
          "{ dw = com.microsoft.GatherNDGrad(shape, at, x) " ACCUMULATE " }",
     1,
     {1, 1}},
    {HEAD "g (float[4] buffer, bool[1] replace, float[4] x) => (bool[1] done)"
          "{ dw = Neg(x) " ACCUMULATE " }",
     1,
     {0, 0}},
};

// The same graph run by a plan and node by node, whose gradients the test adds up itself.
typedef struct twins {
    ot_model *model, *planned_model;
    ot__plan *plan;
    evaluation expected;
    ot_tensor *buffers[MAX_INPUTS];
} twins;

// Whole numbers, whose sums are exact in any order.
static void fill(ot_tensor *t, uint64_t seed)
{
    const ot__rng_key key = ot__rng_key_make(seed, 0, 0, "x");

    for (int64_t k = 0; k < ot_tensor_count(t); k++)
        ((float *)ot_tensor_data(t))[k] = (float)((int)(9 * ot__rng_uniform(key, (uint64_t)k)) - 4);
}

static int count_adders(const ot__plan *plan)
{
    int n = 0;

    for (int i = 0; i < plan->n_direct; i++)
        n += plan->direct[i].adder >= 0;
    return n;
}

static void twins_init(twins *t, const kind *k, bool reference_only)
{
    const ot__plan_options options = {.n_threads = 2, .reference_only = reference_only};
    const ot_graph *g;

    *t = (twins){.model = read_prepared(k->graph), .planned_model = read_prepared(k->graph)};
    assert_ok(ot__plan_create(t->planned_model->graph, &options, NULL, NULL, &t->plan));
    assert_int_equal(t->plan->n_direct, k->n_buffers);
    assert_int_equal(count_adders(t->plan), k->n_added[reference_only]);
    g = t->model->graph;
    for (int i = 0; i < g->n_inputs; i++) {
        ot_tensor *tensor;

        assert_ok(ot_tensor_create(g->inputs[i]->dtype, &g->inputs[i]->shape, &tensor));
        feed(&t->expected, g->inputs[i]->name, tensor);
        if (i < k->n_buffers) {
            assert_ok(ot_tensor_create(OT_F32, &g->inputs[i]->shape, &t->buffers[i]));
            fill(t->buffers[i], 77); // what the first run replaces
            tensor = t->buffers[i];
        }
        ot__plan_bind_input(t->plan, i, 0, ot_tensor_data(tensor));
    }
}

static void twins_run(twins *t, int n_buffers, int run)
{
    const ot_step step = {.training = true};
    const ot_graph *g = t->model->graph;

    for (int i = n_buffers; i < g->n_inputs; i++) {
        ot_tensor *tensor = ot__map_get(&t->expected.tensors, g->inputs[i]->name);

        if (tensor->dtype == OT_BOOL)
            *(bool *)ot_tensor_data(tensor) = run % MICRO_BATCHES == 0;
        else
            fill(tensor, (uint64_t)(run * MAX_INPUTS + i));
    }
    assert_ok(ot__plan_run(t->plan, &step));
    compute(&t->expected, t->model);
    for (int i = 0; i < n_buffers; i++) {
        const ot_tensor *value = result(&t->expected, i == 0 ? "dw" : "db");
        float *sum = ot_tensor_data(ot__map_get(&t->expected.tensors, g->inputs[i]->name));

        for (int64_t k = 0; k < ot_tensor_count(value); k++) {
            sum[k] = (run % MICRO_BATCHES == 0 ? 0 : sum[k]) + ((const float *)value->data)[k];
            assert_float_equal(((const float *)ot_tensor_data(t->buffers[i]))[k], sum[k], 0);
        }
    }
}

static void twins_deinit(twins *t)
{
    for (int i = 0; i < MAX_INPUTS; i++)
        ot_tensor_destroy(t->buffers[i]);
    evaluation_deinit(&t->expected);
    ot__plan_destroy(t->plan);
    ot_model_destroy(t->planned_model);
    ot_model_destroy(t->model);
}

static void sums_over_micro_batches_are_those_of_separate_nodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(kinds); i++)
        for (int reference_only = 0; reference_only < 2; reference_only++) {
            twins t;

            twins_init(&t, &kinds[i], reference_only != 0);
            for (int run = 0; run < ROUNDS * MICRO_BATCHES; run++)
                twins_run(&t, kinds[i].n_buffers, run);
            twins_deinit(&t);
        }
}

// ---- where nothing may be added to the buffer ----

static void expect_direct(const char *graph, int n_direct, int n_adders)
{
    const ot__plan_options options = {.n_threads = 1};
    ot_model *model = read_prepared(graph);
    ot__plan *plan;

    assert_ok(ot__plan_create(model->graph, &options, NULL, NULL, &plan));
    assert_int_equal(plan->n_direct, n_direct);
    assert_int_equal(count_adders(plan), n_adders);
    ot__plan_destroy(plan);
    ot_model_destroy(model);
}

static void what_uses_the_sum_afterwards_leaves_a_gradient_direct(void **state)
{
    ot_model *model = read_prepared(
        HEAD "g (float[4] x, float[4] buffer, bool[1] replace, bool[1] no) =>"
             " (bool[1] done, bool[1] twice)"
             "{ d = Neg(x) done = com.microsoft.InPlaceAccumulatorV2(buffer, d, replace)"
             "  e = Exp(x) twice = com.microsoft.InPlaceAccumulatorV2(buffer, e, no) }");
    const ot__plan_options options = {.n_threads = 1};
    const ot_step step = {.training = true};
    float x[] = {1, 2, 3, 4}, buffer[] = {10, 20, 30, 40};
    bool replace = true, no = false;
    ot__plan *plan;

    (void)state;
    assert_ok(ot__plan_create(model->graph, &options, NULL, NULL, &plan));
    assert_int_equal(plan->n_direct, 1); // the first
    ot__plan_bind_input(plan, 0, 0, x);
    ot__plan_bind_input(plan, 1, 0, buffer);
    ot__plan_bind_input(plan, 2, 0, &replace);
    ot__plan_bind_input(plan, 3, 0, &no);
    for (int run = 1; run <= 2; run++, replace = false) {
        assert_ok(ot__plan_run(plan, &step));
        for (int k = 0; k < 4; k++)
            assert_float_equal(buffer[k], (float)run * (expf(x[k]) - x[k]), 1e-5F * expf(x[k]));
    }
    ot__plan_destroy(plan);
    ot_model_destroy(model);
}

// What is in the buffer afterwards is no longer the gradient.
static void
a_gradient_that_is_read_after_others_have_changed_the_buffer_is_made_elsewhere(void **state)
{
    ot_model *model = read_prepared(
        HEAD "g (float[4] x, float[4] buffer, bool[1] replace, bool[1] no) =>"
             " (bool[1] done, bool[1] twice, float[4] size)"
             "{ d = Neg(x) done = com.microsoft.InPlaceAccumulatorV2(buffer, d, replace)"
             "  e = Exp(x) twice = com.microsoft.InPlaceAccumulatorV2(buffer, e, no)"
             "  size = Where(twice, d, x) }");
    const ot__plan_options options = {.n_threads = 1};
    float x[] = {1, 2, 3, 4}, buffer[] = {10, 20, 30, 40}, size[4];
    bool replace = true, no = false;
    ot__plan *plan;

    (void)state;
    assert_ok(ot__plan_create(model->graph, &options, NULL, NULL, &plan));
    ot__plan_bind_input(plan, 0, 0, x);
    ot__plan_bind_input(plan, 1, 0, buffer);
    ot__plan_bind_input(plan, 2, 0, &replace);
    ot__plan_bind_input(plan, 3, 0, &no);
    ot__plan_bind_output(plan, 2, size);
    assert_ok(ot__plan_run(plan, &(ot_step){.training = true}));
    for (int k = 0; k < 4; k++) {
        assert_float_equal(size[k], -x[k], 0);
        assert_float_equal(buffer[k], expf(x[k]) - x[k], 1e-5F * expf(x[k]));
    }
    ot__plan_destroy(plan);
    ot_model_destroy(model);
}

#define PRODUCT "float[3,4] buffer, bool[1] replace, float[5,4] x, float[5,3] dy"
static void a_gradient_that_something_else_reads_is_only_replaced_in_place(void **state)
{
    (void)state;
    expect_direct(HEAD "g (" PRODUCT ") => (bool[1] done, float[3,4] dw)"
                       "{ dw = Gemm<transA = 1>(dy, x) " ACCUMULATE " }",
                  1, 0);
    expect_direct(HEAD "g (" PRODUCT ") => (bool[1] done, float[3,4] n)"
                       "{ dw = Gemm<transA = 1>(dy, x) n = Neg(dw) " ACCUMULATE " }",
                  1, 0);
}

static void without_a_flag_a_gradient_adds_up(void **state)
{
    (void)state;
    expect_direct(HEAD "g (" PRODUCT ") => (bool[1] done) { dw = Gemm<transA = 1>(dy, x)"
                       "  done = com.microsoft.InPlaceAccumulatorV2(buffer, dw) }",
                  1, 1);
    expect_direct(HEAD "g (float[4] buffer, float[4] x) => (bool[1] done) { dw = Neg(x)"
                       "  done = com.microsoft.InPlaceAccumulatorV2(buffer, dw) }",
                  0, 0);
}

static void a_flag_that_is_computed_is_not_known_in_time(void **state)
{
    (void)state;
    expect_direct(HEAD "g (" PRODUCT ") => (bool[1] done) { dw = Gemm<transA = 1>(dy, x)"
                       "  not = Not(replace)"
                       "  done = com.microsoft.InPlaceAccumulatorV2(buffer, dw, not) }",
                  0, 0);
}

static void a_product_of_its_own_buffer_is_made_elsewhere(void **state)
{
    (void)state;
    expect_direct(HEAD "g (float[3,3] buffer, bool[1] replace, float[3,3] dy) => (bool[1] done)"
                       "{ dw = Gemm(dy, buffer) " ACCUMULATE " }",
                  0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gradient_that_replaces_is_made_in_its_buffer),
        cmocka_unit_test(a_gradient_that_adds_up_keeps_what_is_in_its_buffer),
        cmocka_unit_test(a_gradient_that_replaces_leaves_its_own_memory_alone),
        cmocka_unit_test(a_buffer_that_others_read_is_written_in_its_turn),
        cmocka_unit_test(sums_over_micro_batches_are_those_of_separate_nodes),
        cmocka_unit_test(a_gradient_that_something_else_reads_is_only_replaced_in_place),
        cmocka_unit_test(what_uses_the_sum_afterwards_leaves_a_gradient_direct),
        cmocka_unit_test(
            a_gradient_that_is_read_after_others_have_changed_the_buffer_is_made_elsewhere),
        cmocka_unit_test(without_a_flag_a_gradient_adds_up),
        cmocka_unit_test(a_flag_that_is_computed_is_not_known_in_time),
        cmocka_unit_test(a_product_of_its_own_buffer_is_made_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
