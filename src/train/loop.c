// SPDX-License-Identifier: Apache-2.0
// The training loop: micro-batches, optimizer steps, validation, early stop, saving and resuming.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/train.h"

enum { MAX_OUTPUTS = 16 };

// Outputs of a step, reused while the batch size stays the same.
typedef struct outputs {
    ot_tensor *tensor[MAX_OUTPUTS];
    int count;
    int64_t rows;
} outputs;

typedef struct loop {
    ot_session *session;
    ot_checkpoint *checkpoint;
    ot_batches *training, *validation;
    const ot_train_options *options;
    int n_inputs;
    const ot_tensor **inputs;
    outputs train_outputs, eval_outputs;
    int64_t epoch, batch, n_batches;
    ot__metric_sums sums;
    double epoch_start;
    double best_loss;
    int64_t bad_epochs;
    char *checkpoint_path, *best_path;
    ot_tensor **best; // copies of all parameters at the best epoch
    bool is_stopping, is_finished, is_saved;
    ot__lock lock; // on the checkpoint folder
} loop;

static void outputs_release(outputs *o)
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

// One batch through the training or eval model, its outputs into the sums.
static ot_status run_batch(loop *l, ot_mode mode, ot__metric_sums *sums)
{
    outputs *o = mode == OT_MODE_TRAIN ? &l->train_outputs : &l->eval_outputs;
    const ot_train_options *options = l->options;
    int64_t rows = ot_tensor_shape(l->inputs[0])->dim[0];
    bool with_metrics = options->metric_output >= 0 && options->metric_output < o->count;
    double loss;

    if (rows != o->rows)
        outputs_release(o);
    o->rows = rows;
    OT_TRY(mode == OT_MODE_TRAIN
               ? ot_session_train_step(l->session, l->inputs, l->n_inputs, o->tensor, o->count)
               : ot_session_eval_step(l->session, l->inputs, l->n_inputs, o->tensor, o->count));
    loss = scalar_of(o->tensor[0]);
    if (!isfinite(loss) && mode == OT_MODE_TRAIN)
        return ot__error(OT_ERR_INVALID,
                         "the loss is %g at batch %" PRId64 " of epoch %" PRId64
                         ": lower the learning rate, or clip gradients",
                         loss, l->batch + 1, l->epoch + 1);
    return ot__metrics_add(sums, with_metrics ? options->task : OT_TASK_NONE, options->class_axis,
                           rows, loss, with_metrics ? o->tensor[options->metric_output] : NULL,
                           with_metrics && options->metric_input < l->n_inputs &&
                                   options->metric_input >= 0
                               ? l->inputs[options->metric_input]
                               : NULL);
}

// The loss and what metrics are made of; other outputs are not fetched.
static int count_outputs(const ot_session *session, ot_mode mode, const ot_train_options *options)
{
    const int wanted = OT_MAX(options->metric_output, 0) + 1;

    return OT_MIN(OT_MIN(ot_session_output_count(session, mode), wanted), MAX_OUTPUTS);
}

static ot_status loop_init(loop *l, ot_session *session, const ot_train_options *options)
{
    *l = (loop){.session = session, .options = options, .best_loss = INFINITY};
    if (options->metric_output >= MAX_OUTPUTS)
        return ot__error(OT_ERR_INVALID,
                         "metric_output is %d, expected one of the first %d outputs",
                         options->metric_output, MAX_OUTPUTS);
    l->checkpoint = ot_session_checkpoint(session);
    l->n_inputs = ot_session_input_count(session, OT_MODE_TRAIN);
    l->inputs = ot__alloc_zero((size_t)l->n_inputs + 1, sizeof(*l->inputs));
    l->train_outputs.count = count_outputs(session, OT_MODE_TRAIN, options);
    l->eval_outputs.count = count_outputs(session, OT_MODE_EVAL, options);
    if (options->checkpoint_folder) {
        l->checkpoint_path = ot__path_join(options->checkpoint_folder, "checkpoint");
        l->best_path = ot__path_join(options->checkpoint_folder, "best");
        if (!l->checkpoint_path || !l->best_path)
            return OT_ERR_NO_MEMORY;
    }
    return l->inputs ? OT_OK : OT_ERR_NO_MEMORY;
}

static void best_release(loop *l)
{
    for (int i = 0; l->best && i < ot_checkpoint_parameter_count(l->checkpoint); i++)
        ot_tensor_destroy(l->best[i]);
    ot__free(l->best);
    l->best = NULL;
}

