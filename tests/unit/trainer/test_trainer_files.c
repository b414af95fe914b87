// SPDX-License-Identifier: Apache-2.0
// Checkpoint files of trainers: going on from them is going on, bit for bit; bad ones change
// nothing.
#include "base/file_calls.h"
#include "dropout_fixture.h"
#include "forked.h"
#include "unit/base/temporary_folder.h"

#include <stdlib.h>

enum { CALLS_MAX = 16 };

// ---- going on ----

// What each call of an uninterrupted training gives, and the state after it.
typedef struct course {
    float loss[CALLS_MAX];
    uint64_t hash[CALLS_MAX];
    int n;
} course;

static course train_on(ot_trainer *trainer, int first, int n)
{
    course c = {.n = n};

    for (int i = first; i < n; i++) {
        c.loss[i] = dropout_step(trainer, i, 1);
        c.hash[i] = hash_of(trainer);
    }
    return c;
}

typedef void carrier(ot_trainer *from, ot_trainer *to, void *context);

static void by_file(ot_trainer *from, ot_trainer *to, void *context)
{
    const char *path = context;

    need(ot_trainer_save(from, path, NULL));
    need(ot_trainer_load(to, &path, 1, OT_STRICTNESS_ALL, NULL));
}

// HDF5 files are always new ones.
static void by_hdf5(ot_trainer *from, ot_trainer *to, void *context)
{
    const char *path = context;
    ot_save_options options = OT_SAVE_OPTIONS_INIT;

    options.format = OT_FORMAT_HDF5;
    (void)unlink(path);
    need(ot_trainer_save(from, path, &options));
    need(ot_trainer_load(to, &path, 1, OT_STRICTNESS_ALL, NULL));
}

static void by_state(ot_trainer *from, ot_trainer *to, void *context)
{
    ot_dict *state = state_of(from, OT_STATE_ALL);

    (void)context;
    need(ot_trainer_set_state(to, state, OT_STRICTNESS_ALL));
    ot_dict_destroy(state);
}

// A trainer that is carried over after `at` calls, into one that has done something else before.
static void carry_at(const ot_optimizer_options *rule, int64_t accumulation, const course *expected,
                     int at, carrier *carry, void *context)
{
    ot_trainer *from = dropout_trainer_of(rule, accumulation);
    ot_trainer *to = dropout_trainer_of(rule, accumulation);
    course got;

    train_on(from, 0, at);
    dropout_step(to, 1000, 1);
    carry(from, to, context);
    ot_trainer_destroy(from);
    if (at > 0)
        assert_true(hash_of(to) == expected->hash[at - 1]);
    got = train_on(to, at, expected->n);
    for (int i = at; i < expected->n; i++)
        if (got.loss[i] != expected->loss[i] || got.hash[i] != expected->hash[i])
            fail_msg("%s, %d micro-batches an update: carried over after call %d, call %d differs "
                     "(loss %g, expected %g)",
                     rule->name, (int)accumulation, at, i + 1, (double)got.loss[i],
                     (double)expected->loss[i]);
    ot_trainer_destroy(to);
}

static void carry_everywhere(const ot_optimizer_options *rule, int64_t accumulation, carrier *carry,
                             void *context)
{
    ot_trainer *trainer = dropout_trainer_of(rule, accumulation);
    const course expected = train_on(trainer, 0, (int)(2 * accumulation + 2));

    ot_trainer_destroy(trainer);
    for (int at = 0; at < expected.n; at++)
        carry_at(rule, accumulation, &expected, at, carry, context);
}

static void every_rule(carrier *carry, void *context)
{
    for (int i = 0; i < ot_optimizer_count(); i++) {
        const ot_optimizer_options rule = dropout_rule(ot_optimizer_name(i));

        carry_everywhere(&rule, 1, carry, context);
        carry_everywhere(&rule, 3, carry, context);
    }
}

