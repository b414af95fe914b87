// SPDX-License-Identifier: Apache-2.0
// Slots: what an optimizer keeps per parameter. They lie in the checkpoint; here is decided whether
// those that are there continue. Moments belong to one rule; averages of the parameters to any.
#include <string.h>

#include "op/op.h"
#include "session/session_internal.h"

static const double default_initial_lr = 0.001;

// ---- whose the moments are ----

// What an operator keeps; its name, where no record says.
static const char *state_of(const char *name)
{
    const char *state = ot__optimizer_state(name);

    return state != NULL ? state : name;
}

bool ot__optimizer_keeps(const char *name)
{
    return *state_of(name) != '\0';
}

static const char *general_name(const char *name)
{
    const ot_op_def *op = ot__optimizer_find(name);

    return op != NULL && op->rule->general != NULL ? op->rule->general : name;
}

bool ot__optimizer_is_same(const char *a, const char *b)
{
    if (strcmp(general_name(a), general_name(b)) == 0)
        return true;
    return (ot__optimizer_find(a) == NULL || ot__optimizer_find(b) == NULL) &&
           strcmp(state_of(a), state_of(b)) == 0;
}

// Optimizers of one state continue each other's. Checkpoints of other makers do not say whose it
// is.
static bool is_of_another(const ot_session *session, const char **owner)
{
    const char *mine = session->optimizer.moments_of;

    return mine != NULL && session->checkpoint->has_optimizer_state &&
           ot_checkpoint_get_string(session->checkpoint, OT_PROPERTY_OPTIMIZER, owner) == OT_OK &&
           strcmp(state_of(mine), state_of(*owner)) != 0;
}

