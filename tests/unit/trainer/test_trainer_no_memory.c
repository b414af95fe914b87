// SPDX-License-Identifier: Apache-2.0
// Every allocation in the life of a trainer fails once: each call returns OT_ERR_NO_MEMORY, leaves
// nothing behind (the sanitizer looks) and does its work when it is called again.
#include "trainer_fixture.h"
#include "unit/base/temporary_folder.h"

typedef struct life {
    ot_model *model;
    ot_artifacts *artifacts;
    ot_session *session;
    ot_trainer *trainer;
    ot_trainer_options options;
    float x[N_ROWS * N_IN], t[N_ROWS];
    const ot_tensor *inputs[2];
    ot_tensor *outputs[2];
} life;

#include "until_it_works.h"

// ---- what is called ----

static ot_status create(life *l)
{
    return ot_trainer_create(l->model, &linear_description, NULL, &l->options, &l->trainer);
}

static ot_status create_of_artifacts(life *l)
{
    return ot_trainer_create_from_artifacts(l->artifacts, NULL, NULL, &l->trainer);
}

static ot_status create_of_session(life *l)
{
    return ot_trainer_create_from_session(l->session, NULL, NULL, &l->trainer);
}

static const ot_value_description three_inputs[] = {{.name = "t", .dims = rows, .n_dims = 1},
                                                    {.name = "x", .dims = rows_by_3, .n_dims = 2},
                                                    {.name = "unused"}};

static ot_status create_described_of_session(life *l)
{
    const ot_model_description three = {sizeof three, three_inputs, &linear_outputs[1], 3, 1};

    return ot_trainer_create_from_session(l->session, &three, NULL, &l->trainer);
}

static ot_status create_wrongly_described_of_session(life *l)
{
    const ot_model_description wrong = {sizeof wrong, three_inputs, three_inputs, 3, 3};

    return ot_trainer_create_from_session(l->session, &wrong, NULL, &l->trainer);
}

static ot_status create_less_described_of_session(life *l)
{
    const ot_model_description less = {sizeof less, three_inputs, &linear_outputs[1], 1, 1};

    return ot_trainer_create_from_session(l->session, &less, NULL, &l->trainer);
}

static ot_status train(life *l)
{
    return ot_trainer_train_step(l->trainer, l->inputs, 2, l->outputs, 2);
}

static ot_status evaluate(life *l)
{
    return ot_trainer_eval_step(l->trainer, l->inputs, 2, l->outputs, 2);
}

static ot_status flush(life *l)
{
    return ot_trainer_flush(l->trainer);
}

static ot_status fetch(life *l)
{
    return ot_trainer_set_fetches(l->trainer, (const char *const[]){"loss", "y"}, 2);
}

static ot_status fetch_unknown(life *l)
{
    return ot_trainer_set_fetches(l->trainer, (const char *const[]){"loss", "z"}, 2);
}

static ot_status create_of_wrong_names(life *l)
{
    static const ot_value_description inputs[] = {{.name = "u"}, {.name = "x"}};
    ot_model_description wrong = linear_description;

    wrong.inputs = inputs;
    wrong.n_inputs = 2;
    return ot_trainer_create(l->model, &wrong, NULL, NULL, &l->trainer);
}

static ot_status create_of_too_few(life *l)
{
    ot_model_description few = linear_description;

    few.n_inputs = 1;
    return ot_trainer_create(l->model, &few, NULL, NULL, &l->trainer);
}

static ot_status set_schedule(life *l)
{
    ot_schedule schedule = OT_SCHEDULE_INIT;

    schedule.kind = OT_SCHEDULE_LINEAR;
    schedule.initial_lr = 0.25;
    schedule.total_steps = 4;
    return ot_trainer_set_schedule(l->trainer, &schedule);
}

static ot_status measure(life *l)
{
    const ot_shape shapes[] = {OT_SHAPE(N_ROWS + 3), OT_SHAPE(N_ROWS + 3, N_IN)};
    ot_memory memory = OT_MEMORY_INIT;

    return ot_trainer_memory(l->trainer, shapes, 2, &memory);
}