static void every_rule_goes_on_from_a_file_at_every_call(void **state)
{
    every_rule(by_file, (void *)(uintptr_t)in_folder(state, "checkpoint"));
}

static void every_rule_goes_on_from_an_hdf5_file_at_every_call(void **state)
{
    if (!OT_WITH_HDF5)
        skip(); // a build without libhdf5
    every_rule(by_hdf5, (void *)(uintptr_t)in_folder(state, "checkpoint"));
}

static void every_rule_goes_on_from_a_state_at_every_call(void **state)
{
    (void)state;
    every_rule(by_state, NULL);
}

static void averages_go_on_too(void **state)
{
    ot_optimizer_options rule = dropout_rule("AdamOptimizer");

    rule.average_decay = 0.75;
    carry_everywhere(&rule, 3, by_file, (void *)(uintptr_t)in_folder(state, "checkpoint"));
    carry_everywhere(&rule, 3, by_state, NULL);
    if (OT_WITH_HDF5)
        carry_everywhere(&rule, 3, by_hdf5, (void *)(uintptr_t)in_folder(state, "hdf5"));
}

static void weights_that_were_updated_a_different_number_of_times_go_on_too(void **state)
{
    const ot_optimizer_options rule = dropout_rule("AdamOptimizer");
    const char *path = in_folder(state, "checkpoint");
    ot_trainer *older = dropout_trainer_of(&rule, 1), *younger = dropout_trainer_of(&rule, 1);
    ot_trainer *resumed = dropout_trainer_of(&rule, 1);
    ot_dict *part;

    train_on(older, 0, 5);
    part = state_of(older, OT_STATE_OPTIMIZER);
    need(ot_dict_remove(section(part, "optimizer"), "w1"));
    train_on(younger, 0, 2);
    need(ot_trainer_set_state(younger, part, OT_STRICTNESS_SUBSET));
    ot_dict_destroy(part);
    by_file(younger, resumed, (void *)(uintptr_t)path);
    for (int i = 2; i < 5; i++) {
        assert_true(hash_of(younger) == hash_of(resumed));
        assert_true(dropout_step(younger, i, 1) == dropout_step(resumed, i, 1));
    }
    ot_trainer_destroy(older);
    ot_trainer_destroy(younger);
    ot_trainer_destroy(resumed);
}

static void a_flush_within_an_accumulation_begins_a_new_one_in_the_file_too(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    const ot_optimizer_options rule = dropout_rule("LambOptimizer");
    ot_trainer *whole = dropout_trainer_of(&rule, 3), *resumed = dropout_trainer_of(&rule, 3);

    train_on(whole, 0, 2);
    need(ot_trainer_flush(whole));
    need(ot_trainer_save(whole, path, NULL));
    need(ot_trainer_load(resumed, &path, 1, OT_STRICTNESS_ALL, NULL));
    for (int i = 2; i < 8; i++) {
        dropout_step(whole, i, 1);
        dropout_step(resumed, i, 1);
        assert_true(hash_of(whole) == hash_of(resumed));
    }
    ot_trainer_destroy(whole);
    ot_trainer_destroy(resumed);
}

// ---- a trainer made over the file ----

static ot_trainer *trainer_of_folder(const char *folder)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_trainer *trainer;

    options.gradient_accumulation_steps = 3;
    options.n_threads = 1;
    need(ot_artifacts_load(folder, NULL, &artifacts));
    need(ot_trainer_create_from_artifacts(artifacts, NULL, &options, &trainer));
    ot_artifacts_destroy(artifacts);
    return trainer;
}

