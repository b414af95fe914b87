// SPDX-License-Identifier: Apache-2.0
// The description of a model's inputs and outputs: [name, shape] and [name, shape, is_loss], in
// JSON and as structs.
#include <jansson.h>
#include <string.h>

#include "trainer/options.h"

// ---- checks ----

static void check_described_value(ot__violations *v, const ot_value_description *value,
                                  bool is_output, ot__map *names, bool *has_loss)
{
    if (!value->name || !*value->name)
        ot__violate(v, "", "the first element of the tuple (aka name) must be a string%s",
                    value->name ? " that is not empty" : "");
    else if (ot__map_get(names, value->name))
        ot__violate(v, "", "'%s' is described already", value->name);
    else if (!ot__map_put(names, value->name, names))
        v->status = OT_ERR_NO_MEMORY;
    if (value->n_dims < 0 || (value->n_dims > 0 && !value->dims))
        ot__violate(v, "", "the second element of the tuple (aka shape) must be a list");
    else if (value->n_dims > OT_MAX_NDIM)
        ot__violate(v, "", "has %d axes, expected at most %d", value->n_dims, OT_MAX_NDIM);
    else
        for (int i = 0; i < value->n_dims; i++)
            if (value->dims[i].symbol ? !*value->dims[i].symbol : value->dims[i].size < 0)
                ot__violate(v, "", "axis %d must be a size of at least 0 or a symbol", i);
    if (value->is_loss && !is_output)
        ot__violate(v, "", "an input cannot be the loss");
    else if (value->is_loss && *has_loss)
        ot__violate(v, "", "only one is_loss can bet set to True"); // the reference's words
    *has_loss |= value->is_loss != 0;
}

// What could not be read has been said already: its n_dims is -1.
static void check_described_values(ot__violations *v, const ot_value_description *values, int n,
                                   bool is_output, bool is_read)
{
    bool has_loss = false;
    ot__map names = {0};

    if (n < 0 || (n > 0 && !values))
        ot__violate(v, "", "%d values %s", n, values ? "" : "in NULL");
    else if (n == 0)
        ot__violate(v, "", "min length is 1");
    for (int i = 0; i < n && values; i++) {
        ot__violations_enter_index(v, (size_t)i);
        if (values[i].n_dims >= 0 || !is_read)
            check_described_value(v, &values[i], is_output, &names, &has_loss);
        ot__violations_leave(v);
    }
    ot__map_deinit(&names);
}

ot_status ot__model_description_take(const ot_model_description *given, ot_model_description *own)
{
    ot__violations v;
    ot_status st;

    OT_TRY(OT_GIVEN(given));
    OT_TRY(OT_OPTIONS_READ(ot_model_description, OT_MODEL_DESCRIPTION_INIT, given, own));
    st = ot__violations_init(&v);
    if (st == OT_OK) {
        ot__violations_enter(&v, "inputs");
        check_described_values(&v, own->inputs, own->n_inputs, false, false);
        ot__violations_leave(&v);
        ot__violations_enter(&v, "outputs");
        check_described_values(&v, own->outputs, own->n_outputs, true, false);
        ot__violations_leave(&v);
        st = ot__violations_status(&v, "model_desc");
    }
    ot__violations_deinit(&v);
    return st;
}

// ---- JSON in ----

static bool read_described_dim(ot__reader *r, const json_t *json, ot_dim_description *dim)
{
    if (json_is_string(json))
        return ot__reader_text(r, json, &dim->symbol);
    dim->size = json_integer_value(json);
    if (!json_is_integer(json))
        ot__violate(r->v, "", "each shape must be either a string or integer");
    return json_is_integer(json);
}

static bool read_described_dims(ot__reader *r, const json_t *json, ot_value_description *value)
{
    ot_dim_description *dims;
    const json_t *dim;
    bool is_good = true;
    size_t i;

    if (!json_is_array(json)) {
        ot__violate(r->v, "", "the second element of the tuple (aka shape) must be a list");
        return false;
    }
    dims = ot__reader_alloc(r, json_array_size(json) * sizeof *dims);
    if (!dims)
        return false;
    json_array_foreach(json, i, dim)
    {
        is_good &= read_described_dim(r, dim, &dims[i]);
    }
    value->dims = dims;
    value->n_dims = (int)json_array_size(json);
    return is_good;
}

