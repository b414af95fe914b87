// SPDX-License-Identifier: Apache-2.0
// Texts that are fed.
#include "evaluate.h"
#include "onnxtrain/session.h"

static const char model_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 2]>\n"
    "f (string[n,m] x) => (float[n,m] y, int64[2] s)\n"
    "{ y = ai.onnx.ml.LabelEncoder <keys_strings: strings = [\"b\", \"a\", \"ab\", \"b\"],\n"
    "      values_floats: floats = [2, 1, 3, 9], default_float: float = -1> (x)\n"
    "  s = Shape (x) }";

static ot_tensor *texts(const ot_shape *shape, const char *const *items, const size_t *n_bytes)
{
    ot_tensor *tensor;

    assert_ok(ot_tensor_create_texts(shape, items, n_bytes, &tensor));
    return tensor;
}

static void texts_become_what_their_table_has(void **state)
{
    static const char *const items[] = {"a", "b", "ab", "abc", "", "a"};
    static const size_t n_bytes[] = {1, 1, 2, 3, 0, 2}; // the last is a and a zero
    static const double expected[] = {1, 2, 3, -1, -1, -1};
    ot_model *model = read_text(model_text);
    ot_tensor *x = texts(&OT_SHAPE(2, 3), items, n_bytes), *copy, *outputs[2] = {NULL, NULL};
    const ot_tensor *inputs[1];

    (void)state;
    assert_int_equal(ot_tensor_dtype(x), OT_STRING);
    assert_ok(ot_tensor_clone(x, &copy));
    ot_tensor_destroy(x); // the copy has texts of its own
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
    assert_fails(ot_tensor_create_texts(&OT_SHAPE(2), items, NULL, &tensor), OT_ERR_INVALID,
                 "text 1 of a tensor is NULL");
    assert_null(tensor);
    assert_int_equal(ot_tensor_create_texts(&OT_SHAPE(-1), items, NULL, &tensor), OT_ERR_INVALID);
    assert_int_equal(ot_tensor_create_texts(&OT_SHAPE(2), NULL, NULL, &tensor), OT_ERR_INVALID);
    assert_int_equal(ot_tensor_create(OT_STRING, &OT_SHAPE(2), &tensor), OT_ERR_INVALID);
    tensor = texts(&OT_SHAPE(0), NULL, NULL);
    assert_int_equal(ot_tensor_count(tensor), 0);
    ot_tensor_destroy(tensor);
}

static void texts_are_no_results(void **state)
{
    static const char *const items[] = {"a"};
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "f (string[n] x) => (string[n] y) { y = Identity (x) }");
    ot_tensor *x = texts(&OT_SHAPE(1), items, NULL), *y = NULL;
    const ot_tensor *inputs[] = {x};

    (void)state;
    assert_fails(ot_model_run(model, NULL, inputs, 1, &y, 1), OT_ERR_UNSUPPORTED, "string");
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
        st = ot_tensor_create_texts(&OT_SHAPE(2), items, NULL, &tensor);
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
        cmocka_unit_test(texts_are_no_results),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