static void a_trainer_over_the_file_goes_on_as_one_that_loads_it(void **state)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = dropout_model();
    ot_artifacts *artifacts;
    ot_trainer *trainer, *over;

    end_in_loss(&how, &loss);
    need(ot_artifacts_generate(model, &how, &artifacts));
    need(ot_artifacts_save(artifacts, *state, NULL));
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
    trainer = trainer_of_folder(*state);
    need(ot_session_set_learning_rate(ot_trainer_session(trainer), 0.03125));
    train_on(trainer, 0, 2);
    need(ot_trainer_flush(trainer));
    train_on(trainer, 2, 4);
    need(ot_trainer_save(trainer, in_folder(state, "checkpoint"), NULL));
    over = trainer_of_folder(*state);
    for (int i = 4; i < 9; i++) {
        assert_true(hash_of(trainer) == hash_of(over));
        assert_true(dropout_step(trainer, i, 1) == dropout_step(over, i, 1));
    }
    ot_trainer_destroy(trainer);
    ot_trainer_destroy(over);
}

// ---- what else is in a file ----

static void the_text_of_the_user_comes_back(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot_save_options options = OT_SAVE_OPTIONS_INIT;
    ot_trainer *trainer = dropout_trainer("LambOptimizer", 1);
    char *text;

    options.user_dict = "80037d71002e";
    need(ot_trainer_save(trainer, path, &options));
    need(ot_trainer_load(trainer, &path, 1, OT_STRICTNESS_ALL, &text));
    assert_string_equal(text, "80037d71002e");
    ot_string_free(text);
    need(ot_trainer_save(trainer, path, NULL)); // it belongs to a file, not to the trainer
    need(ot_trainer_load(trainer, &path, 1, OT_STRICTNESS_ALL, &text));
    assert_null(text);
    ot_trainer_destroy(trainer);
}

static void properties_of_the_user_come_with_the_file(void **state)
{
    const char *path = in_folder(state, "checkpoint"), *text;
    ot_trainer *from = dropout_trainer("LambOptimizer", 1);
    ot_trainer *to = dropout_trainer("LambOptimizer", 1);

    need(ot_checkpoint_set_string(ot_session_checkpoint(ot_trainer_session(from)), "run", "7"));
    need(ot_trainer_save(from, path, NULL));
    need(ot_trainer_load(to, &path, 1, OT_STRICTNESS_ALL, NULL));
    need(ot_checkpoint_get_string(ot_session_checkpoint(ot_trainer_session(to)), "run", &text));
    assert_string_equal(text, "7");
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

static void a_file_says_nothing_that_its_checkpoint_says(void **state)
{
    const char *path = in_folder(state, "checkpoint"), *plain = in_folder(state, "plain");
    char bytes[2][1 << 14];
    size_t n[2];
    ot_trainer *trainer = dropout_trainer("LambOptimizer", 3);

    train_on(trainer, 0, 6);
    need(ot_trainer_save(trainer, path, NULL));
    need(ot_session_save(ot_trainer_session(trainer), plain));
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(i == 0 ? path : plain, "rb");

        assert_non_null(file);
        n[i] = fread(bytes[i], 1, sizeof bytes[i], file);
        fclose(file);
    }
    assert_in_range(n[0], 1, sizeof bytes[0] - 1);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], n[0]);
    ot_trainer_destroy(trainer);
}

// ---- without the optimizer ----

