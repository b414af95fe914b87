// SPDX-License-Identifier: Apache-2.0
// Taking a state that has been checked: nothing can fail.
#include <inttypes.h>
#include <string.h>

#include "trainer/state.h"

// ---- what is cut over ranks ----

static ot_status add_own_part(const ot_checkpoint *checkpoint, ot__pending *pending, ot_tensor *to,
                              const ot_sharding *sharding, const ot_tensor *whole)
{
    ot__own_part part = {.to = to};

    if (sharding == NULL || to == NULL || whole == NULL)
        return OT_OK;
    OT_TRY(ot__made(ot__grow(&pending->parts, &pending->parts_capacity, pending->n_parts,
                             sizeof *pending->parts)));
    OT_TRY(ot__ckpt_cut(checkpoint, sharding, whole, &part.from));
    pending->parts[pending->n_parts++] = part;
    return OT_OK;
}

static ot_status cut_gradient(const ot_session *session, ot__pending *pending,
                              const ot__parameter *p)
{
    const ot_tensor *whole = ot__state_tensor(pending->gradients, p->name);
    ot__own_part part = {.to = p->gradient};

    if (pending->position.n_accumulated == 0 || !ot__session_has_cut_gradients(session) ||
        p->gradient == NULL || whole == NULL)
        return OT_OK;
    OT_TRY(ot__made(ot__grow(&pending->parts, &pending->parts_capacity, pending->n_parts,
                             sizeof *pending->parts)));
    OT_TRY(ot__session_part_of_gradient(session, p, whole, &part.from));
    pending->parts[pending->n_parts++] = part;
    return OT_OK;
}

static ot_status cut_parameter(const ot_checkpoint *checkpoint, ot__pending *pending,
                               const ot__parameter *p)
{
    const ot_tensor *value = ot__state_tensor(pending->parameters, p->name);
    const ot_tensor *average = ot__state_tensor(pending->averages, p->name);
    const ot_dict *moments = ot__state_dict(pending->moments, p->name);

    OT_TRY(add_own_part(checkpoint, pending, p->value, p->value_sharding, value));
    OT_TRY(add_own_part(checkpoint, pending, p->slots[OT_SLOT_AVERAGE], p->state_sharding,
                        average != NULL ? average : value));
    for (int k = 0; k < OT_SLOT_MOMENTS; k++)
        OT_TRY(add_own_part(checkpoint, pending, p->slots[k], p->state_sharding,
                            ot__state_tensor(moments, ot__moment_keys[k])));
    return OT_OK;
}

ot_status ot__pending_cut(const ot_trainer *trainer, ot__pending *pending)
{
    const ot_checkpoint *checkpoint = ot_session_checkpoint(trainer->session);

    if (pending->position.n_accumulated > 0)
        OT_TRY(ot__session_keep_gradients(trainer->session));
    for (int i = 0; i < checkpoint->n_parameters; i++) {
        OT_TRY(cut_parameter(checkpoint, pending, checkpoint->parameters[i]));
        OT_TRY(cut_gradient(trainer->session, pending, checkpoint->parameters[i]));
    }
    return OT_OK;
}

static void take_own_parts(const ot__pending *pending)
{
    for (int i = 0; i < pending->n_parts; i++)
        if (pending->parts[i].to->n_bytes > 0)
            memcpy(pending->parts[i].to->data, pending->parts[i].from->data,
                   pending->parts[i].to->n_bytes);
}

// ---- parameters ----

static void take_tensor(const ot__pending *pending, ot_tensor *to, const ot_sharding *sharding,
                        const ot_tensor *from)
{
    if (sharding != NULL || to == NULL || from == NULL || to->data == from->data ||
        to->n_bytes == 0)
        return;
    memcpy(to->data, from->data, to->n_bytes);
    if (pending->view != NULL)
        ot__ckpt_view_forget(pending->view, from);
}

static int64_t count_in(const ot_dict *dict, const char *name, int64_t otherwise)
{
    const ot_tensor *count = ot__state_tensor(dict, name);

    return count != NULL ? *(const int64_t *)count->data - 1 : otherwise;
}

static int64_t updates_of(const ot__pending *pending, const char *name)
{
    int64_t n = pending->optimizer_step;

    if (ot__state_has(pending->updates, name))
        (void)ot_dict_get_int(pending->updates, name, &n); // it has been checked
    return n;
}

