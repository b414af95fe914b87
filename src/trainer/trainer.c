// SPDX-License-Identifier: Apache-2.0
// The life of a trainer over a session, and what can be asked of it.
#include <limits.h>
#include <math.h>
#include <string.h>

#include "trainer/options.h"
#include "trainer/trainer.h"

// ---- one thread at a time ----

ot_status ot__trainer_enter(const ot_trainer *trainer)
{
    ot_status st;

    OT_TRY(ot__guard_enter(trainer, OT_KIND_TRAINER));
    st = ot__session_enter(trainer->session);
    if (st != OT_OK)
        ot__guard_leave(trainer);
    return st;
}

ot_status ot__trainer_leave(const ot_trainer *trainer, ot_status status)
{
    ot__session_leave(trainer->session, OT_OK);
    ot__guard_leave(trainer);
    return status;
}

// ---- life ----

static ot_status make_trainer_lists(ot_trainer *trainer)
{
    const ot_session *session = trainer->session;
    const int n_inputs = OT_MAX(ot_session_input_count(session, OT_MODE_TRAIN),
                                ot_session_input_count(session, OT_MODE_EVAL));
    const int n_outputs = OT_MAX(ot_session_output_count(session, OT_MODE_TRAIN),
                                 ot_session_output_count(session, OT_MODE_EVAL));

    trainer->n_rates = ot_session_group_count(session);
    trainer->step_inputs =
        ot__arena_alloc(trainer->arena, (size_t)(n_inputs + 1) * sizeof *trainer->step_inputs);
    trainer->step_outputs =
        ot__arena_alloc(trainer->arena, (size_t)(n_outputs + 1) * sizeof *trainer->step_outputs);
    trainer->rates =
        ot__arena_alloc(trainer->arena, (size_t)(trainer->n_rates + 1) * sizeof *trainer->rates);
    trainer->fetches =
        ot__arena_alloc(trainer->arena, (size_t)(n_outputs + 1) * sizeof *trainer->fetches);
    return ot__made(trainer->step_inputs && trainer->step_outputs && trainer->rates &&
                    trainer->fetches);
}

static ot_status set_trainer_schedule(ot_trainer *trainer, const ot_schedule *schedule)
{
    if (schedule == NULL) {
        trainer->has_schedule = false;
    } else {
        OT_TRY(ot_session_set_schedule(trainer->session, schedule));
        trainer->has_schedule = ot__session_get_schedule(trainer->session, &trainer->schedule);
        trainer->info.initial_lr = trainer->schedule.initial_lr;
        trainer->keeps_rate = true;
    }
    trainer->schedule_function = NULL;
    return OT_OK;
}

static ot__recorded_options record_options(const ot_trainer_options *options)
{
    return (ot__recorded_options){
        .mixed_precision = ot__options_precision(options) != OT_PRECISION_F32,
        .zero_stage = options->zero_stage,
        .world_rank = options->world_rank,
        .world_size = options->world_size,
        .data_parallel_size = options->data_parallel_size,
        .horizontal_parallel_size = options->horizontal_parallel_size,
    };
}

static ot_status take_trainer_options(ot_trainer *trainer, const ot_trainer_options *options)
{
    if (options->lr_schedule != NULL)
        OT_TRY(set_trainer_schedule(trainer, options->lr_schedule));
    trainer->schedule_function = options->lr_function;
    trainer->schedule_context = options->lr_context;
    trainer->keeps_rate = trainer->keeps_rate || options->lr_function != NULL;
    trainer->keeps_seed = options->seed != 0;
    trainer->recorded = record_options(options);
    if (options->seed != 0) // 0 leaves what a checkpoint has
        ot_session_set_seed(trainer->session, (uint64_t)options->seed);
    return OT_OK;
}

// From where the session stands: a checkpoint may have been trained already.
static ot_status begin_where_session_is(ot_trainer *trainer)
{
    ot_session *session = trainer->session;

    trainer->info = (ot_step_info)OT_STEP_INFO_INIT;
    trainer->info.gradient_norm = NAN;
    trainer->info.initial_lr = trainer->info.learning_rate = ot_session_learning_rate(session);
    trainer->has_schedule = ot__session_get_schedule(session, &trainer->schedule);
    if (trainer->has_schedule)
        trainer->info.initial_lr = trainer->schedule.initial_lr;
    return ot__trainer_resume(trainer);
}

static void destroy_trainer(ot_trainer *trainer)
{
    ot_model_destroy(trainer->forward);
    if (trainer->session != NULL)
        ot__session_set_trainer(trainer->session, false);
    if (trainer->owns_session)
        ot_session_destroy(trainer->session);
    ot_comm_destroy(trainer->comm);
    ot__arena_destroy(trainer->arena);
    ot__guard_deinit(&trainer->guard);
    ot__free(trainer);
}

