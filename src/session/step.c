// SPDX-License-Identifier: Apache-2.0
// One train or eval step: check the inputs, find the plan, bind, run, hand out the outputs.
#include "session/ranks.h"

// ---- inputs ----

static ot_status check_input_count(const ot__compiled_model *program, int n_inputs)
{
    ot__buf names = {0};
    ot_status st;

    if (n_inputs == program->n_user_inputs)
        return OT_OK;
    for (int i = 0; i < program->n_user_inputs; i++)
        ot__buf_printf(&names, "%s'%s'", i > 0 ? ", " : "", ot__user_input(program, i)->name);
    st = ot__error(OT_ERR_INVALID, "%s: got %d inputs, expected %d: %s", program->what, n_inputs,
                   program->n_user_inputs, names.data != NULL ? names.data : "none");
    ot__buf_deinit(&names);
    return st;
}

static ot_status check_step_input(const ot__compiled_model *program, int i_user, const ot_tensor *t)
{
    const ot_value *value = ot__user_input(program, i_user);

    if (t == NULL)
        return ot__error(OT_ERR_INVALID, "input %d '%s' is missing", i_user, value->name);
    OT_TRY(OT_OPTIONAL(t, value->name));
    if (t->dtype != value->dtype)
        return ot__error(OT_ERR_INVALID, "input %d '%s' is %s, expected %s", i_user, value->name,
                         ot_dtype_name(t->dtype), ot_dtype_name(value->dtype));
    if (!value->has_shape || ot__shape_may_equal(&t->shape, &value->shape))
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "input %d '%s' has shape %s, expected %s", i_user, value->name,
                     OT_SHAPE_TEXT(&t->shape), OT_DIMS_TEXT(program->model, &value->shape));
}

static ot_status step_shapes(ot__compiled_model *program, const ot_tensor *const *inputs,
                             int n_inputs)
{
    OT_TRY(check_input_count(program, n_inputs));
    for (int i = 0; i < n_inputs; i++) {
        OT_TRY(check_step_input(program, i, inputs[i]));
        program->given.shapes[i] = inputs[i]->shape;
    }
    return OT_OK;
}

static const ot_tensor *parameter_of_step(const ot_session *session,
                                          const ot__compiled_model *program, const ot__input *input)
{
    return program == &session->eval ? ot__ckpt_shown(session->checkpoint, input->parameter)
                                     : input->parameter->value;
}

static void bind_step_inputs(const ot_session *session, const ot__compiled_model *program,
                             ot__plan *plan, const ot_tensor *const *inputs)
{
    int i_user = 0;

    for (int i = 0; i < program->n_inputs; i++) {
        const ot__input *input = &program->inputs[i];

        switch (input->role) {
        case OT_ROLE_USER:
            ot__plan_bind_input(plan, i, 0, inputs[i_user++]->data);
            break;
        case OT_ROLE_PARAMETER:
            ot__plan_bind_input(plan, i, 0, parameter_of_step(session, program, input)->data);
            break;
        case OT_ROLE_GRADIENT:
            ot__plan_bind_input(plan, i, 0, input->parameter->gradient->data);
            break;
        case OT_ROLE_INPUT_GRADIENT:
            ot__plan_bind_input(plan, i, 0, input->gradient->data);
            break;
        case OT_ROLE_LAZY_RESET:
            ot__plan_bind_input(plan, i, 0, &session->overwrite_gradients);
            break;
        case OT_ROLE_LOSS_SCALE:
            ot__plan_bind_input(plan, i, 0, &session->loss_scale);
            break;
        default: // constants; the others are the optimizer's
            break;
        }
    }
}

// ---- outputs ----

static ot_status check_step_outputs(const ot__compiled_model *program, const ot__plan *plan,
                                    ot_tensor *const *outputs, int n_outputs)
{
    if (n_outputs > program->n_user_outputs)
        return ot__error(OT_ERR_INVALID, "%s: %d outputs wanted, it has %d", program->what,
                         n_outputs, program->n_user_outputs);
    for (int i = 0; i < n_outputs; i++) {
        const ot_arg *y = ot__plan_output(plan, program->user_outputs[i]);
        const ot_tensor *t = outputs[i] == ot__step_unwanted ? NULL : outputs[i];

        if (t != NULL && (t->dtype != y->dtype || !ot__shape_equal(&t->shape, &y->shape)))
            return ot__error(OT_ERR_INVALID, "output %d '%s' is %s%s, the given tensor %s%s", i,
                             program->model->graph->outputs[program->user_outputs[i]]->name,
                             ot_dtype_name(y->dtype), OT_SHAPE_TEXT(&y->shape),
                             ot_dtype_name(t->dtype), OT_SHAPE_TEXT(&t->shape));
        if (t != NULL && t->dtype == OT_STRING)
            return ot__error(OT_ERR_INVALID,
                             "output %d '%s' is of type string, whose tensor the step makes: it "
                             "cannot be written into the given one",
                             i, program->model->graph->outputs[program->user_outputs[i]]->name);
    }
    return OT_OK;
}

