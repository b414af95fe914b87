// SPDX-License-Identifier: Apache-2.0
// Checkpoint files: a kill or an error at any system call leaves the old or the new state, also
// where the elements are in a second file; what comes from other programs; what does not fit.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "../base/temporary_folder.h"
#include "base/file_calls.h"
#include "ckpt/ckpt.h"

typedef enum form { PLAIN, EXTERNAL } form;
enum { N_OLD = 600, N_NEW = 500, N_LATER = 700, CALLS_MAX = 100 };

// Three parameters of `count` elements; the states differ in size, too.
static ot_checkpoint *make(form f, int64_t count)
{
    static const char *const names[] = {"bias", "mean", "weight"};
    ot_checkpoint *checkpoint;

    assert_int_equal(ot_checkpoint_create(&checkpoint), OT_OK);
    for (int i = 0; i < 3; i++) {
        ot_tensor *tensor;
        float *element;

        assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(count), &tensor), OT_OK);
        element = ot_tensor_data(tensor);
        for (int64_t k = 0; k < count; k++)
            element[k] = (float)(count * (i + 1) + k);
        assert_int_equal(ot_checkpoint_add_parameter(checkpoint, names[i], tensor, i != 1), OT_OK);
        ot_tensor_destroy(tensor);
    }
    assert_int_equal(ot_checkpoint_set_int(checkpoint, "count", count), OT_OK);
    checkpoint->has_external_data = f == EXTERNAL;
    return checkpoint;
}

static ot_status save(const char *path, form f, int64_t count)
{
    ot_checkpoint *checkpoint = make(f, count);
    const ot_status st = ot_checkpoint_save(checkpoint, path, 0);

    ot_checkpoint_destroy(checkpoint);
    return st;
}

// Which state the file holds: the number of elements, after comparing every one of them.
static int64_t load(const char *path)
{
    ot_checkpoint *found, *expected;
    int64_t count;

    if (ot_checkpoint_load(path, &found) != OT_OK)
        fail_msg("%s", ot_error_message());
    assert_int_equal(ot_checkpoint_get_int(found, "count", &count), OT_OK);
    expected = make(found->has_external_data ? EXTERNAL : PLAIN, count);
    assert_int_equal(found->n_parameters, expected->n_parameters);
    for (int i = 0; i < found->n_parameters; i++) {
        const ot__parameter *a = found->parameters[i], *b = expected->parameters[i];

        assert_string_equal(a->name, b->name);
        assert_int_equal(a->trainable, b->trainable);
        assert_int_equal(a->value->n_bytes, b->value->n_bytes);
        assert_memory_equal(a->value->data, b->value->data, b->value->n_bytes);
    }
    ot_checkpoint_destroy(found);
    ot_checkpoint_destroy(expected);
    return count;
}

