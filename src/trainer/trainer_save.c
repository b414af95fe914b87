// SPDX-License-Identifier: Apache-2.0
// Trainers to and from checkpoint files.
#include <inttypes.h>
#include <math.h>

#include "trainer/state.h"

#define OT_PROPERTY_MORE_STEPS "onnxtrain.more_steps" // train steps
#define OT_PROPERTY_CYCLE "onnxtrain.cycle" // train steps before one from which accumulations count
// String: the loss scale, updates with finite gradients since it last changed, and the scale of an
// accumulation under way, or 0.
#define OT_PROPERTY_LOSS_SCALE "onnxtrain.loss_scale"
static const char *const own_properties[] = {OT_PROPERTY_MORE_UPDATES, OT_PROPERTY_MORE_STEPS,
                                             OT_PROPERTY_CYCLE, OT_PROPERTY_USER_DICT,
                                             OT_PROPERTY_LOSS_SCALE};

static void drop_properties(ot_checkpoint *checkpoint)
{
    for (size_t i = 0; i < OT_COUNT(own_properties); i++)
        if (ot__ckpt_property(checkpoint, own_properties[i]) != NULL)
            (void)ot_checkpoint_remove_property(checkpoint, own_properties[i]);
}

// ---- saving ----

static ot_status put_if(ot_checkpoint *checkpoint, const char *name, int64_t value)
{
    return value == 0 ? OT_OK : ot_checkpoint_set_int(checkpoint, name, value);
}

ot_status ot__trainer_put_scale(const ot_trainer *trainer)
{
    const ot__scale_position at = ot__trainer_scale_position(trainer);
    ot__buf text = {0};

    if (!at.is_there)
        return OT_OK;
    ot__buf_float(&text, at.loss_scale, false);
    ot__buf_printf(&text, " %" PRId64 " ", at.n_stable);
    ot__buf_float(&text, at.of_gradients, false);
    return ot__ckpt_set_text(ot_session_checkpoint(trainer->session), OT_PROPERTY_LOSS_SCALE,
                             &text);
}

static ot_status put_trainer_properties(const ot_trainer *trainer, const ot_save_options *options)
{
    ot_checkpoint *checkpoint = ot_session_checkpoint(trainer->session);
    const int64_t n_updates = options->include_optimizer_states ? checkpoint->step : 0;
    const int64_t n_steps = (int64_t)ot__session_counter(trainer->session);
    const int64_t begin = trainer->info.step - trainer->phase;

    OT_TRY(
        put_if(checkpoint, OT_PROPERTY_MORE_UPDATES, trainer->info.optimization_step - n_updates));
    OT_TRY(put_if(checkpoint, OT_PROPERTY_MORE_STEPS, trainer->info.step - n_steps));
    OT_TRY(put_if(checkpoint, OT_PROPERTY_CYCLE, begin % trainer->accumulation));
    OT_TRY(ot__trainer_put_scale(trainer));
    return options->user_dict == NULL
               ? OT_OK
               : ot_checkpoint_set_string(checkpoint, OT_PROPERTY_USER_DICT, options->user_dict);
}

static ot_status save_trainer_checkpoint(ot_trainer *trainer, const char *path,
                                         const ot_save_options *options)
{
    const unsigned flags = options->include_optimizer_states ? OT_CHECKPOINT_OPTIMIZER_STATE : 0;
    ot_status st = put_trainer_properties(trainer, options);

    OT_THEN(st,
            ot__session_save_accumulating(trainer->session, path, trainer->n_accumulated, flags));
    drop_properties(ot_session_checkpoint(trainer->session));
    return st;
}

static ot_status save_trainer(ot_trainer *trainer, ot_status given, const char *path,
                              const ot_save_options *options)
{
    switch (options->format) {
    case OT_FORMAT_CHECKPOINT:
        OT_TRY(given);
        return save_trainer_checkpoint(trainer, path, options);
    case OT_FORMAT_HDF5:
        return ot__trainer_save_hdf5(trainer, given, path, options);
    default:
        return ot__error(OT_ERR_INVALID, "format %d, expected %d (a checkpoint) or %d (HDF5)",
                         (int)options->format, (int)OT_FORMAT_CHECKPOINT, (int)OT_FORMAT_HDF5);
    }
}

ot_status ot_trainer_save(ot_trainer *trainer, const char *path, const ot_save_options *options)
{
    ot_save_options own = OT_SAVE_OPTIONS_INIT;
    const ot_status given = OT_GIVEN(path);

    OT_TRY(OT_OPTIONS_READ(ot_save_options, OT_SAVE_OPTIONS_INIT, options, &own));
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(trainer, save_trainer(trainer, given, path, &own));
}

