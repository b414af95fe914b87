// SPDX-License-Identifier: Apache-2.0
// States of trainers in HDF5 files: their layout, what is said and refused, and kills while they
// are written.
#include <sys/ptrace.h>

#include "dropout_fixture.h"
#include "forked.h"
#include "unit/base/temporary_folder.h"

enum { CALLS_MAX = 3000 };

static ot_save_options hdf5_options(void)
{
    ot_save_options options = OT_SAVE_OPTIONS_INIT;

    options.format = OT_FORMAT_HDF5;
    return options;
}

static void save_hdf5(ot_trainer *trainer, const char *path)
{
    const ot_save_options options = hdf5_options();

    need(ot_trainer_save(trainer, path, &options));
}

static ot_trainer *trained(const char *rule)
{
    ot_trainer *trainer = dropout_trainer(rule, 3);

    for (int i = 0; i < 4; i++)
        dropout_step(trainer, i, 1);
    return trainer;
}

static void assert_names(ot_dict *dict, const char *const *names, int n)
{
    assert_int_equal(ot_dict_count(dict), n);
    for (int i = 0; i < n; i++)
        assert_string_equal(ot_dict_name(dict, i), names[i]);
}

// ---- what is in a file ----

static void the_layout_is_that_of_the_state_and_the_users_text(void **state)
{
    static const char *const sections[] = {"model",           "onnxtrain",       "optimizer",
                                           "train_step_info", "trainer_options", "user_dict"};
    static const char *const options_of[] = {"data_parallel_size", "horizontal_parallel_size",
                                             "mixed_precision",    "optimizer_name",
                                             "world_rank",         "world_size",
                                             "zero_stage"};
    const char *path = in_folder(state, "state.h5"), *text;
    ot_trainer *trainer = trained("AdamOptimizer");
    ot_save_options options = hdf5_options();
    ot_dict *file, *part, *w1;
    const ot_tensor *count;
    ot_dict_kind kind;
    int64_t step;
    char *given;

    options.user_dict = "80037d71002e";
    need(ot_trainer_save(trainer, path, &options));
    need(ot_dict_load_hdf5(path, NULL, &file));
    assert_names(file, sections, (int)OT_COUNT(sections));
    need(ot_dict_get_dict(file, "trainer_options", &part));
    assert_names(part, options_of, (int)OT_COUNT(options_of));
    need(ot_dict_kind_of(part, "mixed_precision", &kind));
    assert_int_equal(kind, OT_DICT_BOOL);
    need(ot_dict_get_string(part, "optimizer_name", &text));
    assert_string_equal(text, "AdamOptimizer");
    need(ot_dict_get_dict(file, "train_step_info", &part));
    need(ot_dict_get_int(part, "step", &step));
    assert_int_equal(step, 4);
    need(ot_dict_get_int(part, "optimization_step", &step));
    assert_int_equal(step, 1);
    need(ot_dict_get_dict(file, "optimizer", &part));
    need(ot_dict_get_dict(part, "w1", &w1));
    assert_names(w1, (const char *const[]){"Moment_1", "Moment_2", "Update_Count"}, 3);
    need(ot_dict_get_tensor(w1, "Update_Count", &count));
    assert_int_equal(((const int64_t *)ot_tensor_data_const(count))[0], 2);
    need(ot_dict_get_string(file, "user_dict", &text));
    assert_string_equal(text, "80037d71002e");
    ot_dict_destroy(file);
    need(ot_trainer_load(trainer, &path, 1, OT_STRICTNESS_ALL, &given));
    assert_string_equal(given, "80037d71002e");
    ot_string_free(given);
    ot_trainer_destroy(trainer);
}

