// Training state in memory: parameters, moments, properties; loading and saving through the file
// format.
#include <string.h>

#include "ckpt/ckpt.h"

// ---- life ----

ot_status ot_checkpoint_create(ot_checkpoint **out)
{
    *out = ot__alloc_zero(1, sizeof(**out));
    return *out ? OT_OK : OT_ERR_NO_MEMORY;
}

static void parameter_destroy(ot__parameter *parameter)
{
    if (!parameter)
        return;
    ot__free(parameter->name);
    ot__free(parameter->doc);
    ot_tensor_destroy(parameter->value);
    ot_tensor_destroy(parameter->gradient);
    for (int i = 0; i < OT_MAX_MOMENTS; i++)
        ot_tensor_destroy(parameter->moments[i]);
    ot__free(parameter);
}

void ot__ckpt_group_deinit(ot__optimizer_group *group)
{
    for (int i = 0; i < group->n_states; i++) {
        ot__param_state *state = &group->states[i];
        for (int k = 0; k < state->n_moments; k++) {
            ot__free(state->moments[k].name);
            ot_tensor_destroy(state->moments[k].value);
        }
        ot__free(state->moments);
        ot__free(state->param_name);
    }
    ot__free(group->states);
    ot__free(group->name);
    memset(group, 0, sizeof(*group));
}

void ot_checkpoint_destroy(ot_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    for (int i = 0; i < checkpoint->n_parameters; i++)
        parameter_destroy(checkpoint->parameters[i]);
    ot__free(checkpoint->parameters);
    for (int i = 0; i < checkpoint->n_properties; i++) {
        ot__free(checkpoint->properties[i].name);
        ot__free(checkpoint->properties[i].s);
    }
    ot__free(checkpoint->properties);
    for (int i = 0; i < checkpoint->n_other_groups; i++)
        ot__ckpt_group_deinit(&checkpoint->other_groups[i]);
    ot__free(checkpoint->other_groups);
    ot__free(checkpoint);
}

// More are never seen, and keeping the lists sorted stays cheap whatever a file holds.
enum { MAX_PARAMETERS = 1 << 16, MAX_PROPERTIES = 1 << 14 };

// Room for one more element in an array that doubles.
static ot_status grow(void *array_pointer, int *capacity, int count, int max, size_t item_size)
{
    void *old, *grown;
    int wanted;

    if (count < *capacity)
        return OT_OK;
    if (count >= max)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "a checkpoint holds at most %d parameters and %d properties",
                         MAX_PARAMETERS, MAX_PROPERTIES);
    wanted = *capacity ? *capacity * 2 : 8;
    memcpy(&old, array_pointer, sizeof(old));
    grown = ot__realloc(old, (size_t)wanted * item_size);
    if (!grown)
        return OT_ERR_NO_MEMORY;
    memcpy(array_pointer, &grown, sizeof(grown));
    *capacity = wanted;
    return OT_OK;
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
    ot_status st = OT_ERR_NO_MEMORY;

    if (out)
        *out = NULL;
    if (found) {
        st = ot__error(OT_ERR_INVALID, "parameter '%s' is there already", name);
        goto fail;
    }
    st = grow(&checkpoint->parameters, &checkpoint->parameters_capacity, checkpoint->n_parameters,
              MAX_PARAMETERS, sizeof(ot__parameter *));
    if (st != OT_OK)
        goto fail;
    parameter = ot__alloc_zero(1, sizeof(*parameter));
    if (parameter)
        parameter->name = ot__strdup(name);
    if (!parameter || !parameter->name) {
        st = OT_ERR_NO_MEMORY;
        goto fail;
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
fail:
    parameter_destroy(parameter);
    ot_tensor_destroy(value);
    return st;
}

int ot_checkpoint_parameter_count(const ot_checkpoint *checkpoint)
{
    return checkpoint->n_parameters;
}

const char *ot_checkpoint_parameter_name(const ot_checkpoint *checkpoint, int index)
{
    if (index < 0 || index >= checkpoint->n_parameters)
        return NULL;
    return checkpoint->parameters[index]->name;
}

int ot_checkpoint_parameter_trainable(const ot_checkpoint *checkpoint, const char *name)
{
    const ot__parameter *parameter = ot__ckpt_find(checkpoint, name);

    return parameter ? (parameter->trainable ? 1 : 0) : -1;
}

