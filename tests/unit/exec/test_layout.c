// SPDX-License-Identifier: Apache-2.0
// Plans with and without layouts give the same; what is row-major at the borders stays so.
#include "evaluate.h"
#include "exec/plan.h"

#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1, \"ai.onnxtrain\" : 1]> "

#if OT_WITH_ONEDNN && defined(__x86_64__)
enum { HAS_LAYOUTS = 1 };
#else
enum { HAS_LAYOUTS = 0 };
#endif

typedef struct planned {
    ot_model *model;
    ot__plan *plan;
    ot_tensor **inputs;
} planned;

// Numbers that differ from input to input and do not repeat soon.
static void fill(ot_tensor *t, uint64_t seed)
{
    const ot__rng_key key = ot__rng_key_make(seed, 0, 0, "layout");

    for (int64_t k = 0; k < ot_tensor_count(t); k++)
        ((float *)ot_tensor_data(t))[k] = (float)(ot__rng_uniform(key, (uint64_t)k) - 0.4);
}

static void run_plan(planned *p, const char *text, bool reference_only)
{
    const ot__plan_options options = {.n_threads = 2, .reference_only = reference_only};
    const ot_step step = {.training = true};
    ot_graph *g;

    p->model = read_prepared(text);
    g = p->model->graph;
    p->inputs = ot__alloc_zero((size_t)g->n_inputs, sizeof *p->inputs);
    assert_ok(ot__plan_create(g, &options, NULL, NULL, &p->plan));
    for (int i = 0; i < g->n_inputs; i++) {
        assert_ok(ot_tensor_create(OT_F32, &g->inputs[i]->shape, &p->inputs[i]));
        fill(p->inputs[i], (uint64_t)i + 1);
        ot__plan_bind_input(p->plan, i, 0, ot_tensor_data(p->inputs[i]));
    }
    assert_ok(ot__plan_run(p->plan, &step));
}

static void forget(planned *p)
{
    for (int i = 0; i < p->model->graph->n_inputs; i++)
        ot_tensor_destroy(p->inputs[i]);
    ot__free(p->inputs);
    ot__plan_destroy(p->plan);
    ot_model_destroy(p->model);
}

// Every output within `tolerance` of what the reference kernels make in row-major layout. Returns
// how often a value is brought into another layout.
static int compare(const char *text, double tolerance)
{
    planned fast = {0}, reference = {0};
    int n_reorders;

    run_plan(&fast, text, false);
    run_plan(&reference, text, true);
    for (int o = 0; o < fast.model->graph->n_outputs; o++) {
        const ot_arg *a = ot__plan_output(fast.plan, o), *b = ot__plan_output(reference.plan, o);

        assert_null(a->layout);
        for (int64_t k = 0; k < a->count; k++)
            assert_float_equal(((const float *)a->data)[k], ((const float *)b->data)[k], tolerance);
    }
    assert_int_equal(count_nodes(reference.model, "Reorder"), 0);
    n_reorders = count_nodes(fast.model, "Reorder");
    forget(&fast);
    forget(&reference);
    return n_reorders;
}

static void a_region_is_reordered_only_at_its_borders(void **state)
{
    const int n = compare(HEAD "g (float[2,16,6,6] x, float[32,16,3,3] w, float[32] b, "
                               "float[16,32,1,1] v) => (float[2,16,6,6] y)"
                               "{ c = Conv<pads = [1,1,1,1]>(x, w, b) r = Relu(c) d = Conv(r, v)"
                               "  y = Add(d, d) }",
                          1e-4);

    (void)state;
    assert_int_equal(n, HAS_LAYOUTS ? 2 : 0); // x going in, y coming out
}

static void a_transposed_convolution_takes_part_in_a_region(void **state)
{
    const int n = compare(HEAD "g (float[3,32,5,5] x, float[32,16,2,2] w, float[16] b, "
                               "float[16,16,1,1] v) => (float[3,16,10,10] y)"
                               "{ c = ConvTranspose<strides = [2,2]>(x, w, b) r = Relu(c)"
                               "  y = Conv(r, v) }",
                          1e-4);

    (void)state;
    assert_int_equal(n, HAS_LAYOUTS ? 2 : 0);
}

static void a_value_is_brought_into_a_layout_once(void **state)
{
    const int n = compare(HEAD "g (float[2,16,6,6] x, float[16,16,1,1] v, float[16,16,1,1] w)"
                               " => (float[2,16,6,6] y)"
                               "{ c = Conv(x, v) d = Conv(x, w) y = Add(c, d) }",
                          1e-4);

    (void)state;
    assert_int_equal(n, HAS_LAYOUTS ? 2 : 0);
}

