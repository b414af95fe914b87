// SPDX-License-Identifier: Apache-2.0
// Quantising and back: the forward values stay those of the pair, and the gradient passes straight
// through where round(x / scale) + zero point is in the range of the integers.
#include "gradients_fixture.h"

enum { ROWS = 4, COLUMNS = 3, N = ROWS * COLUMNS };

// Below, at and above the ranges of the scales used here, and between.
static const double elements[N] = {-70, -64, -3.2, 0, 0.26, 0.74, 31.5, 63.4, 63.6, 64, 127.4, 300};

typedef struct grid {
    double scale[COLUMNS], zero[COLUMNS], low, high; // of each column
} grid;

static bool passes(const grid *g, int k, double *y)
{
    const double scale = g->scale[k % COLUMNS], zero = g->zero[k % COLUMNS];
    const double q = nearbyint(elements[k] / scale) + zero;

    *y = (fmin(fmax(q, g->low), g->high) - zero) * scale;
    return q >= g->low && q <= g->high;
}

static double seed_at(int k)
{
    return 1 + 0.5 * k;
}

// The gradient of y is `times` that of one pair.
static void check(const char *text, ot_dtype dtype, const grid *g, double times)
{
    ot_model *model = model_of(text);
    double seeds[N];
    ot_tensor *in[2], *out[2] = {NULL}, *plain[1] = {NULL}, *standard[2] = {NULL};
    ot_gradients *gradients = NULL;
    int n_passed = 0;

    for (int k = 0; k < N; k++)
        seeds[k] = seed_at(k);
    in[0] = new_tensor(dtype, OT_SHAPE(ROWS, COLUMNS), elements);
    in[1] = new_tensor(dtype, OT_SHAPE(ROWS, COLUMNS), seeds);
    assert_ok(ot_gradients_create(model, "y", (const char *const[]){"x"}, 1, NULL, &gradients));
    assert_ok(ot_gradients_run(gradients, (const ot_tensor *const *)in, 2, out, 2));
    assert_ok(ot_model_run(model, NULL, (const ot_tensor *const *)in, 1, plain, 1));
    assert_null(ot_model_metadata(ot_gradients_model(gradients), OT_METADATA_NONSTANDARD));
    assert_ok(ot_model_run(ot_gradients_model(gradients), NULL, (const ot_tensor *const *)in, 2,
                           standard, 2));
    for (int k = 0; k < N; k++) {
        double y;
        const bool in_range = passes(g, k, &y);

        n_passed += in_range;
        assert_near(ot__tensor_get_f64(plain[0], k), times * y, 1e-6);
        assert_true(ot__tensor_get_f64(out[0], k) == ot__tensor_get_f64(plain[0], k));
        assert_near(ot__tensor_get_f64(standard[0], k), times * y, 1e-6);
        assert_true(ot__tensor_get_f64(standard[1], k) == ot__tensor_get_f64(out[1], k));
        assert_near(ot__tensor_get_f64(out[1], k), in_range ? times * seed_at(k) : 0, 1e-6);
    }
    assert_in_range(n_passed, 1, N - 1);
    for (int i = 0; i < 2; i++) {
        ot_tensor_destroy(in[i]);
        ot_tensor_destroy(out[i]);
        ot_tensor_destroy(standard[i]);
    }
    ot_tensor_destroy(plain[0]);
    ot_gradients_destroy(gradients);
    ot_model_destroy(model);
}

#define SIGNED(scale)                                                                              \
    {                                                                                              \
        {scale, scale, scale}, {0, 0, 0}, -128, 127                                                \
    }

static void one_scale_for_all(void **state)
{
    static const char *const types[] = {"float", "double"};
    static const ot_dtype dtypes[] = {OT_F32, OT_F64};
    const grid bytes = SIGNED(0.5), unsigned_bytes = {{0.25, 0.25, 0.25}, {100, 100, 100}, 0, 255};
    char text[400];

    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 HEAD "g (%s[N,3] x) => (%s[N,3] y) <%s s = {0.5}, int8 z = {0}>"
                      "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
                 types[i], types[i], types[i]);
        check(text, dtypes[i], &bytes, 1);
        snprintf(text, sizeof text,
                 HEAD "g (%s[N,3] x) => (%s[N,3] y) <%s[1] s = {0.25}, uint8[1] z = {100}>"
                      "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
                 types[i], types[i], types[i]);
        check(text, dtypes[i], &unsigned_bytes, 1);
    }
}

static void without_zero_point_the_range_starts_at_zero(void **state)
{
    const grid g = {{0.5, 0.5, 0.5}, {0, 0, 0}, 0, 255};

    (void)state;
    check(HEAD "g (float[N,3] x) => (float[N,3] y) <float s = {0.5}>"
               "{ q = QuantizeLinear(x, s) y = DequantizeLinear(q, s) }",
          OT_F32, &g, 1);
}

static void integers_of_16_bits(void **state)
{
    const grid g = {{0.002, 0.002, 0.002}, {0, 0, 0}, -32768, 32767};

    (void)state;
    check("<ir_version: 10, opset_import: [\"\" : 21]> "
          "g (double[N,3] x) => (double[N,3] y) <double s = {0.002}, int16 z = {0}>"
          "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
          OT_F64, &g, 1);
}

static void integers_of_4_bits(void **state)
{
    const grid g = {{8, 8, 8}, {1, 1, 1}, -8, 7};

    (void)state;
    check("<ir_version: 10, opset_import: [\"\" : 21]> "
          "g (float[N,3] x) => (float[N,3] y) <float s = {8}, int4 z = {1}>"
          "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
          OT_F32, &g, 1);
}

