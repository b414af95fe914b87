// SPDX-License-Identifier: Apache-2.0
// Where one rank has other options, or makes another call, all are told the same, and the next call
// works.
#include "faults.h"

// ---- other options, and another order of calls ----

static void make_session_refused(const char *message)
{
    check_fails(open_session(), OT_ERR_MISMATCH, message);
    begin_rank(own.comm, own.fault);
}

static void open_with_other_options(ot_comm *comm, void *context)
{
    begin_rank(comm, context);
    own.parallel.zero = is_bad();
    make_session_refused("ranks 0 and 1 differ in zero: 0 and 1 (session)");
    own.parallel.bucket_bytes += is_bad();
    make_session_refused("ranks 0 and 1 differ in bucket_bytes: 256 and 257 (session)");
    own.options.reproducible = is_bad();
    make_session_refused("ranks 0 and 1 differ in reproducible: 0 and 1 (session)");
    own.options.precision = is_bad() ? OT_PRECISION_BF16 : OT_PRECISION_F32;
    make_session_refused("ranks 0 and 1 differ in precision: 0 and 1 (session)");
    if (is_bad())
        own.artifacts = own.fault->others[ot_comm_rank(comm)];
    make_session_refused("ranks 0 and 1 differ in the optimizer model: ");
    RANK_MUST(open_session());
    end_rank();
}

static void other_options_on_one_rank_are_told_by_all(void **state)
{
    ot_model *model = load_model(models[MODEL_MLP].file, OT_F32);
    fault f = {.n_ranks = 2, .bad_rank = 1};

    (void)state;
    make_fault(&f, model, KIND_ADAM, KIND_SGD);
    run_fault(&f, open_with_other_options);
    ot_model_destroy(model);
}

static void must_go_on(void)
{
    own.learning_rate = 0.125;
    RANK_MUST(ot_session_set_learning_rate(own.session, own.learning_rate));
    RANK_MUST(train_step());
    RANK_MUST(update());
}

static ot_status step_that_is_not_last(void)
{
    fault other = *own.fault;
    const fault *before = own.fault;
    ot_status st;

    other.overlaps = !is_bad();
    own.fault = &other;
    st = train_step();
    own.fault = before;
    return st;
}

static void call_in_another_order(ot_comm *comm, void *context)
{
    const char *other_calls = "ranks 0 and 1 make different calls, ";
    const fault *f = context;

    begin_rank(comm, f);
    RANK_MUST(open_session());
    for (int i = 0; i < 2; i++) { // before the first update, and after it
        check_fails(is_bad() ? update() : train_step(), OT_ERR_MISMATCH, other_calls);
        must_go_on();
        RANK_MUST(train_step());
        check_fails(is_bad() ? train_step() : update(), OT_ERR_MISMATCH, other_calls);
        must_go_on();
        check_fails(is_bad() ? ot_comm_barrier(comm) : train_step(), OT_ERR_MISMATCH, other_calls);
        must_go_on();
        check_fails(is_bad() ? ot_session_save_shards(own.session, "none", NULL) : train_step(),
                    OT_ERR_MISMATCH, other_calls);
        must_go_on();
        check_fails(is_bad() ? ot_session_load_shards(own.session, "none") : update(),
                    OT_ERR_MISMATCH, other_calls);
        must_go_on();
        check_fails(step_that_is_not_last(), OT_ERR_MISMATCH,
                    "whether this is the last train step of the update: ");
        must_go_on();
        RANK_MUST(train_step());
        RANK_MUST(ot_session_set_learning_rate(own.session, is_bad() ? 0.5 : 0.25));
        check_fails(update(), OT_ERR_MISMATCH, "ranks 0 and 1 differ in the learning rate: ");
        must_go_on();
    }
    end_rank();
}

static void another_order_of_calls_is_told_by_all(void **state)
{
    ot_model *model = load_model(models[MODEL_CNN].file, OT_F32);

    (void)state;
    for (size_t z = 0; z < OT_COUNT(zero_stages); z++)
        for (int overlaps = 0; overlaps < 2; overlaps++) {
            fault f = {.n_ranks = 3, .zero = zero_stages[z], .bad_rank = 1, .overlaps = overlaps};

            make_fault(&f, model, KIND_ADAM, KIND_ADAM);
            run_fault(&f, call_in_another_order);
        }
    ot_model_destroy(model);
}

