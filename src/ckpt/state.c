// SPDX-License-Identifier: Apache-2.0
// Training state in memory: its life, and the parameters.
#include <string.h>

#include "ckpt/dict_entry.h"

const char *const ot__slot_names[OT_SLOTS] = {
    [OT_SLOT_MOMENT1] = "momentum0",
    [OT_SLOT_MOMENT2] = "momentum1",
    [OT_SLOT_AVERAGE] = "average",
};

// ---- life ----

ot_status ot_checkpoint_create(ot_checkpoint **out)
{
    OT_TRY(OT_GIVEN(out));
    *out = ot__alloc_zero(1, sizeof(**out));
    OT_TRY(ot__made(*out));
    ot__guard_init(&(*out)->guard, OT_KIND_CHECKPOINT);
    return OT_OK;
}

ot_status ot__ckpt_enter(const ot_checkpoint *checkpoint)
{
    return ot__guard_enter(checkpoint, OT_KIND_CHECKPOINT);
}

ot_status ot__ckpt_leave(const ot_checkpoint *checkpoint, ot_status status)
{
    ot__guard_leave(checkpoint);
    return status;
}

static void parameter_destroy(ot__parameter *parameter)
{
    if (!parameter)
        return;
    ot__free(parameter->name);
    ot__free(parameter->doc);
    ot_tensor_destroy(parameter->value);
    ot_tensor_destroy(parameter->gradient);
    for (int k = 0; k < OT_SLOTS; k++)
        ot_tensor_destroy(parameter->slots[k]);
    ot__free(parameter);
}

static void group_deinit(ot__optimizer_group *group)
{
    for (int i = 0; i < group->n_states; i++) {
        ot__param_state *state = &group->states[i];
        for (int k = 0; k < state->n_moments; k++) {
            ot__free((void *)(uintptr_t)state->moments[k].name);
            ot_tensor_destroy(state->moments[k].value);
        }
        ot__free(state->moments);
        ot__free(state->param_name);
    }
    ot__free(group->states);
    ot__free(group->name);
    memset(group, 0, sizeof(*group));
}

static void destroy_state(ot_checkpoint *checkpoint)
{
    for (int i = 0; i < checkpoint->n_parameters; i++)
        parameter_destroy(checkpoint->parameters[i]);
    checkpoint->n_parameters = 0;
    ot__ckpt_drop_blocks(checkpoint);
    for (int i = 0; i < checkpoint->n_shardings; i++)
        ot_sharding_destroy(checkpoint->shardings[i]);
    ot__free(checkpoint->shardings);
    ot__free(checkpoint->parameters);
    for (int i = 0; i < checkpoint->n_properties; i++) {
        ot__free(checkpoint->properties[i].name);
        ot__free(checkpoint->properties[i].s);
    }
    ot__free(checkpoint->properties);
    for (int i = 0; i < checkpoint->n_other_groups; i++)
        group_deinit(&checkpoint->other_groups[i]);
    ot__free(checkpoint->other_groups);
    ot__ckpt_outdate(checkpoint);
    ot__stamp_release(checkpoint->stamp);
    ot__file_map_close(&checkpoint->file);
    ot__file_map_close(&checkpoint->data);
    ot__guard_deinit(&checkpoint->guard);
    ot__free(checkpoint);
}

void ot_checkpoint_destroy(ot_checkpoint *checkpoint)
{
    if (!checkpoint || ot__ckpt_enter(checkpoint) != OT_OK)
        return;
    if (checkpoint->session) {
        checkpoint->is_released = true;
        ot__guard_leave(checkpoint);
    } else {
        destroy_state(checkpoint);
    }
}

void ot__ckpt_release(ot_checkpoint *checkpoint)
{
    checkpoint->session = NULL;
    if (checkpoint->is_released)
        destroy_state(checkpoint);
}

ot_status ot__ckpt_grow(void *array_pointer, int *capacity, int count, int max, size_t item_size)
{
    if (count >= max)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "a checkpoint holds at most %d parameters and %d properties",
                         OT_MAX_PARAMETERS, OT_MAX_PROPERTIES);
    return ot__made(ot__grow(array_pointer, capacity, count, item_size));
}

int ot__ckpt_state_tensors(const ot_checkpoint *checkpoint, const ot__parameter *parameter,
                           const ot_tensor *out[OT_STATE_TENSORS])
{
    int n = 0;

    for (int k = 0; k < OT_SLOTS; k++)
        if (parameter->slots[k])
            out[n++] = parameter->slots[k];
    if (checkpoint->n_accumulated > 0 && parameter->trainable && parameter->gradient)
        out[n++] = parameter->gradient;
    return n;
}

// ---- parameters ----

