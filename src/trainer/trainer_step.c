// SPDX-License-Identifier: Apache-2.0
// One micro-batch: the rate, forward and backward, and the update when it is due. What happens when
// is in docs/trainer.md.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "trainer/trainer.h"

// ---- the learning rate ----

// Without a schedule it stays what the session has.
ot_status ot__trainer_set_next_rate(ot_trainer *trainer)
{
    if (trainer->schedule_function != NULL || !trainer->has_schedule)
        return OT_OK;
    return ot_session_set_learning_rate(
        trainer->session, ot_schedule_value(&trainer->schedule, trainer->info.optimization_step));
}

// By the updates applied so far: also in calls that only accumulate.
static ot_status choose_rates(ot_trainer *trainer)
{
    if (trainer->schedule_function != NULL) {
        for (int i = 0; i < trainer->n_rates; i++)
            trainer->rates[i] = trainer->info.initial_lr;
        if (trainer->schedule_function(trainer->schedule_context, &trainer->info, trainer->rates,
                                       trainer->n_rates) != 0)
            return ot__error(OT_ERR_INTERRUPTED, "the schedule function failed at step %" PRId64,
                             trainer->info.step);
        OT_TRY(ot_session_set_learning_rates(trainer->session, trainer->rates, trainer->n_rates));
        trainer->info.learning_rate = trainer->rates[0];
        return OT_OK;
    }
    OT_TRY(ot__trainer_set_next_rate(trainer));
    trainer->info.learning_rate = ot_session_learning_rate(trainer->session);
    return OT_OK;
}

// ---- inputs and outputs ----

static int place_in(const ot__described *described, ot_mode mode)
{
    return mode == OT_MODE_TRAIN ? described->train : described->eval;
}

static int n_wanted(const ot_trainer *trainer)
{
    return trainer->n_fetches > 0 ? trainer->n_fetches : trainer->n_outputs;
}

// Which described output a call gives as its i-th: fetches come in their own order in training, in
// that of the description in evaluation.
static int wanted_output(const ot_trainer *trainer, ot_mode mode, int i)
{
    int k = 0;

    if (trainer->n_fetches == 0)
        return i;
    if (mode == OT_MODE_TRAIN)
        return trainer->fetches[i];
    for (int o = 0; o < trainer->n_outputs; o++)
        for (int f = 0; f < trainer->n_fetches; f++)
            if (trainer->fetches[f] == o) {
                if (k++ == i)
                    return o;
                break;
            }
    return -1; // there are as many as fetches, each once
}

static void lay_inputs(ot_trainer *trainer, ot_mode mode, const ot_tensor *const *inputs)
{
    for (int i = 0; i < trainer->n_inputs; i++) {
        const int place = place_in(&trainer->inputs[i], mode);

        if (place >= 0)
            trainer->step_inputs[place] = inputs[i];
    }
}

static ot_status lay_outputs(ot_trainer *trainer, ot_mode mode, ot_tensor *const *outputs,
                             int n_outputs, int n_session)
{
    if (n_outputs > n_wanted(trainer))
        return ot__error(OT_ERR_INVALID, "%d outputs wanted, expected at most %d", n_outputs,
                         n_wanted(trainer));
    for (int i = 0; i < n_session; i++)
        trainer->step_outputs[i] = ot__step_unwanted;
    for (int i = 0; i < n_outputs; i++) {
        const ot__described *output = &trainer->outputs[wanted_output(trainer, mode, i)];
        const int place = place_in(output, mode);

        if (place < 0)
            return ot__error(OT_ERR_STATE, "output '%s' is one of training alone", output->name);
        trainer->step_outputs[place] = outputs[i];
    }
    return OT_OK;
}

static ot_tensor *made_output(const ot_trainer *trainer, ot_mode mode, int i)
{
    return trainer
        ->step_outputs[place_in(&trainer->outputs[wanted_output(trainer, mode, i)], mode)];
}

