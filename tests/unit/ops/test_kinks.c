// SPDX-License-Identifier: Apache-2.0
// Gradients where central differences cannot tell: at kinks, ties and singular points. Expected
// values are PyTorch's.
#include "evaluate.h"

#include <math.h>

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> "

typedef struct host {
    ot_value *dy, *dx[2];
} host;

static ot_value *host_dy(void *context, const ot_value *y)
{
    (void)y;
    return ((host *)context)->dy;
}

static bool host_wants(void *context, const ot_node *node, int i)
{
    (void)context;
    return node->inputs[i]->constant == NULL;
}

static ot_status host_set_dx(void *context, const ot_node *node, int i, ot_value *dx)
{
    (void)node;
    ((host *)context)->dx[i] = dx;
    return OT_OK;
}

static void feed_like(evaluation *e, const ot_value *value, const double *elements)
{
    feed(e, value->name, new_tensor(OT_F32, value->shape, elements));
}

// The gradient of input `i` at `x` (and `b`), for dy = 1, is `expected`.
static void check(const char *text, const double *x, const double *b, int i, const double *expected)
{
    static const double ones[] = {1, 1, 1, 1, 1, 1};
    ot_model *model = read_prepared(text);
    const ot_value *y = find_value(model, "y");
    evaluation e = {0};
    host h = {0};
    const ot__grad_host callbacks = {&h, host_dy, host_wants, host_set_dx};
    int64_t n;

    h.dy = ot__graph_value(model->graph, "dy");
    ot__value_set(h.dy, OT_F32, &y->shape);
    assert_true(ot__shape_count(&y->shape, &n) && n <= (int64_t)OT_COUNT(ones));
    assert_ok(ot__op_grad(model->graph->nodes[0], &callbacks));
    feed_like(&e, find_value(model, "x"), x);
    if (b != NULL)
        feed_like(&e, find_value(model, "b"), b);
    feed_like(&e, h.dy, ones);
    compute(&e, model);
    assert_non_null(h.dx[i]);
    assert_true(ot__shape_count(&h.dx[i]->shape, &n));
    for (int64_t k = 0; k < n; k++)
        assert_float_equal(element(&e, h.dx[i]->name, k), expected[k], 1e-6);
    evaluation_deinit(&e);
    ot_model_destroy(model);
}

#define ONE HEAD "g (float[3] x) => (float[3] y) "
#define ONE_TO_ONE HEAD "g (float[3] x) => (float[1] y) "
#define TWO HEAD "g (float[3] x, float[3] b) => (float[3] y) "

static void rectifiers_pass_nothing_at_zero(void **state)
{
    const double x[] = {-1, 0, 1};

    (void)state;
    check(ONE "{ y = Relu(x) }", x, NULL, 0, (double[]){0, 0, 1});
    check(ONE "{ y = Abs(x) }", x, NULL, 0, (double[]){-1, 0, 1});
    check(ONE "{ y = LeakyRelu<alpha = 0.25>(x) }", x, NULL, 0, (double[]){0.25, 0.25, 1});
}

static void smooth_rectifiers_have_the_left_slope_at_zero(void **state)
{
    const double x[] = {-1, 0, 1};

    (void)state;
    check(ONE "{ y = Elu<alpha = 0.5>(x) }", x, NULL, 0, (double[]){0.5 * exp(-1), 0.5, 1});
    check(ONE "{ y = Celu<alpha = 0.5>(x) }", x, NULL, 0, (double[]){exp(-2), 1, 1});
    check(ONE "{ y = Selu(x) }", x, NULL, 0, (double[]){0.646768603, 1.75809934, 1.05070099});
}

static void a_learned_slope_holds_at_zero(void **state)
{
    const double x[] = {-2, 0, 1}, slope[] = {0.25, 0.25, 0.25};

    (void)state;
    check(TWO "{ y = PRelu(x, b) }", x, slope, 0, (double[]){0.25, 0.25, 1});
    check(TWO "{ y = PRelu(x, b) }", x, slope, 1, (double[]){-2, 0, 0});
}

static void thresholds_pass_nothing_where_they_are_met(void **state)
{
    (void)state;
    check(ONE "{ y = HardSigmoid<alpha = 0.25>(x) }", (double[]){-2, 0, 2}, NULL, 0,
          (double[]){0, 0.25, 0});
    check(ONE "{ y = HardSwish(x) }", (double[]){-3, 0, 3}, NULL, 0, (double[]){0, 0.5, 1});
    check(ONE "{ y = Shrink(x) }", (double[]){-0.5, 0.5, 0.75}, NULL, 0, (double[]){0, 0, 1});
    check(ONE "{ y = ThresholdedRelu(x) }", (double[]){0.5, 1, 2}, NULL, 0, (double[]){0, 0, 1});
}

static void the_bounds_of_a_clip_belong_to_the_inside(void **state)
{
    const double x[] = {-1, 2, 2.5};

    (void)state;
    check(HEAD "g (float[3] x) => (float[3] y) <float low = {-1}, float high = {2}>"
               "{ y = Clip(x, low, high) }",
          x, NULL, 0, (double[]){1, 1, 0});
}

static void ties_share_the_gradient(void **state)
{
    const double x[] = {1, 2, 3}, b[] = {1, 1, 5};

    (void)state;
    check(TWO "{ y = Max(x, b) }", x, b, 0, (double[]){0.5, 1, 0});
    check(TWO "{ y = Max(x, b) }", x, b, 1, (double[]){0.5, 0, 1});
    check(TWO "{ y = Min(x, b) }", x, b, 0, (double[]){0.5, 0, 1});
}