// ---- where it stood ----

static ot_status read_more(const ot_checkpoint *checkpoint, const char *name, int64_t *sum)
{
    int64_t more = 0;

    if (ot__ckpt_property(checkpoint, name) != NULL)
        OT_TRY(ot_checkpoint_get_int(checkpoint, name, &more));
    if ((more > 0 && *sum > INT64_MAX - 1 - more) || *sum + more < 0)
        return ot__error(OT_ERR_FORMAT, "property '%s' is %" PRId64 ", added to %" PRId64, name,
                         more, *sum);
    *sum += more;
    return OT_OK;
}

static ot_status parse_scale(char *text, ot__scale_position *out)
{
    char *stable = ot__cut(text, ' '), *of_gradients = stable != NULL ? ot__cut(stable, ' ') : NULL;

    out->is_there = true;
    if (of_gradients == NULL || !ot__parse_float(text, &out->loss_scale) ||
        !ot__parse_int(stable, &out->n_stable) || out->n_stable < 0 ||
        !ot__parse_float(of_gradients, &out->of_gradients))
        return ot__error(OT_ERR_FORMAT, "property '%s' is not a scale, a count and a scale",
                         OT_PROPERTY_LOSS_SCALE);
    OT_TRY(ot__loss_scale_check(out->loss_scale));
    return fabs(out->of_gradients) > 0 ? ot__loss_scale_check(out->of_gradients) : OT_OK;
}

static ot_status read_scale_property(const ot_checkpoint *checkpoint, ot__scale_position *out)
{
    const char *text;
    char *copy;
    ot_status st;

    if (ot__ckpt_property(checkpoint, OT_PROPERTY_LOSS_SCALE) == NULL)
        return OT_OK;
    OT_TRY(ot_checkpoint_get_string(checkpoint, OT_PROPERTY_LOSS_SCALE, &text));
    copy = ot__strdup(text);
    OT_TRY(ot__made(copy != NULL));
    st = parse_scale(copy, out);
    ot__free(copy);
    return st;
}

ot_status ot__position_read(const ot_checkpoint *checkpoint, int64_t accumulation,
                            ot__trainer_position *out)
{
    int64_t begin = 0;

    *out = (ot__trainer_position){.n_accumulated = checkpoint->n_accumulated};
    OT_TRY(ot__resume_read(checkpoint, &out->session));
    OT_TRY(read_scale_property(checkpoint, &out->scale));
    out->optimization_step = checkpoint->step;
    OT_TRY(read_more(checkpoint, OT_PROPERTY_MORE_UPDATES, &out->optimization_step));
    out->step = out->session.has_counter ? (int64_t)out->session.counter : out->optimization_step;
    OT_TRY(read_more(checkpoint, OT_PROPERTY_MORE_STEPS, &out->step));
    OT_TRY(read_more(checkpoint, OT_PROPERTY_CYCLE, &begin));
    out->phase = OT_MAX(out->step - begin, 0) % accumulation;
    out->phase = OT_MAX(out->phase, out->n_accumulated);
    return OT_OK;
}

ot_status ot__trainer_resume(ot_trainer *trainer)
{
    ot_checkpoint *checkpoint = ot_session_checkpoint(trainer->session);
    ot__trainer_position at;

    OT_TRY(ot__position_read(checkpoint, trainer->accumulation, &at));
    drop_properties(checkpoint);
    trainer->info.optimization_step = at.optimization_step;
    trainer->info.step = at.step;
    trainer->n_accumulated = ot__session_resume_accumulation(trainer->session);
    trainer->phase = at.phase;
    ot__trainer_go_to_scale(trainer, &at.scale);
    return OT_OK;
}

// ---- loading ----

static ot_status read_user_dict(const ot_checkpoint *checkpoint, char **out)
{
    const char *text;

    if (out == NULL || ot__ckpt_property(checkpoint, OT_PROPERTY_USER_DICT) == NULL)
        return OT_OK;
    OT_TRY(ot_checkpoint_get_string(checkpoint, OT_PROPERTY_USER_DICT, &text));
    *out = ot__strdup(text);
    return ot__made(*out != NULL);
}

// Checkpoints of other makers, and of plain SGD by earlier versions, do not say.
static ot_status read_optimizer(const ot_checkpoint *file, const char **out)
{
    if (ot__ckpt_property(file, OT_PROPERTY_OPTIMIZER) != NULL)
        return ot_checkpoint_get_string(file, OT_PROPERTY_OPTIMIZER, out);
    return ot__ckpt_property(file, OT_PROPERTY_RULE) != NULL
               ? ot_checkpoint_get_string(file, OT_PROPERTY_RULE, out)
               : OT_OK;
}

