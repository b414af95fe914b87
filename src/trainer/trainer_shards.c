// SPDX-License-Identifier: Apache-2.0
// The state of a trainer by names, over ranks: that of its session, with where the trainer stands.
#include <inttypes.h>

#include "onnxtrain/trainer_shards.h"
#include "trainer/state.h"

// What a trainer adds to what its session goes on with.
typedef struct trainer_own {
    ot_trainer *trainer;
    ot__scale_position scale; // given
    bool has_step, has_update;
    int64_t step, optimization_step;
    bool is_of_trainer; // what is given, or of a session alone
} trainer_own;

static ot_status fill_trainer_own(void *context, ot_dict *to)
{
    const ot_trainer *trainer = ((trainer_own *)context)->trainer;
    const ot__scale_position scale = ot__trainer_scale_position(trainer);

    OT_TRY(ot_dict_set_int(to, OT_KEY_SHARDS_STEP, trainer->info.step));
    OT_TRY(ot_dict_set_int(to, OT_KEY_OPTIMIZATION_STEP, trainer->info.optimization_step));
    if (!scale.is_there)
        return OT_OK;
    OT_TRY(ot_dict_set_float(to, OT_KEY_LOSS_SCALE, scale.loss_scale));
    return ot_dict_set_int(to, OT_KEY_STABLE_UPDATES, scale.n_stable);
}

static ot_status read_own_count(const ot_dict *from, const char *name, bool *has_it, int64_t *out)
{
    *has_it = ot__dict_has(from, name);
    if (!*has_it)
        return OT_OK;
    OT_TRY(ot_dict_get_int(from, name, out));
    return *out >= 0 && *out < INT64_MAX
               ? OT_OK
               : ot__error(OT_ERR_INVALID, "%s of the state is %" PRId64, name, *out);
}

// Of a session alone: its train steps and updates.
static ot_status read_counts(trainer_own *own, const ot_dict *from)
{
    own->is_of_trainer = ot__dict_has(from, OT_KEY_SHARDS_STEP);
    OT_TRY(read_own_count(from, own->is_of_trainer ? OT_KEY_SHARDS_STEP : OT_KEY_COUNTER,
                          &own->has_step, &own->step));
    return read_own_count(from, own->is_of_trainer ? OT_KEY_OPTIMIZATION_STEP : OT_KEY_TRAIN_STEP,
                          &own->has_update, &own->optimization_step);
}

static ot_status check_trainer_own(void *context, const ot_dict *from)
{
    trainer_own *own = context;
    bool has_stable;

    OT_TRY(read_counts(own, from));
    own->scale.is_there = ot__dict_has(from, OT_KEY_LOSS_SCALE);
    if (!own->scale.is_there)
        return OT_OK;
    OT_TRY(ot_dict_get_float(from, OT_KEY_LOSS_SCALE, &own->scale.loss_scale));
    OT_TRY(ot__loss_scale_check(own->scale.loss_scale));
    return read_own_count(from, OT_KEY_STABLE_UPDATES, &has_stable, &own->scale.n_stable);
}

// What is not given is below 0.
static bool number_of_trainer_own(void *context, int index, const char **name, double *value)
{
    const trainer_own *own = context;
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {OT_KEY_SHARDS_STEP, own->has_step ? (double)own->step : -1},
        {OT_KEY_OPTIMIZATION_STEP, own->has_update ? (double)own->optimization_step : -1},
        {OT_KEY_LOSS_SCALE, own->scale.is_there ? own->scale.loss_scale : -1},
        {OT_KEY_STABLE_UPDATES, own->scale.is_there ? (double)own->scale.n_stable : -1},
    };

    if ((size_t)index >= OT_COUNT(numbers))
        return false;
    *name = numbers[index].name;
    *value = numbers[index].value;
    return true;
}

// An accumulation under way is of another state.
static void take_trainer_own(void *context)
{
    const trainer_own *own = context;
    ot_trainer *trainer = own->trainer;

    if (own->has_step)
        trainer->info.step = own->step;
    if (own->has_update)
        trainer->info.optimization_step = own->optimization_step;
    if (ot__session_get_schedule(trainer->session, &trainer->schedule))
        trainer->has_schedule = true;
    trainer->info.initial_lr = trainer->has_schedule ? trainer->schedule.initial_lr
                                                     : ot_session_learning_rate(trainer->session);
    (void)ot__trainer_set_next_rate(trainer); // a schedule gives no other than it may
    trainer->phase = 0;
    trainer->n_accumulated = 0;
    ot_session_checkpoint(trainer->session)->n_accumulated = 0;
    ot__session_reset_gradients(trainer->session);
    ot__trainer_go_to_scale(trainer, &own->scale);
}

