// SPDX-License-Identifier: Apache-2.0
// What a run saves, and when. Weights of 1e20 are finite, and worth nothing: a state takes the
// place of the one saved before only when a step from it has given a finite loss. So saving waits
// for the next train step, which changes nothing that is saved but running statistics and the
// random counter; these go back to what they were while the files are written.
#include <stdio.h>
#include <string.h>

#include "onnxtrain/state_dict.h"
#include "train/loop.h"

// ---- the folder ----

// Two runs into one folder would each resume from, and replace, what the other has saved.
static ot_status take_folder(ot__loop *l)
{
    const char *folder = l->options->checkpoint_dir;
    char *path;
    ot_status st;

    OT_TRY(ot__path_make_folder(folder));
    path = ot__path_join(folder, ".onnxtrain-lock");
    OT_TRY(ot__made(path));
    st = ot__lock_take(path, &l->lock);
    ot__free(path);
    return st == OT_ERR_STATE ? ot__error_prefix(st, "another run saves into this directory") : st;
}

static ot_status check_unused(const ot__loop *l)
{
    const char *const paths[] = {l->checkpoint_path, l->best_path, l->latest_path};

    if (l->options->resume || l->options->overwrite)
        return OT_OK;
    for (size_t i = 0; i < OT_COUNT(paths); i++)
        if (ot__path_exists(paths[i]))
            return ot__error(OT_ERR_STATE, "%s is of an earlier run: resume it, or overwrite it",
                             paths[i]);
    return OT_OK;
}

ot_status ot__save_open(ot__loop *l)
{
    const char *folder = l->options->checkpoint_dir;

    if (!folder)
        return OT_OK;
    l->checkpoint_path = ot__path_join(folder, "checkpoint");
    l->best_path = ot__path_join(folder, "best");
    l->model_path = ot__path_join(folder, "eval_model.onnx");
    l->latest_path = ot__path_join(folder, "latest");
    OT_TRY(ot__made(l->checkpoint_path && l->best_path && l->model_path && l->latest_path));
    if (ot__loop_rank(l) > 0)
        return OT_OK;
    OT_TRY(take_folder(l));
    OT_TRY(check_unused(l));
    l->has_old_best = !l->options->resume && ot__path_exists(l->best_path);
    return OT_OK;
}

static void best_release(ot__loop *l)
{
    for (int i = 0; l->best && i < ot_checkpoint_parameter_count(l->checkpoint); i++)
        ot_tensor_destroy(l->best[i]);
    ot__free(l->best);
    l->best = NULL;
}

void ot__save_close(ot__loop *l)
{
    ot__lock_leave(&l->lock);
    best_release(l);
    ot__free(l->checkpoint_path);
    ot__free(l->best_path);
    ot__free(l->model_path);
    ot__free(l->latest_path);
    ot__free(l->directory_path);
}

// ---- the eval model: with a checkpoint it is all that export needs ----

static ot_status describe_model(const ot_train_options *options, ot_model *model)
{
    ot__buf names = {0};

    for (int i = 0; i < options->n_outputs; i++)
        ot__buf_printf(&names, "%s%s", i > 0 ? "\n" : "", options->outputs[i]);
    if (options->n_outputs > 0)
        OT_TRY(ot__model_set_metadata_text(model, OT_METADATA_OUTPUTS, &names));
    return options->artifacts ? ot_record_write(model, options->artifacts, options->data) : OT_OK;
}

static ot_status save_run_model(ot__loop *l)
{
    ot_model *model;
    ot_status st;

    if (l->has_model)
        return OT_OK;
    OT_TRY(ot__session_copy_eval_model(l->session, &model));
    if (!model)
        return OT_OK;
    st = describe_model(l->options, model);
    OT_THEN(st, ot_model_save(model, l->model_path, NULL));
    ot_model_destroy(model);
    l->has_model = st == OT_OK;
    return st;
}

// ---- the best epoch ----

static ot_status take_parameters(ot__loop *l, const ot_checkpoint *from)
{
    int n = ot_checkpoint_parameter_count(l->checkpoint);

    best_release(l);
    l->best = ot__alloc_zero((size_t)n + 1, sizeof(*l->best));
    OT_TRY(ot__made(l->best));
    for (int i = 0; i < n; i++)
        OT_TRY(ot_checkpoint_get_parameter(from, ot_checkpoint_parameter_name(l->checkpoint, i),
                                           &l->best[i]));
    return OT_OK;
}

ot_status ot__save_load_best(ot__loop *l)
{
    ot_checkpoint *best;
    ot_status st;

    if (!l->best_path || !ot__path_exists(l->best_path))
        return OT_OK;
    OT_TRY(ot_checkpoint_load_parameters(l->best_path, &best));
    st = take_parameters(l, best);
    l->best_metrics = l->at.best.metrics;
    ot_checkpoint_destroy(best);
    return st;
}

ot_status ot__save_restore_best(ot__loop *l)
{
    for (int i = 0; l->best && i < ot_checkpoint_parameter_count(l->checkpoint); i++)
        OT_TRY(ot_checkpoint_set_parameter(
            l->checkpoint, ot_checkpoint_parameter_name(l->checkpoint, i), l->best[i]));
    return OT_OK;
}