static void loop_deinit(loop *l)
{
    ot__lock_leave(&l->lock);
    outputs_release(&l->train_outputs);
    outputs_release(&l->eval_outputs);
    best_release(l);
    ot__free(l->inputs);
    ot__free(l->checkpoint_path);
    ot__free(l->best_path);
}

static ot_event event_of(const loop *l, ot_event_kind kind)
{
    return (ot_event){
        .kind = kind,
        .epoch = l->epoch,
        .n_epochs = l->options->epochs,
        .batch = l->batch,
        .n_batches = l->n_batches,
        .step = ot_session_step_count(l->session),
        .learning_rate = ot_session_learning_rate(l->session),
        .training = ot__metrics_of(&l->sums, ot__clock_seconds() - l->epoch_start),
    };
}

static void notify(loop *l, const ot_event *event)
{
    if (l->options->callback && l->options->callback(l->options->callback_context, event) != 0)
        l->is_stopping = true;
}

// ---- saving and resuming ----

static ot_status put_position(loop *l)
{
    char text[256];
    const ot__metric_sums *s = &l->sums;

    OT_TRY(ot_checkpoint_set_int(l->checkpoint, OT_PROPERTY_EPOCH, l->epoch));
    OT_TRY(ot_checkpoint_set_int(l->checkpoint, OT_PROPERTY_BATCH, l->batch));
    OT_TRY(ot_checkpoint_set_int(l->checkpoint, OT_PROPERTY_BAD_EPOCHS, l->bad_epochs));
    if (isfinite(l->best_loss)) {
        snprintf(text, sizeof(text), "%a", l->best_loss);
        OT_TRY(ot_checkpoint_set_string(l->checkpoint, OT_PROPERTY_BEST_LOSS, text));
    }
    snprintf(text, sizeof(text), "%" PRId64 " %" PRId64 " %a %a %a %a %a %a %a %a", s->rows,
             s->elements, s->loss, s->correct, s->counted, s->absolute, s->squared, s->shift,
             s->targets, s->targets_squared);
    return ot_checkpoint_set_string(l->checkpoint, OT_PROPERTY_SUMS, text);
}

static ot_status save(loop *l, const char *path)
{
    ot_event event;

    OT_TRY(put_position(l));
    OT_TRY(ot_session_save(l->session, path));
    event = event_of(l, OT_EVENT_SAVED);
    event.path = path;
    notify(l, &event);
    return OT_OK;
}

// Where the checkpoint says the run stood; a checkpoint without a position is a fresh start.
static ot_status get_position(loop *l)
{
    const char *text;
    ot__metric_sums *s = &l->sums;

    if (ot_checkpoint_get_int(l->checkpoint, OT_PROPERTY_EPOCH, &l->epoch) != OT_OK ||
        ot_checkpoint_get_int(l->checkpoint, OT_PROPERTY_BATCH, &l->batch) != OT_OK) {
        l->epoch = l->batch = 0;
        return OT_OK;
    }
    if (l->epoch < 0 || l->batch < 0 || l->batch > l->n_batches)
        return ot__error(OT_ERR_INVALID,
                         "the checkpoint stands at batch %" PRId64 " of an epoch of %" PRId64
                         ": data or batch size are not those it was trained with",
                         l->batch, l->n_batches);
    (void)ot_checkpoint_get_int(l->checkpoint, OT_PROPERTY_BAD_EPOCHS, &l->bad_epochs);
    if (ot_checkpoint_get_string(l->checkpoint, OT_PROPERTY_BEST_LOSS, &text) == OT_OK &&
        !ot__parse_float(text, &l->best_loss))
        return ot__error(OT_ERR_FORMAT, "property '%s' is '%s', not a number",
                         OT_PROPERTY_BEST_LOSS, text);
    if (ot_checkpoint_get_string(l->checkpoint, OT_PROPERTY_SUMS, &text) == OT_OK &&
        sscanf(text, "%" SCNd64 " %" SCNd64 " %la %la %la %la %la %la %la %la", &s->rows,
               &s->elements, &s->loss, &s->correct, &s->counted, &s->absolute, &s->squared,
               &s->shift, &s->targets, &s->targets_squared) != 10)
        return ot__error(OT_ERR_FORMAT, "property '%s' is not ten numbers", OT_PROPERTY_SUMS);
    return OT_OK;
}

