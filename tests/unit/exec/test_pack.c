// SPDX-License-Identifier: Apache-2.0
// The layouts that parameters get, and plans whose parameters come in layouts.
#include <stdlib.h>

#include "evaluate.h"
#include "exec/plan.h"

#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1, \"ai.onnxtrain\" : 1]> "

#if OT_WITH_ONEDNN && defined(__x86_64__)
enum { HAS_LAYOUTS = 1 };
#else
enum { HAS_LAYOUTS = 0 };
#endif
enum { DY, X, W, BUFFER, REPLACES, MAX_INPUTS }; // inputs of the graphs here, in this order

// One convolution of 16 to 32 channels with its gradients; `MORE` is further outputs and nodes.
#define CONVOLUTION(M, C, OUTPUTS, MORE)                                                           \
    HEAD "g (float[2," M ",5,5] dy, float[2," C ",5,5] x, float[" M "," C ",3,3] w, float[" M      \
         "," C ",3,3] buffer, bool[1] replaces)"                                                   \
         " => (float[2," M ",5,5] y, float[2," C ",5,5] dx, bool[1] done" OUTPUTS ")"              \
         "{ y = Conv<pads = [1,1,1,1]>(x, w)"                                                      \
         "  dx, dw = com.microsoft.ConvGrad<pads = [1,1,1,1], kernel_shape = [3,3]>(dy, x, w)"     \
         "  done = com.microsoft.InPlaceAccumulatorV2(buffer, dw, replaces)" MORE " }"
static const char whole_blocks[] = CONVOLUTION("32", "16", "", "");

static const ot_layout *choose(const char *text, const ot__plan_options *options)
{
    static const int parameter_of[MAX_INPUTS] = {-1, -1, 0, -1, -1};
    static const int buffer_of[MAX_INPUTS] = {-1, -1, -1, 0, -1};
    ot_model *model = read_prepared(text);
    const ot_layout *layout = NULL;

    assert_ok(ot__plan_choose_layouts(model->graph, options, parameter_of, buffer_of, &layout, 1));
    if (layout != NULL)
        assert_true(ot__layout_fits(layout, &model->graph->inputs[W]->shape));
    ot_model_destroy(model);
    return layout;
}

static const ot__plan_options two_threads = {.n_threads = 2};

static void weights_take_the_layout_of_their_kernels(void **state)
{
    (void)state;
    assert_int_equal(choose(whole_blocks, &two_threads) != NULL, HAS_LAYOUTS);
}

static void the_batch_makes_no_difference(void **state)
{
    char *text = strdup(whole_blocks);
    const ot_layout *layout = choose(text, &two_threads);

    (void)state;
    for (char *at = strstr(text, "float[2,"); at != NULL; at = strstr(at + 1, "float[2,"))
        at[6] = '7';
    assert_true(choose(text, &two_threads) == layout);
    free(text);
}

static void channels_that_do_not_fill_blocks_stay_row_major(void **state)
{
    (void)state;
    assert_null(choose(CONVOLUTION("10", "6", "", ""), &two_threads));
}

static void reference_and_reproducible_kernels_want_row_major(void **state)
{
    const ot__plan_options reference = {.n_threads = 2, .reference_only = true};
    const ot__plan_options reproducible = {.n_threads = 2, .reproducible = true};

    (void)state;
    assert_null(choose(whole_blocks, &reference));
    assert_null(choose(whole_blocks, &reproducible));
}

static void a_reader_that_wants_row_major_prevails(void **state)
{
    (void)state;
    assert_null(choose(CONVOLUTION("32", "16", ", float s", "s = ReduceSum<keepdims = 0>(w)"),
                       &two_threads));
    assert_null(choose(CONVOLUTION("32", "16", ", float[32,16,3,3] buffer", ""), &two_threads));
}

static void a_gradient_that_is_summed_before_it_is_kept_stays_row_major(void **state)
{
    (void)state;
    assert_null(choose(
        HEAD "g (float[2,32,5,5] dy, float[2,16,5,5] x, float[32,16,3,3] w,"
             " float[32,16,3,3] buffer, bool[1] replaces) => (bool[1] done)"
             "{ \"\", a = com.microsoft.ConvGrad<pads = [1,1,1,1], kernel_shape = [3,3]>(dy, x, w)"
             "  b = Add(a, a) done = com.microsoft.InPlaceAccumulatorV2(buffer, b, replaces) }",
        &two_threads));
}

static void a_parameter_without_gradient_needs_its_readers_only(void **state)
{
    (void)state;
    assert_int_equal(choose(HEAD "g (float[2,32,5,5] unused, float[2,16,5,5] x,"
                                 " float[32,16,3,3] w) => (float[2,32,5,5] y)"
                                 "{ y = Conv<pads = [1,1,1,1]>(x, w) }",
                            &two_threads) != NULL,
                     HAS_LAYOUTS);
}

