// SPDX-License-Identifier: Apache-2.0
// Options from JSON: types and names are checked here, limits in options_check.c, where options of
// C programs are checked too.
#include <jansson.h>
#include <string.h>

#include "trainer/options.h"

// ---- values ----

void *ot__reader_alloc(ot__reader *r, size_t n_bytes)
{
    void *block = ot__arena_alloc(r->arena, n_bytes);

    if (!block)
        r->status = OT_ERR_NO_MEMORY;
    return block;
}

// `type` as Python calls it.
static bool is_of_type(ot__reader *r, const json_t *json, bool is, const char *type)
{
    if (is)
        return true;
    if (json_is_null(json))
        ot__violate(r->v, "", "null value not allowed");
    else
        ot__violate(r->v, "", "must be of %s type", type);
    return false;
}

bool ot__reader_object(ot__reader *r, const json_t *json)
{
    return is_of_type(r, json, json_is_object(json), "dict");
}

bool ot__reader_list(ot__reader *r, const json_t *json)
{
    return is_of_type(r, json, json_is_array(json), "list");
}

bool ot__reader_bool(ot__reader *r, const json_t *json, int *value)
{
    if (!is_of_type(r, json, json_is_boolean(json), "boolean"))
        return false;
    *value = json_is_true(json);
    return true;
}

bool ot__reader_int(ot__reader *r, const json_t *json, int64_t *value)
{
    if (!is_of_type(r, json, json_is_integer(json), "integer"))
        return false;
    *value = json_integer_value(json);
    return true;
}

bool ot__reader_number(ot__reader *r, const json_t *json, double *value)
{
    if (!is_of_type(r, json, json_is_number(json), "float"))
        return false;
    *value = json_number_value(json);
    return true;
}

bool ot__reader_text(ot__reader *r, const json_t *json, const char **text)
{
    if (!is_of_type(r, json, json_is_string(json), "string"))
        return false;
    *text = ot__arena_strdup(r->arena, json_string_value(json));
    if (!*text)
        r->status = OT_ERR_NO_MEMORY;
    return *text != NULL;
}

bool ot__reader_names(ot__reader *r, const json_t *json, const char *const **names, int *n)
{
    const char **read;
    const json_t *item;
    bool is_good = true;
    size_t i;

    if (!ot__reader_list(r, json))
        return false;
    read = ot__reader_alloc(r, json_array_size(json) * sizeof *read);
    if (!read)
        return false;
    json_array_foreach(json, i, item)
    {
        ot__violations_enter_index(r->v, i);
        is_good &= ot__reader_text(r, item, &read[i]);
        ot__violations_leave(r->v);
    }
    if (!is_good)
        return false;
    *names = read;
    *n = (int)json_array_size(json); // a document is too small for more
    return true;
}

void ot__unknown_field(ot__reader *r, ot__names *names)
{
    ot__violate(r->v, ot__names_hint(names), "unknown field");
}

// ---- options ----

static bool read_choice(ot__reader *r, const json_t *json, const ot__option *option, int *value)
{
    ot__names names = {.wanted = json_string_value(json)};

    if (!is_of_type(r, json, json_is_string(json), "string"))
        return false;
    for (int i = 0; option->choices[i]; i++) {
        ot__names_add(&names, option->choices[i]);
        if (strcmp(option->choices[i], names.wanted) == 0) {
            *value = i;
            return true;
        }
    }
    ot__violate(r->v, ot__names_hint(&names), "unallowed value '%s', expected one of %s",
                names.wanted, ot__names_list(&names, "names"));
    return false;
}

// "INSERT_AND_REDUCE|FLOOD_FILL"
static void read_flags(ot__reader *r, const json_t *json, const ot__option *option, int *value)
{
    const char *at = json_string_value(json);
    int flags = 0;

    if (!is_of_type(r, json, json_is_string(json), "string"))
        return;
    for (;;) {
        const size_t n = strcspn(at, "|");
        json_t *one = json_stringn(at, n);
        int choice = 0;
        const bool is_good = one && read_choice(r, one, option, &choice);

        if (!one)
            r->status = OT_ERR_NO_MEMORY;
        json_decref(one);
        if (!is_good)
            return;
        flags |= choice > 0 ? 1 << (choice - 1) : 0;
        if (at[n] == '\0')
            break;
        at += n + 1;
    }
    *value = flags;
}

static void read_bytes(ot__reader *r, const json_t *json, size_t *value)
{
    const char *text = json_string_value(json);
    int64_t n;

    if (text && strcmp(text, "unlimited") == 0) {
        *value = OT_MEMORY_UNLIMITED;
    } else if (ot__reader_int(r, json, &n)) {
        if (n < 0)
            ot__violate(r->v, "", "min value is 0");
        else
            *value = (size_t)n;
    }
}

static void read_map(ot__reader *r, const json_t *json, const char **text)
{
    ot__buf buf = {0};

    if (!ot__reader_object(r, json))
        return;
    ot__json_value(&buf, NULL, json);
    if (!buf.failed)
        *text = ot__arena_strdup(r->arena, buf.data);
    if (buf.failed || !*text)
        r->status = OT_ERR_NO_MEMORY;
    ot__buf_deinit(&buf);
}

