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
        program->given.tensors[i] = inputs[i];
    }
    program->given.has_tensors = true;
    return OT_OK;
}

const ot_tensor *ot__session_parameter(const ot_session *session, const ot__compiled_model *program,
                                       const ot__input *input)
{
    return program == &session->eval ? ot__ckpt_shown(session->checkpoint, input->parameter)
                                     : input->parameter->value;
}

// NULL: it is not kept, and the plan reads none.
static void *kept_gradient(const ot__parameter *p)
{
    return p->gradient != NULL ? p->gradient->data : NULL;
}

void ot__session_bind_inputs(const ot_session *session, const ot__compiled_model *program,
                             ot__plan *plan, const ot_tensor *const *given)
{
    int i_user = 0;

    for (int i = 0; i < program->n_inputs; i++) {
        const ot__input *input = &program->inputs[i];

        switch (input->role) {
        case OT_ROLE_USER:
            ot__plan_bind_input(plan, i, 0, given[i_user++]->data);
            break;
        case OT_ROLE_PARAMETER:
            ot__plan_bind_input(plan, i, 0, ot__session_parameter(session, program, input)->data);
            break;
        case OT_ROLE_GRADIENT:
            ot__plan_bind_input(plan, i, 0, kept_gradient(input->parameter));
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

static const char *step_call(ot_mode mode)
{
    return mode == OT_MODE_TRAIN ? "train step" : "eval step";
}

// Over several ranks all run the step, or none does. Of slices, each rank has its own.
static ot_status agree_on_step(ot_session *session, ot_status st, ot_mode mode,
                               const ot__plan *plan)
{
    struct ot__ranks *ranks = session->ranks;
    const bool is_of_all = !(session->slices.is_under_way && ot__ranks_step_together(session));
    const ot_agree_field fields[] = {
        {"whether gradients are overwritten", is_of_all && session->overwrite_gradients},
        {"whether this is the last train step of the update", ranks->is_last},
        {"the number of train steps", is_of_all ? session->counter : 0},
        // Statistics of batches are summed between buckets.
        {"the order in which buckets and statistics are exchanged",
         session->syncs_norms && plan != NULL ? ot__plan_exchange_id(plan) : 0},
    };

    st = ot__ranks_agree(ranks->comm, st, step_call(mode), fields,
                         mode == OT_MODE_TRAIN ? (int)OT_COUNT(fields) : 0);
    ranks->is_last = ranks->is_last && (st == OT_OK || mode != OT_MODE_TRAIN);
    ranks->gathers_averages = mode == OT_MODE_EVAL && session->checkpoint->shows_averages;
    if (st != OT_OK) {
        ranks->n_owed = 0;
        ot__ranks_give_up(session); // others may be in an update
    }
    return st;
}

// What steps exchange is still to be cut over the ranks, or a cut has failed on some.
static bool is_to_be_cut(const ot_session *session, ot_mode mode)
{
    const struct ot__ranks *ranks = session->ranks;

    return !ranks->is_cut && (mode == OT_MODE_TRAIN ? ranks->joins_steps : ranks->is_half_cut);
}

static ot_status cut_before_step(ot_session *session, ot_status st, ot_mode mode)
{
    st = ot__ranks_agree(session->ranks->comm, st, step_call(mode), NULL, 0);
    if (st == OT_OK)
        ot__session_drop_block(session); // until values are cut
    OT_THEN(st, ot__zero_cut(session));
    if (st != OT_OK)
        session->ranks->n_owed = 0;
    return st;
}

// By which random masks differ.
static uint64_t slice_of_step(const ot_session *session)
{
    if (session->slices.is_under_way)
        return (uint64_t)session->slices.present;
    return session->ranks != NULL ? (uint64_t)session->ranks->rank : 0;
}

// Those of slices are this rank's alone: how they went all learn with the update, or with a last
// one, in which sums begin.
static bool is_over_ranks(const ot_session *session, ot_mode mode)
{
    const struct ot__ranks *ranks = session->ranks;

    if (ranks == NULL)
        return false;
    return mode == OT_MODE_TRAIN
               ? ot__ranks_step_together(session) || !session->slices.is_under_way || ranks->is_last
               : ot__ranks_gather(session, mode);
}

static ot_status end_step(ot_session *session, ot_status st, ot_mode mode)
{
    struct ot__ranks *ranks = session->ranks;

    st = mode == OT_MODE_TRAIN ? ot__ranks_end_step(session, st)
                               : ot__ranks_agree(ranks->comm, st, step_call(mode), NULL, 0);
    ranks->n_owed = st == OT_OK && ranks->n_owed > 0 ? ranks->n_owed - 1 : 0;
    return st;
}

static bool exchanges_buckets(const ot_session *session, ot_mode mode)
{
    return mode == OT_MODE_TRAIN ? session->ranks->joins_steps : ot__ranks_gather(session, mode);
}

ot_status ot__session_join_step(ot_session *session, ot_status given, ot_mode mode)
{
    ot_status st = given;
    void *room = NULL;

    if (!is_over_ranks(session, mode))
        return st;
    if (is_to_be_cut(session, mode))
        OT_TRY(cut_before_step(session, st, mode));
    if (session->ranks->is_cut && exchanges_buckets(session, mode))
        OT_THEN(st, ot__transfers_make_room(session, mode, &room));
    st = agree_on_step(session, st, mode, NULL);
    if (st == OT_OK && room != NULL)
        st = ot__transfers_join(session, mode, room);
    if (st == OT_OK)
        st = end_step(session, st, mode);
    if (st == OT_OK && mode == OT_MODE_TRAIN && session->ranks->cuts_gradients)
        session->overwrite_gradients = false;
    return st;
}

ot_status ot__session_skip_step(ot_session *session, ot_status given)
{
    const ot_status st = ot__session_join_step(session, given, OT_MODE_TRAIN);

    session->counter += st == OT_OK;
    return st;
}

ot_status ot__session_fail_step(ot_session *session, ot_status st, ot_mode mode)
{
    const struct ot__ranks *ranks = session->ranks;
    const bool is_told = ranks == NULL || !(ranks->is_last || ranks->n_owed > 0);

    return is_told ? st : ot__session_join_step(session, st, mode);
}

ot_step ot__session_present_step(const ot_session *session, const ot__compiled_model *program)
{
    const bool training = program == &session->training;

    return (ot_step){.seed = session->seed,
                     .counter = session->counter,
                     .rank = training ? slice_of_step(session) : 0,
                     .training = training};
}

static ot_status run_session_plan(ot_session *session, ot__plan *plan, bool training)
{
    const bool over_ranks = is_over_ranks(session, training ? OT_MODE_TRAIN : OT_MODE_EVAL);
    ot_step step =
        ot__session_present_step(session, training ? &session->training : &session->eval);

    step.exchange = over_ranks ? &session->ranks->exchange : NULL;
    if (training) {
        ot__undo_keep(session);
        session->checkpoint->n_accumulated = 0; // the gradients change
    }
    if (over_ranks && training) {
        OT_TRY(ot__ranks_begin_step(session));
        session->ranks->exchange.weight = session->slices.is_under_way ? session->slices.weight : 1;
        session->ranks->exchange.is_ghost =
            session->slices.is_under_way && session->slices.is_ghost;
        session->ranks->starts = session->ranks->is_last && session->ranks->has_layouts &&
                                 !(session->slices.is_under_way && session->slices.has_weights);
    }
    return training ? ot__inside_begin(session, plan, &step) : ot__plan_run(plan, &step);
}

ot_status ot__session_step(ot_session *session, ot_status given, ot_mode mode,
                           const ot_tensor *const *inputs, int n_inputs, ot_tensor **outputs,
                           int n_outputs, bool *has_run)
{
    const bool training = mode == OT_MODE_TRAIN;
    const bool over_ranks = is_over_ranks(session, mode);
    ot__compiled_model *program = training ? &session->training : &session->eval;
    uint64_t is_new[OT_SESSION_OUTPUTS / 64] = {0};
    ot__plan *plan = NULL;
    ot_status st = given;

    *has_run = false;
    if (training)
        ot__inside_end(session);
    OT_THEN(st, check_session_step(session, program, inputs, n_inputs));
    if (over_ranks && is_to_be_cut(session, mode)) {
        OT_THEN(st, ot__session_find_plan(session, program, &plan)); // the layouts that are cut
        OT_TRY(cut_before_step(session, st, mode));                  // on all ranks
    }
    OT_THEN(st, prepare_session_plan(session, program, outputs, n_outputs, is_new, &plan));
    if (over_ranks)
        st = agree_on_step(session, st, mode, plan);
    if (st == OT_OK) {
        ot__packing_enter(session);
        ot__session_bind_inputs(session, program, plan, inputs);
        ot__derived_bind(session, program, plan);
        *has_run = true;
        st = run_session_plan(session, plan, training);
        OT_THEN(st, take_step_outputs(program, plan, outputs, n_outputs, is_new));
        if (over_ranks)
            st = end_step(session, st, mode);
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
        session->slices.has_steps = true;
        session->slices.has_rows = session->slices.has_rows || !session->slices.is_ghost;
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
    session->wants_inside = false; // until it is asked for
}

bool ot__session_overlaps(const ot_session *session)
{
    const struct ot__ranks *ranks = session->ranks;

    return ranks != NULL && !ranks->joins_steps && session->slices.count >= ranks->n_ranks &&
           ranks->n_slices == session->slices.count;
}

bool ot__session_joins_steps(const ot_session *session, ot_mode mode)
{
    const struct ot__ranks *ranks = session->ranks;

    return ranks != NULL && (mode == OT_MODE_TRAIN ? ot__ranks_step_together(session)
                                                   : ot__ranks_gather(session, mode));
}

void ot__session_owe_steps(ot_session *session, ot_mode mode, int64_t n)
{
    if (ot__session_joins_steps(session, mode))
        session->ranks->n_owed = n;
}

void ot__session_set_last(ot_session *session)
{
    if (session->ranks != NULL)
        session->ranks->is_last = true;
}

void ot__session_reset_gradients(ot_session *session)
{
    ot__inside_end(session);
    session->overwrite_gradients = true;
    session->slices.is_under_way = false;
    session->slices.present = 0;
}