static ot_status find_complete(const ot_checkpoint *checkpoint, const char *name,
                               ot__parameter **out)
{
    *out = ot__ckpt_find(checkpoint, name);
    if (!*out)
        return ot__error(OT_ERR_NOT_FOUND, "the checkpoint has no parameter '%s'", name);
    if (checkpoint->is_nominal)
        return ot__error(OT_ERR_STATE, "parameter '%s' has no value: the checkpoint is nominal",
                         name);
    return OT_OK;
}

void ot__ckpt_unpack(const ot_checkpoint *checkpoint, ot__parameter *parameter)
{
    if (checkpoint->unpack)
        checkpoint->unpack(checkpoint->session, parameter);
}

ot_status ot_checkpoint_get_parameter(const ot_checkpoint *checkpoint, const char *name,
                                      ot_tensor **out)
{
    ot__parameter *parameter;

    *out = NULL;
    OT_TRY(find_complete(checkpoint, name, &parameter));
    ot__ckpt_unpack(checkpoint, parameter);
    return ot_tensor_clone(parameter->value, out);
}

ot_status ot_checkpoint_set_parameter(ot_checkpoint *checkpoint, const char *name,
                                      const ot_tensor *value)
{
    ot__parameter *parameter;
    char found[128], expected[128];

    OT_TRY(find_complete(checkpoint, name, &parameter));
    if (value->dtype != parameter->value->dtype ||
        !ot__shape_equal(&value->shape, &parameter->value->shape))
        return ot__error(OT_ERR_INVALID, "parameter '%s' is %s%s, got %s%s", name,
                         ot_dtype_name(parameter->value->dtype),
                         ot__shape_text(&parameter->value->shape, expected, sizeof(expected)),
                         ot_dtype_name(value->dtype),
                         ot__shape_text(&value->shape, found, sizeof(found)));
    ot__ckpt_unpack(checkpoint, parameter);
    if (value->n_bytes)
        memcpy(parameter->value->data, value->data, value->n_bytes);
    return OT_OK;
}

ot_status ot_checkpoint_get_gradient(const ot_checkpoint *checkpoint, const char *name,
                                     ot_tensor **out)
{
    ot__parameter *parameter;

    *out = NULL;
    OT_TRY(find_complete(checkpoint, name, &parameter));
    if (!parameter->trainable)
        return ot__error(OT_ERR_STATE, "parameter '%s' is frozen and has no gradient", name);
    if (!parameter->gradient)
        return ot__error(OT_ERR_STATE, "parameter '%s' has no gradient before a session exists",
                         name);
    ot__ckpt_unpack(checkpoint, parameter);
    return ot_tensor_clone(parameter->gradient, out);
}

ot_status ot_checkpoint_add_parameter(ot_checkpoint *checkpoint, const char *name,
                                      const ot_tensor *value, int trainable)
{
    ot_tensor *copy;

    if (checkpoint->session)
        return ot__error(OT_ERR_STATE, "parameter '%s' cannot be added while a session is open",
                         name);
    OT_TRY(ot_tensor_clone(value, &copy));
    return ot__ckpt_add(checkpoint, name, copy, trainable != 0, NULL);
}

// ---- properties ----

static ot__property *property_find(const ot_checkpoint *checkpoint, const char *name, int *position)
{
    int first = 0, last = checkpoint->n_properties;

    while (first < last) {
        int middle = first + (last - first) / 2;
        if (strcmp(checkpoint->properties[middle].name, name) < 0)
            first = middle + 1;
        else
            last = middle;
    }
    if (position)
        *position = first;
    if (first < checkpoint->n_properties && strcmp(checkpoint->properties[first].name, name) == 0)
        return &checkpoint->properties[first];
    return NULL;
}