static void without_optimizer_states_moments_and_their_counters_stay(void **state)
{
    const char *path = in_folder(state, "state.h5");
    ot_trainer *from = trained("LambOptimizer"), *to = dropout_trainer("LambOptimizer", 3);
    ot_save_options options = hdf5_options();
    ot_dict *before, *after, *left, *right;

    options.include_optimizer_states = 0;
    for (int i = 0; i < 3; i++)
        dropout_step(to, 50 + i, 1);
    before = state_of(to, OT_STATE_OPTIMIZER);
    need(ot_trainer_save(from, path, &options));
    need(ot_dict_load_hdf5(path, NULL, &after));
    assert_int_equal(ot_dict_get_dict(after, "optimizer", &left), OT_ERR_NOT_FOUND);
    ot_dict_destroy(after);
    need(ot_trainer_load(to, &path, 1, OT_STRICTNESS_ALL, NULL));
    after = state_of(to, OT_STATE_OPTIMIZER);
    assert_true(mix_dict(1, before) == mix_dict(1, after));
    assert_int_equal(info_of(to).step, 4);
    assert_int_equal(info_of(to).optimization_step, 1);
    left = state_of(from, OT_STATE_MODEL);
    right = state_of(to, OT_STATE_MODEL);
    assert_true(mix_dict(1, left) == mix_dict(1, right));
    ot_dict_destroy(before);
    ot_dict_destroy(after);
    ot_dict_destroy(left);
    ot_dict_destroy(right);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

// ---- names with '/' ----

static const char slashes_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "slashes (double[N,3] x, double[N] t) => (double loss)\n"
    "<double[3] \"/layer/w\" = {0.5, -1, 0.25}, double \"layer/b\" = "
    "{0.125}>\n"
    "{\n"
    "  p = MatMul(x, \"/layer/w\")\n"
    "  y = Add(p, \"layer/b\")\n"
    "  d = Sub(y, t)\n"
    "  q = Mul(d, d)\n"
    "  loss = ReduceMean<keepdims = 0>(q)\n"
    "}\n";

static ot_trainer *slashes_trainer(void)
{
    ot_optimizer_options rule = dropout_rule("AdamOptimizer");
    ot_trainer *trainer;
    ot_model *model;

    need(ot_model_load_buffer(slashes_text, sizeof slashes_text - 1, NULL, &model));
    need(ot_trainer_create(model, NULL, &rule, NULL, &trainer));
    ot_model_destroy(model);
    return trainer;
}

static void names_with_slashes_and_scalars_of_f64_come_back(void **state)
{
    const char *path = in_folder(state, "state.h5");
    ot_trainer *from = slashes_trainer(), *to = slashes_trainer();
    double x[] = {1, 2, 3, 4, 5, 6}, t[] = {1, -1};
    ot_tensor *inputs[2];

    need(ot_tensor_wrap(OT_F64, &OT_SHAPE(2, 3), x, sizeof x, &inputs[0]));
    need(ot_tensor_wrap(OT_F64, &OT_SHAPE(2), t, sizeof t, &inputs[1]));
    need(ot_trainer_train_step(from, (const ot_tensor *const *)inputs, 2, NULL, 0));
    assert_true(hash_of(from) != hash_of(to));
    save_hdf5(from, path);
    need(ot_trainer_load(to, &path, 1, OT_STRICTNESS_ALL, NULL));
    assert_true(hash_of(from) == hash_of(to));
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(inputs[i]);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

// ---- bad files ----

static void what_does_not_fit_changes_nothing(void **state)
{
    const char *path = in_folder(state, "state.h5");
    ot_trainer *trainer = trained("LambOptimizer"), *other = linear_trainer(NULL);
    ot_save_options options = hdf5_options();
    ot_dict *file, *part;

    save_hdf5(other, in_folder(state, "linear.h5"));
    refuse(trainer, in_folder(state, "linear.h5"), OT_ERR_INVALID, "Missing keys: ");
    refuse(trainer, in_folder(state, "linear.h5"), OT_ERR_INVALID, "linear.h5: ");
    save_hdf5(trainer, path);
    assert_int_equal(ot_trainer_save(trainer, path, &options), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), "exists already"));
    need(ot_dict_load_hdf5(path, NULL, &file));
    need(ot_dict_get_dict(file, "trainer_options", &part));
    need(ot_dict_set_string(part, "optimizer_name", "AdamOptimizer"));
    need(ot_dict_save_hdf5(file, in_folder(state, "adam.h5")));
    refuse(trainer, in_folder(state, "adam.h5"), OT_ERR_STATE, "AdamOptimizer");
    need(ot_dict_set_int(file, "model", 3));
    need(ot_dict_save_hdf5(file, in_folder(state, "int.h5")));
    refuse(trainer, in_folder(state, "int.h5"), OT_ERR_INVALID, "'model' of the dict is of kind");
    ot_dict_destroy(file);
    options.format = (ot_format)7;
    assert_int_equal(ot_trainer_save(trainer, path, &options), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "format 7"));
    ot_trainer_destroy(trainer);
    ot_trainer_destroy(other);
}

