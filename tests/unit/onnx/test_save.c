#include "unit/onnx/folder.h"

static const char *const text =
    "<ir_version: 10, opset_import: [\"\" : 21]> g (float[4] x) => (float[4] y)"
    " <float[4] a = {1, 2, 3, 4}, float[2] small = {5, 6}, float[8] b = {1, 2, 3, 4, 5, 6, 7, 8}>"
    " { y = Op (x, a, small, b) }";

static ot_model *load(const char *name)
{
    ot_model *model;

    if (ot_model_load(in_folder(name), NULL, &model) != OT_OK)
        fail_msg("%s", ot_error_message());
    return model;
}

static void assert_same(const ot_model *a, const ot_model *b)
{
    ot__buf first = {0}, second = {0};

    assert_int_equal(ot__onnx_write(a, &first), OT_OK);
    assert_int_equal(ot__onnx_write(b, &second), OT_OK);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.data, second.data, first.length);
    ot__buf_deinit(&first);
    ot__buf_deinit(&second);
}

static void what_is_saved_is_loaded_in_either_form(void **state)
{
    ot_model *model = model_of(text), *again;

    (void)state;
    assert_int_equal(ot_model_save(model, in_folder("m.onnx"), NULL), OT_OK);
    again = load("m.onnx");
    assert_same(model, again);
    ot_model_destroy(again);
    assert_int_equal(ot_model_save(model, in_folder("m.onnxtxt"), NULL), OT_OK);
    again = load("m.onnxtxt");
    assert_same(model, again);
    ot_model_destroy(again);
    assert_false(ot__path_exists(in_folder("m.onnx.data")));
    ot_model_destroy(model);
}

static void large_constants_go_beside_the_model_when_asked(void **state)
{
    ot_model *model = model_of(text), *again;
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    struct stat info;

    (void)state;
    options.external_from = 16;
    assert_int_equal(ot_model_save(model, in_folder("m.onnx"), &options), OT_OK);
    assert_int_equal(stat(in_folder("m.onnx.data"), &info), 0);
    assert_int_equal(info.st_size, 4096 + 32); // a at 0, b at the next page
    again = load("m.onnx");
    assert_same(model, again);
    ot_model_destroy(again);
    ot_model_destroy(model);
}

static void a_model_is_saved_over_the_files_it_was_read_from(void **state)
{
    ot_model *model = model_of(text), *again;
    ot_model_options options = OT_MODEL_OPTIONS_INIT;

    (void)state;
    options.external_from = 1;
    assert_int_equal(ot_model_save(model, in_folder("m.onnx"), &options), OT_OK);
    again = load("m.onnx"); // its constants are in the mapped file
    assert_int_equal(ot_model_save(again, in_folder("m.onnx"), &options), OT_OK);
    assert_same(model, again);
    ot_model_destroy(again);
    again = load("m.onnx");
    assert_same(model, again);
    ot_model_destroy(again);
    ot_model_destroy(model);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    ot_model *model = model_of(text);

    (void)state;
    assert_int_equal(ot_model_save(model, in_folder("none/m.onnx"), NULL), OT_ERR_IO);
    assert_message_has("none/m.onnx");
    ot_model_destroy(model);
}

static void text_is_shortened_for_people(void **state)
{
    ot_model *model =
        model_of("g (float[20] x) => (float[20] y) <float[20] w = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9,"
                 " 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}> { y = Add (x, w) }");
    char *shown;

    (void)state;
    assert_int_equal(ot_model_to_text(model, &shown), OT_OK);
    assert_non_null(strstr(shown, "13,14,15,...}"));
    ot_text_free(shown);
    ot_text_free(NULL);
    ot_model_destroy(model);
}

static void a_failed_save_leaves_the_old_file(void **state)
{
    ot_model *model = model_of(text), *again;
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    int64_t n = 0;
    ot_status st;

    (void)state;
    options.external_from = 1;
    assert_int_equal(ot_model_save(model, in_folder("m.onnx"), &options), OT_OK);
    do {
        ot__alloc_fail_after(n++);
        st = ot_model_save(model, in_folder("m.onnx"), &options);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        again = load("m.onnx");
        assert_same(model, again);
        ot_model_destroy(again);
    } while (st != OT_OK);
    assert_true(n > 3);
    ot_model_destroy(model);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(what_is_saved_is_loaded_in_either_form),
        TEST(large_constants_go_beside_the_model_when_asked),
        TEST(a_model_is_saved_over_the_files_it_was_read_from),
        TEST(a_folder_that_is_not_there_is_named),
        TEST(text_is_shortened_for_people),
        TEST(a_failed_save_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
