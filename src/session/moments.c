// SPDX-License-Identifier: Apache-2.0
// Moments: what an optimizer keeps per parameter. They lie in the checkpoint; here is decided
// whether those that are there are gone on with.
#include <string.h>

#include "session/session_internal.h"

static const double default_initial_lr = 0.001;

// ---- whose they are ----

// Checkpoints of other makers do not say.
static bool is_of_another(const ot_session *session, const char **owner)
{
    const char *mine = session->optimizer.moments_of;

    return mine != NULL && session->checkpoint->has_optimizer_state &&
           ot_checkpoint_get_string(session->checkpoint, OT_PROPERTY_OPTIMIZER, owner) == OT_OK &&
           strcmp(mine, *owner) != 0;
}

static bool is_zero_moment(const ot_tensor *t)
{
    const unsigned char *bytes = t->data;

    for (size_t i = 0; i < t->n_bytes; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

// Whether there are no more than `n` of each parameter, and these zero.
static bool are_zero(const ot__optimizer *o, int n)
{
    for (int i = 0; i < o->n_parameters; i++) {
        const ot__parameter *p = o->parameters[i];

        if (n < OT_MAX_MOMENTS && p->moments[n] != NULL)
            return false;
        for (int k = 0; k < n; k++)
            if (p->moments[k] != NULL && !is_zero_moment(p->moments[k]))
                return false;
    }
    return true;
}

// A rule without memory, like plain SGD, is given moments too, which it leaves zero; the file
// format wants them. Then a rule with more of them finds nothing to go on with.
static bool are_unused(const ot__optimizer *o)
{
    return o->moments_of != NULL && o->n_moments > 0 && are_zero(o, o->n_moments - 1);
}

// Moments of a file that plain SGD goes on from are out of date with its first step: the rule that
// they are of must not find them afterwards.
static bool are_left_behind(const ot__optimizer *o)
{
    return o->moments_of == NULL && o->n_moments > 0 && !are_zero(o, o->n_moments);
}

static ot_status check_moment(const ot__parameter *p, int k)
{
    const ot_tensor *m = p->moments[k];

    if (m == NULL)
        return ot__error(OT_ERR_INVALID,
                         "the checkpoint's optimizer state has no momentum%d of parameter '%s'", k,
                         p->name);
    if (m->dtype != p->value->dtype || !ot__shape_equal(&m->shape, &p->value->shape))
        return ot__error(OT_ERR_INVALID, "momentum%d of parameter '%s' is %s%s, expected %s%s", k,
                         p->name, ot_dtype_name(m->dtype), OT_SHAPE_TEXT(&m->shape),
                         ot_dtype_name(p->value->dtype), OT_SHAPE_TEXT(&p->value->shape));
    return OT_OK;
}

static ot_status check_all(const ot__optimizer *o)
{
    for (int i = 0; i < o->n_parameters; i++)
        for (int k = 0; k < o->n_moments; k++)
            OT_TRY(check_moment(o->parameters[i], k));
    return OT_OK;
}

// ---- new ones ----

static ot_status make_zeros(const ot__optimizer *o, ot__fresh_moments *fresh)
{
    fresh->n = o->n_parameters * OT_MAX_MOMENTS;
    fresh->tensors = ot__alloc_zero((size_t)fresh->n, sizeof(ot_tensor *));
    OT_TRY(ot__made(fresh->tensors != NULL));
    for (int i = 0; i < o->n_parameters; i++)
        for (int k = 0; k < o->n_moments; k++) {
            const ot_tensor *value = o->parameters[i]->value;
            ot_tensor **made = &fresh->tensors[i * OT_MAX_MOMENTS + k];

            OT_TRY(ot_tensor_create(value->dtype, &value->shape, made));
            fresh->n_bytes += (*made)->n_bytes;
        }
    return OT_OK;
}

ot_status ot__moments_make(const ot_session *session, bool is_switch, ot__fresh_moments *fresh)
{
    const ot__optimizer *o = &session->optimizer;
    const char *owner = NULL;
    const bool is_other = is_of_another(session, &owner);

    *fresh = (ot__fresh_moments){0};
    // A file is gone on with or refused; who replaces a session's rule wants the new one to begin.
    if (is_other && !is_switch)
        return ot__error(
            OT_ERR_INVALID,
            "the checkpoint's optimizer state is that of %s, the optimizer model has %s", owner,
            o->moments_of);
    if (session->checkpoint->has_optimizer_state && !is_other && !are_unused(o) &&
        (is_switch || !are_left_behind(o)))
        return check_all(o);
    return make_zeros(o, fresh);
}

ot_status ot__moments_take(ot_session *session, ot__fresh_moments *fresh)
{
    ot_checkpoint *checkpoint = session->checkpoint;
    const ot__optimizer *o = &session->optimizer;
    ot_property_kind kind;
    bool is_named;

    if (fresh->tensors == NULL)
        return OT_OK;
    // Who is named is another one by now, or is not yet.
    is_named = ot_checkpoint_property_kind_of(checkpoint, OT_PROPERTY_OPTIMIZER, &kind) == OT_OK;
    if (o->moments_of != NULL && (checkpoint->has_optimizer_state || is_named))
        OT_TRY(ot_checkpoint_set_string(checkpoint, OT_PROPERTY_OPTIMIZER, o->moments_of));
    else if (o->moments_of == NULL && is_named)
        OT_TRY(ot_checkpoint_remove_property(checkpoint, OT_PROPERTY_OPTIMIZER));
    if (o->moments_of != NULL || !checkpoint->has_optimizer_state)
        checkpoint->step = 0; // which the correction of young moments counts from
    if (!checkpoint->has_optimizer_state)
        checkpoint->initial_lr = (float)default_initial_lr;
    for (int i = 0; i < o->n_parameters; i++)
        for (int k = 0; k < OT_MAX_MOMENTS; k++) {
            ot_tensor **made = &fresh->tensors[i * OT_MAX_MOMENTS + k];

            ot_tensor_destroy(o->parameters[i]->moments[k]);
            o->parameters[i]->moments[k] = *made;
            *made = NULL;
        }
    checkpoint->has_optimizer_state = true;
    return OT_OK;
}

void ot__moments_deinit(ot__fresh_moments *fresh)
{
    for (int i = 0; i < fresh->n && fresh->tensors != NULL; i++)
        ot_tensor_destroy(fresh->tensors[i]);
    ot__free(fresh->tensors);
    *fresh = (ot__fresh_moments){0};
}