// The gradients stay the sum over all ranks.
static void refuse_between_updates(ot_comm *comm, void *context)
{
    const fault *f = context;

    begin_rank(comm, f);
    for (int is_refused = 0; is_refused < 2; is_refused++) {
        own.artifacts = (is_refused ? f->artifacts : f->others)[ot_comm_rank(comm)];
        RANK_MUST(open_session());
        RANK_MUST(train_step());
        RANK_MUST(update());
        if (is_refused) {
            RANK_MUST(ot_session_set_learning_rate(own.session, is_bad() ? 0.5 : 0.25));
            check_fails(update(), OT_ERR_MISMATCH, "ranks 0 and 1 differ in the learning rate: ");
        }
        RANK_MUST(ot_session_set_learning_rate(own.session, own.learning_rate));
        RANK_MUST(update());
        end_rank();
    }
    check_same_parameters(f->artifacts[ot_comm_rank(comm)], f->others[ot_comm_rank(comm)]);
}

static void a_refused_update_leaves_gradients_as_they_are(void **state)
{
    ot_model *model = load_model(models[MODEL_MLP].file, OT_F32);

    (void)state;
    for (size_t z = 0; z < OT_COUNT(zero_stages); z++) {
        fault f = {.n_ranks = 3, .zero = zero_stages[z], .bad_rank = 1};

        make_fault(&f, model, KIND_SGD, KIND_SGD);
        run_fault(&f, refuse_between_updates);
    }
    ot_model_destroy(model);
}

// ---- trainers ----

static ot_status train_trainer(ot_trainer *trainer)
{
    ot_tensor *inputs[2], *loss = NULL;
    ot_status st = make_inputs(inputs);

    OT_THEN(st, ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, 2, &loss, 1));
    drop_inputs(inputs);
    ot_tensor_destroy(loss);
    return st;
}

// The bad rank would update after one micro-batch, the others after two.
static void accumulate_otherwise(ot_comm *comm, void *context)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_trainer *trainer;

    begin_rank(comm, context);
    RANK_MUST(open_session());
    options.gradient_accumulation_steps = is_bad() ? 1 : 2;
    RANK_MUST(ot_trainer_create_from_session(own.session, NULL, &options, &trainer));
    check_fails(train_trainer(trainer), OT_ERR_MISMATCH, "ranks 0 and 1 differ in whether this");
    ot_trainer_destroy(trainer);
    options.gradient_accumulation_steps = 2;
    RANK_MUST(ot_trainer_create_from_session(own.session, NULL, &options, &trainer));
    for (int i = 0; i < 3; i++) {
        own.label = is_bad() ? 77 : -1;
        check_fails(train_trainer(trainer), OT_ERR_INVALID, "rank 1: ");
        own.label = -1;
        RANK_MUST(train_trainer(trainer));
        RANK_CHECK(ot_session_step_count(own.session) == i, "%d updates",
                   (int)ot_session_step_count(own.session));
        RANK_MUST(i < 2 ? train_trainer(trainer) : ot_trainer_flush(trainer));
    }
    RANK_CHECK(ot_session_step_count(own.session) == 3, "%d updates",
               (int)ot_session_step_count(own.session));
    ot_trainer_destroy(trainer);
    end_rank();
}

static void trainers_fail_alike_and_go_on(void **state)
{
    ot_model *model = load_model(models[MODEL_CNN].file, OT_F32);

    (void)state;
    for (size_t z = 0; z < OT_COUNT(zero_stages); z++) {
        fault f = {.n_ranks = 3, .zero = zero_stages[z], .bad_rank = 1};

        make_fault(&f, model, KIND_ADAM, KIND_ADAM);
        run_fault(&f, accumulate_otherwise);
    }
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_options_on_one_rank_are_told_by_all),
        cmocka_unit_test(another_order_of_calls_is_told_by_all),
        cmocka_unit_test(a_refused_update_leaves_gradients_as_they_are),
        cmocka_unit_test(trainers_fail_alike_and_go_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
