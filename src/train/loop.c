// SPDX-License-Identifier: Apache-2.0
// The training loop: micro-batches, optimizer steps, validation, early stop, saving and resuming.
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dist/dist.h"
#include "train/loop.h"

enum { ERROR_MAX = 1024 }; // of a message

static void outputs_release(ot__step_outputs *o)
{
    for (int i = 0; i < o->count; i++) {
        ot_tensor_destroy(o->tensor[i]);
        o->tensor[i] = NULL;
    }
}

static double scalar_of(const ot_tensor *loss)
{
    double sum = 0;
    int64_t n = ot_tensor_count(loss);

    for (int64_t i = 0; i < n; i++)
        sum += ot__tensor_get_f64(loss, i);
    return n > 0 ? sum / (double)n : 0;
}

// In the session's order, as batches are.
static ot_status run_batch(ot__loop *l, ot_mode mode, ot__step_outputs *o)
{
    if (mode == OT_MODE_TRAIN)
        return ot__trainer_accumulate(l->trainer, l->inputs, l->n_inputs, o->tensor, o->count);
    if (l->trainer != NULL)
        OT_TRY(ot__trainer_check_batch(l->trainer, mode, l->inputs));
    return ot_session_eval_step(l->session, l->inputs, l->n_inputs, o->tensor, o->count);
}

ot_status ot__loop_batch(ot__loop *l, ot_mode mode, ot__metric_sums *sums)
{
    ot__step_outputs *o = mode == OT_MODE_TRAIN ? &l->train_outputs : &l->eval_outputs;
    const ot_train_options *options = l->options;
    int64_t rows = ot_tensor_shape(l->inputs[0])->dim[0];
    bool with_metrics = options->metric_output >= 0 && options->metric_output < o->count;
    double loss;

    if (rows != o->rows)
        outputs_release(o);
    o->rows = rows;
    OT_TRY(run_batch(l, mode, o));
    loss = scalar_of(o->tensor[0]) * (mode == OT_MODE_TRAIN ? l->loss_factor : 1);
    l->is_finite = isfinite(loss);
    if (!l->is_finite && mode == OT_MODE_TRAIN)
        return ot__trainer_may_skip(l->trainer) ? OT_OK : ot__loop_blame(l, loss);
    return ot__metrics_add(sums, with_metrics ? options->task : OT_TASK_NONE, options->class_axis,
                           rows, loss, with_metrics ? o->tensor[options->metric_output] : NULL,
                           with_metrics && options->metric_input < l->n_inputs &&
                                   options->metric_input >= 0
                               ? l->inputs[options->metric_input]
                               : NULL);
}

// The loss and what metrics are made of; other outputs are not fetched.
static int count_loop_outputs(const ot_session *session, ot_mode mode,
                              const ot_train_options *options)
{
    const int wanted = OT_MAX(options->metric_output, 0) + 1;

    return OT_MIN(OT_MIN(ot_session_output_count(session, mode), wanted), OT_LOOP_OUTPUTS);
}

// `trainer` NULL: to evaluate. `given`: how checks went so far.
static ot_status loop_init(ot__loop *l, ot_status given, ot_trainer *trainer, ot_session *session,
                           const ot_train_options *options)
{
    *l = (ot__loop){.trainer = trainer,
                    .session = session,
                    .comm = ot__session_comm(session),
                    .options = options,
                    .at = {.best_loss = INFINITY, .n_slices = 1},
                    .loss_factor = 1,
                    .is_confirmed = true};
    OT_TRY(given);
    if (options->metric_output >= OT_LOOP_OUTPUTS)
        return ot__error(OT_ERR_INVALID,
                         "metric_output is %d, expected one of the first %d outputs",
                         options->metric_output, OT_LOOP_OUTPUTS);
    l->checkpoint = ot_session_checkpoint(session);
    l->start_step = ot_session_step_count(session);
    l->n_inputs = ot_session_input_count(session, OT_MODE_TRAIN);
    l->inputs = ot__alloc_zero((size_t)l->n_inputs + 1, sizeof(*l->inputs));
    l->train_outputs.count = count_loop_outputs(session, OT_MODE_TRAIN, options);
    l->eval_outputs.count = count_loop_outputs(session, OT_MODE_EVAL, options);
    return ot__made(l->inputs);
}

static void loop_deinit(ot__loop *l)
{
    ot__loop_uncut(l);
    ot__save_close(l);
    ot__journal_close(&l->journal);
    outputs_release(&l->train_outputs);
    outputs_release(&l->eval_outputs);
    ot__free(l->inputs);
}