static void a_stretched_operand_keeps_elementwise_nodes_row_major(void **state)
{
    const int n = compare(HEAD "g (float[2,16,6,6] x, float[16,16,1,1] v, float[16,1,1] w)"
                               " => (float[2,16,6,6] y)"
                               "{ c = Conv(x, v) y = Mul(c, w) }",
                          1e-4);

    (void)state;
    assert_int_equal(n, HAS_LAYOUTS ? 2 : 0); // into Conv and out of it
}

static void channels_that_do_not_fill_blocks_stand_last(void **state)
{
    const int n =
        compare(HEAD "g (float[2,6,8,8] x, float[10,6,3,3] w, float[10] b, float[10] s,"
                     " float[10] o, float[10] m, float[10] v, float[2,10,4,4] dy)"
                     " => (float[2,10,4,4] y, float[2,10,8,8] dn, float[10] dscale)"
                     "{ c = Conv<pads = [1,1,1,1]>(x, w, b)"
                     "  n, rm, rv, mean, inv = com.microsoft.BatchNormInternal(c, s, o, m, v)"
                     "  y, at = MaxPool<kernel_shape = [2,2], strides = [2,2]>(n)"
                     "  dn = MaxPoolGrad<kernel_shape = [2,2], strides = [2,2],"
                     "       __input_extents = [8,8]>(dy, at)"
                     "  dc, dscale, db = com.microsoft.BatchNormalizationGrad(dn, c, s, mean, inv)"
                     "}",
                1e-3);

    (void)state;
    if (HAS_LAYOUTS)
        assert_in_range(n, 1, 5);
}

static void blocks_go_through_pools_norms_and_gradients(void **state)
{
    const char *text =
        HEAD "g (float[2,3,12,12] x, float[16,3,3,3] w, float[16] s, float[16] o, float[16] m,"
             " float[16] v, float[32,16,3,3] u, float[2,32,3,3] dy, float[2,16,6,6] z)"
             " => (float[2,32,3,3] y, float[16,3,3,3] dw, float[32,16,3,3] du, float[16] ds,"
             "     float[2,16,6,6] dz)"
             "{ c = Conv<pads = [1,1,1,1]>(x, w)"
             "  p, at = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(c)"
             "  n, rm, rv, mean, inv = ai.onnxtrain.BatchNormRelu(p, s, o, m, v, z)"
             "  y = Conv<pads = [1,1,1,1], strides = [2,2]>(n, u)"
             "  dn, du = com.microsoft.ConvGrad<pads = [1,1,1,1], strides = [2,2],"
             "           kernel_shape = [3,3]>(dy, n, u)"
             "  dp, ds, db, dz = ai.onnxtrain.BatchNormReluGrad(dn, p, s, mean, inv, n)"
             "  dc = MaxPoolGrad<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1],"
             "       __input_extents = [12,12]>(dp, at)"
             "  \"\", dw = com.microsoft.ConvGrad<pads = [1,1,1,1], kernel_shape = [3,3]>(dc, x, w)"
             "}";

    (void)state;
    compare(text, 2e-3);
}

static void grouped_and_depthwise_convolutions_agree(void **state)
{
    (void)state;
    compare(HEAD "g (float[2,32,7,7] x, float[32,1,3,3] w, float[32,16,3,3] v)"
                 " => (float[2,32,7,7] y)"
                 "{ c = Conv<group = 32, pads = [1,1,1,1]>(x, w)"
                 "  y = Conv<group = 2, pads = [1,1,1,1]>(c, v) }",
            1e-3);
    compare(HEAD "g (float[2,12,9] x, float[12,4,3] w) => (float[2,12,4] y)"
                 "{ y = Conv<group = 3, strides = [2]>(x, w) }",
            1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_is_reordered_only_at_its_borders),
        cmocka_unit_test(a_transposed_convolution_takes_part_in_a_region),
        cmocka_unit_test(a_value_is_brought_into_a_layout_once),
        cmocka_unit_test(a_stretched_operand_keeps_elementwise_nodes_row_major),
        cmocka_unit_test(channels_that_do_not_fill_blocks_stand_last),
        cmocka_unit_test(blocks_go_through_pools_norms_and_gradients),
        cmocka_unit_test(grouped_and_depthwise_convolutions_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