// Saves in a child that is killed before its system call number `n_calls`; false when it came to
// the end before.
static bool save_and_be_killed(const char *path, form f, int64_t count, int n_calls)
{
    int status;
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        ot__file_fault_after(n_calls, OT_FILE_KILL);
        _exit(save(path, f, count) == OT_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return true;
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return false;
}

static void remove_all(void **state)
{
    remove_below(*state);
    assert_int_equal(mkdir(*state, 0700), 0);
}

// From every form to every form. Old states first, then new ones, with no way back; and the save
// after a kill is not hindered by what that left behind.
static void kill_everywhere(void **state, form before, form after)
{
    const char *path = in_folder(state, "checkpoint");
    bool was_killed = true, is_new = false;
    int n;

    for (n = 0; was_killed; n++) {
        int64_t count;

        assert_in_range(n, 0, CALLS_MAX);
        remove_all(state);
        assert_int_equal(save(path, before, N_OLD), OT_OK);
        was_killed = save_and_be_killed(path, after, N_NEW, n);
        count = load(path);
        assert_true(count == N_NEW || (count == N_OLD && was_killed && !is_new));
        is_new = count == N_NEW;
        assert_int_equal(load(path), count); // loading changes nothing
        assert_int_equal(save(path, before, N_LATER), OT_OK);
        assert_int_equal(load(path), N_LATER);
    }
    assert_true(n > 9); // as many as one file takes, at least
}

static void a_kill_at_any_call_leaves_the_old_or_the_new_checkpoint(void **state)
{
    kill_everywhere(state, PLAIN, PLAIN);
}

static void so_it_does_with_external_data(void **state)
{
    kill_everywhere(state, EXTERNAL, EXTERNAL);
}

static void so_it_does_when_the_data_move_out_of_the_checkpoint(void **state)
{
    kill_everywhere(state, PLAIN, EXTERNAL);
}

static void so_it_does_when_the_data_move_into_the_checkpoint(void **state)
{
    kill_everywhere(state, EXTERNAL, PLAIN);
}

// Steps of three calls meet every combination of files that a first kill can leave.
static void a_second_kill_after_the_first_leaves_the_old_or_the_new_checkpoint(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    bool first_killed = true;

    for (int n = 0; first_killed; n += 3) {
        bool second_killed = true;

        for (int m = 0; second_killed; m++) {
            int64_t before, count;

            remove_all(state);
            assert_int_equal(save(path, EXTERNAL, N_OLD), OT_OK);
            first_killed = save_and_be_killed(path, EXTERNAL, N_NEW, n);
            before = load(path);
            second_killed = save_and_be_killed(path, EXTERNAL, N_LATER, m);
            count = load(path);
            assert_true(count == N_LATER || (count == before && second_killed));
        }
    }
}

static void the_first_save_killed_leaves_nothing_or_the_new_checkpoint(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    bool was_killed = true;

    for (int n = 0; was_killed; n++) {
        remove_all(state);
        was_killed = save_and_be_killed(path, EXTERNAL, N_NEW, n);
        if (ot__path_exists(path))
            assert_int_equal(load(path), N_NEW);
        else
            assert_true(was_killed);
    }
}

static void an_error_at_any_call_leaves_the_old_or_the_new_checkpoint(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    int64_t n_calls = CALLS_MAX;

    for (int n = 0; n <= n_calls; n++) {
        ot_status st;
        int64_t count;

        remove_all(state);
        ot__file_fault_after(-1, OT_FILE_FAIL);
        assert_int_equal(save(path, EXTERNAL, N_OLD), OT_OK);
        ot__file_fault_after(n, OT_FILE_FAIL);
        st = save(path, EXTERNAL, N_NEW);
        n_calls = ot__file_fault_after(-1, OT_FILE_FAIL);
        count = load(path);
        assert_true(count == N_NEW || (count == N_OLD && st == OT_ERR_IO));
    }
}

static void a_finished_save_leaves_two_files(void **state)
{
    const char *path = in_folder(state, "checkpoint");

    for (int i = 0; i < 3; i++) {
        assert_int_equal(save(path, EXTERNAL, N_OLD + i), OT_OK);
        assert_int_equal(count_entries(*state), 2);
    }
    assert_true(ot__path_exists(in_folder(state, "checkpoint.data")));
}

static void the_same_state_makes_the_same_files(void **state)
{
    static const char *const names[] = {"a", "b", "a.data", "b.data"};
    ot__file_map maps[4];

    assert_int_equal(save(in_folder(state, "a"), EXTERNAL, N_OLD), OT_OK);
    assert_int_equal(save(in_folder(state, "b"), EXTERNAL, N_OLD), OT_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ot__file_map_open(&maps[i], in_folder(state, names[i])), OT_OK);
    for (int i = 0; i < 4; i += 2) {
        assert_int_equal(maps[i].size, maps[i + 1].size);
        assert_memory_equal(maps[i].data, maps[i + 1].data, maps[i].size);
    }
    for (int i = 0; i < 4; i++)
        ot__file_map_close(&maps[i]);
}

// ---- other programs ----

static void put(const char *path, ot__pieces *pieces)
{
    ot__file_writer *file;

    assert_int_equal(ot__file_writer_open(&file, path), OT_OK);
    assert_int_equal(ot__pieces_write(pieces, file), OT_OK);
    assert_int_equal(ot__file_writer_commit(file), OT_OK);
    ot__pieces_deinit(pieces);
}

// A pair of files as a program writes them that knows no ids; with `id` it has kept the property.
static void put_foreign(const char *path, const char *data_path, int64_t count, const char *id)
{
    ot_checkpoint *checkpoint = make(EXTERNAL, count);
    ot__pieces main_file = {0}, data = {0};
    const ot__ckpt_write_options options = {.external = &data};

    if (id)
        assert_int_equal(ot_checkpoint_set_string(checkpoint, "onnxtrain.data_id", id), OT_OK);
    assert_int_equal(ot__flatbuf_write(checkpoint, &options, &main_file), OT_OK);
    put(path, &main_file);
    put(data_path, &data);
    ot_checkpoint_destroy(checkpoint);
}

static void a_kill_while_saving_over_files_of_another_program_leaves_one_or_the_other(void **state)
{
    static const char *const ids[] = {NULL, "0123456789abcdef"};
    const char *path = in_folder(state, "checkpoint");
    char data[PATH_LENGTH_MAX];

    snprintf(data, sizeof(data), "%s.data", path);
    for (int i = 0; i < 2; i++) {
        bool was_killed = true;

        for (int n = 0; was_killed; n++) {
            int64_t count;

            remove_all(state);
            put_foreign(path, data, N_OLD, ids[i]);
            was_killed = save_and_be_killed(path, EXTERNAL, N_NEW, n);
            count = load(path);
            assert_true(count == N_NEW || (count == N_OLD && was_killed));
        }
    }
}

static void a_program_that_keeps_the_property_may_save_over_ours(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot_checkpoint *checkpoint;
    const char *id;
    char copy[32], data[PATH_LENGTH_MAX];

    snprintf(data, sizeof(data), "%s.data", path);
    assert_int_equal(save(path, EXTERNAL, N_OLD), OT_OK);
    assert_int_equal(ot_checkpoint_load(path, &checkpoint), OT_OK);
    assert_int_equal(ot_checkpoint_get_string(checkpoint, "onnxtrain.data_id", &id), OT_OK);
    snprintf(copy, sizeof(copy), "%s", id);
    ot_checkpoint_destroy(checkpoint);
    put_foreign(path, data, N_NEW, copy);
    assert_int_equal(load(path), N_NEW);
}

// ---- what does not fit ----

static void assert_refused(const char *path, ot_status st, const char *message)
{
    ot_checkpoint *checkpoint;

    assert_int_equal(ot_checkpoint_load(path, &checkpoint), st);
    assert_null(checkpoint);
    if (!strstr(ot_error_message(), message))
        fail_msg("'%s' does not say '%s'", ot_error_message(), message);
}

static void data_of_another_checkpoint_are_refused(void **state)
{
    const char *a = in_folder(state, "a"), *a_data = in_folder(state, "a.data");

    assert_int_equal(save(a, EXTERNAL, N_OLD), OT_OK);
    assert_int_equal(save(in_folder(state, "b"), EXTERNAL, N_NEW), OT_OK);
    assert_int_equal(rename(in_folder(state, "b.data"), a_data), 0);
    assert_refused(a, OT_ERR_FORMAT, "a.data: is not the data file of ");
}

static void missing_data_and_folders_are_errors_that_name_the_path(void **state)
{
    const char *path = in_folder(state, "checkpoint");

    assert_int_equal(save(path, EXTERNAL, N_OLD), OT_OK);
    assert_int_equal(unlink(in_folder(state, "checkpoint.data")), 0);
    assert_refused(path, OT_ERR_IO, "checkpoint.data");
    assert_refused(*state, OT_ERR_FORMAT, "is a directory");
    assert_refused(in_folder(state, "nothing"), OT_ERR_IO, "nothing");
}

static void external_data_are_refused_in_memory(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot__file_map map;
    ot_checkpoint *checkpoint;

    assert_int_equal(save(path, EXTERNAL, N_OLD), OT_OK);
    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    assert_int_equal(ot_checkpoint_load_buffer(map.data, map.size, &checkpoint),
                     OT_ERR_UNSUPPORTED);
    assert_null(checkpoint);
    ot__file_map_close(&map);
}

static void a_buffer_gets_the_bytes_of_the_file(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot__file_map map = {0};
    size_t n_bytes = 1, n_again;
    ot_checkpoint *checkpoint = make(PLAIN, N_OLD);
    char *bytes;

    assert_int_equal(ot_checkpoint_save(checkpoint, path, OT_CHECKPOINT_OPTIMIZER_STATE), OT_OK);
    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    assert_int_equal(
        ot_checkpoint_save_buffer(checkpoint, OT_CHECKPOINT_OPTIMIZER_STATE, NULL, 0, &n_bytes),
        OT_OK);
    assert_int_equal(n_bytes, map.size);
    bytes = calloc(n_bytes, 1);
    assert_int_equal(ot_checkpoint_save_buffer(checkpoint, OT_CHECKPOINT_OPTIMIZER_STATE, bytes,
                                               n_bytes, &n_again),
                     OT_OK);
    assert_memory_equal(bytes, map.data, map.size);
    assert_int_equal(ot_checkpoint_save_buffer(checkpoint, 0, bytes, 100, &n_again),
                     OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "into a buffer of 100"));
    ot_checkpoint_destroy(checkpoint);
    ot__file_map_close(&map);
    free(bytes);
}

