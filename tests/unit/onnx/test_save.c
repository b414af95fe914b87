// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/wait.h>

#include "base/file_calls.h"
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

static int count_files(void)
{
    DIR *dir = opendir(folder);
    int n = -2; // "." and ".."

    while (dir && readdir(dir))
        n++;
    closedir(dir);
    return n;
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
    assert_int_equal(count_files(), 2);
    ot_model_destroy(model);
}

// The one name in the folder that ends so and is no other model's; the last answer stays.
static const char *find_data(const char *model)
{
    static char found[256];
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    int n_found = 0;

    while (dir && (entry = readdir(dir)))
        if (ot__starts_with(entry->d_name, model) && ot__ends_with(entry->d_name, ".data")) {
            snprintf(found, sizeof found, "%s", entry->d_name);
            n_found++;
        }
    closedir(dir);
    assert_int_equal(n_found, 1);
    return found;
}

static void large_constants_go_beside_the_model_when_asked(void **state)
{
    ot_model *model = model_of(text), *again;
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    struct stat info;

    (void)state;
    options.external_from = 16;
    assert_int_equal(ot_model_save(model, in_folder("m.onnx"), &options), OT_OK);
    assert_int_equal(stat(in_folder(find_data("m.onnx.")), &info), 0);
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
    ot_string_free(shown);
    ot_string_free(NULL);
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

// ---- two files that belong together ----

enum { EMBEDDED = 0, EXTERNAL = 1, CALLS_MAX = 100 };

// A model of which every element tells which one it is.
static ot_model *numbered(int number)
{
    char numbered_text[300];

    snprintf(numbered_text, sizeof numbered_text,
             "<ir_version: 10, opset_import: [\"\" : 21]> g%d (float[4] x) => (float[4] y)"
             " <float[4] a = {%d, %d, %d, %d}> { y = Add (x, a) }",
             number, number, number, number, number);
    return model_of(numbered_text);
}

static ot_status save_numbered(int number, int form)
{
    ot_model *model = numbered(number);
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    ot_status st;

    options.external_from = form == EXTERNAL ? 1 : 0;
    st = ot_model_save(model, in_folder("m.onnx"), &options);
    ot_model_destroy(model);
    return st;
}

// Which model the file holds, after comparing it with what was saved.
static int load_number(void)
{
    ot_model *found = load("m.onnx"), *expected;
    int number = (int)ot__tensor_get_f64(ot__graph_find(found->graph, "a")->constant, 0);

    expected = numbered(number);
    assert_same(found, expected);
    ot_model_destroy(expected);
    ot_model_destroy(found);
    return number;
}

// In a child that is killed before its system call number `n_calls`; false when it came to its end.
static bool save_and_be_killed(int number, int form, int n_calls)
{
    const pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        ot__file_fault_after(n_calls, OT_FILE_KILL);
        _exit(save_numbered(number, form) == OT_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return true;
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return false;
}

static void empty_folder(void)
{
    remove_all(folder);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void a_kill_at_any_call_leaves_the_old_or_the_new_model(void **state)
{
    static const struct {
        int before, after;
    } forms[] = {{EXTERNAL, EXTERNAL}, {EMBEDDED, EXTERNAL}, {EXTERNAL, EMBEDDED}};

    (void)state;
    for (size_t f = 0; f < OT_COUNT(forms); f++) {
        bool was_killed = true, is_new = false;
        int n;

        for (n = 0; was_killed; n++) {
            int number;

            assert_in_range(n, 0, CALLS_MAX);
            empty_folder();
            assert_int_equal(save_numbered(1, forms[f].before), OT_OK);
            was_killed = save_and_be_killed(2, forms[f].after, n);
            number = load_number();
            assert_true(number == 2 || (number == 1 && was_killed && !is_new));
            is_new = number == 2;
            assert_int_equal(save_numbered(3, EXTERNAL), OT_OK);
            assert_int_equal(load_number(), 3);
            assert_int_equal(count_files(), 2); // whatever was left is gone
        }
        assert_true(n > 9); // as many as one file takes, at least
    }
}

static void an_error_at_any_call_leaves_the_old_or_the_new_model(void **state)
{
    int64_t n_calls = CALLS_MAX;

    (void)state;
    for (int n = 0; n <= n_calls; n++) {
        ot_status st;
        int number;

        empty_folder();
        assert_int_equal(save_numbered(1, EXTERNAL), OT_OK);
        ot__file_fault_after(n, OT_FILE_FAIL);
        st = save_numbered(2, EXTERNAL);
        n_calls = ot__file_fault_after(-1, OT_FILE_FAIL);
        number = load_number();
        assert_true(number == 2 || (number == 1 && st == OT_ERR_IO));
        assert_int_equal(save_numbered(3, EXTERNAL), OT_OK);
        assert_int_equal(count_files(), 2);
    }
}

static void the_same_model_makes_the_same_files(void **state)
{
    char first[256];

    (void)state;
    assert_int_equal(save_numbered(1, EXTERNAL), OT_OK);
    snprintf(first, sizeof first, "%s", find_data("m.onnx."));
    assert_int_equal(save_numbered(2, EXTERNAL), OT_OK);
    assert_string_not_equal(find_data("m.onnx."), first);
    assert_int_equal(save_numbered(1, EXTERNAL), OT_OK);
    assert_string_equal(find_data("m.onnx."), first);
}

static void data_of_others_beside_the_model_stay(void **state)
{
    static const char *const names[] = {
        "m.onnx.data",                   // another program's
        "m.onnx.0123456789abcdef.data2", // no name of ours
        "m.onnx.0123456789abcde.data",   // one digit less
        "n.onnx.0123456789abcdef.data",  // another model's
        "am.onnx.0123456789abcdef.data",
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(names); i++)
        write_file(names[i], "x", 1);
    write_file("m.onnx.0123456789abcdef.data", "x", 1); // what a killed one has left
    assert_int_equal(save_numbered(1, EXTERNAL), OT_OK);
    for (size_t i = 0; i < OT_COUNT(names); i++)
        assert_true(ot__path_exists(in_folder(names[i])));
    assert_int_equal(count_files(), 2 + (int)OT_COUNT(names));
}

// Its data are in place and its model is yet to come.
static void data_that_another_writer_may_need_stay(void **state)
{
    ot__file_writer *other;

    (void)state;
    assert_int_equal(ot__file_writer_open(&other, in_folder("m.onnx")), OT_OK);
    write_file("m.onnx.0123456789abcdef.data", "x", 1);
    assert_int_equal(save_numbered(1, EXTERNAL), OT_OK);
    assert_true(ot__path_exists(in_folder("m.onnx.0123456789abcdef.data")));
    ot__file_writer_abort(other);
    assert_int_equal(save_numbered(1, EXTERNAL), OT_OK);
    assert_false(ot__path_exists(in_folder("m.onnx.0123456789abcdef.data")));
}

static void bytes_in_memory_hold_the_same_model(void **state)
{
    ot_model *model = model_of(text), *again;
    ot_tensor *bytes;

    (void)state;
    assert_int_equal(ot_model_to_bytes(model, &bytes), OT_OK);
    assert_int_equal(ot_tensor_dtype(bytes), OT_U8);
    assert_int_equal(
        ot_model_load_buffer(ot_tensor_data_const(bytes), ot_tensor_bytes(bytes), NULL, &again),
        OT_OK);
    assert_same(model, again);
    ot_tensor_destroy(bytes);
    ot_model_destroy(again);
    ot_model_destroy(model);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(what_is_saved_is_loaded_in_either_form),
        TEST(bytes_in_memory_hold_the_same_model),
        TEST(large_constants_go_beside_the_model_when_asked),
        TEST(a_model_is_saved_over_the_files_it_was_read_from),
        TEST(a_folder_that_is_not_there_is_named),
        TEST(text_is_shortened_for_people),
        TEST(a_failed_save_leaves_the_old_file),
        TEST(a_kill_at_any_call_leaves_the_old_or_the_new_model),
        TEST(an_error_at_any_call_leaves_the_old_or_the_new_model),
        TEST(the_same_model_makes_the_same_files),
        TEST(data_of_others_beside_the_model_stay),
        TEST(data_that_another_writer_may_need_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