// Position of `name` among the sorted parameters, or of the first one after it.
static int parameter_position(const ot_checkpoint *checkpoint, const char *name, bool *found)
{
    int first = 0, last = checkpoint->n_parameters;

    *found = false;
    while (first < last) {
        int middle = first + (last - first) / 2;
        int order = strcmp(checkpoint->parameters[middle]->name, name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

ot__parameter *ot__ckpt_find(const ot_checkpoint *checkpoint, const char *name)
{
    bool found;
    int position = parameter_position(checkpoint, name, &found);

    return found ? checkpoint->parameters[position] : NULL;
}

ot_status ot__ckpt_add(ot_checkpoint *checkpoint, const char *name, ot_tensor *value,
                       bool trainable, ot__parameter **out)
{
    bool found;
    int position = parameter_position(checkpoint, name, &found);
    ot__parameter *parameter = NULL;
    ot_status st = OT_OK;

    if (out)
        *out = NULL;
    if (found)
        st = ot__error(OT_ERR_INVALID, "parameter '%s' is there already", name);
    OT_THEN(st,
            ot__ckpt_grow(&checkpoint->parameters, &checkpoint->parameters_capacity,
                          checkpoint->n_parameters, OT_MAX_PARAMETERS, sizeof(ot__parameter *)));
    if (st == OT_OK) {
        parameter = ot__alloc_zero(1, sizeof(*parameter));
        st = ot__made(parameter && (parameter->name = ot__strdup(name)));
    }
    if (st != OT_OK) {
        parameter_destroy(parameter);
        ot_tensor_destroy(value);
        return st;
    }
    parameter->value = value;
    parameter->trainable = trainable;
    memmove(checkpoint->parameters + position + 1, checkpoint->parameters + position,
            (size_t)(checkpoint->n_parameters - position) * sizeof(ot__parameter *));
    checkpoint->parameters[position] = parameter;
    checkpoint->n_parameters++;
    if (out)
        *out = parameter;
    return OT_OK;
}

int ot_checkpoint_is_nominal(const ot_checkpoint *checkpoint)
{
    return OT_IS_LIVE(checkpoint) && checkpoint->is_nominal ? 1 : 0;
}

int ot_checkpoint_parameter_count(const ot_checkpoint *checkpoint)
{
    return OT_IS_LIVE(checkpoint) ? checkpoint->n_parameters : 0;
}

const char *ot_checkpoint_parameter_name(const ot_checkpoint *checkpoint, int index)
{
    if (!OT_IS_LIVE(checkpoint) || index < 0 || index >= checkpoint->n_parameters)
        return NULL;
    return checkpoint->parameters[index]->name;
}

int ot_checkpoint_parameter_trainable(const ot_checkpoint *checkpoint, const char *name)
{
    const ot__parameter *parameter =
        OT_IS_LIVE(checkpoint) && name ? ot__ckpt_find(checkpoint, name) : NULL;

    return parameter ? (parameter->trainable ? 1 : 0) : -1;
}

ot_status ot__ckpt_no_parameter(const ot_checkpoint *checkpoint, const char *name)
{
    ot__names names = {.wanted = name};

    for (int i = 0; i < checkpoint->n_parameters; i++)
        ot__names_add(&names, checkpoint->parameters[i]->name);
    return ot__error(OT_ERR_NOT_FOUND, "the checkpoint has no parameter '%s'%s", name,
                     ot__names_hint(&names));
}

static ot_status find_state(const ot_checkpoint *checkpoint, const char *name, bool is_gradient,
                            ot__parameter **out)
{
    *out = ot__ckpt_find(checkpoint, name);
    if (!*out)
        return ot__ckpt_no_parameter(checkpoint, name);
    if (checkpoint->is_nominal)
        return ot__error(OT_ERR_STATE, "parameter '%s' has no value: the checkpoint is nominal",
                         name);
    if (is_gradient && !(*out)->trainable)
        return ot__error(OT_ERR_STATE, "parameter '%s' is frozen and has no gradient", name);
    return ot__parameter_check_whole(*out, is_gradient);
}

void ot__ckpt_unpack(const ot_checkpoint *checkpoint, ot__parameter *parameter)
{
    if (checkpoint->unpack)
        checkpoint->unpack(checkpoint->session, parameter);
}

ot_status ot_checkpoint_parameter_info(const ot_checkpoint *checkpoint, const char *name,
                                       ot_dtype *dtype, ot_shape *shape)
{
    const ot__parameter *parameter;

    OT_TRY(OT_GIVEN(name));
    OT_TRY(OT_GIVEN(dtype));
    OT_TRY(OT_GIVEN(shape));
    *dtype = OT_DTYPE_UNDEFINED;
    *shape = (ot_shape){.ndim = -1};
    OT_TRY(ot__guard_check(checkpoint, OT_KIND_CHECKPOINT));
    parameter = ot__ckpt_find(checkpoint, name);
    if (!parameter)
        return ot__ckpt_no_parameter(checkpoint, name);
    *dtype = parameter->value->dtype;
    if (!checkpoint->is_nominal)
        *shape = *ot__parameter_shape(parameter);
    return OT_OK;
}

// Sessions under a trainer may keep none.
static ot_status check_kept(const ot_checkpoint *checkpoint, const ot__parameter *parameter)
{
    if (parameter->gradient != NULL || checkpoint->session == NULL)
        return OT_OK;
    return ot__error(OT_ERR_STATE,
                     "the gradient of parameter '%s' is not kept: the trainer's updates use it "
                     "inside the backward pass",
                     parameter->name);
}

// A parameter, or its gradient.
static ot_status get_state(const ot_checkpoint *checkpoint, const char *name, bool is_gradient,
                           ot_tensor **out)
{
    ot__parameter *parameter;

    OT_TRY(find_state(checkpoint, name, is_gradient, &parameter));
    if (is_gradient)
        OT_TRY(check_kept(checkpoint, parameter));
    if (is_gradient && !parameter->gradient)
        return ot__error(OT_ERR_STATE, "parameter '%s' has no gradient before a session exists",
                         name);
    ot__ckpt_unpack(checkpoint, parameter);
    return ot_tensor_clone(is_gradient ? parameter->gradient : parameter->value, out);
}

ot_status ot_checkpoint_get_parameter(const ot_checkpoint *checkpoint, const char *name,
                                      ot_tensor **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(name));
    OT_TRY(ot__ckpt_enter(checkpoint));
    return ot__ckpt_leave(checkpoint, get_state(checkpoint, name, false, out));
}

static ot_status check_fits(const ot__parameter *parameter, bool is_gradient,
                            const ot_tensor *given)
{
    const ot_tensor *value = parameter->value;

    if (given->dtype == value->dtype && ot__shape_equal(&given->shape, &value->shape))
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "%sparameter '%s' is %s%s, got %s%s",
                     is_gradient ? "the gradient of " : "", parameter->name,
                     ot_dtype_name(value->dtype), OT_SHAPE_TEXT(&value->shape),
                     ot_dtype_name(given->dtype), OT_SHAPE_TEXT(&given->shape));
}

static ot_status set_state(const ot_checkpoint *checkpoint, const char *name, bool is_gradient,
                           const ot_tensor *given)
{
    ot__parameter *parameter;
    ot_tensor **to;

    OT_TRY(find_state(checkpoint, name, is_gradient, &parameter));
    if (is_gradient)
        OT_TRY(check_kept(checkpoint, parameter));
    OT_TRY(check_fits(parameter, is_gradient, given));
    ot__ckpt_unpack(checkpoint, parameter);
    to = is_gradient ? &parameter->gradient : &parameter->value;
    if (!*to)
        OT_TRY(ot_tensor_create(given->dtype, &given->shape, to));
    if (is_gradient)
        parameter->gradient_is_given = checkpoint->session == NULL;
    if (given->n_bytes)
        memcpy((*to)->data, given->data, given->n_bytes);
    return OT_OK;
}

ot_status ot_checkpoint_set_parameter(ot_checkpoint *checkpoint, const char *name,
                                      const ot_tensor *value)
{
    OT_TRY(OT_GIVEN(name));
    OT_TRY(OT_GIVEN(value));
    OT_TRY(ot__ckpt_enter(checkpoint));
    checkpoint->n_changes++;
    ot__ckpt_outdate(checkpoint);
    return ot__ckpt_leave(checkpoint, set_state(checkpoint, name, false, value));
}

ot_status ot_checkpoint_get_gradient(const ot_checkpoint *checkpoint, const char *name,
                                     ot_tensor **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(name));
    OT_TRY(ot__ckpt_enter(checkpoint));
    return ot__ckpt_leave(checkpoint, get_state(checkpoint, name, true, out));
}

