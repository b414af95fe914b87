// SPDX-License-Identifier: Apache-2.0
// What goes wrong on one rank while sessions save and load checkpoint directories: all fail alike,
// nothing is lost, and the training goes on.
#include "base/file_calls.h"
#include "faults.h"
#include "unit/base/temporary_folder.h"

static char saved[PATH_LENGTH_MAX]; // of all ranks

static ot_status save(void)
{
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;

    options.replaces = 1;
    arm();
    return disarm(ot_session_save_shards(own.session, saved, &options));
}

static ot_status load(void)
{
    arm();
    return disarm(ot_session_load_shards(own.session, saved));
}

static ot_status go_on(void)
{
    OT_TRY(train_step());
    return update();
}

static ot_dict *whole_state(void)
{
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *state = NULL;

    options.gather = OT_GATHER_ALL;
    options.copy = 1;
    RANK_MUST(ot_session_get_shards(own.session, OT_STATE_MODEL | OT_STATE_OPTIMIZER | OT_STATE_OWN,
                                    &options, &state));
    return state;
}

static void check_state(ot_dict *expected)
{
    static const char *const sections[] = {"model", "optim", "train"};
    ot_dict *state = whole_state();

    for (size_t i = 0; i < OT_COUNT(sections); i++)
        RANK_CHECK(ot__dict_same(state, sections[i], expected, sections[i]), "'%s' has changed",
                   sections[i]);
    ot_dict_destroy(state);
}

// ---- a lack of memory ----

// Until it works; the later allocations only here and there. `state`: what the session has.
static void lack_memory_in(ot_status (*call)(void), ot_dict *state)
{
    ot_status st = OT_ERR_NO_MEMORY;
    char rank[16];

    snprintf(rank, sizeof rank, "rank %d: ", own.fault->bad_rank);
    for (int64_t n = 0; st == OT_ERR_NO_MEMORY; n += 1 + n / 8) {
        own.fail_at = n;
        st = call();
        own.fail_at = -1;
        check_alike(st);
        if (st != OT_OK) {
            check_fails(st, OT_ERR_NO_MEMORY, rank);
            check_state(state);
        }
    }
    RANK_MUST(st);
}

static void lack_memory(ot_comm *comm, void *context)
{
    ot_dict *state, *later;

    begin_rank(comm, context);
    RANK_MUST(make_two_updates());
    RANK_MUST(ot_checkpoint_set_string(ot_session_checkpoint(own.session), "note", "two"));
    state = whole_state();
    lack_memory_in(save, state);
    RANK_MUST(go_on());
    RANK_MUST(ot_checkpoint_set_string(ot_session_checkpoint(own.session), "note", "three"));
    later = whole_state();
    lack_memory_in(load, later);
    check_state(state);
    ot_dict_destroy(state);
    ot_dict_destroy(later);
    end_rank();
}

static void a_lack_of_memory_changes_nothing(void **state)
{
    ot_model *model = load_model(models[MODEL_MLP].file, OT_F32);

    for (int zero = 0; zero <= 3; zero += 1 + (zero == 1)) {
        fault f = {.n_ranks = 2, .zero = zero, .bad_rank = zero % 2};

        snprintf(saved, sizeof saved, "%s", in_folder(state, "memory"));
        make_fault(&f, model, KIND_ADAM, KIND_ADAM);
        run_fault(&f, lack_memory);
        assert_int_equal(count_entries(*state), 1);
    }
    ot_model_destroy(model);
}

// ---- files ----

static int64_t n_calls; // of files in a save, of the bad rank, up to the fault if it came
static ot__file_fault kind;

