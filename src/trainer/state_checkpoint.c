// SPDX-License-Identifier: Apache-2.0
// A state by names as a checkpoint, which sessions and ONNX Runtime read.
#include <inttypes.h>
#include <string.h>

#include "trainer/state.h"

// ---- parameters ----

// Without moments nobody says what trains: then all that may.
static bool is_trainable(const ot_dict *optimizer, const char *name, const ot_tensor *value)
{
    bool has_weights = false;

    for (int i = 0; i < ot_dict_count(optimizer); i++)
        has_weights = has_weights || strcmp(ot_dict_name(optimizer, i), OT_KEY_SHARED) != 0;
    return has_weights ? ot__state_has(optimizer, name) : ot__dtype_is_float(value->dtype);
}

static ot_status read_update_count(const ot_dict *of, const char *name, int64_t *n_updates)
{
    const ot_tensor *count;

    if (!ot__state_has(of, name))
        return OT_OK;
    OT_TRY(ot_dict_get_tensor(of, name, &count));
    if (count->dtype != OT_I64 || ot_tensor_count(count) != 1 || *(const int64_t *)count->data < 1)
        return ot__error(OT_ERR_INVALID, "%s of the state is %s%s, expected i64[1] of at least 1",
                         name, ot_dtype_name(count->dtype), OT_SHAPE_TEXT(&count->shape));
    *n_updates = *(const int64_t *)count->data - 1;
    return OT_OK;
}

static ot_status add_slots(const ot_dict *optimizer, ot__parameter *p)
{
    const ot_dict *of = ot__state_dict(optimizer, p->name);

    for (int k = 0; of != NULL && k < OT_SLOT_MOMENTS; k++) {
        const ot_tensor *moment;

        if (!ot__state_has(of, ot__moment_keys[k]))
            continue;
        OT_TRY(ot_dict_get_tensor(of, ot__moment_keys[k], &moment));
        if (!ot__shape_equal(&moment->shape, &p->value->shape))
            return ot__error(OT_ERR_INVALID, "%s of '%s' is %s, expected %s", ot__moment_keys[k],
                             p->name, OT_SHAPE_TEXT(&moment->shape),
                             OT_SHAPE_TEXT(&p->value->shape));
        OT_TRY(ot_tensor_clone(moment, &p->slots[k]));
    }
    return read_update_count(of, OT_KEY_UPDATE_COUNT, &p->n_updates);
}

static ot_status add_weights(const ot_dict *weights, const ot_dict *optimizer,
                             ot_checkpoint *checkpoint)
{
    for (int i = 0; i < ot_dict_count(weights); i++) {
        const char *name = ot_dict_name(weights, i);
        const ot_tensor *value;
        ot__parameter *p;
        ot_tensor *copy;

        OT_TRY(ot_dict_get_tensor(weights, name, &value));
        OT_TRY(ot_tensor_clone(value, &copy));
        OT_TRY(ot__ckpt_add(checkpoint, name, copy, is_trainable(optimizer, name, value), &p));
        p->n_updates = optimizer != NULL ? -1 : 0; // -1: that of the optimizer
        OT_TRY(add_slots(optimizer, p));
    }
    return OT_OK;
}

// ---- counters and properties ----

static ot_status read_steps(const ot_dict *state, int64_t *n_updates, int64_t *n_steps)
{
    const ot_dict *steps = ot__state_dict(state, OT_KEY_STEPS);

    *n_updates = *n_steps = 0;
    if (ot__state_has(steps, OT_KEY_OPTIMIZATION_STEP))
        OT_TRY(ot_dict_get_int(steps, OT_KEY_OPTIMIZATION_STEP, n_updates));
    if (ot__state_has(steps, OT_KEY_TRAIN_STEP))
        OT_TRY(ot_dict_get_int(steps, OT_KEY_TRAIN_STEP, n_steps));
    if (*n_updates < 0 || *n_steps < 0)
        return ot__error(OT_ERR_INVALID, "%s of the state is %" PRId64 ", %s %" PRId64,
                         OT_KEY_OPTIMIZATION_STEP, *n_updates, OT_KEY_TRAIN_STEP, *n_steps);
    return OT_OK;
}

// The optimizer's number of updates: what it counts itself, else what schedules count.
static ot_status take_update_counts(const ot_dict *optimizer, int64_t n_updates,
                                    ot_checkpoint *checkpoint)
{
    int64_t most = -1;

    OT_TRY(read_update_count(ot__state_dict(optimizer, OT_KEY_SHARED), OT_KEY_STEP, &most));
    for (int i = 0; i < checkpoint->n_parameters; i++)
        most = OT_MAX(most, checkpoint->parameters[i]->n_updates);
    checkpoint->step = most >= 0 ? most : n_updates;
    for (int i = 0; i < checkpoint->n_parameters; i++)
        if (checkpoint->parameters[i]->n_updates < 0)
            checkpoint->parameters[i]->n_updates = checkpoint->step;
    checkpoint->has_optimizer_state = true;
    return OT_OK;
}

static ot_status set_text(ot_checkpoint *checkpoint, const char *property, const ot_dict *from,
                          const char *name)
{
    const char *text;

    if (!ot__state_has(from, name))
        return OT_OK;
    OT_TRY(ot_dict_get_string(from, name, &text));
    return ot_checkpoint_set_string(checkpoint, property, text);
}

static ot_status fill_from_state(const ot_dict *state, ot_checkpoint *checkpoint)
{
    const ot_dict *weights =
        ot__state_dict(ot__state_dict(state, OT_KEY_MODEL), OT_KEY_FULL_PRECISION);
    const ot_dict *optimizer = ot__state_dict(state, OT_KEY_OPTIMIZER);
    int64_t n_updates, n_steps;

    if (weights == NULL)
        return ot__error(OT_ERR_INVALID, "the state has no weights, expected '%s' in '%s'",
                         OT_KEY_FULL_PRECISION, OT_KEY_MODEL);
    OT_TRY(add_weights(weights, optimizer, checkpoint));
    OT_TRY(read_steps(state, &n_updates, &n_steps));
    if (optimizer != NULL) {
        OT_TRY(take_update_counts(optimizer, n_updates, checkpoint));
        if (ot_dict_count(optimizer) > 0)
            OT_TRY(set_text(checkpoint, OT_PROPERTY_OPTIMIZER,
                            ot__state_dict(state, OT_KEY_OPTIONS), OT_KEY_OPTIMIZER_NAME));
    }
    if (ot__state_has(state, OT_KEY_STEPS)) {
        OT_TRY(ot_checkpoint_set_int(checkpoint, OT_PROPERTY_COUNTER, n_steps));
        if (n_updates != checkpoint->step)
            OT_TRY(ot_checkpoint_set_int(checkpoint, OT_PROPERTY_MORE_UPDATES,
                                         n_updates - checkpoint->step));
    }
    return set_text(checkpoint, OT_PROPERTY_USER_DICT, state, OT_KEY_USER_DICT);
}

ot_status ot_state_to_checkpoint(const ot_dict *state, ot_checkpoint **out)
{
    ot_checkpoint *checkpoint = NULL;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(state));
    OT_TRY(ot_checkpoint_create(&checkpoint));
    st = fill_from_state(state, checkpoint);
    return OT_HAND_OUT(st, out, checkpoint, ot_checkpoint_destroy);
}
