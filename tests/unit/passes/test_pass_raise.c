// SPDX-License-Identifier: Apache-2.0
// Nodes get the form of a later opset, and compute what they did.
#include "evaluate.h"

static void scales_of_groups_become_those_of_channels(void **state)
{
    static const char text[] = "<ir_version: 8, opset_import: [\"\" : 18]>"
                               "g (float[2,4,3] x, float[2] s, float[2] b) => (float[2,4,3] y)"
                               "{ y = GroupNormalization<num_groups = 2>(x, s, b) }";
    ot_model *models[2];
    evaluation e[2] = {0};
    double numbers[24];

    (void)state;
    for (int k = 0; k < 24; k++)
        numbers[k] = k * k % 7 - 3;
    for (int i = 0; i < 2; i++) {
        models[i] = read_prepared(text);
        if (i == 1)
            assert_ok(ot__pass_raise(models[i], 21));
        feed(&e[i], "x", new_tensor(OT_F32, OT_SHAPE(2, 4, 3), numbers));
        feed(&e[i], "s", new_tensor(OT_F32, OT_SHAPE(2), (double[]){2, -0.5}));
        feed(&e[i], "b", new_tensor(OT_F32, OT_SHAPE(2), (double[]){1, -1}));
        compute(&e[i], models[i]);
    }
    assert_int_equal(ot__model_opset(models[1], ""), 21);
    assert_int_equal(find_value(models[1], "y")->producer->inputs[1]->shape.dim[0], 4);
    for (int k = 0; k < 24; k++)
        assert_float_equal(element(&e[1], "y", k), element(&e[0], "y", k), 1e-6);
    for (int i = 0; i < 2; i++) {
        evaluation_deinit(&e[i]);
        ot_model_destroy(models[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_of_groups_become_those_of_channels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