static ot_status property_put(ot_checkpoint *checkpoint, const char *name, ot__property value)
{
    int position;
    ot__property *property = property_find(checkpoint, name, &position);

    if (!property) {
        char *copy;
        OT_TRY(grow(&checkpoint->properties, &checkpoint->properties_capacity,
                    checkpoint->n_properties, MAX_PROPERTIES, sizeof(ot__property)));
        copy = ot__strdup(name);
        if (!copy)
            return OT_ERR_NO_MEMORY;
        property = &checkpoint->properties[position];
        memmove(property + 1, property,
                (size_t)(checkpoint->n_properties - position) * sizeof(*property));
        checkpoint->n_properties++;
        memset(property, 0, sizeof(*property));
        property->name = copy;
    }
    ot__free(property->s);
    value.name = property->name;
    *property = value;
    return OT_OK;
}

ot_status ot_checkpoint_set_int(ot_checkpoint *checkpoint, const char *name, int64_t value)
{
    return property_put(checkpoint, name, (ot__property){.kind = OT_PROPERTY_INT, .i = value});
}

ot_status ot_checkpoint_set_float(ot_checkpoint *checkpoint, const char *name, float value)
{
    return property_put(checkpoint, name, (ot__property){.kind = OT_PROPERTY_FLOAT, .f = value});
}

ot_status ot_checkpoint_set_string(ot_checkpoint *checkpoint, const char *name, const char *value)
{
    char *copy = ot__strdup(value);
    ot_status st;

    if (!copy)
        return OT_ERR_NO_MEMORY;
    st = property_put(checkpoint, name, (ot__property){.kind = OT_PROPERTY_STRING, .s = copy});
    if (st != OT_OK)
        ot__free(copy);
    return st;
}

static const char *const kind_names[] = {"an int", "a float", "a string"};

static ot_status property_get(const ot_checkpoint *checkpoint, const char *name,
                              ot_property_kind kind, const ot__property **out)
{
    *out = property_find(checkpoint, name, NULL);
    if (!*out)
        return ot__error(OT_ERR_NOT_FOUND, "the checkpoint has no property '%s'", name);
    if ((*out)->kind != kind)
        return ot__error(OT_ERR_INVALID, "property '%s' is %s, not %s", name,
                         kind_names[(*out)->kind], kind_names[kind]);
    return OT_OK;
}

ot_status ot_checkpoint_get_int(const ot_checkpoint *checkpoint, const char *name, int64_t *out)
{
    const ot__property *property;

    *out = 0;
    OT_TRY(property_get(checkpoint, name, OT_PROPERTY_INT, &property));
    *out = property->i;
    return OT_OK;
}

ot_status ot_checkpoint_get_float(const ot_checkpoint *checkpoint, const char *name, float *out)
{
    const ot__property *property;

    *out = 0;
    OT_TRY(property_get(checkpoint, name, OT_PROPERTY_FLOAT, &property));
    *out = property->f;
    return OT_OK;
}

ot_status ot_checkpoint_get_string(const ot_checkpoint *checkpoint, const char *name,
                                   const char **out)
{
    const ot__property *property;

    *out = NULL;
    OT_TRY(property_get(checkpoint, name, OT_PROPERTY_STRING, &property));
    *out = property->s;
    return OT_OK;
}

int ot_checkpoint_property_count(const ot_checkpoint *checkpoint)
{
    return checkpoint->n_properties;
}

const char *ot_checkpoint_property_name(const ot_checkpoint *checkpoint, int index)
{
    if (index < 0 || index >= checkpoint->n_properties)
        return NULL;
    return checkpoint->properties[index].name;
}

ot_status ot_checkpoint_property_kind_of(const ot_checkpoint *checkpoint, const char *name,
                                         ot_property_kind *out)
{
    const ot__property *property = property_find(checkpoint, name, NULL);

    *out = OT_PROPERTY_INT;
    if (!property)
        return ot__error(OT_ERR_NOT_FOUND, "the checkpoint has no property '%s'", name);
    *out = property->kind;
    return OT_OK;
}

ot_status ot_checkpoint_remove_property(ot_checkpoint *checkpoint, const char *name)
{
    int position;
    ot__property *property = property_find(checkpoint, name, &position);

    if (!property)
        return ot__error(OT_ERR_NOT_FOUND, "the checkpoint has no property '%s'", name);
    ot__free(property->name);
    ot__free(property->s);
    checkpoint->n_properties--;
    memmove(property, property + 1,
            (size_t)(checkpoint->n_properties - position) * sizeof(*property));
    return OT_OK;
}