static void drop_outputs(life *l)
{
    for (int i = 0; i < 2; i++) {
        assert_non_null(l->outputs[i]);
        ot_tensor_destroy(l->outputs[i]);
        l->outputs[i] = NULL;
    }
}

static void destroy_trainer_of(life *l)
{
    ot_trainer_destroy(l->trainer);
    l->trainer = NULL;
}

// ---- lives ----

static void live_in(ot_precision precision)
{
    life l = {.options = OT_TRAINER_OPTIONS_INIT, .model = linear_model()};
    static const char *const frozen[] = {"b"};

    l.options.precision = precision;
    batch_of(1, l.x, l.t);
    l.inputs[0] = tensor_of(l.t, OT_SHAPE(N_ROWS));
    l.inputs[1] = tensor_of(l.x, OT_SHAPE(N_ROWS, N_IN));
    l.options.gradient_accumulation_steps = 2;
    l.options.frozen_weights = frozen;
    l.options.n_frozen_weights = 1;
    assert_true(until_it_works(&l, create) > 50);
    (void)until_it_works(&l, set_schedule);
    assert_true(until_it_works(&l, measure) > 20);
    assert_true(until_it_works(&l, train) > 20);
    drop_outputs(&l);
    assert_int_equal(info_of(l.trainer).step, 1); // those that failed had not run
    assert_true(until_it_works(&l, evaluate) > 20);
    drop_outputs(&l);
    (void)until_it_works(&l, flush);
    assert_int_equal(info_of(l.trainer).optimization_step, 1);
    (void)until_it_works(&l, fetch);
    assert_true(until_it_ends(&l, fetch_unknown, OT_ERR_NOT_FOUND) > 0);
    destroy_trainer_of(&l);
    assert_true(until_it_ends(&l, create_of_wrong_names, OT_ERR_INVALID) > 0);
    assert_true(until_it_ends(&l, create_of_too_few, OT_ERR_INVALID) > 0);
    assert_null(l.trainer);
    ot_model_destroy(l.model);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy((ot_tensor *)(uintptr_t)l.inputs[i]);
}

static void a_trainer_lives_through_every_failure(void **state)
{
    (void)state;
    live_in(OT_PRECISION_F32);
    live_in(OT_PRECISION_BF16);
    live_in(OT_PRECISION_F16);
}

static void trainers_of_artifacts_and_sessions_are_made_despite_every_failure(void **state)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    life l = {.model = linear_model()};

    (void)state;
    end_in_loss(&how, &loss);
    need(ot_artifacts_generate(l.model, &how, &l.artifacts));
    assert_true(until_it_works(&l, create_of_artifacts) > 20);
    destroy_trainer_of(&l);
    need(ot_session_create_from_artifacts(l.artifacts, NULL, &l.session));
    assert_true(until_it_works(&l, create_of_session) > 2);
    destroy_trainer_of(&l);
    assert_true(until_it_works(&l, create_described_of_session) > 4);
    destroy_trainer_of(&l);
    assert_true(until_it_ends(&l, create_wrongly_described_of_session, OT_ERR_INVALID) > 2);
    assert_true(until_it_ends(&l, create_less_described_of_session, OT_ERR_INVALID) > 1);
    ot_session_destroy(l.session);
    ot_artifacts_destroy(l.artifacts);
    ot_model_destroy(l.model);
}

static void graphs_are_saved_despite_every_failure(void **state)
{
    life l = {.options = OT_TRAINER_OPTIONS_INIT, .model = linear_model()};
    const char *path = in_folder(state, "training.onnx");
    ot_model *saved;

    l.options.model_with_training_graph_path = path;
    l.options.model_with_training_graph_after_optimization_path = in_folder(state, "step.onnx");
    assert_true(until_it_works(&l, create) > 50);
    destroy_trainer_of(&l);
    need(ot_model_load(path, NULL, &saved));
    assert_int_equal(count_entries(*state), 2);
    ot_model_destroy(saved);
    ot_model_destroy(l.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trainer_lives_through_every_failure),
        TEST_IN_FOLDER(graphs_are_saved_despite_every_failure),
        cmocka_unit_test(trainers_of_artifacts_and_sessions_are_made_despite_every_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
