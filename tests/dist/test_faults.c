// SPDX-License-Identifier: Apache-2.0
// What goes wrong on one rank ends the call alike on all of them, and the next call works.
#include <math.h>

#include "faults.h"

// ---- a lack of memory ----

// Fails at the allocations 0, 1, 2 ... of the bad rank until it works; how often at least.
static void until_it_works(ot_status (*call)(void), int n_least)
{
    int n_failures = 0;
    char rank[16];
    ot_status st = OT_ERR_NO_MEMORY;

    snprintf(rank, sizeof rank, "rank %d: ", own.fault->bad_rank);
    for (int64_t n = 0; st == OT_ERR_NO_MEMORY; n++) {
        own.fail_at = n;
        st = call();
        own.fail_at = -1;
        check_alike(st);
        if (st != OT_OK)
            check_fails(st, OT_ERR_NO_MEMORY, rank);
        n_failures += st != OT_OK;
    }
    RANK_CHECK(n_failures >= n_least, "it failed %d times, expected %d", n_failures, n_least);
}

static void lack_memory(ot_comm *comm, void *context)
{
    const fault *f = context;

    begin_rank(comm, f);
    until_it_works(open_session, 50);
    RANK_MUST(ot_session_set_learning_rate(own.session, own.learning_rate));
    for (int i = 0; i < 2; i++) {
        until_it_works(train_step, i == 0 ? 50 : 1);
        until_it_works(update, i == 0 && f->zero > 0 ? 20 : 0);
    }
    end_rank();
    own.artifacts = f->others[ot_comm_rank(comm)];
    RANK_MUST(make_two_updates());
    end_rank();
    check_same_parameters(f->artifacts[ot_comm_rank(comm)], own.artifacts);
}

static void a_lack_of_memory_on_one_rank_is_that_of_all(void **state)
{
    ot_model *model = load_model(models[MODEL_CNN].file, OT_F32);

    (void)state;
    for (size_t z = 0; z < OT_COUNT(zero_stages); z++)
        for (int overlaps = 0; overlaps < 2; overlaps++) {
            fault f = {.n_ranks = 3,
                       .zero = zero_stages[z],
                       .bad_rank = overlaps * 2,
                       .overlaps = overlaps};

            make_fault(&f, model, KIND_ADAM, KIND_ADAM);
            run_fault(&f, lack_memory);
        }
    ot_model_destroy(model);
}

// ---- bad values ----

static void step_on_bad_labels(ot_comm *comm, void *context)
{
    const fault *f = context;
    char rank[16];

    begin_rank(comm, f);
    RANK_MUST(open_session());
    RANK_MUST(ot_session_set_learning_rate(own.session, own.learning_rate));
    snprintf(rank, sizeof rank, "rank %d: ", f->bad_rank);
    for (int i = 0; i < 2; i++) {
        own.label = is_bad() ? 77 : -1;
        check_fails(train_step(), OT_ERR_INVALID, rank);
        RANK_CHECK(strstr(ot_error_message(), "77") != NULL, "%s", ot_error_message());
        own.label = -1;
        RANK_MUST(train_step());
        RANK_MUST(update());
    }
    end_rank();
    own.artifacts = f->others[ot_comm_rank(comm)];
    RANK_MUST(make_two_updates());
    end_rank();
    check_same_parameters(f->artifacts[ot_comm_rank(comm)], own.artifacts);
}

static void a_bad_label_on_one_rank_is_an_error_of_all(void **state)
{
    ot_model *model = load_model(models[MODEL_CNN].file, OT_F32);

    (void)state;
    for (size_t z = 0; z < OT_COUNT(zero_stages); z++)
        for (int bad_rank = 0; bad_rank < 3; bad_rank++) {
            fault f = {.n_ranks = 3,
                       .zero = zero_stages[z],
                       .bad_rank = bad_rank,
                       .overlaps = bad_rank != 1};

            make_fault(&f, model, KIND_ADAM, KIND_ADAM);
            run_fault(&f, step_on_bad_labels);
        }
    ot_model_destroy(model);
}

// Gradients that are not finite come from one rank, whose share may be another's to update.
static void step_on_nan(ot_comm *comm, void *context)
{
    ot_update_info info = OT_UPDATE_INFO_INIT;

    begin_rank(comm, context);
    RANK_MUST(open_session());
    RANK_MUST(ot_session_set_learning_rate(own.session, own.learning_rate));
    for (int i = 0; i < 2; i++) {
        own.value = is_bad() ? NAN : 1;
        RANK_MUST(train_step());
        RANK_MUST(ot_session_update(own.session, 1, &info));
        RANK_CHECK(info.applied == 0 && info.finite == 0, "update %d is made", i);
        own.value = 1;
        RANK_MUST(train_step());
        RANK_MUST(ot_session_update(own.session, 1, &info));
        RANK_CHECK(info.applied == 1 && info.finite == 1, "update %d is not made", i);
    }
    end_rank();
    own.artifacts = own.fault->others[ot_comm_rank(comm)];
    RANK_MUST(make_two_updates());
    end_rank();
    check_same_parameters(own.fault->artifacts[ot_comm_rank(comm)], own.artifacts);
}