ot_status ot_checkpoint_set_gradient(ot_checkpoint *checkpoint, const char *name,
                                     const ot_tensor *gradient)
{
    OT_TRY(OT_GIVEN(name));
    OT_TRY(OT_GIVEN(gradient));
    OT_TRY(ot__ckpt_enter(checkpoint));
    return ot__ckpt_leave(checkpoint, set_state(checkpoint, name, true, gradient));
}

static ot_status add_state(ot_checkpoint *checkpoint, const char *name, const ot_tensor *value,
                           int trainable)
{
    ot_tensor *copy;

    if (checkpoint->session)
        return ot__error(OT_ERR_STATE, "parameter '%s' cannot be added while a session is open",
                         name);
    OT_TRY(ot_tensor_clone(value, &copy));
    return ot__ckpt_add(checkpoint, name, copy, trainable != 0, NULL);
}

ot_status ot_checkpoint_add_parameter(ot_checkpoint *checkpoint, const char *name,
                                      const ot_tensor *value, int trainable)
{
    OT_TRY(OT_GIVEN(name));
    OT_TRY(OT_GIVEN(value));
    OT_TRY(ot__ckpt_enter(checkpoint));
    return ot__ckpt_leave(checkpoint, add_state(checkpoint, name, value, trainable));
}