static void without_optimizer_states_moments_and_their_counters_stay(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot_save_options options = OT_SAVE_OPTIONS_INIT;
    ot_trainer *from = dropout_trainer("LambOptimizer", 3);
    ot_trainer *to = dropout_trainer("LambOptimizer", 3);
    ot_dict *before, *after, *left, *right;

    options.include_optimizer_states = 0;
    train_on(from, 0, 7);
    train_on(to, 0, 3);
    before = state_of(to, OT_STATE_OPTIMIZER);
    need(ot_trainer_save(from, path, &options));
    need(ot_trainer_load(to, &path, 1, OT_STRICTNESS_ALL, NULL));
    after = state_of(to, OT_STATE_OPTIMIZER);
    assert_true(mix_dict(1, before) == mix_dict(1, after));
    assert_int_equal(info_of(to).step, 7);
    assert_int_equal(info_of(to).optimization_step, 2);
    assert_int_equal(ot_session_step_count(ot_trainer_session(to)), 1);
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

// ---- bad files ----

static ot_trainer *trained(const char *rule)
{
    ot_trainer *trainer = dropout_trainer(rule, 3);

    train_on(trainer, 0, 4);
    return trainer;
}

static void a_file_that_is_cut_anywhere_changes_nothing(void **state)
{
    const char *path = in_folder(state, "checkpoint"), *cut = in_folder(state, "cut");
    static char bytes[1 << 14];
    ot_trainer *trainer = trained("LambOptimizer");
    uint64_t hash;
    size_t n;
    FILE *file;

    need(ot_trainer_save(trainer, path, NULL));
    dropout_step(trainer, 100, 1);
    hash = hash_of(trainer);
    file = fopen(path, "rb");
    assert_non_null(file);
    n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(n, 1000, sizeof bytes - 1);
    for (size_t i = 0; i < n; i += i < 64 ? 1 : 61) {
        file = fopen(cut, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, i, file), i);
        fclose(file);
        assert_int_not_equal(ot_trainer_load(trainer, &cut, 1, OT_STRICTNESS_ALL, NULL), OT_OK);
        assert_true(hash_of(trainer) == hash);
    }
    ot_trainer_destroy(trainer);
}

static void files_of_another_model_or_optimizer_are_refused_by_name(void **state)
{
    const char *linear = in_folder(state, "linear"), *momentum = in_folder(state, "momentum");
    ot_trainer *trainer = trained("LambOptimizer");
    ot_trainer *other = linear_trainer(NULL), *same = trained("SGDOptimizer");

    need(ot_trainer_save(other, linear, NULL));
    need(ot_trainer_save(same, momentum, NULL));
    refuse(trainer, linear, OT_ERR_INVALID, "Missing keys: ");
    refuse(trainer, linear, OT_ERR_INVALID, "in state_dict[model][full_precision]");
    refuse(trainer, momentum, OT_ERR_INVALID, "state_dict[optimizer]");
    assert_int_equal(ot_trainer_load(trainer, &momentum, 1, OT_STRICTNESS_SUBSET, NULL),
                     OT_ERR_STATE);
    assert_non_null(strstr(ot_error_message(), "LambOptimizer"));
    assert_non_null(strstr(ot_error_message(), "SGDOptimizer"));
    refuse(trainer, in_folder(state, "missing"), OT_ERR_IO, "missing");
    ot_trainer_destroy(trainer);
    ot_trainer_destroy(other);
    ot_trainer_destroy(same);
}

// As versions before this one wrote it.
static void forget_rule(const char *path)
{
    ot_checkpoint *checkpoint;
    const char *rule;

    need(ot_checkpoint_load(path, &checkpoint));
    need(ot_checkpoint_get_string(checkpoint, "onnxtrain.rule", &rule));
    assert_string_equal(rule, "SGDOptimizer");
    need(ot_checkpoint_remove_property(checkpoint, "onnxtrain.rule"));
    need(ot_checkpoint_save(checkpoint, path, OT_CHECKPOINT_OPTIMIZER_STATE));
    ot_checkpoint_destroy(checkpoint);
}

static void files_of_plain_sgd_say_so(void **state)
{
    const char *path = in_folder(state, "plain"), *again = in_folder(state, "again");
    ot_trainer *plain = trained("SGDOptimizerV2"), *lion = trained("LionOptimizer");

    need(ot_trainer_save(plain, path, NULL));
    refuse(lion, path, OT_ERR_STATE, "the state is that of SGDOptimizer, the trainer has LionO");
    need(ot_trainer_load(plain, &path, 1, OT_STRICTNESS_ALL, NULL));
    forget_rule(path);
    need(ot_trainer_load(lion, &path, 1, OT_STRICTNESS_ALL, NULL));
    need(ot_trainer_save(lion, again, NULL));
    refuse(plain, again, OT_ERR_STATE, "LionOptimizer");
    ot_trainer_destroy(plain);
    ot_trainer_destroy(lion);
}

