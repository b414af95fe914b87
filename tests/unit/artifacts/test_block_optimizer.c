// SPDX-License-Identifier: Apache-2.0
#include "block_tests.h"

static void an_optimizer_built_from_its_parts_is_the_one_of_generate(void **state)
{
    ot_optimizer_options options = OT_OPTIMIZER_OPTIONS_INIT;
    ot_block_options empty = OT_BLOCK_OPTIONS_INIT;
    ot_value *in[6], *flag;
    ot_model *whole, *parts;
    char *strings[3];
    ot_block *b;

    (void)state;
    empty.opset = 17;
    options.max_norm = 2.5;
    assert_ok(ot__optimizer_model(&options, NULL, OT_F32, 17, &whole));
    strings[0] = bytes_of(whole);
    ot_model_destroy(whole);
    assert_ok(ot_block_create_empty(&empty, &b));
    whole = finished(b, ot_block_optimizer(b, &options, OT_F32));
    strings[1] = bytes_of(whole);
    ot_model_destroy(whole);
    assert_ok(ot_block_create_empty(&empty, &b));
    in[0] = ot_block_input(b, "learning_rate", OT_F32, &OT_SHAPE(1));
    in[1] = ot_block_input(b, "step", OT_I64, &OT_SHAPE(1));
    in[2] = ot_block_input_sequence(b, "params", OT_F32);
    in[3] = ot_block_input_sequence(b, "gradients", OT_F32);
    in[4] = ot_block_input_sequence(b, "first_order_moments", OT_F32);
    in[5] = ot_block_input_like(b, in[4], "second_order_moments");
    in[3] = ot_block_clip_grad_norm(b, in[3], 2.5);
    flag = ot_block_adamw(b, in[0], in[1], in[2], in[3], in[4], in[5], &options);
    parts = finished(b, flag);
    strings[2] = bytes_of(parts);
    ot_model_destroy(parts);
    assert_string_equal(strings[0], strings[1]);
    assert_string_equal(strings[0], strings[2]);
    for (int i = 0; i < 3; i++)
        ot__free(strings[i]);
}

static void sgd_takes_its_three_inputs_only(void **state)
{
    ot_value *lr, *params, *gradients;
    ot_model *model;
    ot_block *b;

    (void)state;
    assert_ok(ot_block_create_empty(NULL, &b));
    lr = ot_block_input(b, "learning_rate", OT_F32, &OT_SHAPE(1));
    params = ot_block_input_sequence(b, "params", OT_F32);
    gradients = ot_block_input_sequence(b, "gradients", OT_F32);
    model = finished(b, ot_block_sgd(b, lr, params, gradients));
    assert_nodes(model, "   [\"onnx::SGDOptimizerV2::2\"] \"onnx::update_completed::1\" = "
                        "com.microsoft.SGDOptimizerV2 (learning_rate, params, gradients)\n");
    ot_model_destroy(model);
    assert_ok(ot_block_create_empty(NULL, &b));
    lr = ot_block_input(b, "learning_rate", OT_F32, &OT_SHAPE(1));
    assert_refused(b, ot_block_sgd(b, lr, lr, lr), OT_ERR_INVALID,
                   "sgd: SGDOptimizerV2 'onnx::SGDOptimizerV2::2': input 1 (");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_optimizer_built_from_its_parts_is_the_one_of_generate),
        cmocka_unit_test(sgd_takes_its_three_inputs_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