ot_event ot__loop_event(const ot__loop *l, ot_event_kind kind)
{
    return (ot_event){
        .kind = kind,
        .epoch = l->at.epoch,
        .n_epochs = l->options->epochs,
        .batch = l->at.batch,
        .n_batches = l->n_batches,
        .step = ot_session_step_count(l->session),
        .learning_rate = ot_session_learning_rate(l->session),
        .training = ot__metrics_of(&l->at.sums, ot__clock_seconds() - l->epoch_start),
        .n_skipped = l->n_skipped,
        .loss_scale = ot__trainer_loss_scale(l->trainer),
    };
}

static void call_back(ot__loop *l, const ot_event *event)
{
    if (l->options->callback && l->options->callback(l->options->callback_context, event) != 0)
        l->wants_stop = true;
    if (l->comm == NULL)
        l->is_stopping = l->wants_stop;
}

void ot__loop_warn(ot__loop *l, const ot_event *event)
{
    if (!l->options->callback)
        ot__log(OT_LOG_WARNING, "%s", ot_error_message());
    call_back(l, event);
}

static void tell_of_lost_log(void *context, const char *path)
{
    ot__loop *l = context;
    ot_event event = ot__loop_event(l, OT_EVENT_LOG_LOST);

    event.path = path;
    ot__loop_warn(l, &event);
}

void ot__loop_notify(ot__loop *l, const ot_event *event)
{
    ot__journal_event(&l->journal, event, tell_of_lost_log, l);
    call_back(l, event);
}

// ---- the loop ----

static ot_status evaluate_epoch(ot__loop *l, ot_batches *batches, ot_metrics *out)
{
    ot__metric_sums sums = {0};
    double start = ot__clock_seconds();

    if (l->comm != NULL) {
        OT_TRY(ot__loop_evaluate(l, batches, &sums));
        *out = ot__metrics_of(&sums, ot__clock_seconds() - start);
        return OT_OK;
    }
    OT_TRY(ot_batches_seek(batches, 0, 0));
    for (;;) {
        OT_TRY(ot_batches_next(batches, l->inputs, l->n_inputs));
        if (!l->inputs[0])
            break;
        OT_TRY(ot__loop_batch(l, OT_MODE_EVAL, &sums));
    }
    *out = ot__metrics_of(&sums, ot__clock_seconds() - start);
    return OT_OK;
}

static bool has_all_steps(const ot__loop *l)
{
    return l->options->max_steps > 0 &&
           ot_session_step_count(l->session) - l->at.first_step >= l->options->max_steps;
}

static ot_status loop_step(ot__loop *l)
{
    const int64_t every = l->options->save_every;
    const ot__position before = l->at;
    ot_event event;
    ot_status st;

    OT_TRY(ot__loop_agree(l, ot__save_cut_best(l), "training"));
    if (l->is_stopping)
        return OT_OK;
    OT_TRY(ot__directory_poll(l));
    st = ot__loop_update(l);
    if (st != OT_OK) { // a part of a step is nothing to go on from
        ot__trainer_drop(l->trainer);
        l->at = before;
        return st;
    }
    l->is_confirmed = l->is_saved = false;
    event = ot__loop_event(l, OT_EVENT_STEP);
    ot__loop_notify(l, &event);
    l->is_finished = has_all_steps(l);
    if (every > 0 && ot_session_step_count(l->session) % every == 0)
        ot__save_later(l, true, false);
    return OT_OK;
}

// From batch l->at.batch to the end of the epoch, or until stopped between two steps.
static ot_status train_epoch(ot__loop *l)
{
    while (!l->is_stopping && !l->is_finished && l->at.batch < l->n_batches)
        OT_TRY(loop_step(l));
    return OT_OK;
}

// The metrics of an epoch, and whether it is the best one.
static ot_status judge_epoch(ot__loop *l, ot_event *event)
{
    ot__epoch_metrics epoch = {l->validation != NULL, event->training};

    if (l->validation) {
        OT_TRY(evaluate_epoch(l, l->validation, &event->validation));
        epoch.metrics = event->validation;
    }
    l->at.last = epoch;
    event->is_best = epoch.metrics.rows > 0 && epoch.metrics.loss < l->at.best_loss;
    if (event->is_best) {
        l->at.best = epoch;
        l->at.best_loss = epoch.metrics.loss;
    }
    l->at.bad_epochs = event->is_best ? 0 : l->at.bad_epochs + 1;
    return OT_OK;
}

