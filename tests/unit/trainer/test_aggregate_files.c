// SPDX-License-Identifier: Apache-2.0
// Files of several processes: those of h5py, and those of a trainer's state that is cut here; what
// trainers and checkpoints make of them.
#include "base/file_calls.h"
#include "dropout_fixture.h"
#include "forked.h"
#include "trainer/aggregate.h"
#include "unit/base/temporary_folder.h"

#if OT_WITH_HDF5
#define OF_TWO(kind)                                                                               \
    OT_TEST_DIR "/../../hdf5/shards/" kind "0.ortcp",                                              \
        OT_TEST_DIR "/../../hdf5/shards/" kind "1.ortcp"

static const float kernel[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, bias[] = {0.5, -0.5, 0.25};

static void assert_values(ot_dict *dict, const char *name, ot_shape shape, const float *expected,
                          float factor)
{
    const ot_tensor *tensor;

    need(ot_dict_get_tensor(dict, name, &tensor));
    assert_true(ot_tensor_dtype(tensor) == OT_F32);
    assert_true(ot__shape_equal(ot_tensor_shape(tensor), &shape));
    for (int64_t i = 0; i < ot_tensor_count(tensor); i++)
        assert_true(((const float *)ot_tensor_data_const(tensor))[i] == factor * expected[i]);
}

static void assert_weight(ot_dict *state, const char *name, ot_shape shape, const float *expected)
{
    ot_dict *of = section(section(state, "optimizer"), name);
    const ot_tensor *count;

    assert_values(section(section(state, "model"), "full_precision"), name, shape, expected, 1);
    assert_values(of, "Moment_1", shape, expected, 10);
    assert_values(of, "Moment_2", shape, expected, 100);
    need(ot_dict_get_tensor(of, "Update_Count", &count));
    assert_true(*(const int64_t *)ot_tensor_data_const(count) == 4);
}

static void assert_whole(const char *const paths[2])
{
    const char *turned[] = {paths[1], paths[0]}, *text;
    ot_dict *state;
    int64_t step;

    need(ot_state_aggregate(turned, 2, &state));
    assert_weight(state, "layer/kernel", OT_SHAPE(3, 4), kernel);
    assert_weight(state, "layer/bias", OT_SHAPE(3), bias);
    need(ot_dict_get_int(section(state, "train_step_info"), "step", &step));
    assert_int_equal(step, 6);
    need(ot_dict_get_string(state, "user_dict", &text));
    assert_string_equal(text, "80037d71002e");
    ot_dict_destroy(state);
}

static void files_of_h5py_are_joined_whose_weights_have_groups_in_their_names(void **state)
{
    static const char *const mixed[] = {OF_TWO("mixed")}, *const columns[] = {OF_TWO("columns")};

    (void)state;
    assert_whole(mixed);
    assert_whole(columns);
}

static void a_joined_state_becomes_a_checkpoint(void **state)
{
    static const char *const paths[] = {OF_TWO("mixed")};
    const char *path = in_folder(state, "checkpoint"), *text;
    ot_checkpoint *checkpoint;
    ot_tensor *value;
    ot_dict *joined;

    need(ot_state_aggregate(paths, 2, &joined));
    need(ot_state_to_checkpoint(joined, &checkpoint));
    ot_dict_destroy(joined);
    need(ot_checkpoint_save(checkpoint, path, OT_CHECKPOINT_OPTIMIZER_STATE));
    ot_checkpoint_destroy(checkpoint);
    need(ot_checkpoint_load(path, &checkpoint));
    assert_int_equal(ot_checkpoint_parameter_count(checkpoint), 2);
    assert_int_equal(checkpoint->step, 3);
    assert_int_equal(ot_checkpoint_parameter_trainable(checkpoint, "layer/kernel"), 1);
    need(ot_checkpoint_get_parameter(checkpoint, "layer/kernel", &value));
    assert_memory_equal(ot_tensor_data_const(value), kernel, sizeof kernel);
    ot_tensor_destroy(value);
    need(ot_checkpoint_get_string(checkpoint, "onnxtrain.optimizer", &text));
    assert_string_equal(text, "AdamOptimizer");
    ot_checkpoint_destroy(checkpoint);
}

// ---- trainers ----

// What a process of ZeRO in f32 saves of a trainer's state: every weight, and each second moment.
static void save_part(ot_trainer *trainer, int rank, const char *path)
{
    ot_dict *state = state_of(trainer, OT_STATE_ALL & ~(unsigned)OT_STATE_OWN), *options, *inner;
    ot_dict *optimizer = section(state, "optimizer");
    const int n = ot_dict_count(optimizer);

    for (int i = n - 1; i >= 0; i--)
        if ((i < n / 2) != (rank == 0))
            need(ot_dict_remove(optimizer, ot_dict_name(optimizer, i)));
    options = section(state, "trainer_options");
    need(ot_dict_set_int(options, "zero_stage", 1));
    need(ot_dict_set_int(options, "world_rank", rank));
    need(ot_dict_set_int(options, "world_size", 2));
    need(ot_dict_set_int(options, "data_parallel_size", 2));
    need(ot_dict_set_dict(state, "partition_info", &inner));
    if (rank == 0)
        need(ot_dict_set_string(state, "user_dict", "8000"));
    need(ot_dict_save_hdf5(state, path));
    ot_dict_destroy(state);
}

static void save_parts(ot_trainer *trainer, void **state, const char *paths[2])
{
    paths[0] = in_folder(state, "0.ortcp");
    paths[1] = in_folder(state, "1.ortcp");
    for (int rank = 0; rank < 2; rank++)
        save_part(trainer, rank, paths[rank]);
}

static uint64_t hash_without_own(ot_trainer *trainer)
{
    ot_dict *state = state_of(trainer, OT_STATE_MODEL | OT_STATE_OPTIMIZER | OT_STATE_STEPS);
    const uint64_t hash = mix_dict(1, state);

    ot_dict_destroy(state);
    return hash;
}

static void a_trainer_goes_on_from_a_list_of_files(void **state)
{
    ot_trainer *from = dropout_trainer("AdamOptimizer", 1),
               *to = dropout_trainer("AdamOptimizer", 1);
    const char *paths[2];
    char *user_dict;

    for (int k = 0; k < 3; k++)
        dropout_step(from, k, 1);
    save_parts(from, state, paths);
    dropout_step(to, 9, 1);
    need(ot_trainer_load(to, paths, 2, OT_STRICTNESS_ALL, &user_dict));
    assert_string_equal(user_dict, "8000");
    ot_string_free(user_dict);
    assert_true(hash_without_own(to) == hash_without_own(from));
    dropout_step(to, 3, 1);
    dropout_step(from, 3, 1);
    assert_true(hash_without_own(to) == hash_without_own(from));
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

static void files_that_are_not_trusted_are_read_apart_to_the_same(void **state)
{
    const char *whole = in_folder(state, "whole.h5"), *cut = in_folder(state, "cut.h5");
    ot_save_options options = OT_SAVE_OPTIONS_INIT;
    ot_trainer *from = dropout_trainer("AdamOptimizer", 3),
               *to = dropout_trainer("AdamOptimizer", 3);
    const char *paths[2];
    uint64_t before;

    skip_under_an_emulator();
    dropout_step(from, 0, 1);
    dropout_step(from, 1, 1);
    options.format = OT_FORMAT_HDF5;
    need(ot_trainer_save(from, whole, &options));
    need(ot_trainer_load_apart(to, &whole, 1, OT_STRICTNESS_ALL, NULL));
    assert_true(hash_of(to) == hash_of(from));
    save_parts(from, state, paths);
    dropout_step(to, 9, 1);
    need(ot_trainer_load_apart(to, paths, 2, OT_STRICTNESS_ALL, NULL));
    assert_true(hash_without_own(to) == hash_without_own(from));
    before = hash_of(to);
    need(ot_trainer_save(from, cut, &options));
    assert_int_equal(truncate(cut, 1000), 0);
    assert_int_equal(ot_trainer_load_apart(to, &cut, 1, OT_STRICTNESS_ALL, NULL), OT_ERR_FORMAT);
    assert_non_null(strstr(ot_error_message(), "cut.h5: "));
    assert_true(hash_of(to) == before);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

// What `onnxtrain aggregate --out` does.
static ot_status join_to_checkpoint(const char *const *paths, const char *to)
{
    ot_checkpoint *checkpoint = NULL;
    ot_dict *joined;
    ot_status st = ot_state_aggregate(paths, 2, &joined);

    OT_THEN(st, ot_state_to_checkpoint(joined, &checkpoint));
    OT_THEN(st, ot_checkpoint_save(checkpoint, to, OT_CHECKPOINT_OPTIMIZER_STATE));
    ot_dict_destroy(joined);
    ot_checkpoint_destroy(checkpoint);
    return st;
}

static uint64_t hash_of_checkpoint(const char *path)
{
    uint64_t hash = 1;
    ot_checkpoint *checkpoint;
    ot_tensor *t;

    need(ot_checkpoint_load(path, &checkpoint));
    for (int i = 0; i < ot_checkpoint_parameter_count(checkpoint); i++) {
        need(ot_checkpoint_get_parameter(checkpoint, ot_checkpoint_parameter_name(checkpoint, i),
                                         &t));
        hash = mix(hash, ot_tensor_data(t), ot_tensor_bytes(t));
        ot_tensor_destroy(t);
    }
    ot_checkpoint_destroy(checkpoint);
    return hash;
}

static bool join_and_be_killed(const char *const *paths, const char *to, int n_calls)
{
    const pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        ot__file_fault_after(n_calls, OT_FILE_KILL);
        _exit(join_to_checkpoint(paths, to) == OT_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        return true;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return false;
}

static void joining_that_is_killed_at_any_call_leaves_the_old_or_the_new_file(void **state)
{
    ot_trainer *trainer = dropout_trainer("AdamOptimizer", 1);
    char path[PATH_LENGTH_MAX];
    const char *before[2], *after[2];
    bool was_killed = true;
    uint64_t old, new;
    int n;

    skip_under_an_emulator();
    snprintf(path, sizeof path, "%s", in_folder(state, "whole"));
    dropout_step(trainer, 0, 1);
    save_parts(trainer, state, before);
    need(join_to_checkpoint(before, path));
    old = hash_of_checkpoint(path);
    dropout_step(trainer, 1, 1);
    for (int rank = 0; rank < 2; rank++) {
        after[rank] = rank == 0 ? in_folder(state, "2.ortcp") : in_folder(state, "3.ortcp");
        save_part(trainer, rank, after[rank]);
    }
    need(join_to_checkpoint(after, path));
    new = hash_of_checkpoint(path);
    assert_true(old != new);
    for (n = 0; was_killed; n++) {
        uint64_t got;

        assert_in_range(n, 0, 100);
        need(join_to_checkpoint(before, path));
        was_killed = join_and_be_killed(after, path, n);
        got = hash_of_checkpoint(path);
        assert_true(got == new || (was_killed && got == old));
    }
    assert_true(n > 5);
    ot_trainer_destroy(trainer);
}

static void a_list_that_does_not_fit_changes_nothing(void **state)
{
    ot_trainer *trainer = dropout_trainer("AdamOptimizer", 1),
               *other = dropout_trainer("LambOptimizer", 1);
    static const char *const foreign[] = {OF_TWO("mixed")};
    const char *paths[2], *own = in_folder(state, "checkpoint"), *twice[2];
    char *user_dict = (char *)(uintptr_t)1;
    uint64_t before;

    dropout_step(other, 0, 1);
    save_parts(other, state, paths);
    need(ot_trainer_save(trainer, own, NULL));
    dropout_step(trainer, 0, 1);
    before = hash_of(trainer);
    assert_int_equal(ot_trainer_load(trainer, paths, 2, OT_STRICTNESS_SUBSET, &user_dict),
                     OT_ERR_STATE);
    assert_null(user_dict);
    assert_non_null(strstr(ot_error_message(), "is that of LambOptimizer"));
    assert_int_equal(ot_trainer_load(trainer, foreign, 2, OT_STRICTNESS_ALL, NULL), OT_ERR_INVALID);
    assert_int_equal(ot_trainer_load(trainer, paths, 1, OT_STRICTNESS_ALL, NULL), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "1 file, expected 2: there is none of rank 1"));
    twice[0] = twice[1] = own;
    assert_int_equal(ot_trainer_load(trainer, twice, 2, OT_STRICTNESS_ALL, NULL), OT_ERR_FORMAT);
    assert_non_null(strstr(ot_error_message(), "is a checkpoint, not an HDF5 file"));
    assert_true(hash_of(trainer) == before);
    ot_trainer_destroy(trainer);
    ot_trainer_destroy(other);
}

static void a_failing_allocation_leaves_nothing(void **state)
{
    static const char *const paths[] = {OF_TWO("columns")};
    ot_checkpoint *checkpoint = NULL;
    ot_dict *joined = NULL;
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int n = 0; st == OT_ERR_NO_MEMORY; n++) {
        ot__alloc_fail_after(n);
        st = ot_state_aggregate(paths, 2, &joined);
        OT_THEN(st, ot_state_to_checkpoint(joined, &checkpoint));
        ot__alloc_fail_after(-1);
        if (st == OT_ERR_NO_MEMORY) {
            ot_dict_destroy(joined);
            joined = NULL;
        }
    }
    need(st);
    ot_dict_destroy(joined);
    ot_checkpoint_destroy(checkpoint);
}
#else
static void without_hdf5_the_option_of_the_build_is_named(void **state)
{
    const char *const paths[] = {OT_TEST_DIR "/../../hdf5/shards/mixed0.ortcp"};
    ot_dict *joined;

    (void)state;
    assert_int_equal(ot_state_aggregate(paths, 1, &joined), OT_ERR_UNSUPPORTED);
    assert_null(joined);
    assert_non_null(strstr(ot_error_message(), "OT_WITH_HDF5"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if OT_WITH_HDF5
        cmocka_unit_test(files_of_h5py_are_joined_whose_weights_have_groups_in_their_names),
        cmocka_unit_test_setup_teardown(a_joined_state_becomes_a_checkpoint, temporary_folder_make,
                                        temporary_folder_remove),
        cmocka_unit_test_setup_teardown(a_trainer_goes_on_from_a_list_of_files,
                                        temporary_folder_make, temporary_folder_remove),
        TEST_IN_FOLDER(files_that_are_not_trusted_are_read_apart_to_the_same),
        TEST_IN_FOLDER(joining_that_is_killed_at_any_call_leaves_the_old_or_the_new_file),
        cmocka_unit_test_setup_teardown(a_list_that_does_not_fit_changes_nothing,
                                        temporary_folder_make, temporary_folder_remove),
        cmocka_unit_test(a_failing_allocation_leaves_nothing),
#else
        cmocka_unit_test(without_hdf5_the_option_of_the_build_is_named),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