// The nine elements of w fill four bytes and a half, the lower half of a byte first.
static void a_gradient_passes_weights_of_4_bits(void **state)
{
    static const double weights[] = {0.5, 0.25, 2, 2, 1, 5, 3.5, -2.25, 6};
    static const double x[] = {1, -2, 0.5}, dy[] = {1, 10, 100};
    ot_model *model = model_of("<ir_version: 10, opset_import: [\"\" : 21]> "
                               "g (float[N,3] x) => (float[N,3] y)"
                               "<int4[3,3] w = {33, 67, 101, 135, 7}, float[3] s = {0.5, 0.25, 1},"
                               " int4[3] z = {16, 1}>"
                               "{ d = DequantizeLinear<axis = 1>(w, s, z) y = MatMul(x, d) }");
    ot_tensor *in[] = {new_tensor(OT_F32, OT_SHAPE(1, 3), x),
                       new_tensor(OT_F32, OT_SHAPE(1, 3), dy)},
              *out[2] = {NULL};
    ot_gradients *gradients = NULL;

    (void)state;
    assert_ok(ot_gradients_create(model, "y", (const char *const[]){"x"}, 1, NULL, &gradients));
    assert_ok(ot_gradients_run(gradients, (const ot_tensor *const *)in, 2, out, 2));
    for (int k = 0; k < COLUMNS; k++) {
        double y = 0, dx = 0;

        for (int j = 0; j < COLUMNS; j++) {
            y += x[j] * weights[COLUMNS * j + k];
            dx += dy[j] * weights[COLUMNS * k + j];
        }
        assert_near(ot__tensor_get_f64(out[0], k), y, 1e-6);
        assert_near(ot__tensor_get_f64(out[1], k), dx, 1e-4);
    }
    for (int i = 0; i < 2; i++) {
        ot_tensor_destroy(in[i]);
        ot_tensor_destroy(out[i]);
    }
    ot_gradients_destroy(gradients);
    ot_model_destroy(model);
}

static void a_scale_for_each_index_of_an_axis(void **state)
{
    const grid g = {{0.5, 1, 0.25}, {0, 0, 0}, -128, 127};

    (void)state;
    check(HEAD
          "g (float[N,3] x) => (float[N,3] y) <float[3] s = {0.5, 1, 0.25}, int8[3] z = {0,0,0}>"
          "{ q = QuantizeLinear<axis = -1>(x, s, z) y = DequantizeLinear(q, s, z) }",
          OT_F32, &g, 1);
    check(HEAD
          "g (float[N,3] x) => (float[N,3] y) <float[3] s = {0.5, 1, 0.25}, int8[3] z = {0,0,0}>"
          "{ t = Transpose(x) q = QuantizeLinear<axis = 0>(t, s, z)"
          "  d = DequantizeLinear<axis = 0>(q, s, z) y = Transpose(d) }",
          OT_F32, &g, 1);
}

static void a_zero_point_for_each_index_of_an_axis(void **state)
{
    const grid g = {{0.5, 1, 0.25}, {3, 128, 255}, 0, 255};

    (void)state;
    check(HEAD "g (float[N,3] x) => (float[N,3] y)"
               "<float[3] s = {0.5, 1, 0.25}, uint8[3] z = {3, 128, 255}>"
               "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
          OT_F32, &g, 1);
}

static void what_is_quantised_once_may_be_read_twice(void **state)
{
    const grid g = SIGNED(0.5);

    (void)state;
    check(HEAD "g (float[N,3] x) => (float[N,3] y)"
               "<float s = {0.5}, float same = {0.5}, int8 z = {0}, int8 also = {0}>"
               "{ q = QuantizeLinear(x, s, z) a = DequantizeLinear(q, s, z)"
               "  b = DequantizeLinear(q, same, also) y = Add(a, b) }",
          OT_F32, &g, 2);
}

// Another scale on the way back, blocks, and floats of 8 bits are not the pair.
static void other_pairs_have_no_gradient(void **state)
{
    static const char *const strings[] = {
        HEAD
        "g (float[N,4] x) => (float[N,4] y) <float s = {0.5}, float other = {0.25}, int8 z = {0}>"
        "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, other, z) }",
        HEAD "g (float[N,4] x) => (float[N,4] y) <float s = {0.5}, int8 z = {0}, int8 one = {1}>"
             "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, one) }",
        "<ir_version: 10, opset_import: [\"\" : 21]> "
        "g (float[2,4] x) => (float[2,4] y) <float[2,2] s = {1,1,1,1}, int8[2,2] z = {0,0,0,0}>"
        "{ q = QuantizeLinear<block_size = 2>(x, s, z) y = DequantizeLinear<block_size = 2>(q, s, "
        "z) }",
        "<ir_version: 9, opset_import: [\"\" : 19]> "
        "g (float[2,4] x) => (float[2,4] y) <float s = {1}, float8e4m3fn z = {0}>"
        "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(strings); i++) {
        ot_model *model = model_of(strings[i]);
        ot_gradients *g = NULL;

        assert_fails(ot_gradients_create(model, "y", (const char *const[]){"x"}, 1, NULL, &g),
                     OT_ERR_INVALID, "QuantizeLinear");
        ot_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_scale_for_all),
        cmocka_unit_test(without_zero_point_the_range_starts_at_zero),
        cmocka_unit_test(integers_of_16_bits),
        cmocka_unit_test(integers_of_4_bits),
        cmocka_unit_test(a_gradient_passes_weights_of_4_bits),
        cmocka_unit_test(a_scale_for_each_index_of_an_axis),
        cmocka_unit_test(a_zero_point_for_each_index_of_an_axis),
        cmocka_unit_test(what_is_quantised_once_may_be_read_twice),
        cmocka_unit_test(other_pairs_have_no_gradient),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