// ---- plans ----

static void fill(float *x, int64_t n, uint64_t seed)
{
    const ot__rng_key key = ot__rng_key_make(seed, 0, 0, "pack");

    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(ot__rng_uniform(key, (uint64_t)i) - 0.5);
}

typedef struct results {
    float y[2 * 32 * 25], dx[2 * 16 * 25], w[32 * 16 * 9], dw[32 * 16 * 9];
} results;

// Two passes, the second adding to the gradient of the first.
static void run(const char *text, const ot__plan_options *options, const ot_layout *layout,
                results *r)
{
    static float dy[2 * 32 * 25], x[2 * 16 * 25], w[32 * 16 * 9];
    const ot_layout *layouts[MAX_INPUTS] = {[W] = layout, [BUFFER] = layout};
    const ot_shape shape = OT_SHAPE(32, 16, 3, 3);
    ot__plan_options own = *options;
    const ot_step step = {.training = true};
    ot_model *model = read_prepared(text);
    float *home = calloc(2 * OT_COUNT(w), sizeof *home), *buffer = home + OT_COUNT(w);
    bool replaces = true;
    ot__plan *plan;

    fill(dy, OT_COUNT(dy), 1);
    fill(x, OT_COUNT(x), 2);
    fill(w, OT_COUNT(w), 3);
    ot__layout_convert(home, layout, w, NULL, &shape, sizeof *w);
    own.input_layouts = layouts;
    assert_ok(ot__plan_create(model->graph, &own, NULL, NULL, &plan));
    assert_true(ot__plan_input(plan, W, 0)->layout == layout);
    ot__plan_bind_input(plan, DY, 0, dy);
    ot__plan_bind_input(plan, X, 0, x);
    ot__plan_bind_input(plan, W, 0, home);
    ot__plan_bind_input(plan, BUFFER, 0, buffer);
    ot__plan_bind_input(plan, REPLACES, 0, &replaces);
    ot__plan_bind_output(plan, 0, r->y);
    ot__plan_bind_output(plan, 1, r->dx);
    if (model->graph->n_outputs > 3)
        ot__plan_bind_output(plan, 3, r->w);
    assert_ok(ot__plan_run(plan, &step));
    replaces = false;
    assert_ok(ot__plan_run(plan, &step));
    ot__layout_convert(r->dw, NULL, buffer, layout, &shape, sizeof *buffer);
    ot__plan_destroy(plan);
    ot_model_destroy(model);
    free(home);
}

static void assert_close(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_float_equal(a[i], b[i], 1e-4);
}

static void a_plan_computes_the_same_from_any_layout(void **state)
{
    static const ot_layout strange = {.ndim = 4, .order = {3, 1, 2, 0}}; // no kernel knows it
    const ot__plan_options reference = {.n_threads = 2, .reference_only = true};
    const ot_layout *layouts[] = {NULL, choose(whole_blocks, &two_threads), &strange};
    results *a = calloc(2, sizeof *a), *b = a + 1;

    (void)state;
    run(whole_blocks, &reference, NULL, a);
    for (size_t i = 0; i < OT_COUNT(layouts); i++) {
        memset(b, 0, sizeof *b);
        run(whole_blocks, &two_threads, layouts[i], b);
        assert_close(b->y, a->y, OT_COUNT(a->y));
        assert_close(b->dx, a->dx, OT_COUNT(a->dx));
        assert_close(b->dw, a->dw, OT_COUNT(a->dw));
    }
    free(a);
}

static void a_parameter_that_is_an_output_is_handed_out_row_major(void **state)
{
    const char *text = CONVOLUTION("32", "16", ", float[32,16,3,3] w", "");
    const ot_layout *layout = ot__layout_channels_last(4);
    results *r = calloc(1, sizeof *r);
    float *w = calloc(OT_COUNT(r->w), sizeof *w);

    (void)state;
    assert_null(choose(text, &two_threads));
    run(text, &two_threads, layout, r);
    fill(w, OT_COUNT(r->w), 3);
    assert_memory_equal(r->w, w, sizeof r->w);
    free(w);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_take_the_layout_of_their_kernels),
        cmocka_unit_test(the_batch_makes_no_difference),
        cmocka_unit_test(channels_that_do_not_fill_blocks_stay_row_major),
        cmocka_unit_test(reference_and_reproducible_kernels_want_row_major),
        cmocka_unit_test(a_reader_that_wants_row_major_prevails),
        cmocka_unit_test(a_gradient_that_is_summed_before_it_is_kept_stays_row_major),
        cmocka_unit_test(a_parameter_without_gradient_needs_its_readers_only),
        cmocka_unit_test(a_plan_computes_the_same_from_any_layout),
        cmocka_unit_test(a_parameter_that_is_an_output_is_handed_out_row_major),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