// What C and Python have objects for, and JSON has none.
static void read_nothing(ot__reader *r, const ot__option *option)
{
    ot__violate(r->v, "",
                option->kind == OT_OPTION_NONE ? "must be callable or None"
                                               : "must be a session options object or None");
}

static void read_option(ot__reader *r, const json_t *json, const ot__option *option,
                        ot_trainer_options *options)
{
    void *at = (char *)options + option->offset;

    if (json_is_null(json) && option->is_nullable) {
        if (option->kind == OT_OPTION_FLAGS)
            *(int *)at = OT_PROPAGATE_CASTS_DEFAULT;
        return;
    }
    switch (option->kind) {
    case OT_OPTION_BOOL:
        ot__reader_bool(r, json, at);
        break;
    case OT_OPTION_INT:
        ot__reader_int(r, json, at);
        break;
    case OT_OPTION_BYTES:
        read_bytes(r, json, at);
        break;
    case OT_OPTION_DECAY:
        ot__reader_number(r, json, at);
        break;
    case OT_OPTION_CHOICE:
        read_choice(r, json, option, at);
        break;
    case OT_OPTION_FLAGS:
        read_flags(r, json, option, at);
        break;
    case OT_OPTION_TEXT:
        ot__reader_text(r, json, at);
        break;
    case OT_OPTION_NAMES:
        ot__reader_names(r, json, at, (int *)((char *)options + ot__option_count_offset(option)));
        break;
    case OT_OPTION_MAP:
    case OT_OPTION_INT_MAP:
    case OT_OPTION_INTS_MAP:
        read_map(r, json, at);
        break;
    case OT_OPTION_LR:
        options->lr_schedule = ot__schedule_from_json(r, json);
        break;
    case OT_OPTION_SCALER:
        options->loss_scaler = ot__scaler_from_json(r, json);
        break;
    case OT_OPTION_SESSION:
    case OT_OPTION_NONE:
        read_nothing(r, option);
        break;
    }
}

// ---- sections ----

enum { LONGEST_PATH = 128 };

static bool is_section(const char *path)
{
    const size_t n = strlen(path);

    for (const ot__option *o = ot__options; o->path; o++)
        if (strncmp(o->path, path, n) == 0 && o->path[n] == '.')
            return true;
    return false;
}

// What is known in a section, "batch." or ""; where nothing of it is near, the whole table.
static void unknown_option(ot__reader *r, const char *section, const char *key)
{
    const size_t n = strlen(section);
    ot__names siblings = {.wanted = key}, all = {.wanted = key};

    for (const ot__option *o = ot__options; o->path; o++) {
        const char *rest = o->path + n;
        const char *name;

        ot__names_add(&all, o->path);
        if (strncmp(o->path, section, n) != 0)
            continue;
        name = ot__arena_strndup(r->v->arena, rest, strcspn(rest, "."));
        if (name)
            ot__names_add(&siblings, name);
        else
            r->status = OT_ERR_NO_MEMORY;
    }
    ot__unknown_field(r, siblings.nearest ? &siblings : &all);
}

static void read_section(ot__reader *r, const json_t *json, const char *section,
                         ot_trainer_options *options)
{
    const char *key;
    const json_t *value;

    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        char path[LONGEST_PATH];
        const int n = snprintf(path, sizeof path, "%s%s", section, key);
        const bool is_name = n < LONGEST_PATH - 1 && !strchr(key, '.');
        const ot__option *option = is_name ? ot__option_find(path) : NULL;

        ot__violations_enter(r->v, key);
        if (option) {
            read_option(r, value, option, options);
        } else if (is_name && is_section(path)) {
            strcat(path, ".");
            if (ot__reader_object(r, value))
                read_section(r, value, path, options);
        } else {
            unknown_option(r, section, key);
        }
        ot__violations_leave(r->v);
    }
}

// Two members say the precision: where both are given, they must agree.
static void check_precision(ot__reader *r, const json_t *json, const ot_trainer_options *options)
{
    const json_t *enabled = json_object_get(json_object_get(json, "mixed_precision"), "enabled");
    const json_t *precision = json_object_get(json_object_get(json, "onnxtrain"), "precision");
    const int depth = r->v->depth;

    if (!json_is_boolean(enabled) || !json_is_string(precision) ||
        json_is_true(enabled) == (options->precision != OT_PRECISION_F32))
        return;
    ot__violations_enter_path(r->v, "mixed_precision.enabled");
    ot__violate(r->v, "", "is %s, but onnxtrain.precision is %s",
                json_is_true(enabled) ? "true" : "false", json_string_value(precision));
    ot__violations_leave_to(r->v, depth);
}

void ot__options_from_json(ot__reader *r, const json_t *json, ot_trainer_options *options)
{
    if (!ot__reader_object(r, json))
        return;
    read_section(r, json, "", options);
    check_precision(r, json, options);
}
