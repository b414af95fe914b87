// SPDX-License-Identifier: Apache-2.0
// What a file states of shapes is a hint: what follows from the inputs wins.
#include "evaluate.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> g "

static char warning[256];
static int n_warnings;

static void keep_warning(void *context, ot_log_level level, const char *message)
{
    (void)context;
    if (level != OT_LOG_WARNING)
        return;
    n_warnings++;
    snprintf(warning, sizeof warning, "%s", message);
}

static ot_model *prepared(const char *text)
{
    ot_model *model;

    n_warnings = 0;
    ot_set_log(keep_warning, NULL);
    model = read_prepared(text);
    ot_set_log(NULL, NULL);
    return model;
}

static void assert_shape(const ot_model *model, const char *name, const char *expected)
{
    char text[160];

    assert_string_equal(ot__dims_text(model, &find_value(model, name)->shape, text, sizeof text),
                        expected);
}

static void assert_warned(const char *value)
{
    char expected[256];

    snprintf(expected, sizeof expected,
             "the file declares a wrong shape for '%s'; the inferred shape is used", value);
    assert_int_equal(n_warnings, 1);
    assert_string_equal(warning, expected);
}

static void a_wrong_shape_of_an_output_is_not_used(void **state)
{
    ot_model *model = prepared(HEAD "(float[N, 4] x) => (float[N, 7] y)"
                                    "<float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}>"
                                    "{ y = MatMul(x, w) }");

    (void)state;
    assert_shape(model, "y", "[N,3]");
    assert_warned("y");
    ot_model_destroy(model);
}

static void a_wrong_shape_on_the_way_is_not_used(void **state)
{
    ot_model *model = prepared(HEAD "(float[N, 4] x) => (float[N, 4] y)"
                                    "<float[N, 5] z> { z = Relu(x) y = Neg(z) }");

    (void)state;
    assert_shape(model, "z", "[N,4]");
    assert_warned("z");
    ot_model_destroy(model);
}

static void axes_too_many_or_too_few_are_not_used(void **state)
{
    ot_model *model = prepared(HEAD "(float[2, N, 1] x) => (float[2, 1, N, 1] y)"
                                    "<float[1, 4, 1] w = {1, 2, 3, 4},"
                                    " float[1, 4, 1] r = {1, 2, 3, 4}, float[2, N, 1] s> {"
                                    " s = LSTM<hidden_size = 1>(x, w, r) y = Neg(s) }");

    (void)state;
    assert_shape(model, "s", "[2,1,N,1]");
    assert_warned("s");
    ot_model_destroy(model);
}

static void the_batch_of_the_example_is_not_used_where_the_input_is_open(void **state)
{
    ot_model *model = prepared(HEAD "(float[N, 4] x) => (float[8, 4] y) { y = Relu(x) }");
    const ot_shape three = OT_SHAPE(3, 4);

    (void)state;
    assert_shape(model, "y", "[N,4]");
    assert_warned("y");
    assert_ok(ot__pass_specialize(model, &three, 1));
    assert_shape(model, "y", "[3,4]");
    ot_model_destroy(model);
}

static void several_wrong_shapes_are_one_warning(void **state)
{
    ot_model *model = prepared(HEAD "(float[N, 4] x) => (float[8, 4] y)"
                                    "<float[8, 4] z> { z = Relu(x) y = Neg(z) }");

    (void)state;
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(warning, "a wrong shape for 'z' and others; "));
    ot_model_destroy(model);
}

static void what_is_right_or_unknown_needs_no_word(void **state)
{
    // How many rows Slice takes is the data's business; the file's word for it stays.
    ot_model *model = prepared(HEAD "(float[N, 4] x, int64[1] n) => (float[2, 4] y)"
                                    "<int64[1] zero = {0}, float[out_0, 4] z> {"
                                    " z = Relu(x) y = Slice(z, zero, n) }");

    (void)state;
    assert_int_equal(n_warnings, 0);
    assert_shape(model, "z", "[N,4]");
    assert_shape(model, "y", "[2,4]");
    ot_model_destroy(model);
}

static void a_name_of_the_inputs_proves_nothing_of_an_extent_that_is_unknown(void **state)
{
    ot_model *model = prepared(HEAD "(float[N, 4] x, int64[1] n) => (float[N, 4] y)"
                                    "<int64[1] zero = {0}> { y = Slice(x, zero, n) }");

    (void)state;
    assert_shape(model, "y", "[?,4]");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_shape_of_an_output_is_not_used),
        cmocka_unit_test(a_wrong_shape_on_the_way_is_not_used),
        cmocka_unit_test(axes_too_many_or_too_few_are_not_used),
        cmocka_unit_test(the_batch_of_the_example_is_not_used_where_the_input_is_open),
        cmocka_unit_test(several_wrong_shapes_are_one_warning),
        cmocka_unit_test(what_is_right_or_unknown_needs_no_word),
        cmocka_unit_test(a_name_of_the_inputs_proves_nothing_of_an_extent_that_is_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