static bool read_described_name(ot__reader *r, const json_t *json, ot_value_description *value)
{
    if (json_is_string(json))
        return ot__reader_text(r, json, &value->name);
    ot__violate(r->v, "", "the first element of the tuple (aka name) must be a string");
    return false;
}

static bool read_is_loss(ot__reader *r, const json_t *json, ot_value_description *value)
{
    value->is_loss = json_is_true(json);
    if (json && !json_is_boolean(json)) {
        ot__violate(r->v, "", "the third element of the tuple (aka is_loss) must be a boolean");
        return false;
    }
    return true;
}

static bool read_described_value(ot__reader *r, const json_t *json, bool is_output,
                                 ot_value_description *value)
{
    const size_t n = json_array_size(json);
    bool is_good;

    if (n != 2 && !(is_output && n == 3)) {
        ot__violate(r->v, "", "must be a tuple with size 2%s", is_output ? " or 3" : "");
        return false;
    }
    is_good = read_described_name(r, json_array_get(json, 0), value);
    is_good &= read_described_dims(r, json_array_get(json, 1), value);
    return is_good & read_is_loss(r, json_array_get(json, 2), value);
}

static bool read_described_values(ot__reader *r, const json_t *json, const char *section,
                                  const ot_value_description **values, int *n)
{
    const bool is_output = strcmp(section, "outputs") == 0;
    const json_t *list = json_object_get(json, section), *item;
    ot_value_description *read;
    bool is_good = false;
    size_t i;

    ot__violations_enter(r->v, section);
    if (!list) {
        ot__violate(r->v, "", "required field");
    } else if (ot__reader_list(r, list) &&
               (read = ot__reader_alloc(r, json_array_size(list) * sizeof *read)) != NULL) {
        is_good = true;
        json_array_foreach(list, i, item)
        {
            ot__violations_enter_index(r->v, i);
            if (!read_described_value(r, item, is_output, &read[i])) {
                read[i].n_dims = -1;
                is_good = false;
            }
            ot__violations_leave(r->v);
        }
        *values = read;
        *n = (int)json_array_size(list);
        check_described_values(r->v, read, *n, is_output, true);
    }
    ot__violations_leave(r->v);
    return is_good;
}

void ot__description_from_json(ot__reader *r, const json_t *json, ot_model_description *description)
{
    static const char *const sections[] = {"inputs", "outputs"};
    ot_model_description read = OT_MODEL_DESCRIPTION_INIT;
    const char *key;
    const json_t *value;
    bool is_good;

    if (!ot__reader_object(r, json))
        return;
    is_good = read_described_values(r, json, sections[0], &read.inputs, &read.n_inputs);
    is_good &= read_described_values(r, json, sections[1], &read.outputs, &read.n_outputs);
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        ot__names names = {.wanted = key};

        if (ot__index_of(sections, (int)OT_COUNT(sections), key) >= 0)
            continue;
        for (size_t i = 0; i < OT_COUNT(sections); i++)
            ot__names_add(&names, sections[i]);
        ot__violations_enter(r->v, key);
        ot__unknown_field(r, &names);
        ot__violations_leave(r->v);
    }
    if (is_good)
        *description = read;
}

// ---- JSON out ----

static void write_described_value(ot__buf *out, const ot_value_description *value)
{
    ot__json_open(out, NULL, '[');
    ot__json_string(out, NULL, value->name);
    ot__json_open(out, NULL, '[');
    for (int i = 0; i < value->n_dims; i++)
        if (value->dims[i].symbol)
            ot__json_string(out, NULL, value->dims[i].symbol);
        else
            ot__json_int(out, NULL, value->dims[i].size);
    ot__json_close(out, ']');
    if (value->is_loss)
        ot__json_bool(out, NULL, true);
    ot__json_close(out, ']');
}

void ot__description_write_json(ot__buf *out, const char *name,
                                const ot_model_description *description)
{
    ot__json_open(out, name, '{');
    ot__json_open(out, "inputs", '[');
    for (int i = 0; i < description->n_inputs; i++)
        write_described_value(out, &description->inputs[i]);
    ot__json_close(out, ']');
    ot__json_open(out, "outputs", '[');
    for (int i = 0; i < description->n_outputs; i++)
        write_described_value(out, &description->outputs[i]);
    ot__json_close(out, ']');
    ot__json_close(out, '}');
}