static ot_status finish_epoch(ot__loop *l)
{
    ot_event event = ot__loop_event(l, OT_EVENT_EPOCH);

    OT_TRY(ot__loop_check_parameters(l));
    OT_TRY(judge_epoch(l, &event));
    ot__loop_notify(l, &event);
    l->at.epoch++;
    l->at.batch = 0;
    l->at.sums = (ot__metric_sums){0};
    l->is_saved = false;
    if (l->options->patience > 0 && l->at.bad_epochs >= l->options->patience) {
        event.kind = OT_EVENT_EARLY_STOP;
        ot__loop_notify(l, &event);
        l->is_finished = true;
    }
    // What was to be saved after the epoch's last step is saved with the new position.
    ot__save_later(l, l->options->save_every == 0 || l->is_finished || l->plan.checkpoint,
                   event.is_best && l->options->keep_best);
    return OT_OK;
}

static ot_status train(ot__loop *l)
{
    const ot_train_options *options = l->options;

    while (!l->is_stopping && !l->is_finished && l->at.epoch < options->epochs) {
        l->epoch_start = ot__clock_seconds();
        OT_TRY(train_epoch(l));
        if (l->at.batch == l->n_batches)
            OT_TRY(finish_epoch(l));
    }
    OT_TRY(ot__save_last(l));
    OT_TRY(ot__directory_finish(l));
    if (l->is_stopping)
        return ot__error(OT_ERR_INTERRUPTED, "stopped at epoch %" PRId64 ", batch %" PRId64,
                         l->at.epoch + 1, l->at.batch);
    return OT_OK;
}

// After an error, whose message stays.
static ot_status finish_save(ot__loop *l, ot_status st)
{
    char message[ERROR_MAX];

    snprintf(message, sizeof message, "%s", ot_error_message());
    if (ot__directory_finish(l) != OT_OK)
        ot__log(OT_LOG_WARNING, "%s", ot_error_message());
    return ot__error(st, "%s", message);
}

// An error in the data or in a kernel says nothing against the steps before it.
static ot_status save_steps_before(ot__loop *l)
{
    return l->has_failed ? ot__loop_check_parameters(l) : ot__save_last(l);
}

// Returns `st`, or OT_ERR_NOT_FINITE when the steps before have ruined the parameters.
static ot_status save_after_error(ot__loop *l, ot_status st)
{
    char message[ERROR_MAX];
    ot_status last = OT_OK;

    if (st == OT_ERR_INTERRUPTED)
        return st;
    snprintf(message, sizeof message, "%s", ot_error_message());
    if (ot__loop_agree(l, OT_OK, "training") != OT_OK)
        return ot__error(st, "%s", message);
    if (st != OT_ERR_NOT_FINITE)
        last = save_steps_before(l);
    if (last == OT_ERR_NOT_FINITE)
        st = ot__error_prefix(last, "%s; and before that", message);
    else
        ot__error(st, "%s", message);
    return finish_save(l, st);
}

static ot_status start_loop(ot__loop *l)
{
    const ot_train_options *options = l->options;

    OT_TRY(ot__save_open(l));
    OT_TRY(ot__loop_set_schedule(l));
    if (options->config)
        OT_TRY(ot_checkpoint_set_string(l->checkpoint, OT_PROPERTY_OPTIONS, options->config));
    ot__trainer_restart(l->trainer);
    l->at.first_step = l->start_step;
    if (options->resume)
        OT_TRY(ot__position_get(l->checkpoint, l->n_batches, &l->at));
    OT_TRY(ot__loop_cut(l));
    if (!options->resume)
        return OT_OK;
    if (options->keep_best)
        OT_TRY(ot__save_load_best(l));
    l->is_saved = true;
    l->is_finished =
        has_all_steps(l) || (options->patience > 0 && l->at.bad_epochs >= options->patience);
    return OT_OK;
}

static ot_status open_journal(ot__loop *l)
{
    if (ot__loop_rank(l) > 0)
        return OT_OK;
    return ot__journal_open(&l->journal, l->options, &l->at, l->start_step);
}

// `st`: how the run went, whose message stays.
static ot_status restore_best(ot__loop *l, ot_status st)
{
    char message[ERROR_MAX];

    if (st == OT_OK)
        return ot__loop_agree(l, ot__save_restore_best(l), "training");
    snprintf(message, sizeof message, "%s", ot_error_message());
    if (ot__save_restore_best(l) != OT_OK)
        ot__log(OT_LOG_WARNING, "%s", ot_error_message());
    return ot__error(st, "%s", message);
}

