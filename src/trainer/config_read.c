// SPDX-License-Identifier: Apache-2.0
// A configuration's document, section by section.
#include <jansson.h>

#include "trainer/config.h"

static const char *value_text(ot__reader *r, const json_t *json)
{
    ot__buf text = {0};
    const char *copy;

    if (json_is_string(json))
        ot__buf_text(&text, json_string_value(json));
    else
        ot__json_value(&text, NULL, json);
    copy = text.failed ? NULL : ot__arena_strdup(r->arena, text.data ? text.data : "");
    ot__buf_deinit(&text);
    if (!copy)
        r->status = OT_ERR_NO_MEMORY;
    return copy;
}

static void add_train_value(ot__reader *r, ot_config *config, const char *name, const json_t *json)
{
    const char *value, *wrong;

    if (json_is_object(json) || json_is_array(json) || json_is_null(json)) {
        ot__violate(r->v, "", "must be a string, a number, a boolean or a list of them");
        return;
    }
    value = value_text(r, json);
    config->train[config->n_train++] = (ot__train_value){name, value};
    if (!value || !config->train_function)
        return;
    wrong = config->train_function(config->train_context, name, value);
    if (wrong)
        ot__violate(r->v, "", "%s", wrong);
}

static void read_train_option(ot__reader *r, ot_config *config, const char *key, const json_t *json)
{
    const char *name = ot__arena_strdup(r->arena, key);
    const json_t *item;
    size_t i;

    if (!name) {
        r->status = OT_ERR_NO_MEMORY;
    } else if (!json_is_array(json)) {
        add_train_value(r, config, name, json);
    } else {
        json_array_foreach(json, i, item)
        {
            ot__violations_enter_index(r->v, i);
            add_train_value(r, config, name, item);
            ot__violations_leave(r->v);
        }
    }
}

static void read_train(ot__reader *r, const json_t *json, ot_config *config)
{
    size_t n = 0;
    const char *key;
    const json_t *value;

    if (!ot__reader_object(r, json))
        return;
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        n += json_is_array(value) ? json_array_size(value) : 1;
    }
    config->train = ot__reader_alloc(r, n * sizeof *config->train);
    if (!config->train)
        return;
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        ot__violations_enter(r->v, key);
        read_train_option(r, config, key, value);
        ot__violations_leave(r->v);
    }
    config->train_json = value_text(r, json);
}

static const char *const config_sections[] = {"model", "model_desc", "optimizer", "options",
                                              "train"};

static void read_config_section(ot__reader *r, const char *name, const json_t *json,
                                ot_config *config)
{
    ot__names names = {.wanted = name};

    switch (ot__index_of(config_sections, (int)OT_COUNT(config_sections), name)) {
    case 0:
        ot__reader_text(r, json, &config->model);
        break;
    case 1:
        config->has_description = true;
        ot__description_from_json(r, json, &config->description);
        break;
    case 2: // before all others
        break;
    case 3:
        ot__options_from_json(r, json, &config->options);
        ot__options_violations(r->v, &config->options);
        break;
    case 4:
        read_train(r, json, config);
        break;
    default:
        for (size_t i = 0; i < OT_COUNT(config_sections); i++)
            ot__names_add(&names, config_sections[i]);
        ot__unknown_field(r, &names);
    }
}

static void read_config(ot__reader *r, const json_t *json, ot_config *config)
{
    const json_t *optimizer = json_object_get(json, "optimizer"), *value;
    const char *key;

    config->options = (ot_trainer_options)OT_TRAINER_OPTIONS_INIT;
    config->optimizer = (ot_optimizer_options)OT_OPTIMIZER_OPTIONS_INIT;
    config->description = (ot_model_description)OT_MODEL_DESCRIPTION_INIT;
    config->has_description = false;
    config->model = config->train_json = NULL;
    config->n_train = 0;
    if (optimizer) {
        ot__violations_enter(r->v, "optimizer");
        ot__optimizer_from_json(r, optimizer, &config->optimizer);
        ot__violations_leave(r->v);
    }
    r->lr = config->optimizer.lr;
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        ot__violations_enter(r->v, key);
        read_config_section(r, key, value, config);
        ot__violations_leave(r->v);
    }
}

static ot_status hand_out_violations(const ot__violations *v, char **violations)
{
    ot__buf text = {0};
    ot_status st;

    if (!violations || v->count == 0 || v->status != OT_OK)
        return OT_OK;
    ot__violations_write(v, &text);
    st = ot__buf_status(&text);
    if (st == OT_OK)
        *violations = text.data;
    else
        ot__buf_deinit(&text);
    return st;
}

ot_status ot__config_read(ot_config *config, const json_t *json, char **violations)
{
    ot__violations v;
    ot__reader r = {.v = &v};
    ot_status st = ot__violations_init(&v);

    config->arena = ot__arena_create();
    OT_THEN(st, ot__made(config->arena));
    r.arena = config->arena;
    if (st == OT_OK) {
        read_config(&r, json, config);
        st = r.status == OT_OK ? OT_OK : ot__error_memory(ot__arena_bytes(config->arena));
    }
    OT_THEN(st, hand_out_violations(&v, violations));
    OT_THEN(st, ot__violations_status(&v, "configuration"));
    ot__violations_deinit(&v);
    if (st != OT_OK)
        ot__config_forget(config);
    return st;
}
