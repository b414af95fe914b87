// SPDX-License-Identifier: Apache-2.0
// One update: the optimizer graph over the accumulated gradients, and what the session tells it.
#include <math.h>
#include <string.h>

#include "session/ranks.h"

// ---- what the graph is fed ----

static ot_tensor *optimizer_tensor(const ot__parameter *p, ot__input_role role)
{
    if (role == OT_ROLE_PARAMETERS)
        return p->value;
    return role == OT_ROLE_GRADIENTS ? p->gradient : p->slots[role - OT_ROLE_SLOT];
}

static const void *optimizer_number(const ot__optimizer *o, ot__input_role role)
{
    switch (role) {
    case OT_ROLE_LEARNING_RATE:
        return o->rates;
    case OT_ROLE_STEP:
        return o->steps;
    case OT_ROLE_DIVISOR:
        return &o->divisor;
    default:
        return NULL;
    }
}

// Where the elements of a parameter begin whose state is here, in bytes of the whole value or
// gradient.
static size_t begin_of_state(const ot_session *session, const ot__parameter *p, ot__input_role role)
{
    const struct ot__ranks *ranks = session->ranks;

    if (ranks == NULL || !ranks->is_cut ||
        (role == OT_ROLE_PARAMETERS ? ranks->cuts_values : ranks->cuts_gradients))
        return 0;
    return (size_t)ranks->first_here[p->number] * ot_dtype_size(p->value->dtype);
}

static void bind_optimizer(const ot_session *session)
{
    const ot__optimizer *o = &session->optimizer;

    for (int i = 0; i < o->program.n_inputs; i++) {
        const ot__input_role role = o->program.inputs[i].role;
        const void *number = optimizer_number(o, role);

        if (number != NULL)
            ot__plan_bind_input(o->plan, i, 0, number);
        for (int k = 0; k < o->n_parameters && number == NULL; k++) {
            const ot__parameter *p = o->parameters[k];
            const char *data = optimizer_tensor(p, role)->data;

            if (role == OT_ROLE_PARAMETERS || role == OT_ROLE_GRADIENTS)
                data += begin_of_state(session, p, role);
            ot__plan_bind_input(o->plan, i, k, data);
        }
    }
}

static void set_numbers(const ot_session *session, ot__optimizer *o, double divisor)
{
    for (int i = 0; i < o->n_groups && !o->has_rates; i++)
        o->rates[i] = (float)session->learning_rate;
    for (int k = 0; k < o->n_steps && o->n_steps > 1; k++)
        o->steps[k] = o->parameters[k]->n_updates + 1;
    if (o->n_steps == 1)
        o->steps[0] = session->checkpoint->step + 1;
    o->divisor = (float)divisor;
}

// ---- what it answers ----

static double output_number(const ot__plan *plan, int i_output, double otherwise)
{
    const ot_arg *y = i_output < 0 ? NULL : ot__plan_output(plan, i_output);

    if (y != NULL && y->count > 0)
        (void)ot__convert(&otherwise, OT_F64, y->data, y->dtype, 1);
    return otherwise;
}

bool ot__session_has_optimizer(const ot_session *session)
{
    return session->optimizer.program.model != NULL;
}

bool ot__session_skips(const ot_session *session)
{
    return session->optimizer.i_finite >= 0;
}

// The first output says whether the update was applied. Inside a train step, it always is.
static void take_update(ot_session *session, bool is_inside, ot_update_info *info)
{
    const ot__optimizer *o = &session->optimizer;
    const int flag = o->program.model->graph->n_outputs > 0 ? 0 : -1;

    info->applied = is_inside || fabs(output_number(o->plan, flag, 1)) > 0;
    info->finite = is_inside || fabs(output_number(o->plan, o->i_finite, 1)) > 0;
    info->norm = is_inside ? (double)NAN : output_number(o->plan, o->i_norm, (double)NAN);
    if (!info->applied)
        return;
    session->checkpoint->step++;
    session->checkpoint->n_changes++;
    for (int k = 0; k < o->n_parameters; k++)
        o->parameters[k]->n_updates++;
}

// ---- one update ----

static ot_status ready_update(ot_session *session)
{
    OT_TRY(ot__optimizer_ready(session));
    return ot__session_lend_block(session, session->optimizer.plan);
}

// What can be refused before anything changes.
static ot_status prepare_update(ot_session *session, int64_t n_micro_batches)
{
    ot__optimizer *o = &session->optimizer;

    if (n_micro_batches < 1)
        return ot__error(OT_ERR_INVALID,
                         "an update over %" PRId64 " micro-batches, expected at least 1",
                         n_micro_batches);
    if (o->program.model == NULL)
        return ot__error(OT_ERR_STATE, "the session has no optimizer model");
    OT_TRY(ot__session_check_values(session));
    if (session->is_paused)
        return OT_OK;
    if (session->ranks == NULL)
        OT_TRY(ot__session_need_gradients(session));
    return ot__ranks_cut_later(session) ? OT_OK : ready_update(session);
}

