// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "temporary_folder.h"

static void assert_joins(const char *folder, const char *name, const char *expected)
{
    char *path = ot__path_join(folder, name);

    assert_string_equal(path, expected);
    ot__free(path);
}

static void a_folder_and_a_name_are_joined_by_one_slash(void **state)
{
    (void)state;
    assert_joins("a", "b", "a/b");
    assert_joins("a/", "b", "a/b");
    assert_joins("/", "b", "/b");
    assert_joins("", "b", "b");
    assert_joins("a", "/b", "/b");
    assert_joins("a", "", "a/");
}

static void assert_folder(const char *path, const char *expected)
{
    char *folder = ot__path_folder(path);

    assert_string_equal(folder, expected);
    ot__free(folder);
}

static void the_folder_of_a_path_is_what_stands_before_the_last_slash(void **state)
{
    (void)state;
    assert_folder("model.onnx", ".");
    assert_folder("a/model.onnx", "a");
    assert_folder("/model.onnx", "/");
    assert_folder("/a/b/c", "/a/b");
    assert_folder("", ".");
}

static void folders_are_made_with_their_parents(void **state)
{
    const char *path = in_folder(state, "a/b//c/");

    assert_false(ot__path_exists(path));
    assert_int_equal(ot__path_make_folder(path), OT_OK);
    assert_true(ot__path_exists(path));
    assert_true(ot__path_is_folder(path));
    assert_int_equal(ot__path_make_folder(path), OT_OK); // existing is fine
}

static void a_file_in_the_way_of_a_folder_is_an_error_that_names_it(void **state)
{
    const char *file = in_folder(state, "file");

    assert_int_equal(ot__file_write(file, "x", 1), OT_OK);
    assert_true(ot__path_exists(file));
    assert_false(ot__path_is_folder(file));
    assert_int_equal(ot__path_make_folder(file), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), file));
    assert_int_equal(ot__path_make_folder(in_folder(state, "file/below")), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), file));
}

static void the_size_of_a_file_is_known_without_opening_it(void **state)
{
    const char *file = in_folder(state, "file"), *pipe = in_folder(state, "pipe");
    uint64_t size = 0;

    assert_int_equal(ot__path_file_size(file, &size), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), "file: cannot be read: No such file"));
    assert_int_equal(ot__file_write(file, "xyz", 3), OT_OK);
    assert_int_equal(ot__path_file_size(file, &size), OT_OK);
    assert_int_equal(size, 3);
    assert_int_equal(ot__path_file_size(*state, &size), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), "is a directory, expected a file"));
    assert_int_equal(mkfifo(pipe, 0666), 0); // opened, it would wait for somebody who writes
    assert_int_equal(ot__path_file_size(pipe, &size), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), "pipe: is a pipe, expected a file"));
    assert_int_equal(ot__path_file_size("/dev/null", &size), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), "is a device, expected a file"));
}

static void every_allocation_may_fail(void **state)
{
    ot__alloc_fail_after(0);
    assert_null(ot__path_join("a", "b"));
    assert_null(ot__path_folder("a/b"));
    assert_int_equal(ot__path_make_folder(in_folder(state, "x")), OT_ERR_NO_MEMORY);
    ot__alloc_fail_after(-1);
    assert_false(ot__path_exists(in_folder(state, "x")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_folder_and_a_name_are_joined_by_one_slash),
        TEST_IN_FOLDER(the_folder_of_a_path_is_what_stands_before_the_last_slash),
        TEST_IN_FOLDER(folders_are_made_with_their_parents),
        TEST_IN_FOLDER(a_file_in_the_way_of_a_folder_is_an_error_that_names_it),
        TEST_IN_FOLDER(the_size_of_a_file_is_known_without_opening_it),
        TEST_IN_FOLDER(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