static void give_outputs(const ot_trainer *trainer, ot_mode mode, ot_tensor **outputs,
                         int n_outputs)
{
    for (int i = 0; i < n_outputs; i++)
        outputs[i] = made_output(trainer, mode, i);
}

// Those that the caller gave are his.
static void take_outputs_back(const ot_trainer *trainer, ot_mode mode, ot_tensor *const *outputs,
                              int n_outputs)
{
    for (int i = 0; i < n_outputs; i++)
        if (outputs[i] == NULL)
            ot_tensor_destroy(made_output(trainer, mode, i));
}

// What a call gives into step_inputs and step_outputs, where the session's step makes the latter.
static ot_status lay_step(ot_trainer *trainer, ot_mode mode, const ot_tensor *const *inputs,
                          int n_inputs, ot_tensor *const *outputs, int n_outputs)
{
    OT_TRY(ot__trainer_check_inputs(trainer, inputs, n_inputs));
    OT_TRY(lay_outputs(trainer, mode, outputs, n_outputs,
                       ot_session_output_count(trainer->session, mode)));
    lay_inputs(trainer, mode, inputs);
    return OT_OK;
}

// ---- the two halves of a step ----

// Behind so many more micro-batches.
static bool is_due_after(const ot_trainer *trainer, int n)
{
    return trainer->phase + n >= trainer->accumulation;
}

void ot__trainer_drop(ot_trainer *trainer)
{
    ot__session_drop_steps(trainer->session);
    ot__trainer_uncount_steps(trainer);
}

static ot_status drop_after(ot_trainer *trainer, ot_status st)
{
    const int64_t n = trainer->n_accumulated;

    ot__trainer_drop(trainer);
    if (n == 0)
        return st;
    return ot__error(st,
                     "%s; the gradients of the %" PRId64
                     " micro-batches before it are dropped: step %" PRId64 " is the last",
                     ot_error_message(), n, trainer->info.step);
}

// The update comes inside the train step where every call makes one and nobody wants to see
// gradients before it.
void ot__trainer_ask_inside(ot_trainer *trainer)
{
    ot__session_ask_inside(trainer->session, trainer->accumulation == 1 &&
                                                 trainer->n_accumulated == 0 &&
                                                 trainer->step_graph_path == NULL &&
                                                 !ot__trainer_asks_scaler(trainer));
}

// All in the session's order. `given`: how checks went so far, which all ranks learn.
static ot_status accumulate(ot_trainer *trainer, ot_status given, const ot_tensor *const *inputs,
                            int n_inputs, ot_tensor **outputs, int n_outputs)
{
    bool has_run = false;
    ot_status st = given;

    if (!ot__session_has_slices_before(trainer->session)) { // which have chosen
        OT_THEN(st, ot__trainer_set_scale(trainer));
        OT_THEN(st, choose_rates(trainer));
    }
    ot__trainer_ask_inside(trainer);
    st = ot__session_step(trainer->session, st, OT_MODE_TRAIN, inputs, n_inputs, outputs, n_outputs,
                          &has_run);
    if (st != OT_OK)
        return has_run ? drop_after(trainer, st) : st;
    if (trainer->step_graph_path != NULL)
        ot__trainer_save_step_graph(trainer);
    ot__trainer_count_step(trainer);
    return OT_OK;
}

ot_status ot__trainer_accumulate(ot_trainer *trainer, const ot_tensor *const *inputs, int n_inputs,
                                 ot_tensor **outputs, int n_outputs)
{
    return accumulate(trainer, ot__trainer_check_batch(trainer, OT_MODE_TRAIN, inputs), inputs,
                      n_inputs, outputs, n_outputs);
}