static ot_artifacts *make_skipping(const ot_model *model)
{
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_artifacts *artifacts;

    adam.name = "AdamOptimizer";
    how.losses = &loss;
    how.n_losses = 1;
    how.optimizer = &adam;
    options.skip_non_finite = 1;
    if (ot_trainer_generate_artifacts(model, &how, &options, &artifacts) != OT_OK)
        fail_msg("%s", ot_error_message());
    return artifacts;
}

static void gradients_that_are_not_finite_on_one_rank_are_skipped_by_all(void **state)
{
    ot_model *model = load_model(models[MODEL_MLP].file, OT_F32);

    (void)state;
    for (size_t z = 0; z < OT_COUNT(zero_stages); z++)
        for (int bad_rank = 0; bad_rank < 3; bad_rank++) {
            fault f = {.n_ranks = 3, .zero = zero_stages[z], .bad_rank = bad_rank};

            for (int i = 0; i < f.n_ranks; i++) {
                f.artifacts[i] = make_skipping(model);
                f.others[i] = make_skipping(model);
            }
            run_fault(&f, step_on_nan);
        }
    ot_model_destroy(model);
}

// ---- batches of other sizes ----

enum { ELEMENTS_MAX = 1024 };

// The mean over the ranks of what each of them finds alone.
static ot_status expect_one_update(float *values, int64_t n)
{
    const ot_session_options alone = OT_SESSION_OPTIONS_INIT;
    float gradients[ELEMENTS_MAX] = {0};
    double sums[ELEMENTS_MAX] = {0};
    ot_tensor *inputs[2];

    own.artifacts = own.fault->others[ot_comm_rank(own.comm)];
    OT_TRY(ot_session_create_from_artifacts(own.artifacts, &alone, &own.session));
    OT_TRY(ot_session_get_parameters(own.session, OT_PARAMETERS_TRAINABLE, values, n));
    OT_TRY(make_inputs(inputs));
    OT_TRY(ot_session_train_step(own.session, (const ot_tensor *const *)inputs, 2, NULL, 0));
    drop_inputs(inputs);
    OT_TRY(ot_session_get_gradients(own.session, gradients, n));
    for (int64_t i = 0; i < n; i++)
        sums[i] = (double)gradients[i];
    OT_TRY(ot_comm_all_reduce(own.comm, OT_COMM_SUM, OT_F64, sums, n));
    for (int64_t i = 0; i < n; i++)
        values[i] -= (float)(own.learning_rate * sums[i] / ot_comm_world_size(own.comm));
    return OT_OK;
}

static void step_on_other_rows(ot_comm *comm, void *context)
{
    float expected[ELEMENTS_MAX], found[ELEMENTS_MAX];
    int64_t n;

    begin_rank(comm, context);
    own.rows = is_bad() ? 1 : ROWS;
    RANK_MUST(open_session());
    RANK_MUST(ot_session_set_learning_rate(own.session, own.learning_rate));
    n = ot_session_parameters_size(own.session, OT_PARAMETERS_TRAINABLE);
    RANK_CHECK(n > 0 && n <= ELEMENTS_MAX, "%d elements", (int)n);
    RANK_MUST(train_step());
    RANK_MUST(update());
    RANK_MUST(make_values_whole(own.session));
    RANK_MUST(ot_session_get_parameters(own.session, OT_PARAMETERS_TRAINABLE, found, n));
    end_rank();
    RANK_MUST(expect_one_update(expected, n));
    for (int64_t i = 0; i < n; i++)
        RANK_CHECK(fabsf(found[i] - expected[i]) < 1e-6F, "element %d is %.9g, expected %.9g",
                   (int)i, (double)found[i], (double)expected[i]);
    end_rank();
}

static void ranks_may_have_batches_of_other_sizes(void **state)
{
    ot_model *model = load_model(models[MODEL_MLP].file, OT_F32);

    (void)state;
    for (size_t z = 0; z < OT_COUNT(zero_stages); z++)
        for (int overlaps = 0; overlaps < 2; overlaps++) {
            fault f = {.n_ranks = 3, .zero = zero_stages[z], .bad_rank = 1, .overlaps = overlaps};

            make_fault(&f, model, KIND_SGD, KIND_SGD);
            run_fault(&f, step_on_other_rows);
        }
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lack_of_memory_on_one_rank_is_that_of_all),
        cmocka_unit_test(a_bad_label_on_one_rank_is_an_error_of_all),
        cmocka_unit_test(gradients_that_are_not_finite_on_one_rank_are_skipped_by_all),
        cmocka_unit_test(ranks_may_have_batches_of_other_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
