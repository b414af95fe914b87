// SPDX-License-Identifier: Apache-2.0
// The mask of Dropout: its share, what it depends on, and what it does not; and old forms of
// Softmax and Hardmax.
#include <math.h>
#include <stdlib.h>

#include "evaluate.h"
#include "kernels/kernels.h"
#include "onnxtrain/runner.h"

enum { COUNT = 100000 };

static void the_share_dropped_is_the_ratio(void **state)
{
    static uint8_t mask[COUNT];
    const double ratio = 0.3, deviation = sqrt(ratio * (1 - ratio) / COUNT);
    double dropped = 0;

    (void)state;
    ot__ref_dropout_mask(mask, COUNT, ratio, ot__rng_key_make(1, 2, 0, "y"));
    for (int i = 0; i < COUNT; i++)
        dropped += mask[i] == 0;
    assert_true(fabs(dropped / COUNT - ratio) < 5 * deviation);
}

static void the_mask_follows_seed_counter_and_name(void **state)
{
    static uint8_t a[COUNT], b[COUNT];
    const ot__rng_key keys[] = {ot__rng_key_make(2, 2, 0, "y"), ot__rng_key_make(1, 3, 0, "y"),
                                ot__rng_key_make(1, 2, 1, "y"), ot__rng_key_make(1, 2, 0, "z")};

    (void)state;
    ot__ref_dropout_mask(a, COUNT, 0.5, ot__rng_key_make(1, 2, 0, "y"));
    ot__ref_dropout_mask(b, COUNT, 0.5, ot__rng_key_make(1, 2, 0, "y"));
    assert_memory_equal(a, b, COUNT);
    for (size_t k = 0; k < OT_COUNT(keys); k++) {
        int same = 0;
        ot__ref_dropout_mask(b, COUNT, 0.5, keys[k]);
        for (int i = 0; i < COUNT; i++)
            same += a[i] == b[i];
        assert_true(abs(same - COUNT / 2) < 1000); // six standard deviations
    }
}

static void a_softmax_below_opset_13_takes_all_axes_behind_as_one(void **state)
{
    static const char *const strings[] = {
        "<ir_version: 7, opset_import: [\"\" : 11]> g (float[2,3,2] x) => (float[2,3,2] y) { y = "
        "Softmax <axis = 1> (x) }",
        "<ir_version: 7, opset_import: [\"\" : 11]> g (float[2,3,2] x) => (float[2,3,2] y) "
        "{ z = LogSoftmax (x) y = Exp (z) }"};
    float elements[12];
    ot_tensor *x, *y;

    (void)state;
    for (int i = 0; i < 12; i++)
        elements[i] = (float)(i % 5) * 0.5f;
    assert_ok(ot_tensor_wrap(OT_F32, &OT_SHAPE(2, 3, 2), elements, sizeof(elements), &x));
    for (size_t t = 0; t < OT_COUNT(strings); t++) {
        ot_model *model = read_text(strings[t]);
        y = NULL;
        assert_ok(ot_model_run(model, NULL, (const ot_tensor *const[]){x}, 1, &y, 1));
        for (int row = 0; row < 2; row++) {
            double sum = 0;
            for (int k = 0; k < 6; k++)
                sum += exp((double)elements[row * 6 + k]);
            for (int k = 0; k < 6; k++)
                assert_true(fabs(ot__tensor_get_f64(y, row * 6 + k) -
                                 exp((double)elements[row * 6 + k]) / sum) < 1e-6);
        }
        ot_tensor_destroy(y);
        ot_model_destroy(model);
    }
    ot_tensor_destroy(x);
}

static void a_hardmax_below_opset_13_takes_all_axes_behind_as_one(void **state)
{
    static const double elements[] = {1, 5, 2, 5, 3, 4, 0, -1, -2, -3, 1, 0};
    ot_tensor *x = new_tensor(OT_F32, OT_SHAPE(2, 3, 2), elements), *y = NULL;
    ot_model *model = read_text("<ir_version: 7, opset_import: [\"\" : 11]> g (float[2,3,2] x) "
                                "=> (float[2,3,2] y) { y = Hardmax (x) }");

    (void)state;
    assert_ok(ot_model_run(model, NULL, (const ot_tensor *const[]){x}, 1, &y, 1));
    for (int i = 0; i < 12; i++)
        assert_true(ot__tensor_get_f64(y, i) == (i == 1 || i == 10));
    ot_tensor_destroy(y);
    ot_tensor_destroy(x);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_share_dropped_is_the_ratio),
        cmocka_unit_test(the_mask_follows_seed_counter_and_name),
        cmocka_unit_test(a_softmax_below_opset_13_takes_all_axes_behind_as_one),
        cmocka_unit_test(a_hardmax_below_opset_13_takes_all_axes_behind_as_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