ot_status ot__trainer_update(ot_trainer *trainer, ot_status given)
{
    const bool asks = ot__trainer_asks_scaler(trainer);
    ot_update_info update = OT_UPDATE_INFO_INIT;
    ot_loss_scaler before;
    ot_status st = given;

    if (given == OT_OK && trainer->n_accumulated == 0)
        return OT_OK;
    if (asks)
        OT_TRY(ot__trainer_ask_scaler(trainer, &st, &before)); // a failure is that of all ranks
    st = ot__session_update(trainer->session, st, trainer->n_accumulated, &update);
    if (st != OT_OK) {
        if (asks)
            ot__trainer_unask_scaler(trainer, &before);
        return st;
    }
    trainer->phase = 0;
    trainer->n_accumulated = 0;
    trainer->info.all_finite = update.finite;
    trainer->info.gradient_norm = update.norm;
    ot__trainer_adapt_scale(trainer);
    if (update.applied)
        trainer->info.optimization_step++;
    ot__session_reset_gradients(trainer->session);
    return ot__trainer_set_next_rate(trainer);
}

void ot__trainer_restart(ot_trainer *trainer)
{
    ot__session_reset_gradients(trainer->session);
    trainer->phase = 0;
    trainer->n_accumulated = 0;
}

void ot__trainer_step_back(ot_trainer *trainer)
{
    ot__session_step_back(trainer->session);
    trainer->info.step--;
}

void ot__trainer_step_forth(ot_trainer *trainer)
{
    ot__session_step_forth(trainer->session);
    trainer->info.step++;
}

// ---- public ----

static ot_status train_trainer_step(ot_trainer *trainer, ot_status given,
                                    const ot_tensor *const *inputs, int n_inputs,
                                    ot_tensor **outputs, int n_outputs)
{
    const ot_session *session = trainer->session;
    ot_status st = given;

    OT_THEN(st, lay_step(trainer, OT_MODE_TRAIN, inputs, n_inputs, outputs, n_outputs));
    if (is_due_after(trainer, 1))
        ot__session_set_last(trainer->session);
    OT_TRY(accumulate(trainer, st, trainer->step_inputs,
                      ot_session_input_count(session, OT_MODE_TRAIN), trainer->step_outputs,
                      ot_session_output_count(session, OT_MODE_TRAIN)));
    if (is_due_after(trainer, 0))
        st = ot__trainer_update(trainer, OT_OK);
    if (st != OT_OK) {
        take_outputs_back(trainer, OT_MODE_TRAIN, outputs, n_outputs);
        return drop_after(trainer, st);
    }
    give_outputs(trainer, OT_MODE_TRAIN, outputs, n_outputs);
    return OT_OK;
}

ot_status ot_trainer_train_step(ot_trainer *trainer, const ot_tensor *const *inputs, int n_inputs,
                                ot_tensor **outputs, int n_outputs)
{
    ot_status given;

    OT_TRY(ot__trainer_enter(trainer));
    given = OT_GIVEN_MANY(inputs, n_inputs);
    OT_THEN(given, OT_GIVEN_MANY(outputs, n_outputs));
    return ot__trainer_leave(
        trainer, train_trainer_step(trainer, given, inputs, n_inputs, outputs, n_outputs));
}

ot_status ot_trainer_eval_step(ot_trainer *trainer, const ot_tensor *const *inputs, int n_inputs,
                               ot_tensor **outputs, int n_outputs)
{
    bool has_run;
    ot_status st;

    OT_TRY(OT_GIVEN_MANY(inputs, n_inputs));
    OT_TRY(OT_GIVEN_MANY(outputs, n_outputs));
    OT_TRY(ot__trainer_enter(trainer));
    st = lay_step(trainer, OT_MODE_EVAL, inputs, n_inputs, outputs, n_outputs);
    OT_THEN(st, ot__session_step(
                    trainer->session, OT_OK, OT_MODE_EVAL, trainer->step_inputs,
                    ot_session_input_count(trainer->session, OT_MODE_EVAL), trainer->step_outputs,
                    ot_session_output_count(trainer->session, OT_MODE_EVAL), &has_run));
    if (st == OT_OK)
        give_outputs(trainer, OT_MODE_EVAL, outputs, n_outputs);
    return ot__trainer_leave(trainer, st);
}

ot_status ot_trainer_flush(ot_trainer *trainer)
{
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(trainer, ot__trainer_update(trainer, OT_OK));
}