// How many means the gradients are the sum of.
static int count_terms(const ot_session *session)
{
    if (session->ranks != NULL && session->ranks->is_mean)
        return 1;
    if (session->slices.is_under_way)
        return session->slices.count;
    return session->ranks != NULL ? session->ranks->n_ranks : 1;
}

static ot_status run_update(ot_session *session, double divisor)
{
    ot__optimizer *o = &session->optimizer;
    const ot_step step = {.seed = session->seed,
                          .counter = session->counter,
                          .training = true,
                          .exchange =
                              session->ranks != NULL ? &session->ranks->update_exchange : NULL};

    if (!o->takes_divisor && fabs(divisor - 1) > 0)
        OT_TRY(ot__session_scale_parameter_gradients(session, 1 / divisor));
    if (!o->keeps_gradients && session->ranks != NULL)
        session->ranks->is_mean = true;
    set_numbers(session, o, divisor);
    ot__packing_enter(session); // sums over elements are the same whoever has looked at them
    if (session->is_paused)
        return ot__inside_finish(session);
    bind_optimizer(session);
    return ot__plan_run(o->plan, &step);
}

static uint64_t number_bits(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    return bits;
}

// All ranks make the same update of the sums of all gradients.
static ot_status agree_on_update(ot_session *session, ot_status st, const char *call,
                                 int64_t n_micro_batches)
{
    const ot_agree_field fields[] = {
        {"the number of micro-batches", (uint64_t)n_micro_batches},
        {"the number of slices", (uint64_t)session->slices.count},
        {"the learning rate", number_bits(session->learning_rate)},
        {"the loss scale", number_bits((double)session->loss_scale)},
        {"the number of updates", (uint64_t)session->checkpoint->step},
    };

    st = ot__ranks_agree(session->ranks->comm, st, call, fields, (int)OT_COUNT(fields));
    session->ranks->n_owed = 0;
    if (st != OT_OK) {
        ot__ranks_give_up(session);
        return st;
    }
    OT_TRY(ot__ranks_settle_layouts(session));
    if (ot__ranks_cut_later(session)) {
        OT_TRY(ot__zero_cut(session));
        OT_TRY(ot__ranks_agree(session->ranks->comm, ready_update(session), call, NULL, 0));
    }
    ot__packing_enter(session); // shares are parts of the layouts that steps leave
    return ot__ranks_reduce(session);
}

static ot_status update_session(ot_session *session, ot_status given, int64_t n_micro_batches,
                                ot_update_info *info)
{
    const bool is_inside = session->is_paused;
    double divisor = (double)session->loss_scale * (double)n_micro_batches;
    ot_status st = given;

    OT_THEN(st, prepare_update(session, n_micro_batches));
    if (session->ranks != NULL)
        st = agree_on_update(session, st, "update", n_micro_batches);
    OT_TRY(st); // that of all ranks
    divisor *= count_terms(session);
    st = run_update(session, divisor);
    if (session->ranks != NULL)
        st = ot__ranks_agree(session->ranks->comm, st, "update", NULL, 0);
    OT_TRY(st);
    take_update(session, is_inside, info);
    return session->ranks != NULL && info->applied ? ot__zero_gather(session) : OT_OK;
}

static ot_status update_into(ot_session *session, ot_status given, int64_t n_micro_batches,
                             ot_update_info *info)
{
    ot_update_info own;

    OT_THEN(given, OT_OPTIONS_READ(ot_update_info, OT_UPDATE_INFO_INIT, info, &own));
    OT_TRY(update_session(session, given, n_micro_batches, &own));
    if (info != NULL)
        ot__options_write(info, &own, sizeof own);
    return OT_OK;
}

ot_status ot_session_update(ot_session *session, int64_t n_micro_batches, ot_update_info *info)
{
    OT_TRY(ot__session_enter_step(session));
    return ot__session_leave(session, update_into(session, OT_OK, n_micro_batches, info));
}

ot_status ot_session_optimizer_step(ot_session *session)
{
    return ot_session_update(session, 1, NULL);
}

ot_status ot__session_update(ot_session *session, ot_status given, int64_t n_micro_batches,
                             ot_update_info *info)
{
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, update_into(session, given, n_micro_batches, info));
}

// ---- are gradients finite, before an update ----

// Ranks may have parts of the sums.
static ot_status agree_on_finite(const ot_session *session, const char *call, bool *finite)
{
    ot_agreement a = OT_AGREEMENT_INIT;

    a.call = call;
    a.all = *finite;
    OT_TRY(ot_comm_agree(session->ranks->comm, &a));
    *finite = a.all != 0;
    return OT_OK;
}

