// SPDX-License-Identifier: Apache-2.0
// Properties of the user's in a state, and the library's own beside it.
#include "session/state_dict.h"

static bool is_of_user(const ot__property *property)
{
    return !ot__starts_with(property->name, OT_PROPERTY_PREFIX);
}

static ot_status property_to_dict(const ot__property *p, ot_dict *to)
{
    switch (p->kind) {
    case OT_PROPERTY_INT:
        return ot_dict_set_int(to, p->name, p->i);
    case OT_PROPERTY_FLOAT:
        return ot_dict_set_float(to, p->name, (double)p->f);
    default:
        return ot_dict_set_string(to, p->name, p->s);
    }
}

ot_status ot__properties_write(const ot_checkpoint *checkpoint, ot_dict *to)
{
    ot_dict *dict = NULL;

    for (int i = 0; i < checkpoint->n_properties; i++) {
        if (!is_of_user(&checkpoint->properties[i]))
            continue;
        if (dict == NULL)
            OT_TRY(ot_dict_set_dict(to, OT_KEY_TRAIN_PROPERTIES, &dict));
        OT_TRY(property_to_dict(&checkpoint->properties[i], dict));
    }
    return OT_OK;
}

static ot_status set_given_property(ot_checkpoint *to, const ot_dict *from, const char *name)
{
    ot_dict_kind kind;
    const char *text;
    int64_t whole;
    double number;

    OT_TRY(ot_dict_kind_of(from, name, &kind));
    if (kind == OT_DICT_INT) {
        OT_TRY(ot_dict_get_int(from, name, &whole));
        return ot_checkpoint_set_int(to, name, whole);
    }
    if (kind == OT_DICT_FLOAT) {
        OT_TRY(ot_dict_get_float(from, name, &number));
        return ot_checkpoint_set_float(to, name, (float)number);
    }
    OT_TRY(ot_dict_get_string(from, name, &text));
    return ot_checkpoint_set_string(to, name, text);
}

static ot_status add_given_property(ot_checkpoint *to, const ot_dict *from, const char *name)
{
    if (ot__starts_with(name, OT_PROPERTY_PREFIX))
        return ot__error(OT_ERR_INVALID, "property '%s' of the state is the library's", name);
    return set_given_property(to, from, name);
}

ot_status ot__properties_write_own(const ot_checkpoint *checkpoint, ot_dict *to)
{
    for (int i = 0; i < checkpoint->n_properties; i++)
        if (!is_of_user(&checkpoint->properties[i]))
            OT_TRY(property_to_dict(&checkpoint->properties[i], to));
    return OT_OK;
}

static ot_status copy_property(ot_checkpoint *to, const ot__property *p)
{
    switch (p->kind) {
    case OT_PROPERTY_INT:
        return ot_checkpoint_set_int(to, p->name, p->i);
    case OT_PROPERTY_FLOAT:
        return ot_checkpoint_set_float(to, p->name, p->f);
    default:
        return ot_checkpoint_set_string(to, p->name, p->s);
    }
}

ot_status ot__properties_stage_own(const ot_checkpoint *checkpoint, const ot_dict *from,
                                   ot_checkpoint **staged)
{
    OT_TRY(ot_checkpoint_create(staged));
    for (int i = 0; i < checkpoint->n_properties; i++)
        OT_TRY(copy_property(*staged, &checkpoint->properties[i]));
    for (int i = 0; i < ot_dict_count(from); i++)
        if (ot__starts_with(ot_dict_name(from, i), OT_PROPERTY_PREFIX))
            OT_TRY(set_given_property(*staged, from, ot_dict_name(from, i)));
    return OT_OK;
}

ot_status ot__properties_check(const ot_checkpoint *checkpoint, ot_dict *given,
                               ot_checkpoint **staged)
{
    ot_dict *dict;

    if (!ot__dict_has(given, OT_KEY_TRAIN_PROPERTIES))
        return OT_OK;
    OT_TRY(ot_dict_get_dict(given, OT_KEY_TRAIN_PROPERTIES, &dict));
    OT_TRY(ot_checkpoint_create(staged));
    for (int i = 0; i < checkpoint->n_properties; i++)
        if (!is_of_user(&checkpoint->properties[i]))
            OT_TRY(copy_property(*staged, &checkpoint->properties[i]));
    for (int i = 0; i < ot_dict_count(dict); i++)
        OT_TRY(add_given_property(*staged, dict, ot_dict_name(dict, i)));
    return OT_OK;
}

void ot__properties_take(ot_checkpoint *checkpoint, ot_checkpoint *staged)
{
    ot__property *const properties = checkpoint->properties;
    const int n = checkpoint->n_properties, capacity = checkpoint->properties_capacity;

    if (staged == NULL)
        return;
    checkpoint->properties = staged->properties;
    checkpoint->n_properties = staged->n_properties;
    checkpoint->properties_capacity = staged->properties_capacity;
    staged->properties = properties;
    staged->n_properties = n;
    staged->properties_capacity = capacity;
}