static ot_status build_trainer(ot_trainer *trainer, const ot_model_description *description,
                               const ot_trainer_options *options)
{
    trainer->arena = ot__arena_create();
    OT_TRY(ot__made(trainer->arena));
    OT_TRY(ot__trainer_describe(trainer, description));
    OT_TRY(make_trainer_lists(trainer));
    trainer->accumulation = options->gradient_accumulation_steps;
    OT_TRY(ot__trainer_take_scaler(trainer, options));
    OT_TRY(begin_where_session_is(trainer));
    OT_TRY(ot__trainer_save_graphs(trainer, options));
    OT_TRY(take_trainer_options(trainer, options));
    ot__trainer_ask_inside(trainer); // before gradients have been in use
    return OT_OK;
}

static ot_status take_session(ot_trainer *trainer, ot_session *session)
{
    if (ot__session_has_trainer(session))
        return ot__error(OT_ERR_STATE, "another trainer works on the session");
    ot__session_set_trainer(session, true);
    trainer->session = session;
    return OT_OK;
}

static ot_status make_trainer(ot_session *session, const ot_model_description *description,
                              const ot_trainer_options *options, ot_trainer **out)
{
    ot_trainer *trainer = ot__alloc_zero(1, sizeof *trainer);
    ot_status st;

    OT_TRY(ot__made(trainer));
    ot__guard_init(&trainer->guard, OT_KIND_TRAINER);
    st = take_session(trainer, session);
    if (st == OT_OK)
        st = ot__trainer_join(trainer, options, build_trainer(trainer, description, options));
    if (st != OT_OK)
        destroy_trainer(trainer);
    else
        *out = trainer;
    return st;
}

ot_status ot_trainer_create_from_session(ot_session *session,
                                         const ot_model_description *description,
                                         const ot_trainer_options *options, ot_trainer **out)
{
    ot_model_description own_description;
    ot_trainer_options own;

    OT_TRY(OT_OUT(out));
    OT_TRY(ot__trainer_options_take(options, &own));
    if (description != NULL)
        OT_TRY(ot__model_description_take(description, &own_description));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(
        session, make_trainer(session, description ? &own_description : NULL, &own, out));
}

static void take_recompute(const ot_trainer_options *options, ot_session_options *session)
{
    if (options->attn_dropout_recompute)
        session->recompute |= OT_RECOMPUTE_ATTN_DROPOUT;
    if (options->gelu_recompute)
        session->recompute |= OT_RECOMPUTE_GELU;
    if (options->transformer_layer_recompute)
        session->recompute |= OT_RECOMPUTE_LAYER;
    if (options->number_recompute_layers > 0)
        session->recompute_layers = (int)OT_MIN(options->number_recompute_layers, INT_MAX);
}

// What the trainer's own options say goes before options->session.
static ot_status session_options(const ot_trainer_options *options, ot_session_options *out)
{
    ot_session_options session;

    OT_TRY(
        OT_OPTIONS_READ(ot_session_options, OT_SESSION_OPTIONS_INIT, options->session, &session));
    if (options->n_threads != 0)
        session.n_threads = (int)options->n_threads;
    if (options->memory_max != 0)
        session.memory_max = options->memory_max;
    session.reproducible = session.reproducible != 0 || options->reproducible != 0 ||
                           options->deterministic_compute != 0;
    take_recompute(options, &session);
    if (ot__options_precision(options) != OT_PRECISION_F32)
        session.precision = ot__options_precision(options);
    *out = session;
    return OT_OK;
}

ot_status ot_trainer_session_options(const ot_trainer_options *options, ot_session_options *out)
{
    ot_session_options found, as_given;
    ot_trainer_options own;

    OT_TRY(OT_GIVEN(out));
    OT_TRY(OT_OPTIONS_READ(ot_session_options, OT_SESSION_OPTIONS_INIT, out, &as_given));
    OT_TRY(ot__trainer_options_check(options, &own));
    OT_TRY(session_options(&own, &found));
    ot__options_write(out, &found, sizeof found);
    return OT_OK;
}

ot_status ot__trainer_over_artifacts(ot_artifacts *artifacts,
                                     const ot_model_description *description,
                                     const ot_trainer_options *options, ot_trainer **out)
{
    ot_session_options how;
    ot_parallel_options parallel;
    ot_session *session = NULL;
    ot_comm *comm;
    ot_status st;

    OT_TRY(session_options(options, &how));
    OT_TRY(ot__trainer_open_ranks(options, &how, &parallel, &comm));
    st = ot__session_create_for_trainer(artifacts, &how, &session);
    OT_THEN(st, make_trainer(session, description, options, out));
    if (st != OT_OK) {
        ot_session_destroy(session);
        ot_comm_destroy(comm);
        return st;
    }
    (*out)->owns_session = true;
    (*out)->comm = comm;
    return OT_OK;
}