// That of the run that this one overwrites, where this one has none.
static void drop_old_best(ot__loop *l)
{
    char *data = ot__path_join(l->options->checkpoint_dir, "best.data");

    ot__file_remove(l->best_path);
    if (data)
        ot__file_remove(data);
    ot__free(data);
}

// ---- saving ----

void ot__save_later(ot__loop *l, bool checkpoint, bool best)
{
    l->plan.checkpoint = l->plan.checkpoint || (checkpoint && l->checkpoint_path);
    l->plan.best = l->plan.best || best;
    l->plan.at = l->at;
    l->plan.event = ot__loop_event(l, OT_EVENT_SAVED);
}

// A directory beside those before it, of which it is the latest then.
static ot_status write_directory(ot__loop *l)
{
    const int64_t step = ot_session_step_count(l->session);
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
    char name[32], *path;
    ot_status st;

    snprintf(name, sizeof name, "step-%" PRId64, step);
    path = ot__path_join(l->options->checkpoint_dir, name);
    options.step = step;
    options.replaces = options.sets_latest = 1;
    options.n_kept = 1;
    OT_TRY(ot__loop_agree(l, ot__made(path), "saving"));
    st = ot_session_save_shards(l->session, path, &options);
    ot__free(l->directory_path);
    l->directory_path = path;
    return st;
}

// What every rank has of it, or rank 0 all. The best epoch is one of parameters alone.
static ot_status save_state_of_run(ot__loop *l, bool is_best)
{
    const char *path = is_best ? l->best_path : l->checkpoint_path;

    if (ot__session_is_cut(l->session))
        return is_best ? ot_checkpoint_save(l->checkpoint, path, 0) : write_directory(l);
    return ot_session_save(l->session, path);
}

static ot_status write(ot__loop *l, const ot__save_plan *plan, bool is_best)
{
    const bool takes_all = ot__session_is_cut(l->session) && !is_best;
    ot_status st = OT_OK;

    if (ot__loop_rank(l) > 0 && !takes_all)
        return OT_OK;
    if (ot__loop_rank(l) == 0)
        st = save_run_model(l);
    OT_THEN(st, ot__position_put(l->checkpoint, &plan->at));
    OT_THEN(st, ot__trainer_put_scale(l->trainer));
    if (takes_all)
        st = ot__loop_agree(l, st, "saving");
    return st == OT_OK ? save_state_of_run(l, is_best) : st;
}

static ot_status carry_out(ot__loop *l, const ot__save_plan *plan)
{
    OT_TRY(ot__loop_check_parameters(l));
    if (plan->best) {
        OT_TRY(take_parameters(l, l->checkpoint));
        l->best_metrics = plan->at.best.metrics;
        if (l->best_path) {
            OT_TRY(write(l, plan, true));
            l->has_old_best = false;
        }
    }
    return plan->checkpoint ? write(l, plan, false) : OT_OK;
}

static void tell(ot__loop *l, const ot__save_plan *plan)
{
    const char *state = l->directory_path != NULL ? l->directory_path : l->checkpoint_path;
    const char *const paths[] = {plan->best ? l->best_path : NULL, plan->checkpoint ? state : NULL};
    ot_event event = plan->event;

    for (size_t i = 0; i < OT_COUNT(paths); i++) {
        event.path = paths[i];
        if (event.path)
            ot__loop_notify(l, &event);
    }
}

// To the state that the step, or over several ranks all of the update, was made from.
static void go_back(ot__loop *l)
{
    if (l->comm != NULL)
        ot__trainer_go_back(l->trainer);
    else
        ot__trainer_step_back(l->trainer);
}

static void go_forth(ot__loop *l)
{
    if (l->comm != NULL)
        ot__trainer_go_forth(l->trainer);
    else
        ot__trainer_step_forth(l->trainer);
}

ot_status ot__save_confirmed(ot__loop *l)
{
    const ot__save_plan plan = l->plan;
    ot_status st;

    l->is_confirmed = true;
    if (!plan.checkpoint && !plan.best)
        return OT_OK;
    l->plan = (ot__save_plan){0};
    go_back(l);
    st = carry_out(l, &plan);
    go_forth(l);
    l->has_failed = st != OT_OK;
    if (st != OT_OK)
        return st;
    if (plan.checkpoint) {
        l->is_saved = true;
        if (l->has_old_best)
            drop_old_best(l);
        l->has_old_best = false;
    }
    tell(l, &plan);
    return OT_OK;
}

ot_status ot__save_last(ot__loop *l)
{
    ot_status st;

    if (l->at.epoch == 0 && l->at.batch == 0)
        return OT_OK; // there has been no step
    if (l->checkpoint_path && !l->is_saved)
        ot__save_later(l, true, false);
    if (l->is_confirmed && !l->plan.checkpoint && !l->plan.best)
        return OT_OK;
    l->is_at_end = true;
    st = ot__loop_agree(l, ot__loop_repeat(l), "the last state");
    if (l->comm == NULL)
        OT_TRY(st);
    OT_THEN(st, ot__save_confirmed(l));
    ot__trainer_drop(l->trainer); // the step
    ot__trainer_restart(l->trainer);
    OT_TRY(ot__loop_agree(l, st, "the last state"));
    return ot__loop_check_parameters(l);
}