// Makes the tensors that are not there; `is_new` marks them.
static ot_status bind_outputs(const ot__compiled_model *program, ot__plan *plan,
                              ot_tensor **outputs, int n_outputs, uint64_t *is_new)
{
    for (int i = 0; i < program->n_user_outputs; i++)
        ot__plan_bind_output(plan, program->user_outputs[i], NULL);
    for (int i = 0; i < n_outputs; i++) {
        if (outputs[i] == ot__step_unwanted)
            continue;
        if (outputs[i] != NULL) {
            ot__plan_bind_output(plan, program->user_outputs[i], outputs[i]->data);
            continue;
        }
        is_new[i / 64] |= UINT64_C(1) << i % 64;
        OT_TRY(ot__output_make(plan, program->user_outputs[i], &outputs[i]));
    }
    return OT_OK;
}

static bool is_marked(const uint64_t *is_new, int i)
{
    return (is_new[i / 64] >> i % 64 & 1) != 0;
}

static ot_status take_step_outputs(const ot__compiled_model *program, const ot__plan *plan,
                                   ot_tensor **outputs, int n_outputs, const uint64_t *is_new)
{
    for (int i = 0; i < n_outputs; i++)
        if (is_marked(is_new, i))
            OT_TRY(ot__output_take(plan, program->user_outputs[i], &outputs[i]));
    return OT_OK;
}

static void take_back(ot_tensor **outputs, int n_outputs, const uint64_t *is_new)
{
    for (int i = 0; i < n_outputs; i++)
        if (is_marked(is_new, i)) {
            ot_tensor_destroy(outputs[i]);
            outputs[i] = NULL;
        }
}

// ---- steps ----

static ot_status check_state(const ot_session *session, const ot__compiled_model *program)
{
    if (program->model == NULL)
        return ot__error(OT_ERR_STATE, "the session has no %s", program->what);
    return ot__session_check_values(session);
}

// The plan and where its outputs go: nothing has changed yet.
static ot_status prepare_session_plan(ot_session *session, ot__compiled_model *program,
                                      ot_tensor **outputs, int n_outputs, uint64_t *is_new,
                                      ot__plan **plan)
{
    OT_TRY(ot__session_plan(session, program, plan));
    OT_TRY(check_step_outputs(program, *plan, outputs, n_outputs));
    return bind_outputs(program, *plan, outputs, n_outputs, is_new);
}

static ot_status check_session_step(ot_session *session, ot__compiled_model *program,
                                    const ot_tensor *const *inputs, int n_inputs)
{
    OT_TRY(check_state(session, program));
    OT_TRY(step_shapes(program, inputs, n_inputs));
    return ot__input_gradients_make(session, program);
}

// Over several ranks all run the step, or none does.
static ot_status agree_on_step(ot_session *session, ot_status st)
{
    const ot_agree_field fields[] = {
        {"whether gradients are overwritten", session->overwrite_gradients},
        {"whether this is the last train step of the update", session->ranks->is_last},
        {"the number of train steps", session->counter},
    };

    return ot__ranks_agree(session->ranks->comm, st, "train step", fields, (int)OT_COUNT(fields));
}

// By which random masks differ.
static uint64_t slice_of_step(const ot_session *session)
{
    if (session->slices.is_under_way)
        return (uint64_t)session->slices.present;
    return session->ranks != NULL ? (uint64_t)ot_comm_rank(session->ranks->comm) : 0;
}

// Those of slices are this rank's alone: how they went all learn with the update, or with a last
// one, in which sums begin.
static bool is_over_ranks(const ot_session *session)
{
    return session->ranks != NULL && (!session->slices.is_under_way || session->ranks->is_last);
}

ot_status ot__session_skip_step(ot_session *session, ot_status given)
{
    ot_status st = given;

    if (is_over_ranks(session)) {
        st = agree_on_step(session, given);
        if (st == OT_OK)
            st = ot__ranks_end_step(session, OT_OK);
        session->ranks->is_last = false;
    }
    session->counter += st == OT_OK;
    return st;
}

ot_status ot__session_fail_step(ot_session *session, ot_status st)
{
    const bool is_told = session->ranks == NULL || !session->ranks->is_last;

    return is_told ? st : ot__session_skip_step(session, st);
}

