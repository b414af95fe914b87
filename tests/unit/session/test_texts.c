// SPDX-License-Identifier: Apache-2.0
// Texts that are fed, carried and given.
#include "evaluate.h"
#include "onnxtrain/runner.h"

static const char model_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 2]>\n"
    "f (string[n,m] x) => (float[n,m] y, int64[2] s)\n"
    "{ y = ai.onnx.ml.LabelEncoder <keys_strings: strings = [\"b\", \"a\", \"ab\", \"b\"],\n"
    "      values_floats: floats = [2, 1, 3, 9], default_float: float = -1> (x)\n"
    "  s = Shape (x) }";

static ot_tensor *strings(const ot_shape *shape, const char *const *items, const size_t *n_bytes)
{
    ot_tensor *tensor;

    assert_ok(ot_tensor_create_strings(shape, items, n_bytes, &tensor));
    return tensor;
}

static void texts_become_what_their_table_has(void **state)
{
    static const char *const items[] = {"a", "b", "ab", "abc", "", "a"};
    static const size_t n_bytes[] = {1, 1, 2, 3, 0, 2}; // the last is a and a zero
    static const double expected[] = {1, 2, 3, -1, -1, -1};
    ot_model *model = read_text(model_text);
    ot_tensor *x = strings(&OT_SHAPE(2, 3), items, n_bytes), *copy, *outputs[2] = {NULL, NULL};
    const ot_tensor *inputs[1];

    (void)state;
    assert_int_equal(ot_tensor_dtype(x), OT_STRING);
    assert_ok(ot_tensor_clone(x, &copy));
    ot_tensor_destroy(x); // the copy has strings of its own
    inputs[0] = copy;
    assert_ok(ot_model_run(model, NULL, inputs, 1, outputs, 2));
    for (int i = 0; i < 6; i++)
        assert_true(ot__tensor_get_f64(outputs[0], i) == expected[i]);
    assert_int_equal(ot__tensor_get_i64(outputs[1], 1), 3);
    ot_tensor_destroy(outputs[0]);
    ot_tensor_destroy(outputs[1]);
    ot_tensor_destroy(copy);
    ot_model_destroy(model);
}

static void texts_that_are_none_are_refused(void **state)
{
    static const char *const items[] = {"a", NULL};
    ot_tensor *tensor;

    (void)state;
    assert_fails(ot_tensor_create_strings(&OT_SHAPE(2), items, NULL, &tensor), OT_ERR_INVALID,
                 "text 1 of a tensor is NULL");
    assert_null(tensor);
    assert_int_equal(ot_tensor_create_strings(&OT_SHAPE(-1), items, NULL, &tensor), OT_ERR_INVALID);
    assert_int_equal(ot_tensor_create_strings(&OT_SHAPE(2), NULL, NULL, &tensor), OT_ERR_INVALID);
    assert_int_equal(ot_tensor_create(OT_STRING, &OT_SHAPE(2), &tensor), OT_ERR_INVALID);
    tensor = strings(&OT_SHAPE(0), NULL, NULL);
    assert_int_equal(ot_tensor_count(tensor), 0);
    ot_tensor_destroy(tensor);
}

static const char carrying[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 2]>\n"
    "f (string[n,m] x, int64[k] i) => (string[k,n] y, string[n,m] x2, string[m,n] z, string[2] c)\n"
    "{ t = Transpose (x)\n y = Gather (t, i)\n x2 = Identity (x)\n"
    "  z = ai.onnx.ml.LabelEncoder <keys_strings: strings = [\"a\"],\n"
    "      values_strings: strings = [\"A\"], default_string: string = \"\"> (t)\n"
    "  c = Constant <value_strings: strings = [\"p\", \"\"]> () }";

static void expect_strings(const ot_tensor *tensor, const char *joined)
{
    char text[80];
    size_t at = 0, n;

    assert_int_equal(ot_tensor_dtype(tensor), OT_STRING);
    for (int64_t i = 0; i < ot_tensor_count(tensor); i++) {
        const char *one = ot_tensor_string(tensor, i, &n);

        assert_non_null(one);
        for (size_t k = 0; k < n; k++)
            text[at++] = one[k] != '\0' ? one[k] : '0';
        text[at++] = ',';
    }
    text[at] = '\0';
    assert_string_equal(text, joined);
}