static ot_status run_loop(ot__loop *l)
{
    ot_status st = start_loop(l);

    OT_THEN(st, open_journal(l));
    OT_TRY(ot__loop_join(l, st));
    st = train(l);
    if (st != OT_OK)
        st = save_after_error(l, st);
    return l->options->keep_best ? restore_best(l, st) : st;
}

// Of the parameters that the run ends with.
static ot_status last_metrics(ot__loop *l, ot_status st, ot_metrics *last)
{
    const bool is_in_epoch = l->at.batch > 0;

    if (l->options->keep_best && l->best)
        *last = l->best_metrics;
    else if (st != OT_OK)
        return OT_OK;
    else if (is_in_epoch && l->validation)
        return evaluate_epoch(l, l->validation, last);
    else if (is_in_epoch)
        *last = ot__metrics_of(&l->at.sums, ot__clock_seconds() - l->epoch_start);
    else if (l->at.last.is_validation == (l->validation != NULL))
        *last = l->at.last.metrics;
    return OT_OK;
}

static ot_status check_config(const char *json)
{
    struct json_t *parsed;

    if (strchr(json, '\n'))
        return ot__error(OT_ERR_INVALID, "config: expected JSON in one line, found several");
    if (ot__json_read(json, strlen(json), &parsed) != OT_OK)
        return ot__error_prefix(OT_ERR_INVALID, "config");
    json_decref(parsed);
    return OT_OK;
}

static ot_status check_options(const ot_train_options *options)
{
    if (options->epochs < 1 || options->max_steps < 0 || options->save_every < 0 ||
        options->patience < 0)
        return ot__error(OT_ERR_INVALID, "epochs must be at least 1, counts not negative");
    if (options->checkpoint_format > OT_CHECKPOINT_FORMAT_DIRECTORY)
        return ot__error(OT_ERR_INVALID, "unknown checkpoint_format %d (known: 0 to %d)",
                         (int)options->checkpoint_format, OT_CHECKPOINT_FORMAT_DIRECTORY);
    if (options->slices < 0 || options->slices > OT_SLICES_MAX)
        return ot__error(OT_ERR_INVALID, "slices: %" PRId64 ", expected 1 to %d, or 0",
                         options->slices, OT_SLICES_MAX);
    if (options->n_notes > 0 && !options->notes)
        return ot__error(OT_ERR_INVALID, "n_notes is %d and notes is NULL", options->n_notes);
    return options->config ? check_config(options->config) : OT_OK;
}

ot_status ot_train_run(ot_trainer *trainer, ot_batches *training, ot_batches *validation,
                       const ot_train_options *options, ot_metrics *last)
{
    ot_train_options own;
    ot__loop l;
    ot_status st;

    if (last)
        *last = (ot_metrics){0};
    OT_TRY(ot__guard_check(trainer, OT_KIND_TRAINER));
    st = OT_GIVEN(training);
    OT_THEN(st, OT_OPTIONAL(validation, "validation"));
    OT_THEN(st, OT_OPTIONS_READ(ot_train_options, OT_TRAIN_OPTIONS_INIT, options, &own));
    OT_THEN(st, check_options(&own));
    if (st == OT_OK && ot_batches_count(training) < 1)
        st = ot__error(OT_ERR_INVALID, "there are no training rows");
    st = loop_init(&l, st, trainer, trainer->session, &own);
    if (st != OT_OK) { // which other ranks learn
        st = ot__loop_agree(&l, st, "training");
        loop_deinit(&l);
        return st;
    }
    l.training = training;
    l.validation = validation && ot_batches_count(validation) > 0 ? validation : NULL;
    l.n_batches = ot_batches_count(training);
    st = run_loop(&l);
    if (last) {
        const ot_status measured = last_metrics(&l, st, last);

        st = st == OT_OK ? measured : st;
    }
    loop_deinit(&l);
    return st;
}

ot_status ot_train_evaluate(ot_session *session, ot_batches *batches,
                            const ot_train_options *options, ot_metrics *out)
{
    ot_train_options own;
    ot__loop l;
    ot_status st;

    OT_TRY(OT_GIVEN(out));
    *out = (ot_metrics){0};
    OT_TRY(OT_GIVEN(session));
    st = OT_GIVEN(batches);
    OT_THEN(st, OT_OPTIONS_READ(ot_train_options, OT_TRAIN_OPTIONS_INIT, options, &own));
    st = loop_init(&l, st, NULL, session, &own);
    st = st == OT_OK ? evaluate_epoch(&l, batches, out) : ot__loop_agree(&l, st, "evaluation");
    loop_deinit(&l);
    return st;
}