// ---- kills ----

// The child is stopped at every system call, and killed at the one after `n` others. True: it was.
static bool killed_at(pid_t child, int n)
{
    int status, n_seen = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    for (;;) {
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return false;
        }
        if (n_seen++ == n) {
            assert_int_equal(kill(child, SIGKILL), 0);
            assert_int_equal(waitpid(child, &status, 0), child);
            return true;
        }
        assert_int_equal(ptrace(PTRACE_SYSCALL, child, 0, 0), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
    }
}

static bool save_and_be_killed(ot_trainer *trainer, const char *path, int n)
{
    const ot_save_options options = hdf5_options();
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
            _exit(2);
        (void)raise(SIGSTOP);
        _exit(ot_trainer_save(trainer, path, &options) == OT_OK ? 0 : 1);
    }
    return killed_at(child, n);
}

static bool can_trace(void)
{
    const pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void a_save_killed_at_any_system_call_leaves_a_whole_file_or_none(void **state)
{
    const char *path = in_folder(state, "state.h5");
    ot_trainer *trainer = trained("AdamOptimizer"), *reader = dropout_trainer("AdamOptimizer", 3);
    const uint64_t hash = hash_of(trainer);
    bool was_killed = true;
    int n, n_whole = 0;

    skip_under_an_emulator();
    if (!can_trace())
        skip();
    save_hdf5(trainer, path); // libhdf5 is loaded before the child is
    for (n = 0; was_killed; n++) {
        assert_in_range(n, 0, CALLS_MAX);
        (void)unlink(path);
        was_killed = save_and_be_killed(trainer, path, n);
        if (access(path, F_OK) != 0)
            continue;
        n_whole++;
        need(ot_trainer_load(reader, &path, 1, OT_STRICTNESS_ALL, NULL));
        assert_true(hash_of(reader) == hash);
    }
    assert_true(n > 50);
    assert_in_range(n_whole, 1, n / 2);
    assert_int_equal(count_entries(*state), 1); // leftovers go with the next save
    ot_trainer_destroy(trainer);
    ot_trainer_destroy(reader);
}

// ---- memory ----

static void every_allocation_may_fail(void **state)
{
    const char *path = in_folder(state, "state.h5");
    ot_trainer *trainer = trained("AdamOptimizer"), *reader = dropout_trainer("AdamOptimizer", 3);
    const ot_save_options options = hdf5_options();
    const uint64_t hash = hash_of(reader);
    ot_status st = OT_ERR_NO_MEMORY;

    for (int n = 0; st != OT_OK; n++) {
        ot__alloc_fail_after(n);
        st = ot_trainer_save(trainer, path, &options);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        assert_int_equal(count_entries(*state), st == OT_OK);
    }
    st = OT_ERR_NO_MEMORY;
    for (int n = 0; st != OT_OK; n += 1 + n / 32) {
        ot__alloc_fail_after(n);
        st = ot_trainer_load(reader, &path, 1, OT_STRICTNESS_ALL, NULL);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        assert_true(hash_of(reader) == (st == OT_OK ? hash_of(trainer) : hash));
    }
    ot_trainer_destroy(trainer);
    ot_trainer_destroy(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(the_layout_is_that_of_the_state_and_the_users_text),
        TEST_IN_FOLDER(without_optimizer_states_moments_and_their_counters_stay),
        TEST_IN_FOLDER(names_with_slashes_and_scalars_of_f64_come_back),
        TEST_IN_FOLDER(what_does_not_fit_changes_nothing),
        TEST_IN_FOLDER(a_save_killed_at_any_system_call_leaves_a_whole_file_or_none),
        TEST_IN_FOLDER(every_allocation_may_fail),
    };

    return OT_WITH_HDF5 ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