// Every allocation of a run may fail; what it gives outlives what was fed, and the model.
static void results_have_characters_of_their_own(void **state)
{
    static const char *const items[] = {"a", "bb", "", "d\0e"};
    static const size_t n_bytes[] = {1, 2, 0, 3};
    static int64_t indices[] = {1, -2, 1};
    ot_tensor *outputs[4], *in[2];
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int n = 0; st == OT_ERR_NO_MEMORY; n++) {
        ot_model *model = read_text(carrying);

        in[0] = strings(&OT_SHAPE(2, 2), items, n_bytes);
        assert_ok(ot_tensor_wrap(OT_I64, &OT_SHAPE(3), indices, sizeof indices, &in[1]));
        ot__alloc_fail_after(n);
        st = ot_model_run(model, NULL, (const ot_tensor *const *)in, 2, outputs, 4);
        ot__alloc_fail_after(-1);
        ot_tensor_destroy(in[0]);
        ot_tensor_destroy(in[1]);
        ot_model_destroy(model);
        for (int i = 0; st != OT_OK && i < 4; i++)
            assert_null(outputs[i]);
    }
    assert_int_equal(st, OT_OK);
    expect_strings(outputs[0], "bb,d0e,a,,bb,d0e,");
    expect_strings(outputs[1], "a,bb,,d0e,");
    expect_strings(outputs[2], "A,,,,");
    expect_strings(outputs[3], "p,,");
    assert_null(ot_tensor_string(outputs[3], 2, &(size_t){0}));
    for (int i = 0; i < 4; i++)
        ot_tensor_destroy(outputs[i]);
}

// By the texts of ONNX's specification of the operators. Two of them are composed of operators of a
// domain that the model does not import.
static void texts_are_categories_features_and_labels(void **state)
{
    static const char *const items[] = {"a", "bb", "", "bb"};
    static const double expected[] = {0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0};
    static float numbers[] = {1, 3, 2, -3};
    static int64_t indices[] = {1, 0, 1};
    ot_model *model = read_text(
        "<ir_version: 8, opset_import: [\"ai.onnx.ml\" : 3]>\n"
        "f (string[n,m] x, float[n,k] v, int64[j] i) => (float[n,m,3] y, string[n,j] z, string[n] "
        "c)\n"
        "{ y = ai.onnx.ml.OneHotEncoder <cats_strings: strings = [\"bb\", \"b\", \"a\"]> (x)\n"
        "  z = ai.onnx.ml.ArrayFeatureExtractor (x, i)\n"
        "  c, s = ai.onnx.ml.LinearClassifier <coefficients: floats = [1, 0, 0, 1],\n"
        "         classlabels_strings: strings = [\"first\", \"second\"]> (v) }");
    ot_tensor *in[] = {strings(&OT_SHAPE(2, 2), items, NULL), NULL, NULL}, *outputs[3];

    (void)state;
    assert_ok(ot_tensor_wrap(OT_F32, &OT_SHAPE(2, 2), numbers, sizeof numbers, &in[1]));
    assert_ok(ot_tensor_wrap(OT_I64, &OT_SHAPE(3), indices, sizeof indices, &in[2]));
    assert_ok(ot_model_run(model, NULL, (const ot_tensor *const *)in, 3, outputs, 3));
    for (int i = 0; i < 12; i++)
        assert_true(ot__tensor_get_f64(outputs[0], i) == expected[i]);
    expect_strings(outputs[1], "bb,a,bb,bb,,bb,");
    expect_strings(outputs[2], "second,first,");
    for (int i = 0; i < 3; i++) {
        ot_tensor_destroy(in[i]);
        ot_tensor_destroy(outputs[i]);
    }
    ot_model_destroy(model);
}

static void operators_on_numbers_refuse_strings(void **state)
{
    static const char *const items[] = {"a"};
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "f (string[n,m] x) => (string[n,m] y) { y = Trilu (x) }");
    ot_tensor *x = strings(&OT_SHAPE(1, 1), items, NULL), *y = NULL;
    const ot_tensor *inputs[] = {x};

    (void)state;
    assert_fails(ot_model_run(model, NULL, inputs, 1, &y, 1), OT_ERR_UNSUPPORTED, "is string");
    assert_null(y);
    ot_tensor_destroy(x);
    ot_model_destroy(model);
}

static void every_allocation_may_fail(void **state)
{
    static const char *const items[] = {"one", "two"};
    ot_status st = OT_ERR_NO_MEMORY;
    ot_tensor *tensor = NULL;

    (void)state;
    for (int n = 0; st == OT_ERR_NO_MEMORY; n++) {
        ot__alloc_fail_after(n);
        st = ot_tensor_create_strings(&OT_SHAPE(2), items, NULL, &tensor);
        ot__alloc_fail_after(-1);
    }
    assert_int_equal(st, OT_OK);
    ot_tensor_destroy(tensor);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_what_their_table_has),
        cmocka_unit_test(texts_that_are_none_are_refused),
        cmocka_unit_test(results_have_characters_of_their_own),
        cmocka_unit_test(texts_are_categories_features_and_labels),
        cmocka_unit_test(operators_on_numbers_refuse_strings),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