// ---- the best epoch ----

static ot_status take_parameters(loop *l, const ot_checkpoint *from)
{
    int n = ot_checkpoint_parameter_count(l->checkpoint);

    best_release(l);
    l->best = ot__alloc_zero((size_t)n + 1, sizeof(*l->best));
    if (!l->best)
        return OT_ERR_NO_MEMORY;
    for (int i = 0; i < n; i++)
        OT_TRY(ot_checkpoint_get_parameter(from, ot_checkpoint_parameter_name(l->checkpoint, i),
                                           &l->best[i]));
    return OT_OK;
}

static ot_status load_best(loop *l)
{
    ot_checkpoint *best;
    ot_status st;

    if (!l->best_path || !ot__path_exists(l->best_path))
        return OT_OK;
    OT_TRY(ot_checkpoint_load(l->best_path, &best));
    st = take_parameters(l, best);
    ot_checkpoint_destroy(best);
    return st;
}

static ot_status restore_best(loop *l)
{
    for (int i = 0; l->best && i < ot_checkpoint_parameter_count(l->checkpoint); i++)
        OT_TRY(ot_checkpoint_set_parameter(
            l->checkpoint, ot_checkpoint_parameter_name(l->checkpoint, i), l->best[i]));
    return OT_OK;
}

// ---- the loop ----

static ot_status evaluate(loop *l, ot_batches *batches, ot_metrics *out)
{
    ot__metric_sums sums = {0};
    double start = ot__clock_seconds();

    OT_TRY(ot_batches_seek(batches, 0, 0));
    for (;;) {
        OT_TRY(ot_batches_next(batches, l->inputs, l->n_inputs));
        if (!l->inputs[0])
            break;
        OT_TRY(run_batch(l, OT_MODE_EVAL, &sums));
    }
    *out = ot__metrics_of(&sums, ot__clock_seconds() - start);
    return OT_OK;
}

static ot_status optimizer_step(loop *l, int64_t n_micro_batches)
{
    ot_event event;

    if (n_micro_batches > 1)
        OT_TRY(ot_session_scale_gradients(l->session, 1.0 / (double)n_micro_batches));
    OT_TRY(ot_session_optimizer_step(l->session));
    if (ot_session_has_schedule(l->session))
        OT_TRY(ot_session_schedule_step(l->session));
    ot_session_reset_gradients(l->session);
    event = event_of(l, OT_EVENT_STEP);
    notify(l, &event);
    l->is_saved = false;
    if (l->options->max_steps > 0 && ot_session_step_count(l->session) >= l->options->max_steps)
        l->is_finished = true;
    if (l->checkpoint_path && l->options->save_every > 0 &&
        ot_session_step_count(l->session) % l->options->save_every == 0) {
        OT_TRY(save(l, l->checkpoint_path));
        l->is_saved = true;
    }
    return OT_OK;
}

// From batch l->batch to the end of the epoch, or until stopped.
static ot_status train_epoch(loop *l)
{
    int64_t n_micro_batches = 0;

    OT_TRY(ot_batches_seek(l->training, l->epoch, l->batch));
    while (!l->is_stopping && !l->is_finished) {
        OT_TRY(ot_batches_next(l->training, l->inputs, l->n_inputs));
        if (!l->inputs[0])
            break;
        OT_TRY(run_batch(l, OT_MODE_TRAIN, &l->sums));
        l->batch++;
        if (++n_micro_batches == l->options->accumulation || l->batch == l->n_batches) {
            OT_TRY(optimizer_step(l, n_micro_batches));
            n_micro_batches = 0;
        }
    }
    return OT_OK;
}

static ot_status finish_epoch(loop *l)
{
    ot_event event = event_of(l, OT_EVENT_EPOCH);
    double loss = event.training.loss;

    if (l->validation) {
        OT_TRY(evaluate(l, l->validation, &event.validation));
        loss = event.validation.loss;
    }
    event.is_best = loss < l->best_loss;
    if (event.is_best) {
        l->best_loss = loss;
        l->bad_epochs = 0;
        if (l->options->keep_best) {
            OT_TRY(take_parameters(l, l->checkpoint));
            if (l->best_path)
                OT_TRY(save(l, l->best_path));
        }
    } else {
        l->bad_epochs++;
    }
    notify(l, &event);
    l->epoch++;
    l->batch = 0;
    l->sums = (ot__metric_sums){0};
    l->is_saved = false;
    if (l->options->patience > 0 && l->bad_epochs >= l->options->patience) {
        event.kind = OT_EVENT_EARLY_STOP;
        notify(l, &event);
        l->is_finished = true;
    }
    if (l->checkpoint_path && (l->options->save_every == 0 || l->is_finished)) {
        OT_TRY(save(l, l->checkpoint_path));
        l->is_saved = true;
    }
    return OT_OK;
}

