// SPDX-License-Identifier: Apache-2.0
// What a run saves, and when. Weights of 1e20 are finite, and worth nothing: a state takes the
// place of the one saved before only when a step from it has given a finite loss. So saving waits
// for the next train step, which changes nothing that is saved but running statistics and the
// random counter; these go back to what they were while the files are written.
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
    OT_TRY(ot__directory_choose(l));
    if (ot__loop_rank(l) > 0)
        return OT_OK;
    OT_TRY(take_folder(l));
    OT_TRY(check_unused(l));
    l->has_old_best = !l->options->resume && ot__path_exists(l->best_path);
    return OT_OK;
}

static void release_parameters(const ot__loop *l, ot_tensor **tensors)
{
    for (int i = 0; tensors && i < ot_checkpoint_parameter_count(l->checkpoint); i++)
        ot_tensor_destroy(tensors[i]);
    ot__free(tensors);
}

static void best_release(ot__loop *l)
{
    release_parameters(l, l->best);
    l->best = NULL;
}

void ot__save_close(ot__loop *l)
{
    ot_shards_job_destroy(l->job); // before others may work in the folder
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

// Of another checkpoint, where they are whole, or of the run's own (NULL).
static ot_status copy_own_parts(const ot__loop *l, const ot_checkpoint *from, ot_tensor ***out)
{
    const int n = ot_checkpoint_parameter_count(l->checkpoint);
    ot_tensor **tensors = ot__alloc_zero((size_t)n + 1, sizeof(*tensors));
    ot_status st = ot__made(tensors);

    for (int i = 0; i < n && st == OT_OK; i++) {
        const char *name = ot_checkpoint_parameter_name(l->checkpoint, i);

        st = from != NULL ? ot_checkpoint_get_parameter(from, name, &tensors[i])
                          : ot__ckpt_copy_part(l->checkpoint, i, &tensors[i]);
    }
    if (st != OT_OK) { // some of them are nothing to end with
        release_parameters(l, tensors);
        tensors = NULL;
    }
    *out = tensors;
    return st;
}

static ot_status take_parameters(ot__loop *l, const ot_checkpoint *from)
{
    best_release(l);
    l->is_best_loaded = from != NULL;
    return copy_own_parts(l, from, &l->best);
}

static ot_status put_parameters(ot__loop *l, ot_tensor *const *tensors)
{
    for (int i = 0; tensors && i < ot_checkpoint_parameter_count(l->checkpoint); i++)
        OT_TRY(ot__ckpt_take_part(l->checkpoint, i, tensors[i]));
    return OT_OK;
}

ot_status ot__save_cut_best(ot__loop *l)
{
    if (!l->is_best_loaded || !ot__session_cuts_values(l->session))
        return OT_OK;
    for (int i = 0; l->best && i < ot_checkpoint_parameter_count(l->checkpoint); i++)
        OT_TRY(ot__ckpt_cut_whole(l->checkpoint, i, &l->best[i]));
    l->is_best_loaded = false;
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
    OT_TRY(ot__save_cut_best(l));
    return put_parameters(l, l->best);
}

void ot__save_remove(const char *path)
{
    ot__buf data = {0};

    ot__file_remove(path);
    ot__buf_printf(&data, "%s.data", path);
    if (!data.failed)
        ot__file_remove(data.data);
    ot__buf_deinit(&data);
}

// ---- saving ----

void ot__save_later(ot__loop *l, bool checkpoint, bool best)
{
    l->plan.checkpoint = l->plan.checkpoint || (checkpoint && l->checkpoint_path);
    l->plan.best = l->plan.best || best;
    l->plan.at = l->at;
    l->plan.event = ot__loop_event(l, OT_EVENT_SAVED);
}

// What is saved besides values: where the run stands.
static ot_status note_position(ot__loop *l, const ot__save_plan *plan)
{
    OT_TRY(ot__position_put(l->checkpoint, &plan->at));
    return ot__trainer_put_scale(l->trainer);
}

// Of rank 0: a file, and what goes with it.
static ot_status write_run_file(ot__loop *l, const ot__save_plan *plan, const char *path)
{
    if (ot__loop_rank(l) > 0)
        return OT_OK;
    OT_TRY(save_run_model(l));
    OT_TRY(note_position(l, plan));
    return path != NULL ? ot_session_save(l->session, path) : OT_OK;
}

// One of parameters alone where ranks have parts of the rest, and perhaps of these.
static ot_status write_whole_best(ot__loop *l, const ot__save_plan *plan, ot_status st)
{
    if (!ot__session_is_cut(l->session))
        return st == OT_OK ? write_run_file(l, plan, l->best_path) : st;
    OT_THEN(st, write_run_file(l, plan, NULL));
    OT_TRY(ot__loop_agree(l, st, "saving"));
    return ot__session_save_values(l->session, l->best_path);
}

static ot_status write_best_file(ot__loop *l, const ot__save_plan *plan, ot_status st)
{
    OT_TRY(write_whole_best(l, plan, st));
    l->has_old_best = false;
    return OT_OK;
}

// Of all ranks; `st`: how it went so far on this one.
static ot_status write_directory(ot__loop *l, const ot__save_plan *plan, ot_status st)
{
    if (ot__loop_rank(l) == 0)
        OT_THEN(st, save_run_model(l));
    OT_THEN(st, note_position(l, plan));
    OT_TRY(ot__loop_agree(l, st, "saving"));
    OT_TRY(ot__directory_write(l));
    l->saving_event = plan->event;
    return OT_OK;
}

// Of all ranks; `st`: how it went so far on this one.
static ot_status write_best(ot__loop *l, const ot__save_plan *plan, ot_status st)
{
    OT_THEN(st, take_parameters(l, NULL));
    if (st == OT_OK)
        l->best_metrics = plan->at.best.metrics;
    if (!l->best_path)
        return st;
    return write_best_file(l, plan, st);
}

// The best epoch, whose file could not be written when it ended: checkpoints that tell of it wait
// for that. Of all ranks.
static ot_status write_owed_best(ot__loop *l, const ot__save_plan *plan, ot_status st)
{
    ot_tensor **present = NULL;

    OT_THEN(st, copy_own_parts(l, NULL, &present));
    OT_THEN(st, put_parameters(l, l->best));
    st = write_best_file(l, plan, st);
    if (present != NULL) {
        const ot_status put = put_parameters(l, present);

        st = put == OT_OK ? st : put;
    }
    release_parameters(l, present);
    return st;
}

static ot_status carry_out(ot__loop *l, const ot__save_plan *plan)
{
    ot_status st = ot__loop_check_parameters(l);

    if (plan->best)
        st = write_best(l, plan, st);
    else if (l->owes_best)
        st = write_owed_best(l, plan, st);
    if (plan->checkpoint && l->saves_directories)
        return write_directory(l, plan, st);
    if (plan->checkpoint)
        OT_THEN(st, write_run_file(l, plan, l->checkpoint_path));
    return st;
}

static void tell_of_save(ot__loop *l, const ot_event *event, const char *path)
{
    ot_event saved = *event;

    saved.path = path;
    ot__loop_notify(l, &saved);
}

void ot__save_published(ot__loop *l, const ot_event *event)
{
    if (l->has_old_best)
        ot__save_remove(l->best_path);
    l->has_old_best = false;
    ot__directory_drop_other(l);
    tell_of_save(l, event, l->saves_directories ? l->directory_path : l->checkpoint_path);
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

// Files that cannot be written say nothing against the training, and there may be room later.
ot_status ot__save_endure(ot__loop *l, const ot_event *event, ot_status st)
{
    ot_event failed = *event;

    if (st != OT_ERR_IO)
        return st;
    l->has_failed = l->is_saved = false;
    if (ot__loop_rank(l) > 0)
        return OT_OK;
    failed.kind = OT_EVENT_SAVE_FAILED;
    failed.path = l->saves_directories ? l->directory_path : l->checkpoint_path;
    ot__error_prefix(st, "not saved, and tried again with the next checkpoint");
    ot__loop_warn(l, &failed);
    return OT_OK;
}

ot_status ot__save_confirmed(ot__loop *l)
{
    const ot__save_plan plan = l->plan;
    const bool has_best = l->best_path && (plan.best || l->owes_best);
    ot_status st;

    l->is_confirmed = true;
    if (!plan.checkpoint && !plan.best)
        return OT_OK;
    l->plan = (ot__save_plan){0};
    // There is one save at a time.
    OT_TRY(ot__save_endure(l, &l->saving_event, ot__directory_finish(l)));
    go_back(l);
    st = carry_out(l, &plan);
    go_forth(l);
    st = ot__loop_agree(l, st, "saving");
    l->owes_best = has_best && st != OT_OK;
    l->has_failed = st != OT_OK;
    if (st != OT_OK)
        return l->is_at_end ? st : ot__save_endure(l, &plan.event, st);
    l->is_saved = l->is_saved || plan.checkpoint;
    if (has_best)
        tell_of_save(l, &plan.event, l->best_path);
    if (plan.checkpoint && !l->is_saving)
        ot__save_published(l, &plan.event);
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