static void what_came_with_external_data_goes_into_one_buffer(void **state)
{
    ot_checkpoint *checkpoint = make(EXTERNAL, N_OLD), *again;
    size_t n_bytes;
    int64_t count;
    char *bytes;

    (void)state;
    assert_int_equal(ot_checkpoint_save_buffer(checkpoint, 0, NULL, 0, &n_bytes), OT_OK);
    bytes = calloc(n_bytes, 1);
    assert_int_equal(ot_checkpoint_save_buffer(checkpoint, 0, bytes, n_bytes, &n_bytes), OT_OK);
    assert_int_equal(ot_checkpoint_load_buffer(bytes, n_bytes, &again), OT_OK);
    assert_int_equal(ot_checkpoint_get_int(again, "count", &count), OT_OK);
    assert_int_equal(count, N_OLD);
    for (int i = 0; i < 3; i++)
        assert_memory_equal(again->parameters[i]->value->data,
                            checkpoint->parameters[i]->value->data, N_OLD * sizeof(float));
    ot_checkpoint_destroy(checkpoint);
    ot_checkpoint_destroy(again);
    free(bytes);
}

static void failing_allocations_lose_nothing(void **state)
{
    ot_checkpoint *checkpoint = make(PLAIN, N_OLD);
    ot_status st = OT_ERR_NO_MEMORY;
    size_t n_bytes;

    (void)state;
    for (int64_t n = 0; st != OT_OK; n++) {
        ot__alloc_fail_after(n);
        st = ot_checkpoint_save_buffer(checkpoint, 0, NULL, 0, &n_bytes);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
    }
    ot_checkpoint_destroy(checkpoint);
}