static void lack_files(ot_comm *comm, void *context)
{
    ot_dict *state;
    int n_failures = 0;

    begin_rank(comm, context);
    RANK_MUST(make_two_updates());
    RANK_MUST(save());
    state = whole_state();
    for (int64_t n = 0; n <= n_calls; n++) { // until the fault does not come any more
        ot_status st;

        if (is_bad())
            ot__file_fault_after(n, kind);
        st = save();
        if (is_bad())
            n_calls = ot__file_fault_after(-1, OT_FILE_FAIL);
        check_alike(st);
        n_failures += st != OT_OK;
        RANK_MUST(go_on());
        RANK_MUST(load()); // what is there is whole, old or new
        check_state(state);
    }
    RANK_CHECK(n_failures > 1, "%d failures", n_failures);
    ot_dict_destroy(state);
    end_rank();
}

static void after_a_fault_of_files_the_training_goes_on(void **state)
{
    static const ot__file_fault faults[] = {OT_FILE_FAIL, OT_FILE_FULL};
    ot_model *model = load_model(models[MODEL_MLP].file, OT_F32);

    for (size_t k = 0; k < OT_COUNT(faults); k++) {
        fault f = {.n_ranks = 2, .zero = 1 + 2 * (int)k, .bad_rank = (int)k};

        kind = faults[k];
        n_calls = INT64_MAX;
        snprintf(saved, sizeof saved, "%s", in_folder(state, "files"));
        make_fault(&f, model, KIND_ADAM, KIND_ADAM);
        run_fault(&f, lack_files);
        assert_in_range(count_entries(*state), 1, 2); // one that is replaced may be left
    }
    ot_model_destroy(model);
}

// ---- other places, and other models ----

static void go_elsewhere(ot_comm *comm, void *context)
{
    char other[PATH_LENGTH_MAX + 8];
    ot_dict *state;

    begin_rank(comm, context);
    RANK_MUST(make_two_updates());
    state = whole_state();
    snprintf(other, sizeof other, "%s%s", saved, is_bad() ? "-other" : "");
    check_fails(ot_session_save_shards(own.session, other, NULL), OT_ERR_MISMATCH,
                "ranks 0 and 1 differ in the path");
    check_fails(ot_session_load_shards(own.session, saved), OT_ERR_NOT_FOUND,
                "no checkpoint directory");
    check_fails(ot_session_save_shards(own.session, is_bad() ? NULL : saved, NULL), OT_ERR_INVALID,
                "rank 1: ");
    RANK_MUST(save());
    check_fails(ot_session_load_shards(own.session, other), OT_ERR_MISMATCH,
                "ranks 0 and 1 differ in the path");
    check_fails(ot_session_load_shards(own.session, is_bad() ? NULL : saved), OT_ERR_INVALID,
                "rank 1: ");
    check_state(state);
    RANK_MUST(go_on());
    RANK_MUST(load());
    check_state(state);
    ot_dict_destroy(state);
    end_rank();
    own.artifacts = own.fault->others[ot_comm_rank(comm)]; // another optimizer
    RANK_MUST(make_two_updates());
    state = whole_state();
    check_fails(load(), OT_ERR_NOT_FOUND, "rank 0: the checkpoint has no 'optim.");
    check_state(state);
    RANK_MUST(go_on());
    ot_dict_destroy(state);
    end_rank();
}

static void other_places_and_models_are_told_by_all(void **state)
{
    ot_model *model = load_model(models[MODEL_MLP].file, OT_F32);

    for (int zero = 0; zero <= 3; zero += 3) {
        fault f = {.n_ranks = 2, .zero = zero, .bad_rank = 1};

        snprintf(saved, sizeof saved, "%s", in_folder(state, zero == 0 ? "whole" : "cut"));
        make_fault(&f, model, KIND_SGD, KIND_ADAM);
        run_fault(&f, go_elsewhere);
    }
    ot_model_destroy(model);
}

#define FOLDER_TEST(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, temporary_folder_make, temporary_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOLDER_TEST(a_lack_of_memory_changes_nothing),
        FOLDER_TEST(after_a_fault_of_files_the_training_goes_on),
        FOLDER_TEST(other_places_and_models_are_told_by_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