static ot_status state_of_file(const ot_trainer *trainer, ot_checkpoint *file, ot_dict **out)
{
    ot__state_source source = {.trainer = trainer, .checkpoint = file, .is_view = true};

    if (file->is_nominal)
        return ot__error(OT_ERR_INVALID,
                         "the checkpoint is nominal: its parameters have no values");
    OT_TRY(ot__position_read(file, trainer->accumulation, &source.position));
    OT_TRY(read_optimizer(file, &source.optimizer));
    return ot__state_make(&source, OT_STATE_ALL, out);
}

// The user's properties, and groups of others: the file has the present ones afterwards.
static void exchange_rest(ot_checkpoint *checkpoint, ot_checkpoint *file)
{
    ot__property *const properties = checkpoint->properties;
    const int n = checkpoint->n_properties, capacity = checkpoint->properties_capacity;
    ot__optimizer_group *const groups = checkpoint->other_groups;
    const int n_groups = checkpoint->n_other_groups;

    checkpoint->properties = file->properties;
    checkpoint->n_properties = file->n_properties;
    checkpoint->properties_capacity = file->properties_capacity;
    checkpoint->other_groups = file->other_groups;
    checkpoint->n_other_groups = file->n_other_groups;
    file->properties = properties;
    file->n_properties = n;
    file->properties_capacity = capacity;
    file->other_groups = groups;
    file->n_other_groups = n_groups;
}

static void take_rest(const ot_trainer *trainer, ot_checkpoint *file)
{
    ot_checkpoint *checkpoint = ot_session_checkpoint(trainer->session);

    exchange_rest(checkpoint, file);
    drop_properties(checkpoint);
    if (!ot_session_has_schedule(trainer->session) &&
        ot__ckpt_property(checkpoint, OT_PROPERTY_SCHEDULE) != NULL)
        (void)ot_checkpoint_remove_property(checkpoint, OT_PROPERTY_SCHEDULE);
    if (file->has_optimizer_state)
        checkpoint->initial_lr = file->initial_lr;
}

static ot_status take_file(ot_trainer *trainer, ot_status given, ot_checkpoint *file,
                           ot_strictness strictness, char **user_dict)
{
    ot_dict *state = NULL;
    ot__pending pending;
    char *text = NULL;
    ot_status st = given;

    OT_THEN(st, state_of_file(trainer, file, &state));
    OT_THEN(st, read_user_dict(file, user_dict != NULL ? &text : NULL));
    st = ot__pending_make(trainer, st, state, strictness, &pending);
    if (st == OT_OK) {
        if (user_dict != NULL)
            *user_dict = text;
        text = NULL;
        pending.view = file;
        ot__pending_take(trainer, &pending);
        take_rest(trainer, file);
    }
    ot__free(text);
    ot__pending_drop(&pending);
    ot_dict_destroy(state);
    return st;
}

static ot_status load_trainer(ot_trainer *trainer, const char *path, bool is_apart,
                              ot_strictness strictness, char **user_dict)
{
    ot_checkpoint *file = NULL;
    ot_status given, st;

    if (ot_hdf5_is_file(path))
        return ot__trainer_load_hdf5(trainer, path, is_apart, strictness, user_dict);
    given = ot__ckpt_view(path, &file);
    st = take_file(trainer, given, file, strictness, user_dict);
    ot_checkpoint_destroy(file);
    return st == OT_OK || st == OT_ERR_NO_MEMORY || given != OT_OK
               ? st
               : ot__error(st, "%s: %s", path, ot_error_message());
}

static ot_status load_trainer_files(ot_trainer *trainer, const char *const *paths, int n_paths,
                                    bool is_apart, ot_strictness strictness, char **user_dict)
{
    if (user_dict != NULL)
        *user_dict = NULL;
    OT_TRY(OT_GIVEN(paths));
    if (n_paths < 1)
        return ot__error(OT_ERR_INVALID,
                         "%d files, expected 1, or all of a state that is in several", n_paths);
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(
        trainer, n_paths == 1 ? load_trainer(trainer, paths[0], is_apart, strictness, user_dict)
                              : ot__trainer_load_shards(trainer, paths, n_paths, is_apart,
                                                        strictness, user_dict));
}

ot_status ot_trainer_load(ot_trainer *trainer, const char *const *paths, int n_paths,
                          ot_strictness strictness, char **user_dict)
{
    return load_trainer_files(trainer, paths, n_paths, false, strictness, user_dict);
}

ot_status ot_trainer_load_apart(ot_trainer *trainer, const char *const *paths, int n_paths,
                                ot_strictness strictness, char **user_dict)
{
    return load_trainer_files(trainer, paths, n_paths, true, strictness, user_dict);
}
