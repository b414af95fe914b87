// SPDX-License-Identifier: Apache-2.0
// Named values of the user's that travel with the training state.
#include <string.h>

#include "ckpt/ckpt.h"

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
        OT_TRY(ot__ckpt_grow(&checkpoint->properties, &checkpoint->properties_capacity,
                             checkpoint->n_properties, OT_MAX_PROPERTIES, sizeof(ot__property)));
        copy = ot__strdup(name);
        OT_TRY(ot__made(copy));
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

static ot_status put_property(ot_checkpoint *checkpoint, const char *name, ot__property value)
{
    OT_TRY(ot__ckpt_enter(checkpoint));
    return ot__ckpt_leave(checkpoint, property_put(checkpoint, name, value));
}

ot_status ot_checkpoint_set_int(ot_checkpoint *checkpoint, const char *name, int64_t value)
{
    OT_TRY(OT_GIVEN(name));
    return put_property(checkpoint, name, (ot__property){.kind = OT_PROPERTY_INT, .i = value});
}

ot_status ot_checkpoint_set_float(ot_checkpoint *checkpoint, const char *name, float value)
{
    OT_TRY(OT_GIVEN(name));
    return put_property(checkpoint, name, (ot__property){.kind = OT_PROPERTY_FLOAT, .f = value});
}

ot_status ot_checkpoint_set_string(ot_checkpoint *checkpoint, const char *name, const char *value)
{
    char *copy;
    ot_status st;

    OT_TRY(OT_GIVEN(name));
    OT_TRY(OT_GIVEN(value));
    copy = ot__strdup(value);
    OT_TRY(ot__made(copy));
    st = put_property(checkpoint, name, (ot__property){.kind = OT_PROPERTY_STRING, .s = copy});
    if (st != OT_OK)
        ot__free(copy);
    return st;
}

ot_status ot__ckpt_set_text(ot_checkpoint *checkpoint, const char *name, ot__buf *text)
{
    ot_status st = ot__buf_status(text);

    OT_THEN(st, ot_checkpoint_set_string(checkpoint, name, text->data));
    ot__buf_deinit(text);
    return st;
}

const ot__property *ot__ckpt_property(const ot_checkpoint *checkpoint, const char *name)
{
    return property_find(checkpoint, name, NULL);
}

static ot_status no_property(const ot_checkpoint *checkpoint, const char *name)
{
    ot__names names = {.wanted = name};

    for (int i = 0; i < checkpoint->n_properties; i++)
        ot__names_add(&names, checkpoint->properties[i].name);
    return ot__error(OT_ERR_NOT_FOUND, "the checkpoint has no property '%s'%s", name,
                     ot__names_hint(&names));
}

static ot_status find_property(const ot_checkpoint *checkpoint, const char *name,
                               ot__property **out, int *position)
{
    *out = property_find(checkpoint, name, position);
    return *out ? OT_OK : no_property(checkpoint, name);
}

enum { ANY_KIND = OT_PROPERTY_STRING + 1 };

static ot_status get_property(const ot_checkpoint *checkpoint, const char *name, int kind,
                              ot__property *out)
{
    static const char *const kind_names[] = {"an int", "a float", "a string"};
    ot__property *property;

    OT_TRY(find_property(checkpoint, name, &property, NULL));
    if (kind != ANY_KIND && (int)property->kind != kind)
        return ot__error(OT_ERR_INVALID, "property '%s' is %s, not %s", name,
                         kind_names[property->kind], kind_names[kind]);
    *out = *property;
    return OT_OK;
}

static ot_status property_get(const ot_checkpoint *checkpoint, const char *name, int kind,
                              ot__property *out)
{
    OT_TRY(ot__ckpt_enter(checkpoint));
    return ot__ckpt_leave(checkpoint, get_property(checkpoint, name, kind, out));
}

ot_status ot_checkpoint_get_int(const ot_checkpoint *checkpoint, const char *name, int64_t *out)
{
    ot__property property;

    OT_TRY(OT_GIVEN(out));
    *out = 0;
    OT_TRY(OT_GIVEN(name));
    OT_TRY(property_get(checkpoint, name, OT_PROPERTY_INT, &property));
    *out = property.i;
    return OT_OK;
}

ot_status ot_checkpoint_get_float(const ot_checkpoint *checkpoint, const char *name, float *out)
{
    ot__property property;

    OT_TRY(OT_GIVEN(out));
    *out = 0;
    OT_TRY(OT_GIVEN(name));
    OT_TRY(property_get(checkpoint, name, OT_PROPERTY_FLOAT, &property));
    *out = property.f;
    return OT_OK;
}

ot_status ot_checkpoint_get_string(const ot_checkpoint *checkpoint, const char *name,
                                   const char **out)
{
    ot__property property;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(name));
    OT_TRY(property_get(checkpoint, name, OT_PROPERTY_STRING, &property));
    *out = property.s;
    return OT_OK;
}

int ot_checkpoint_property_count(const ot_checkpoint *checkpoint)
{
    return OT_IS_LIVE(checkpoint) ? checkpoint->n_properties : 0;
}

const char *ot_checkpoint_property_name(const ot_checkpoint *checkpoint, int index)
{
    if (!OT_IS_LIVE(checkpoint) || index < 0 || index >= checkpoint->n_properties)
        return NULL;
    return checkpoint->properties[index].name;
}

ot_status ot_checkpoint_property_kind_of(const ot_checkpoint *checkpoint, const char *name,
                                         ot_property_kind *out)
{
    ot__property property = {0};

    OT_TRY(OT_GIVEN(out));
    *out = OT_PROPERTY_INT;
    OT_TRY(OT_GIVEN(name));
    OT_TRY(property_get(checkpoint, name, ANY_KIND, &property));
    *out = property.kind;
    return OT_OK;
}

static ot_status property_remove(ot_checkpoint *checkpoint, const char *name)
{
    int position;
    ot__property *property;

    OT_TRY(find_property(checkpoint, name, &property, &position));
    ot__free(property->name);
    ot__free(property->s);
    checkpoint->n_properties--;
    memmove(property, property + 1,
            (size_t)(checkpoint->n_properties - position) * sizeof(*property));
    return OT_OK;
}

ot_status ot_checkpoint_remove_property(ot_checkpoint *checkpoint, const char *name)
{
    OT_TRY(OT_GIVEN(name));
    OT_TRY(ot__ckpt_enter(checkpoint));
    return ot__ckpt_leave(checkpoint, property_remove(checkpoint, name));
}