// Two runs into one folder would each resume from, and replace, what the other has saved.
static ot_status take_folder(loop *l)
{
    const char *folder = l->options->checkpoint_folder;
    char *path;
    ot_status st;

    OT_TRY(ot__path_make_folder(folder));
    path = ot__path_join(folder, ".onnxtrain-lock");
    if (!path)
        return OT_ERR_NO_MEMORY;
    st = ot__lock_take(path, &l->lock);
    ot__free(path);
    return st == OT_ERR_STATE ? ot__error_prefix(st, "another run saves into this folder") : st;
}

static ot_status run(loop *l)
{
    const ot_train_options *options = l->options;

    if (options->checkpoint_folder)
        OT_TRY(take_folder(l));
    if (options->resume) {
        OT_TRY(get_position(l));
        if (options->keep_best)
            OT_TRY(load_best(l));
        if (options->patience > 0 && l->bad_epochs >= options->patience)
            return OT_OK;
    }
    ot_session_reset_gradients(l->session);
    while (!l->is_stopping && !l->is_finished && l->epoch < options->epochs) {
        l->epoch_start = ot__clock_seconds();
        OT_TRY(train_epoch(l));
        if (l->batch == l->n_batches)
            OT_TRY(finish_epoch(l));
    }
    if (l->checkpoint_path && !l->is_saved)
        OT_TRY(save(l, l->checkpoint_path));
    if (l->is_stopping)
        return ot__error(OT_ERR_INTERRUPTED, "stopped at epoch %" PRId64 ", batch %" PRId64,
                         l->epoch + 1, l->batch);
    return OT_OK;
}

static ot_status take_options(const ot_train_options **options)
{
    static const ot_train_options defaults = OT_TRAIN_OPTIONS_INIT;

    if (!*options)
        *options = &defaults;
    if ((*options)->size == sizeof **options)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "train options of %zu bytes, expected %zu", (*options)->size,
                     sizeof **options);
}

ot_status ot_train_run(ot_session *session, ot_batches *training, ot_batches *validation,
                       const ot_train_options *options, ot_metrics *last)
{
    loop l;
    ot_status st;

    if (last)
        *last = (ot_metrics){0};
    OT_TRY(OT_GIVEN(session));
    OT_TRY(OT_GIVEN(training));
    OT_TRY(take_options(&options));
    if (options->epochs < 1 || options->accumulation < 1 || options->max_steps < 0 ||
        options->save_every < 0 || options->patience < 0)
        return ot__error(OT_ERR_INVALID,
                         "epochs and accumulation must be at least 1, counts not negative");
    if (ot_batches_count(training) < 1)
        return ot__error(OT_ERR_INVALID, "there are no training rows");
    st = loop_init(&l, session, options);
    l.training = training;
    l.validation = validation && ot_batches_count(validation) > 0 ? validation : NULL;
    l.n_batches = ot_batches_count(training);
    if (st == OT_OK)
        st = run(&l);
    if (st == OT_OK && options->keep_best)
        st = restore_best(&l);
    if (st == OT_OK && last) {
        if (ot_session_output_count(session, OT_MODE_EVAL) > 0)
            st = evaluate(&l, l.validation ? l.validation : training, last);
        else
            *last = ot__metrics_of(&l.sums, 0);
    }
    loop_deinit(&l);
    return st;
}

ot_status ot_train_evaluate(ot_session *session, ot_batches *batches,
                            const ot_train_options *options, ot_metrics *out)
{
    loop l;
    ot_status st;

    OT_TRY(OT_GIVEN(out));
    *out = (ot_metrics){0};
    OT_TRY(OT_GIVEN(session));
    OT_TRY(OT_GIVEN(batches));
    OT_TRY(take_options(&options));
    st = loop_init(&l, session, options);
    if (st == OT_OK)
        st = evaluate(&l, batches, out);
    loop_deinit(&l);
    return st;
}
