// SPDX-License-Identifier: Apache-2.0
#include "artifacts/artifacts.h"
#include "evaluate.h"

static const char forward[] = "<ir_version: 8, opset_import: [\"\" : 17]>"
                              "g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}>"
                              "{ y = Mul(x, w) }";

static ot_status attach(ot_model *model, const char *custom_text, ot_loss_options options,
                        ot_value **loss)
{
    ot_model *custom = read_text(custom_text);
    ot_status st;

    options.loss = OT_LOSS_CUSTOM;
    options.custom = custom;
    st = ot__loss_attach(model->graph, &options, 1, loss);
    ot_model_destroy(custom); // what was taken over must outlive it
    return st;
}

static void inputs_bind_by_name_and_the_others_become_targets(void **state)
{
    const ot_loss_options options = OT_LOSS_OPTIONS_INIT;
    ot_model *model = read_prepared(forward);
    const double x[] = {1, 1, 1}, t[] = {0, 0, 1};
    evaluation e = {0};
    ot_value *loss;
    const ot_value *t_input;

    (void)state;
    assert_ok(attach(model,
                     "<ir_version: 8, opset_import: [\"\" : 17]>"
                     "l (float[M, 3] y, float[M, 3] t) => (float loss) <float[1] half = {0.5}>"
                     "{ d = Sub(y, t) s = Mul(d, d) r = Mul(s, half)"
                     "  loss = ReduceSum<keepdims = 0>(r) }",
                     options, &loss));
    t_input = find_value(model, "t");
    assert_true(t_input->is_input);
    assert_int_equal(t_input->dtype, OT_F32);
    assert_string_equal(ot__dim_name(model, t_input->shape.dim[0]), "M");
    feed(&e, "x", new_tensor(OT_F32, OT_SHAPE(1, 3), x));
    feed(&e, "t", new_tensor(OT_F32, OT_SHAPE(1, 3), t));
    compute(&e, model);
    assert_true(element(&e, loss->name, 0) == 0.5 * (1.0 + 4.0 + 4.0));
    evaluation_deinit(&e);
    ot_model_destroy(model);
}

static void names_that_both_models_use_do_not_meet(void **state)
{
    const ot_loss_options options = OT_LOSS_OPTIONS_INIT;
    ot_model *model = read_prepared(forward);
    ot_value *loss;

    (void)state;
    assert_ok(attach(model,
                     "<ir_version: 8, opset_import: [\"\" : 17]>"
                     "l (float[M, 3] y) => (float z) <float[3] w = {7, 7, 7}>"
                     "{ a = Mul(y, w) z = ReduceSum<keepdims = 0>(a) }",
                     options, &loss));
    assert_string_equal(loss->producer->inputs[0]->producer->inputs[1]->name, "w_1");
    ot_model_destroy(model);
}

static void input_and_target_options_bind_what_names_do_not(void **state)
{
    ot_loss_options options = OT_LOSS_OPTIONS_INIT;
    ot_model *model = read_prepared(forward);
    ot_value *loss;

    (void)state;
    options.input = "y";
    options.target = "wanted";
    assert_ok(attach(model,
                     "<ir_version: 8, opset_import: [\"\" : 17]>"
                     "l (float[M, 3] a, float[M, 3] b) => (float z)"
                     "{ d = Sub(a, b) z = ReduceSum<keepdims = 0>(d) }",
                     options, &loss));
    assert_true(find_value(model, "wanted")->is_input);
    ot_model_destroy(model);
}

static void a_loss_that_reads_no_output_is_refused(void **state)
{
    const ot_loss_options options = OT_LOSS_OPTIONS_INIT;
    ot_model *model = read_prepared(forward);
    ot_value *loss;

    (void)state;
    assert_fails(
        attach(model,
               "<ir_version: 8, opset_import: [\"\" : 17]>"
               "l (float[M, 3] a, float[M] b) => (float z) { z = ReduceSum<keepdims = 0>(a) }",
               options, &loss),
        OT_ERR_INVALID, "none of its inputs (a, b) is an output of the model (y)");
    ot_model_destroy(model);
}