// An average that is not given begins with the values that are.
static void take_parameter(const ot__pending *pending, ot__parameter *p)
{
    const ot_tensor *value = ot__state_tensor(pending->parameters, p->name);
    const ot_tensor *average = ot__state_tensor(pending->averages, p->name);

    take_tensor(pending, p->value, p->value_sharding, value);
    take_tensor(pending, p->slots[OT_SLOT_AVERAGE], p->state_sharding,
                average != NULL ? average : value);
    if (pending->position.n_accumulated > 0 &&
        !ot__session_has_cut_gradients(pending->trainer->session))
        take_tensor(pending, p->gradient, NULL, ot__state_tensor(pending->gradients, p->name));
}

static void take_moments(const ot__pending *pending, const ot__optimizer_info *optimizer,
                         ot__parameter *p)
{
    const ot_dict *given = ot__state_dict(pending->moments, p->name);

    if (pending->has_optimizer_step && (given != NULL || !optimizer->keeps_moments))
        p->n_updates = updates_of(pending, p->name);
    if (given == NULL || !optimizer->keeps_moments)
        return;
    for (int k = 0; k < OT_SLOT_MOMENTS; k++)
        take_tensor(pending, p->slots[k], p->state_sharding,
                    ot__state_tensor(given, ot__moment_keys[k]));
    if (optimizer->counts_each)
        p->n_updates = count_in(given, OT_KEY_UPDATE_COUNT, p->n_updates);
}

// States of others say no more than the counters of moments.
static void take_optimizer_counts(ot_checkpoint *checkpoint, const ot__pending *pending,
                                  const ot__optimizer_info *optimizer)
{
    int64_t most = 0;

    if (pending->has_optimizer_step) {
        checkpoint->step = pending->optimizer_step;
    } else if (optimizer->counts) {
        checkpoint->step = count_in(ot__state_dict(pending->moments, OT_KEY_SHARED), OT_KEY_STEP,
                                    checkpoint->step);
        for (int i = 0; i < checkpoint->n_parameters; i++)
            checkpoint->parameters[i]->n_updates = checkpoint->step;
    } else if (optimizer->counts_each) {
        for (int i = 0; i < checkpoint->n_parameters; i++)
            if (checkpoint->parameters[i]->trainable)
                most = OT_MAX(most, checkpoint->parameters[i]->n_updates);
        checkpoint->step = most;
    }
}

static void take_position(ot_trainer *trainer, const ot__trainer_position *at, bool has_steps)
{
    ot_checkpoint *checkpoint = ot_session_checkpoint(trainer->session);

    ot__session_go_to(trainer->session, &at->session);
    if (at->session.has_schedule) {
        trainer->schedule = at->session.schedule;
        trainer->has_schedule = true;
        trainer->info.initial_lr = trainer->schedule.initial_lr;
    } else if (at->session.has_rate) {
        trainer->info.initial_lr = at->session.learning_rate;
    }
    if (has_steps) {
        trainer->info.optimization_step = at->optimization_step;
        trainer->info.step = at->step;
    }
    (void)ot__trainer_set_next_rate(trainer); // a schedule gives no other than it may
    trainer->phase = at->phase;
    trainer->n_accumulated = checkpoint->n_accumulated = at->n_accumulated;
    ot__session_reset_gradients(trainer->session);
    (void)ot__session_resume_accumulation(trainer->session); // which is the number given
    ot__trainer_go_to_scale(trainer, &at->scale);
}

void ot__pending_take(ot_trainer *trainer, ot__pending *pending)
{
    const ot__optimizer_info optimizer = ot__session_optimizer(trainer->session);
    ot_checkpoint *checkpoint = ot_session_checkpoint(trainer->session);

    checkpoint->n_changes++;
    for (int i = 0; i < checkpoint->n_parameters; i++)
        take_parameter(pending, checkpoint->parameters[i]);
    for (int i = 0; pending->moments != NULL && i < checkpoint->n_parameters; i++)
        if (checkpoint->parameters[i]->trainable)
            take_moments(pending, &optimizer, checkpoint->parameters[i]);
    take_own_parts(pending);
    if (pending->moments != NULL)
        take_optimizer_counts(checkpoint, pending, &optimizer);
    ot__constants_take(trainer, &pending->constants);
    take_position(trainer, &pending->position, pending->has_position);
}