static bool is_zero_moment(const ot_tensor *t)
{
    const unsigned char *bytes = t->data;

    for (size_t i = 0; i < t->n_bytes; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static int count_moments(const ot__optimizer *o)
{
    return (int)o->has_slot[OT_SLOT_MOMENT1] + (int)o->has_slot[OT_SLOT_MOMENT2];
}

// Whether there are no more than `n` of each parameter, and these zero.
static bool are_zero(const ot__optimizer *o, int n)
{
    for (int i = 0; i < o->n_parameters; i++) {
        const ot__parameter *p = o->parameters[i];

        if (n < OT_SLOT_MOMENTS && p->slots[n] != NULL)
            return false;
        for (int k = 0; k < n; k++)
            if (p->slots[k] != NULL && !is_zero_moment(p->slots[k]))
                return false;
    }
    return true;
}

// A rule without memory, like plain SGD, is given moments too, which it leaves zero; the file
// format wants them. Then a rule with more of them finds nothing to go on with.
static bool are_unused(const ot__optimizer *o)
{
    return o->moments_of != NULL && count_moments(o) > 0 && are_zero(o, count_moments(o) - 1);
}

// Moments of a file that plain SGD goes on from are out of date with its first step: the rule that
// they are of must not find them afterwards.
static bool are_left_behind(const ot__optimizer *o)
{
    return o->moments_of == NULL && count_moments(o) > 0 && !are_zero(o, count_moments(o));
}

// ---- those that continue ----

static ot_status check_slot(const ot_checkpoint *checkpoint, const ot__parameter *p, int k)
{
    const ot_tensor *t = p->slots[k];
    ot_shape expected;

    if (t == NULL)
        return ot__error(OT_ERR_INVALID,
                         "the checkpoint's optimizer state has no %s of parameter '%s'",
                         ot__slot_names[k], p->name);
    OT_TRY(ot__ckpt_state_shape(checkpoint, p, &expected));
    if (t->dtype != p->value->dtype || !ot__shape_equal(&t->shape, &expected))
        return ot__error(OT_ERR_INVALID, "%s of parameter '%s' is %s%s, expected %s%s",
                         ot__slot_names[k], p->name, ot_dtype_name(t->dtype),
                         OT_SHAPE_TEXT(&t->shape), ot_dtype_name(p->value->dtype),
                         OT_SHAPE_TEXT(&expected));
    return OT_OK;
}

static ot_status check_moments(const ot_checkpoint *checkpoint, const ot__optimizer *o)
{
    for (int i = 0; i < o->n_parameters; i++)
        for (int k = 0; k < OT_SLOT_MOMENTS; k++)
            if (o->has_slot[k])
                OT_TRY(check_slot(checkpoint, o->parameters[i], k));
    return OT_OK;
}

// ---- new ones ----

static ot_status make_moment(const ot_checkpoint *checkpoint, const ot__parameter *p,
                             ot_tensor **out)
{
    ot_shape shape;

    OT_TRY(ot__ckpt_state_shape(checkpoint, p, &shape));
    return ot_tensor_create(p->value->dtype, &shape, out); // zeroed
}

// An average begins with the parameter as it is, in its layout.
static ot_status make_average(const ot_checkpoint *checkpoint, ot__parameter *p, ot_tensor **out)
{
    if (p->slots[OT_SLOT_AVERAGE] != NULL)
        return check_slot(checkpoint, p, OT_SLOT_AVERAGE);
    if (p->state_sharding == NULL || p->value_sharding != NULL)
        return ot_tensor_clone(p->value, out);
    ot__ckpt_unpack(checkpoint, p);
    return ot__ckpt_cut(checkpoint, p->state_sharding, p->value, out);
}

static ot_status make_slots(const ot_checkpoint *checkpoint, const ot__optimizer *o,
                            ot__fresh_slots *fresh)
{
    fresh->n = o->n_parameters * OT_SLOTS;
    fresh->tensors = ot__alloc_zero((size_t)fresh->n, sizeof(ot_tensor *));
    OT_TRY(ot__made(fresh->tensors != NULL));
    for (int i = 0; i < fresh->n; i++) {
        ot__parameter *p = o->parameters[i / OT_SLOTS];
        const int k = i % OT_SLOTS;

        if (!o->has_slot[k])
            continue;
        if (k == OT_SLOT_AVERAGE)
            OT_TRY(make_average(checkpoint, p, &fresh->tensors[i]));
        else if (fresh->has_moments)
            OT_TRY(make_moment(checkpoint, p, &fresh->tensors[i]));
        if (fresh->tensors[i] != NULL)
            fresh->n_bytes += fresh->tensors[i]->n_bytes;
    }
    return OT_OK;
}

ot_status ot__slots_make(const ot_session *session, ot__fresh_slots *fresh)
{
    const ot__optimizer *o = &session->optimizer;
    const char *owner = NULL;
    const bool is_other = is_of_another(session, &owner);

    *fresh = (ot__fresh_slots){0};
    // A file is gone on with or refused; who replaces a session's rule wants the new one to begin.
    if (is_other && !o->is_switch)
        return ot__error(
            OT_ERR_INVALID,
            "the checkpoint's optimizer state is that of %s, the optimizer model has %s", owner,
            o->moments_of);
    fresh->has_moments = !session->checkpoint->has_optimizer_state || is_other || are_unused(o) ||
                         (!o->is_switch && are_left_behind(o));
    if (!fresh->has_moments)
        OT_TRY(check_moments(session->checkpoint, o));
    return make_slots(session->checkpoint, o, fresh);
}

static ot_status begin_moments(ot_session *session)
{
    ot_checkpoint *checkpoint = session->checkpoint;
    const ot__optimizer *o = &session->optimizer;
    const bool has_state = checkpoint->has_optimizer_state;
    ot_property_kind kind;
    // Who is named is another one by now, or is not yet.
    const bool is_named =
        ot_checkpoint_property_kind_of(checkpoint, OT_PROPERTY_OPTIMIZER, &kind) == OT_OK;

    if (o->moments_of != NULL && (has_state || is_named))
        OT_TRY(ot_checkpoint_set_string(checkpoint, OT_PROPERTY_OPTIMIZER, o->moments_of));
    else if (o->moments_of == NULL && is_named)
        OT_TRY(ot_checkpoint_remove_property(checkpoint, OT_PROPERTY_OPTIMIZER));
    if (o->moments_of != NULL || !has_state) { // what the correction of young moments counts from
        checkpoint->step = 0;
        for (int i = 0; i < checkpoint->n_parameters; i++)
            checkpoint->parameters[i]->n_updates = 0;
    }
    if (!has_state)
        checkpoint->initial_lr = (float)default_initial_lr;
    checkpoint->has_optimizer_state = true;
    return OT_OK;
}

static void replace(ot_tensor **slot, ot_tensor **made)
{
    ot_tensor_destroy(*slot);
    *slot = *made;
    *made = NULL;
}

// What the optimizer does not keep up would be out of date with its first update.
static bool is_replaced(const ot__optimizer *o, const ot__fresh_slots *fresh, int i)
{
    const int k = i % OT_SLOTS;

    return k == OT_SLOT_AVERAGE ? fresh->tensors[i] != NULL || !o->has_slot[k] : fresh->has_moments;
}

ot_status ot__slots_take(ot_session *session, ot__fresh_slots *fresh)
{
    const ot__optimizer *o = &session->optimizer;

    ot__ckpt_outdate(session->checkpoint);
    if (fresh->has_moments)
        OT_TRY(begin_moments(session));
    for (int i = 0; i < fresh->n; i++)
        if (is_replaced(o, fresh, i))
            replace(&o->parameters[i / OT_SLOTS]->slots[i % OT_SLOTS], &fresh->tensors[i]);
    return OT_OK;
}

void ot__slots_deinit(ot__fresh_slots *fresh)
{
    for (int i = 0; i < fresh->n && fresh->tensors != NULL; i++)
        ot_tensor_destroy(fresh->tensors[i]);
    ot__free(fresh->tensors);
    *fresh = (ot__fresh_slots){0};
}