ot_status ot_trainer_create_from_artifacts(ot_artifacts *artifacts,
                                           const ot_model_description *description,
                                           const ot_trainer_options *options, ot_trainer **out)
{
    ot_model_description own_description;
    ot_trainer_options own;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(artifacts));
    OT_TRY(ot__trainer_options_take(options, &own));
    if (description != NULL)
        OT_TRY(ot__model_description_take(description, &own_description));
    return ot__trainer_over_artifacts(artifacts, description ? &own_description : NULL, &own, out);
}

void ot_trainer_destroy(ot_trainer *trainer)
{
    if (trainer == NULL || ot__trainer_enter(trainer) != OT_OK)
        return;
    ot__session_leave(trainer->session, OT_OK);
    destroy_trainer(trainer);
}

// ---- questions ----

ot_session *ot_trainer_session(ot_trainer *trainer)
{
    return OT_IS_LIVE(trainer) ? trainer->session : NULL;
}

int ot_trainer_input_count(const ot_trainer *trainer)
{
    return OT_IS_LIVE(trainer) ? trainer->n_inputs : 0;
}

const char *ot_trainer_input_name(const ot_trainer *trainer, int index)
{
    return index >= 0 && index < ot_trainer_input_count(trainer) ? trainer->inputs[index].name
                                                                 : NULL;
}

int ot_trainer_output_count(const ot_trainer *trainer)
{
    return OT_IS_LIVE(trainer) ? trainer->n_outputs : 0;
}

const char *ot_trainer_output_name(const ot_trainer *trainer, int index)
{
    return index >= 0 && index < ot_trainer_output_count(trainer) ? trainer->outputs[index].name
                                                                  : NULL;
}

ot_dtype ot_trainer_output_computed_in(const ot_trainer *trainer, int index)
{
    const char *name = ot_trainer_output_name(trainer, index);

    return name != NULL ? ot__session_computed_in(trainer->session, name) : OT_DTYPE_UNDEFINED;
}

ot_status ot_trainer_info(const ot_trainer *trainer, ot_step_info *out)
{
    ot_step_info own;

    OT_TRY(OT_GIVEN(out));
    OT_TRY(OT_OPTIONS_READ(ot_step_info, OT_STEP_INFO_INIT, out, &own));
    OT_TRY(ot__trainer_enter(trainer));
    ot__options_write(out, &trainer->info, sizeof trainer->info);
    return ot__trainer_leave(trainer, OT_OK);
}

// ---- what can be set ----

ot_status ot__trainer_set_rate(ot_trainer *trainer, double lr)
{
    OT_TRY(ot_session_set_learning_rate(trainer->session, lr));
    trainer->keeps_rate = true;
    trainer->info.initial_lr = trainer->info.learning_rate = lr;
    return OT_OK;
}

ot_status ot_trainer_set_schedule(ot_trainer *trainer, const ot_schedule *schedule)
{
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(trainer, set_trainer_schedule(trainer, schedule));
}

static int find_output(const ot_trainer *trainer, const char *name)
{
    for (int i = 0; i < trainer->n_outputs; i++)
        if (strcmp(trainer->outputs[i].name, name) == 0)
            return i;
    return -1;
}

static ot_status check_fetches(const ot_trainer *trainer, const char *const *names, int n)
{
    ot__buf unknown = {0};
    ot_status st;

    for (int i = 0; i < n; i++)
        if (names[i] == NULL)
            return ot__error(OT_ERR_INVALID, "fetch %d is NULL", i);
    for (int i = 0; i < n; i++)
        if (find_output(trainer, names[i]) < 0)
            ot__buf_printf(&unknown, "%s'%s'", unknown.length > 0 ? ", " : "", names[i]);
    st = ot__buf_status(&unknown);
    if (st == OT_OK && unknown.length > 0)
        st = ot__error(OT_ERR_NOT_FOUND, "fetches: no described output is %s", unknown.data);
    ot__buf_deinit(&unknown);
    return st;
}

static ot_status set_fetches(ot_trainer *trainer, const char *const *names, int n)
{
    OT_TRY(check_fetches(trainer, names, n));
    if (n > trainer->n_outputs)
        return ot__error(OT_ERR_INVALID, "%d fetches, but there are %d outputs", n,
                         trainer->n_outputs);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(names[i], names[k]) == 0)
                return ot__error(OT_ERR_INVALID, "fetches: '%s' stands there twice", names[i]);
    for (int i = 0; i < n; i++)
        trainer->fetches[i] = find_output(trainer, names[i]);
    trainer->n_fetches = n;
    return OT_OK;
}

ot_status ot_trainer_set_fetches(ot_trainer *trainer, const char *const *names, int n)
{
    OT_TRY(OT_GIVEN_MANY(names, n));
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(trainer, set_fetches(trainer, names, n));
}