static ot_status sum_gradients(ot_session *session, ot_status given, int64_t n_micro_batches,
                               bool *finite)
{
    static const char call[] = "loss scaler";
    ot_status st = given;

    OT_THEN(st, prepare_update(session, n_micro_batches));
    if (session->ranks != NULL)
        st = agree_on_update(session, st, call, n_micro_batches);
    OT_TRY(st);
    *finite = ot__gradients_are_finite(session);
    return session->ranks != NULL ? agree_on_finite(session, call, finite) : OT_OK;
}

ot_status ot__session_sum_gradients(ot_session *session, ot_status given, int64_t n_micro_batches,
                                    bool *finite)
{
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, sum_gradients(session, given, n_micro_batches, finite));
}

// ---- the loss scale ----

bool ot__session_takes_loss_scale(const ot_session *session)
{
    const ot__compiled_model *program = &session->training;

    for (int i = 0; i < program->n_inputs; i++)
        if (program->inputs[i].role == OT_ROLE_LOSS_SCALE)
            return true;
    return false;
}

static ot_status set_loss_scale(ot_session *session, double scale)
{
    const float narrow = (float)scale;

    if (!isfinite(narrow) || !(narrow > 0))
        return ot__error(OT_ERR_INVALID,
                         "the loss scale is %g, expected a finite f32 number above 0", scale);
    if (fabs(scale - 1) > 0 && !ot__session_takes_loss_scale(session))
        return ot__error(OT_ERR_STATE,
                         "the loss scale is %g, but the training model has no input '%s': make it "
                         "with loss_scale of ot_artifacts_options",
                         scale, OT_NAME_LOSS_SCALE);
    session->loss_scale = narrow;
    return OT_OK;
}

ot_precision ot__session_precision(const ot_session *session)
{
    return session->options.precision;
}

double ot__session_loss_scale(const ot_session *session)
{
    return (double)session->loss_scale;
}

ot_status ot_session_set_loss_scale(ot_session *session, double scale)
{
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, set_loss_scale(session, scale));
}

// ---- averages ----

static ot_status check_averages(const ot_session *session, int use)
{
    if (use == 0 || session->optimizer.has_slot[OT_SLOT_AVERAGE])
        return OT_OK;
    return ot__error(OT_ERR_STATE, "the optimizer keeps no averages of the parameters: set its "
                                   "average_decay");
}

// Where they are cut over ranks, or will be, eval steps are those of all that take them.
static ot_status agree_on_averages(ot_session *session, ot_status st, int use)
{
    const ot_agree_field fields[] = {{"whether averages are used", use != 0}};

    if (use != 0)
        OT_THEN(st, ot__transfers_list_averages(session));
    return ot__ranks_agree(session->ranks->comm, st, "use_averages", fields, (int)OT_COUNT(fields));
}

static ot_status use_averages(ot_session *session, int use)
{
    ot_status st = check_averages(session, use);

    if (ot__session_is_cut(session))
        st = agree_on_averages(session, st, use);
    OT_TRY(st);
    if (ot__session_is_cut(session) && session->checkpoint->shows_averages != (use != 0))
        ot__compiled_model_drop_plans(&session->eval); // which gather values, or none
    session->checkpoint->shows_averages = use != 0;
    return OT_OK;
}

ot_status ot_session_use_averages(ot_session *session, int use)
{
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, use_averages(session, use));
}

// ---- rates of groups ----

int ot_session_group_count(const ot_session *session)
{
    return OT_IS_LIVE(session) ? session->optimizer.n_groups : 0;
}

static ot_status set_rates(ot_session *session, const double *rates, int n)
{
    ot__optimizer *o = &session->optimizer;

    if (o->program.model == NULL)
        return ot__error(OT_ERR_STATE, "the session has no optimizer model");
    if (n != o->n_groups)
        return ot__error(OT_ERR_INVALID, "%d learning rates for the %d groups of the optimizer", n,
                         o->n_groups);
    for (int i = 0; i < n; i++)
        if (!isfinite(rates[i]) || rates[i] < 0)
            return ot__error(OT_ERR_INVALID,
                             "learning rate %d is %g, expected a finite number of at least 0", i,
                             rates[i]);
    for (int i = 0; i < n; i++)
        o->rates[i] = (float)rates[i];
    o->has_rates = true;
    session->learning_rate = rates[0];
    return OT_OK;
}

ot_status ot_session_set_learning_rates(ot_session *session, const double *rates, int n)
{
    OT_TRY(OT_GIVEN_MANY(rates, n));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, set_rates(session, rates, n));
}