static void powers_at_zero_are_finite_where_they_can_be(void **state)
{
    const double x[] = {0, 0, 2}, b[] = {0, 2, 3};

    (void)state;
    check(TWO "{ y = Pow(x, b) }", x, b, 0, (double[]){0, 0, 12});
    check(TWO "{ y = Pow(x, b) }", x, b, 1, (double[]){0, 0, 8 * log(2)});
    check(HEAD "g (float[3] x) => (float[3] y) <float p = {0}> { y = Pow(x, p) }", x, NULL, 0,
          (double[]){0, 0, 0});
    check(HEAD "g (float[3] x) => (float[3] y) <float p = {2}> { y = Pow(x, p) }", x, NULL, 0,
          (double[]){0, 0, 4});
}

// At elements, at the ends of the image, and beyond.
static void a_grid_moves_nothing_where_ends_are_repeated(void **state)
{
    const double grid[] = {-0.75, 0, 0.75, 0, -1, 0, -0.25, 0, 1, 0, 1.25, 0};
    const double only_inside[] = {0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0};

    (void)state;
#define SAMPLED(attributes)                                                                        \
    HEAD "g (float[1,1,6,2] x) => (float[1,1,1,6] y) <float[1,1,1,4] image = {1,2,5,3}>"           \
         "{ y = GridSample<" attributes ">(image, x) }"
    check(SAMPLED("padding_mode = \"zeros\""), grid, NULL, 1,
          (double[]){2, -0.5, -6, -1.5, 2, -0.25, 6, -1, -6, -0.75, 0, 0});
    check(SAMPLED("padding_mode = \"border\""), grid, NULL, 1, only_inside);
    check(SAMPLED("padding_mode = \"reflection\""), grid, NULL, 1, only_inside);
    check(SAMPLED("mode = \"bicubic\", padding_mode = \"border\""), grid, NULL, 1,
          (double[]){1.5, 0, -3, 0, -0.375, 0, 6, 0, 0.75, 0, 0, 0});
#undef SAMPLED
}

// The last element is seen, as in PyTorch, but all get the gradient of the place.
static void elements_unpooled_to_one_place_share_its_gradient(void **state)
{
    (void)state;
    check(HEAD "g (float[1,1,3] x) => (float[1,1,3] y) <int64[1,1,3] at = {0,0,2}>"
               "{ y = MaxUnpool<kernel_shape = [1]>(x, at) }",
          (double[]){1, 2, 3}, NULL, 0, (double[]){1, 1, 1});
}

// As in torchvision.
static void the_first_of_equal_maxima_of_a_region_has_its_gradient(void **state)
{
    (void)state;
    check(HEAD "g (float[1,1,1,3] x) => (float[1,1,1,1] y) <float[1,5] region = {0,0,0,2,0}>"
               "{ y = MaxRoiPool<pooled_shape = [1, 1]>(x, region) }",
          (double[]){1, 2, 2}, NULL, 0, (double[]){0, 1, 0});
}

static void the_first_of_equal_maxima_of_a_plane_has_its_gradient(void **state)
{
    (void)state;
    check(HEAD "g (float[1,1,3] x) => (float[1,1,1] y) { y = GlobalMaxPool(x) }",
          (double[]){1, 2, 2}, NULL, 0, (double[]){0, 1, 0});
    check(HEAD "g (float[1,2,3] x) => (float[1,2,1] y) { y = MaxPool<kernel_shape = [3]>(x) }",
          (double[]){1, 2, 2, 3, 1, 3}, NULL, 0, (double[]){0, 1, 0, 1, 0, 0});
}

static void equal_elements_share_the_gradient_of_a_reduction(void **state)
{
    (void)state;
    check(ONE_TO_ONE "{ y = ReduceMax<keepdims = 1>(x) }", (double[]){2, 2, 1}, NULL, 0,
          (double[]){0.5, 0.5, 0});
    check(ONE_TO_ONE "{ y = ReduceMin<keepdims = 1>(x) }", (double[]){1, 2, 1}, NULL, 0,
          (double[]){0.5, 0, 0.5});
}

static void norms_have_no_slope_at_zero(void **state)
{
    const double zeros[] = {0, 0, 0};

    (void)state;
    check(ONE_TO_ONE "{ y = ReduceL1<keepdims = 1>(x) }", zeros, NULL, 0, zeros);
    check(ONE_TO_ONE "{ y = ReduceL2<keepdims = 1>(x) }", zeros, NULL, 0, zeros);
}

static void the_first_of_equal_elements_is_among_the_top(void **state)
{
    (void)state;
    check(HEAD "g (float[3] x) => (float[1] y) <int64[1] k = {1}> { y, at = TopK(x, k) }",
          (double[]){2, 2, 1}, NULL, 0, (double[]){1, 0, 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rectifiers_pass_nothing_at_zero),
        cmocka_unit_test(smooth_rectifiers_have_the_left_slope_at_zero),
        cmocka_unit_test(a_learned_slope_holds_at_zero),
        cmocka_unit_test(thresholds_pass_nothing_where_they_are_met),
        cmocka_unit_test(the_bounds_of_a_clip_belong_to_the_inside),
        cmocka_unit_test(ties_share_the_gradient),
        cmocka_unit_test(powers_at_zero_are_finite_where_they_can_be),
        cmocka_unit_test(a_grid_moves_nothing_where_ends_are_repeated),
        cmocka_unit_test(elements_unpooled_to_one_place_share_its_gradient),
        cmocka_unit_test(the_first_of_equal_maxima_of_a_region_has_its_gradient),
        cmocka_unit_test(the_first_of_equal_maxima_of_a_plane_has_its_gradient),
        cmocka_unit_test(equal_elements_share_the_gradient_of_a_reduction),
        cmocka_unit_test(norms_have_no_slope_at_zero),
        cmocka_unit_test(the_first_of_equal_elements_is_among_the_top),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