static void data_cut_short_are_refused(void **state)
{
    const char *path = in_folder(state, "checkpoint");

    assert_int_equal(save(path, EXTERNAL, N_OLD), OT_OK);
    assert_int_equal(truncate(in_folder(state, "checkpoint.data"), 5000), 0);
    assert_refused(path, OT_ERR_FORMAT, "external");
}

static void what_is_nominal_has_no_values(void **state)
{
    ot_checkpoint *checkpoint = make(EXTERNAL, N_OLD), *found;
    const char *path = in_folder(state, "checkpoint");
    ot_tensor *tensor;

    assert_int_equal(ot_checkpoint_save(checkpoint, path, OT_CHECKPOINT_NOMINAL), OT_OK);
    ot_checkpoint_destroy(checkpoint);
    assert_int_equal(ot_checkpoint_load(path, &found), OT_OK);
    assert_int_equal(ot_checkpoint_parameter_count(found), 3);
    assert_int_equal(ot_checkpoint_parameter_trainable(found, "mean"), OT_PARAMETER_FROZEN);
    assert_int_equal(ot_checkpoint_get_parameter(found, "bias", &tensor), OT_ERR_STATE);
    ot_checkpoint_destroy(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_kill_at_any_call_leaves_the_old_or_the_new_checkpoint),
        TEST_IN_FOLDER(so_it_does_with_external_data),
        TEST_IN_FOLDER(so_it_does_when_the_data_move_out_of_the_checkpoint),
        TEST_IN_FOLDER(so_it_does_when_the_data_move_into_the_checkpoint),
        TEST_IN_FOLDER(a_second_kill_after_the_first_leaves_the_old_or_the_new_checkpoint),
        TEST_IN_FOLDER(the_first_save_killed_leaves_nothing_or_the_new_checkpoint),
        TEST_IN_FOLDER(an_error_at_any_call_leaves_the_old_or_the_new_checkpoint),
        TEST_IN_FOLDER(a_finished_save_leaves_two_files),
        TEST_IN_FOLDER(the_same_state_makes_the_same_files),
        TEST_IN_FOLDER(a_kill_while_saving_over_files_of_another_program_leaves_one_or_the_other),
        TEST_IN_FOLDER(a_program_that_keeps_the_property_may_save_over_ours),
        TEST_IN_FOLDER(data_of_another_checkpoint_are_refused),
        TEST_IN_FOLDER(missing_data_and_folders_are_errors_that_name_the_path),
        TEST_IN_FOLDER(external_data_are_refused_in_memory),
        TEST_IN_FOLDER(data_cut_short_are_refused),
        TEST_IN_FOLDER(what_is_nominal_has_no_values),
        TEST_IN_FOLDER(a_buffer_gets_the_bytes_of_the_file),
        cmocka_unit_test(what_came_with_external_data_goes_into_one_buffer),
        cmocka_unit_test(failing_allocations_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
