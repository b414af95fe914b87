// SPDX-License-Identifier: Apache-2.0
// Learning rates. The formulas and where they come from are in docs/learning-rate.md.
#include <math.h>
#include <string.h>

#include "session/session_internal.h"

static const double pi = 3.14159265358979323846;

static bool is_non_negative(double x)
{
    return isfinite(x) && x >= 0.0;
}

bool ot__is_learning_rate(double rate)
{
    return is_non_negative(rate);
}

ot_status ot__schedule_check(const ot_schedule *s)
{
    if ((int)s->kind < OT_SCHEDULE_CONSTANT || (int)s->kind > OT_SCHEDULE_POLYNOMIAL)
        return ot__error(OT_ERR_INVALID,
                         "unknown schedule kind %d (known: constant, linear, cosine, step, "
                         "exponential, polynomial)",
                         (int)s->kind);
    if (!is_non_negative(s->initial_lr))
        return ot__error(OT_ERR_INVALID,
                         "schedule: initial_lr is %g, expected a finite number of at least 0",
                         s->initial_lr);
    if (!is_non_negative(s->gamma) || !is_non_negative(s->power) || !is_non_negative(s->end_factor))
        return ot__error(OT_ERR_INVALID,
                         "schedule: gamma %g, power %g, end_factor %g, expected finite numbers of "
                         "at least 0",
                         s->gamma, s->power, s->end_factor);
    if (!is_non_negative(s->warmup_steps) || s->total_steps < 0)
        return ot__error(OT_ERR_INVALID, "schedule: %g warm-up steps of %" PRId64 " steps",
                         s->warmup_steps, s->total_steps);
    if (!is_non_negative(s->cycles))
        return ot__error(OT_ERR_INVALID,
                         "schedule: cycles is %g, expected a finite number of at least 0",
                         s->cycles);
    if (s->kind == OT_SCHEDULE_STEP && s->step_size < 1)
        return ot__error(OT_ERR_INVALID, "schedule: step_size is %" PRId64, s->step_size);
    return OT_OK;
}

// Steps from the end of the warm-up to total_steps.
static double length(const ot_schedule *s)
{
    return OT_MAX((double)s->total_steps - s->warmup_steps, 1.0);
}

// 1 before the end of the warm-up, 0 at total_steps and after.
static double remaining(const ot_schedule *s, int64_t step)
{
    return OT_MAX(0.0, (double)(s->total_steps - step) / length(s));
}

static double cosine(const ot_schedule *s, int64_t step)
{
    if (s->cycles > 0) // on and on
        return OT_MAX(0.0, 0.5 * (1.0 + cos(2.0 * pi * s->cycles *
                                            ((double)step - s->warmup_steps) / length(s))));
    return 0.5 * (1.0 + cos(pi * (1.0 - remaining(s, step))));
}

static double factor(const ot_schedule *s, int64_t step)
{
    const double since = (double)step - s->warmup_steps; // steps after the warm-up
    double share;

    if (since < 0)
        return (double)step / OT_MAX(s->warmup_steps, 1.0);
    switch (s->kind) {
    case OT_SCHEDULE_LINEAR:
        share = remaining(s, step);
        break;
    case OT_SCHEDULE_COSINE:
        share = cosine(s, step);
        break;
    case OT_SCHEDULE_POLYNOMIAL:
        share = pow(remaining(s, step), s->power);
        break;
    case OT_SCHEDULE_STEP:
        return pow(s->gamma, floor(since / (double)s->step_size));
    case OT_SCHEDULE_EXPONENTIAL:
        return pow(s->gamma, since);
    case OT_SCHEDULE_CONSTANT:
    default:
        return 1.0;
    }
    return s->end_factor + (1.0 - s->end_factor) * share;
}

// Callers from before `cycles` have a whole number in the place of warmup_steps.
ot_status ot__schedule_read(const ot_schedule *given, ot_schedule *own)
{
    int64_t whole;

    OT_TRY(OT_OPTIONS_READ(ot_schedule, OT_SCHEDULE_INIT, given, own));
    if (given->size > offsetof(ot_schedule, warmup_steps) &&
        given->size <= offsetof(ot_schedule, cycles)) {
        memcpy(&whole, &given->warmup_steps, sizeof whole);
        own->warmup_steps = (double)whole;
    }
    return ot__schedule_check(own);
}

double ot_schedule_value(const ot_schedule *schedule, int64_t step)
{
    ot_schedule own;

    if (schedule == NULL || ot__schedule_read(schedule, &own) != OT_OK)
        return 0.0;
    return own.initial_lr * factor(&own, OT_MAX(step, (int64_t)0));
}

ot_status ot_session_set_learning_rate(ot_session *session, double learning_rate)
{
    OT_TRY(ot__session_enter(session));
    if (!is_non_negative(learning_rate))
        return ot__session_leave(
            session, ot__error(OT_ERR_INVALID, "the learning rate is %g", learning_rate));
    session->learning_rate = learning_rate;
    session->optimizer.has_rates = false;
    return ot__session_leave(session, OT_OK);
}

double ot_session_learning_rate(const ot_session *session)
{
    return OT_IS_LIVE(session) ? session->learning_rate : 0.0;
}

int64_t ot_session_step_count(const ot_session *session)
{
    return OT_IS_LIVE(session) ? session->checkpoint->step : 0;
}

static ot_status schedule_step(ot_session *session)
{
    if (!session->has_schedule)
        return ot__error(OT_ERR_STATE, "the session has no learning rate schedule");
    session->learning_rate = ot_schedule_value(&session->schedule, session->checkpoint->step);
    session->optimizer.has_rates = false;
    return OT_OK;
}

static ot_status set_schedule(ot_session *session, const ot_schedule *schedule)
{
    ot_schedule own;

    OT_TRY(ot__schedule_read(schedule, &own));
    session->schedule = own;
    session->has_schedule = true;
    session->checkpoint->initial_lr = (float)own.initial_lr;
    return schedule_step(session);
}

ot_status ot_session_set_schedule(ot_session *session, const ot_schedule *schedule)
{
    OT_TRY(OT_GIVEN(schedule));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, set_schedule(session, schedule));
}

ot_status ot_session_schedule_step(ot_session *session)
{
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, schedule_step(session));
}

int ot_session_has_schedule(const ot_session *session)
{
    return OT_IS_LIVE(session) && session->has_schedule ? 1 : 0;
}

bool ot__session_get_schedule(const ot_session *session, ot_schedule *out)
{
    if (session->has_schedule)
        *out = session->schedule;
    return session->has_schedule;
}