static void whole_states_are_not_parts_of_one(void **state)
{
    const char *paths[2] = {in_folder(state, "a"), in_folder(state, "b")};
    ot_trainer *trainer = trained("LionOptimizer");
    uint64_t hash;

    for (int i = 0; i < 2; i++)
        need(ot_trainer_save(trainer, paths[i], NULL));
    dropout_step(trainer, 100, 1);
    hash = hash_of(trainer);
    assert_int_equal(ot_trainer_load(trainer, paths, 2, OT_STRICTNESS_ALL, NULL),
                     OT_WITH_HDF5 ? OT_ERR_FORMAT : OT_ERR_UNSUPPORTED);
    assert_non_null(strstr(ot_error_message(),
                           OT_WITH_HDF5 ? "/a: is a checkpoint, not an HDF5 file" : "HDF5"));
    assert_true(hash_of(trainer) == hash);
    ot_trainer_destroy(trainer);
}

// ---- kills ----

static bool save_and_be_killed(ot_trainer *trainer, const char *path, int n_calls)
{
    int status;
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        ot__file_fault_after(n_calls, OT_FILE_KILL);
        _exit(ot_trainer_save(trainer, path, NULL) == OT_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        return true;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return false;
}

static void a_save_killed_at_any_call_leaves_the_old_or_the_new_file(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot_trainer *trainer = dropout_trainer("LambOptimizer", 3);
    ot_trainer *reader = dropout_trainer("LambOptimizer", 3);
    bool was_killed = true;
    uint64_t old, new;
    int n;

    skip_under_an_emulator();
    train_on(trainer, 0, 4);
    old = hash_of(trainer);
    for (n = 0; was_killed; n++) {
        uint64_t got;

        assert_in_range(n, 0, 100);
        need(ot_trainer_save(trainer, path, NULL));
        old = hash_of(trainer);
        dropout_step(trainer, n, 1);
        new = hash_of(trainer);
        was_killed = save_and_be_killed(trainer, path, n);
        need(ot_trainer_load(reader, &path, 1, OT_STRICTNESS_ALL, NULL));
        got = hash_of(reader);
        assert_true(got == new || (was_killed && got == old));
    }
    assert_true(n > 5);
    ot_trainer_destroy(trainer);
    ot_trainer_destroy(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(every_rule_goes_on_from_a_file_at_every_call),
        TEST_IN_FOLDER(every_rule_goes_on_from_an_hdf5_file_at_every_call),
        cmocka_unit_test(every_rule_goes_on_from_a_state_at_every_call),
        TEST_IN_FOLDER(averages_go_on_too),
        TEST_IN_FOLDER(weights_that_were_updated_a_different_number_of_times_go_on_too),
        TEST_IN_FOLDER(a_flush_within_an_accumulation_begins_a_new_one_in_the_file_too),
        TEST_IN_FOLDER(a_trainer_over_the_file_goes_on_as_one_that_loads_it),
        TEST_IN_FOLDER(the_text_of_the_user_comes_back),
        TEST_IN_FOLDER(properties_of_the_user_come_with_the_file),
        TEST_IN_FOLDER(a_file_says_nothing_that_its_checkpoint_says),
        TEST_IN_FOLDER(without_optimizer_states_moments_and_their_counters_stay),
        TEST_IN_FOLDER(a_file_that_is_cut_anywhere_changes_nothing),
        TEST_IN_FOLDER(files_of_another_model_or_optimizer_are_refused_by_name),
        TEST_IN_FOLDER(files_of_plain_sgd_say_so),
        TEST_IN_FOLDER(whole_states_are_not_parts_of_one),
        TEST_IN_FOLDER(a_save_killed_at_any_call_leaves_the_old_or_the_new_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