static void a_binding_of_another_type_is_refused(void **state)
{
    const ot_loss_options options = OT_LOSS_OPTIONS_INIT;
    ot_model *model = read_prepared(forward);
    ot_value *loss;

    (void)state;
    assert_fails(attach(model,
                        "<ir_version: 8, opset_import: [\"\" : 17]>"
                        "l (double[M, 3] y) => (double z) { z = ReduceSum<keepdims = 0>(y) }",
                        options, &loss),
                 OT_ERR_INVALID, "input 'y' is f64, but the model's 'y' is f32");
    ot_model_destroy(model);
}

// z is the mean of y = x * {1, 2, 3} over x = {1, 1, 1}.
static void assert_mean_of_opsets(int model_opset, int loss_opset, const char *body, int64_t after)
{
    const ot_loss_options options = OT_LOSS_OPTIONS_INIT;
    const double x[] = {1, 1, 1};
    evaluation e = {0};
    char text[512];
    ot_model *model;
    ot_value *loss;

    snprintf(text, sizeof text,
             "<ir_version: 8, opset_import: [\"\" : %d]> g (float[N, 3] x) => (float[N, 3] y)"
             "<float[3] w = {1, 2, 3}> { m = Mul(x, w) y = Relu(m) }",
             model_opset);
    model = read_prepared(text);
    snprintf(text, sizeof text,
             "<ir_version: 8, opset_import: [\"\" : %d]> l (float[M, 3] y) => (float z) %s",
             loss_opset, body);
    assert_ok(attach(model, text, options, &loss));
    assert_int_equal(ot__model_opset(model, ""), after);
    feed(&e, "x", new_tensor(OT_F32, OT_SHAPE(1, 3), x));
    compute(&e, model);
    assert_true(element(&e, loss->name, 0) == 2.0);
    evaluation_deinit(&e);
    ot_model_destroy(model);
}

static void a_loss_of_an_earlier_opset_is_raised_to_the_models(void **state)
{
    (void)state;
    assert_mean_of_opsets(18, 13, "{ z = ReduceMean<keepdims = 0, axes = [0, 1]>(y) }", 18);
    assert_mean_of_opsets(18, 11, "{ z = ReduceMean<keepdims = 0, axes = [0, 1]>(y) }", 18);
    assert_mean_of_opsets(20, 13,
                          "{ a, b, c = Split<axis = 1>(y) d = Add(a, c)"
                          "  z = ReduceMax<keepdims = 0>(b) }",
                          20);
}

static void a_model_of_an_earlier_opset_is_raised_to_the_losss(void **state)
{
    (void)state;
    assert_mean_of_opsets(17, 18,
                          "<int64[2] axes = {0, 1}> { z = ReduceMean<keepdims = 0>(y, axes) }", 18);
    // What has one form at both needs no other model.
    assert_mean_of_opsets(
        17, 18, "<float third = {3}> { s = ReduceSum<keepdims = 0>(y) z = Div(s, third) }", 17);
}

static void an_operator_that_the_later_opset_lacks_is_told(void **state)
{
    const ot_loss_options options = OT_LOSS_OPTIONS_INIT;
    ot_model *model = read_prepared(forward);
    ot_value *loss;

    (void)state;
    assert_fails(attach(model,
                        "<ir_version: 8, opset_import: [\"\" : 13]>"
                        "l (float[M, 3] y) => (float z) { a = ImageDecoder(y) z = ReduceSum(a) }",
                        options, &loss),
                 OT_ERR_UNSUPPORTED, "custom loss: ");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_bind_by_name_and_the_others_become_targets),
        cmocka_unit_test(names_that_both_models_use_do_not_meet),
        cmocka_unit_test(input_and_target_options_bind_what_names_do_not),
        cmocka_unit_test(a_loss_that_reads_no_output_is_refused),
        cmocka_unit_test(a_binding_of_another_type_is_refused),
        cmocka_unit_test(a_loss_of_an_earlier_opset_is_raised_to_the_models),
        cmocka_unit_test(a_model_of_an_earlier_opset_is_raised_to_the_losss),
        cmocka_unit_test(an_operator_that_the_later_opset_lacks_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