static ot__state_owner owner_of(trainer_own *own)
{
    return (ot__state_owner){.context = own,
                             .fill = fill_trainer_own,
                             .check = check_trainer_own,
                             .number = number_of_trainer_own,
                             .take = take_trainer_own};
}

ot_status ot_trainer_get_shards(ot_trainer *trainer, unsigned sections,
                                const ot_state_dict_options *options, ot_dict **out)
{
    trainer_own own = {.trainer = trainer};
    const ot__state_owner owner = owner_of(&own);

    OT_TRY(OT_OUT(out));
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(
        trainer, ot__session_get_shards(trainer->session, sections, options, &owner, out));
}

static ot_status set_trainer_shards(ot_trainer *trainer, unsigned sections, const ot_dict *state,
                                    const ot_state_dict_options *options, bool is_check,
                                    ot_shards_report **report)
{
    trainer_own own = {.trainer = trainer};
    const ot__state_owner owner = owner_of(&own);

    if (report != NULL)
        *report = NULL;
    OT_TRY(OT_OPTIONAL(state, "state"));
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(trainer, ot__session_set_shards(trainer->session, sections, state,
                                                             options, is_check, &owner, report));
}

ot_status ot_trainer_set_shards(ot_trainer *trainer, unsigned sections, const ot_dict *state,
                                const ot_state_dict_options *options, ot_shards_report **report)
{
    return set_trainer_shards(trainer, sections, state, options, false, report);
}

ot_status ot_trainer_check_shards(ot_trainer *trainer, unsigned sections, const ot_dict *state,
                                  const ot_state_dict_options *options, ot_shards_report **report)
{
    return set_trainer_shards(trainer, sections, state, options, true, report);
}

// ---- as checkpoint directories ----

static ot_status check_no_accumulation(const ot_trainer *trainer)
{
    return trainer->n_accumulated == 0
               ? OT_OK
               : ot__error(OT_ERR_STATE,
                           "the trainer is in an accumulation of %" PRId64
                           " micro-batches, whose gradients a checkpoint directory does not have",
                           trainer->n_accumulated);
}

static ot_status save_trainer_shards(ot_trainer *trainer, ot_status given, ot_shards_job *job,
                                     const char *path, const ot_shards_save_options *options)
{
    trainer_own own = {.trainer = trainer};
    const ot__state_owner owner = owner_of(&own);
    ot_status st = given;

    OT_THEN(st, check_no_accumulation(trainer));
    return ot__session_save_shards(trainer->session, st, &owner, job, path, options);
}

ot_status ot_trainer_save_shards(ot_trainer *trainer, const char *path,
                                 const ot_shards_save_options *options)
{
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(trainer, save_trainer_shards(trainer, OT_OK, NULL, path, options));
}

ot_status ot_trainer_save_shards_async(ot_trainer *trainer, ot_shards_job *job, const char *path,
                                       const ot_shards_save_options *options)
{
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(trainer,
                             save_trainer_shards(trainer, OT_GIVEN(job), job, path, options));
}

// The training loop keeps the loss scale as a property.
static ot_status resume_from_properties(const trainer_own *own)
{
    ot_trainer *trainer = own->trainer;

    if (own->is_of_trainer)
        return OT_OK;
    OT_TRY(ot__trainer_resume(trainer));
    trainer->info.step = own->step;
    trainer->phase = 0;
    return OT_OK;
}

static ot_status load_trainer_directory(ot_trainer *trainer, const char *path)
{
    trainer_own own = {.trainer = trainer};
    const ot__state_owner owner = owner_of(&own);

    OT_TRY(ot__session_load_shards(trainer->session, OT_OK, &owner, path));
    return ot__session_agree(trainer->session, resume_from_properties(&own), "load_shards");
}

ot_status ot_trainer_load_shards(ot_trainer *trainer, const char *path)
{
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(trainer, load_trainer_directory(trainer, path));
}