static ot_status run_session_plan(ot_session *session, ot__plan *plan, bool training)
{
    const bool over_ranks = training && is_over_ranks(session);
    const ot_step step = {.seed = session->seed,
                          .counter = session->counter,
                          .rank = training ? slice_of_step(session) : 0,
                          .training = training,
                          .exchange = over_ranks ? &session->ranks->exchange : NULL};

    if (training) {
        ot__undo_keep(session);
        session->checkpoint->n_accumulated = 0; // the gradients change
    }
    if (over_ranks) {
        OT_TRY(ot__ranks_begin_step(session));
        session->ranks->starts = session->ranks->is_last &&
                                 !(session->slices.is_under_way && session->slices.has_weights);
    }
    return ot__plan_run(plan, &step);
}

ot_status ot__session_step(ot_session *session, ot_status given, ot_mode mode,
                           const ot_tensor *const *inputs, int n_inputs, ot_tensor **outputs,
                           int n_outputs, bool *has_run)
{
    const bool training = mode == OT_MODE_TRAIN;
    const bool over_ranks = training && is_over_ranks(session);
    ot__compiled_model *program = training ? &session->training : &session->eval;
    uint64_t is_new[OT_SESSION_OUTPUTS / 64] = {0};
    ot__plan *plan = NULL;
    ot_status st = given;

    *has_run = false;
    OT_THEN(st, check_session_step(session, program, inputs, n_inputs));
    OT_THEN(st, prepare_session_plan(session, program, outputs, n_outputs, is_new, &plan));
    if (over_ranks) {
        st = agree_on_step(session, st);
        session->ranks->is_last = session->ranks->is_last && st == OT_OK;
        if (st != OT_OK)
            ot__ranks_give_up(session); // others may be in an update
    }
    if (st == OT_OK) {
        ot__packing_enter(session);
        bind_step_inputs(session, program, plan, inputs);
        ot__derived_bind(session, program, plan);
        *has_run = true;
        st = run_session_plan(session, plan, training);
        OT_THEN(st, take_step_outputs(program, plan, outputs, n_outputs, is_new));
        if (over_ranks)
            st = ot__ranks_end_step(session, st);
        if (st != OT_OK && training)
            ot__undo_restore(&session->undo);
    }
    if (st != OT_OK) {
        take_back(outputs, n_outputs, is_new);
        return st;
    }
    if (training) {
        session->counter++;
        session->overwrite_gradients = false;
    }
    return OT_OK;
}

ot_status ot_session_train_step(ot_session *session, const ot_tensor *const *inputs, int n_inputs,
                                ot_tensor **outputs, int n_outputs)
{
    ot_status given;
    bool has_run;

    OT_TRY(ot__session_enter_step(session));
    given = OT_GIVEN_MANY(inputs, n_inputs);
    OT_THEN(given, OT_GIVEN_MANY(outputs, n_outputs));
    return ot__session_leave(session, ot__session_step(session, given, OT_MODE_TRAIN, inputs,
                                                       n_inputs, outputs, n_outputs, &has_run));
}

ot_status ot_session_eval_step(ot_session *session, const ot_tensor *const *inputs, int n_inputs,
                               ot_tensor **outputs, int n_outputs)
{
    bool has_run;

    OT_TRY(OT_GIVEN_MANY(inputs, n_inputs));
    OT_TRY(OT_GIVEN_MANY(outputs, n_outputs));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, ot__session_step(session, OT_OK, OT_MODE_EVAL, inputs,
                                                       n_inputs, outputs, n_outputs, &has_run));
}

void ot_session_reset_gradients(ot_session *session)
{
    if (ot__session_enter_step(session) != OT_OK)
        return;
    session->overwrite_gradients = true;
    ot__session_leave(session, OT_OK);
}

// ---- those of a trainer ----

ot_tensor *const ot__step_unwanted = &(ot_tensor){0};

void ot__session_set_trainer(ot_session *session, bool has_trainer)
{
    session->has_trainer = has_trainer;
}

bool ot__session_overlaps(const ot_session *session)
{
    const struct ot__ranks *ranks = session->ranks;

    return ranks != NULL && session->slices.count == ot_comm_world_size(ranks->comm) &&
           ranks->n_slices == session->slices.count;
}

void ot__session_set_last(ot_session *session)
{
    if (session->ranks != NULL)
        session->ranks->is_last = true;
}

void ot__session_reset_gradients(ot_session *session)
{
    session->overwrite_gradients = true;
    session->slices.is_under_way = false;
    session->slices.present = 0;
}
