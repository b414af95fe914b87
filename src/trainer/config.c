// SPDX-License-Identifier: Apache-2.0
// Configurations: what each source gave stays as it came, so that a check reads all of it anew, in
// the order of precedence.
#include "onnxtrain/config.h"

#include <jansson.h>
#include <string.h>

#include "trainer/config.h"

enum { MOST_PARTS = 8 };

// ---- life ----

void ot__config_forget(ot_config *config)
{
    ot__arena_destroy(config->arena);
    config->arena = NULL;
}

void ot_config_destroy(ot_config *config)
{
    if (!OT_ENDS(config))
        return;
    for (int i = 0; i < OT_CONFIG_N_SOURCES; i++)
        json_decref(config->given[i]);
    ot__config_forget(config);
    ot__free(config);
}

ot_status ot_config_create(ot_config **out)
{
    ot_config *config;
    ot_status st = OT_OK;

    OT_TRY(OT_OUT(out));
    config = ot__alloc_zero(1, sizeof *config);
    OT_TRY(ot__made(config));
    OT_ENTER(config);
    for (int i = 0; i < OT_CONFIG_N_SOURCES; i++) {
        config->given[i] = json_object();
        if (!config->given[i])
            st = ot__error_memory(sizeof *config);
    }
    return OT_HAND_OUT(st, out, config, ot_config_destroy);
}

// ---- giving ----

// What is in `from` goes into `to`. Objects with a "type" say all of something.
static ot_status merge_objects(json_t *to, const json_t *from)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)from, key, value)
    {
        json_t *old = json_object_get(to, key);

        if (json_is_object(old) && json_is_object(value) && !json_object_get(value, "type"))
            OT_TRY(merge_objects(old, value));
        else if (json_object_set_new(to, key, json_deep_copy(value)) != 0)
            return ot__error_memory(strlen(key));
    }
    return OT_OK;
}

// All of it or nothing.
static ot_status merge_given(ot_config *config, const json_t *json, ot_config_source source)
{
    json_t *merged = json_deep_copy(config->given[source]);
    ot_status st = merged ? OT_OK : ot__error_memory(sizeof *config);

    OT_THEN(st, merge_objects(merged, json));
    if (st != OT_OK) {
        json_decref(merged);
        return st;
    }
    json_decref(config->given[source]);
    config->given[source] = merged;
    ot__config_forget(config);
    return OT_OK;
}

static ot_status check_source(ot_config_source source)
{
    if ((int)source >= OT_CONFIG_ENVIRONMENT && (int)source <= OT_CONFIG_FLAG)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "unknown source %d (known: environment, file, flag)",
                     (int)source);
}

ot_status ot_config_merge(ot_config *config, const char *json, ot_config_source source)
{
    json_t *read = NULL;
    ot_status st;

    OT_TRY(OT_GIVEN(config));
    OT_TRY(OT_GIVEN(json));
    OT_TRY(check_source(source));
    st = ot__json_read(json, strlen(json), &read);
    if (st == OT_OK && !json_is_object(read))
        st = ot__error(OT_ERR_FORMAT, "the configuration is no JSON object");
    OT_THEN(st, merge_given(config, read, source));
    json_decref(read);
    return st;
}

// {"a": {"b": value}} of "a.b"; the value is taken over.
static ot_status wrap_value(const char *path, size_t n_path, json_t *value, json_t **out)
{
    size_t end = n_path;
    int n_parts = 0;

    *out = value;
    for (;;) {
        size_t start = end;
        json_t *object;

        while (start > 0 && path[start - 1] != '.')
            start--;
        if (start == end || ++n_parts > MOST_PARTS)
            return ot__error(OT_ERR_INVALID, "'%.*s' is no path of names with dots between",
                             (int)OT_MIN(n_path, (size_t)256), path);
        object = json_object();
        if (!object)
            return ot__error_memory(n_path);
        if (json_object_setn_new(object, path + start, end - start, *out) != 0) {
            *out = object; // the value has been released
            return ot__error(OT_ERR_INVALID, "'%.*s' is no path of names in UTF-8",
                             (int)OT_MIN(n_path, (size_t)256), path);
        }
        *out = object;
        if (start == 0)
            return OT_OK;
        end = start - 1;
    }
}

static int json_depth(const json_t *json)
{
    int depth = 0;
    const char *key;
    const json_t *item;
    size_t i;

    json_object_foreach((json_t *)(uintptr_t)json, key, item)
    {
        depth = OT_MAX(depth, json_depth(item));
    }
    json_array_foreach(json, i, item)
    {
        depth = OT_MAX(depth, json_depth(item));
    }
    return depth + (json_is_object(json) || json_is_array(json));
}

// One value into `all`, an object.
static ot_status set_value(json_t *all, const char *path, size_t n_path, const char *value,
                           size_t n_value)
{
    json_t *read = NULL, *wrapped = NULL;
    ot_status st = ot__json_read(value, n_value, &read);

    if (st == OT_ERR_FORMAT)
        ot__error_prefix(st, "%.*s: '%.*s' is no JSON (a text needs quotes)",
                         (int)OT_MIN(n_path, (size_t)128), path, (int)OT_MIN(n_value, (size_t)64),
                         value);
    OT_THEN(st, wrap_value(path, n_path, read, &wrapped));
    if (st == OT_OK && json_depth(wrapped) > OT_JSON_DEPTH_MAX) // as in a document
        st = ot__error(OT_ERR_FORMAT, "%.*s: more than %d objects and arrays inside each other",
                       (int)OT_MIN(n_path, (size_t)128), path, OT_JSON_DEPTH_MAX);
    OT_THEN(st, merge_objects(all, wrapped));
    json_decref(wrapped);
    return st;
}

ot_status ot_config_set(ot_config *config, const char *path, const char *json_value,
                        ot_config_source source)
{
    json_t *all;
    ot_status st;

    OT_TRY(OT_GIVEN(config));
    OT_TRY(OT_GIVEN(path));
    OT_TRY(OT_GIVEN(json_value));
    OT_TRY(check_source(source));
    all = json_object();
    st = all ? set_value(all, path, strlen(path), json_value, strlen(json_value))
             : ot__error_memory(strlen(path));
    OT_THEN(st, merge_given(config, all, source));
    json_decref(all);
    return st;
}

static ot_status set_line(json_t *all, const char *line, size_t n, int number)
{
    const char *equals;
    size_t n_path;

    while (n > 0 && ot__is_space(line[n - 1]))
        n--;
    while (n > 0 && ot__is_space(*line)) {
        line++;
        n--;
    }
    if (n == 0)
        return OT_OK;
    equals = memchr(line, '=', n);
    if (!equals)
        return ot__error(OT_ERR_INVALID, "line %d: '%.*s' has no '=', expected path=value", number,
                         (int)OT_MIN(n, (size_t)128), line);
    n_path = (size_t)(equals - line);
    n -= n_path + 1;
    while (n_path > 0 && ot__is_space(line[n_path - 1]))
        n_path--;
    return ot__error_prefix(set_value(all, line, n_path, equals + 1, n), "line %d", number);
}

ot_status ot_config_set_lines(ot_config *config, const char *lines, ot_config_source source)
{
    json_t *all;
    ot_status st;
    int number = 1;

    OT_TRY(OT_GIVEN(config));
    OT_TRY(OT_GIVEN(lines));
    OT_TRY(check_source(source));
    all = json_object();
    st = all ? OT_OK : ot__error_memory(strlen(lines));
    while (st == OT_OK && *lines) {
        const size_t n = strcspn(lines, "\n");

        st = set_line(all, lines, n, number++);
        lines += n + (lines[n] != '\0');
    }
    OT_THEN(st, merge_given(config, all, source));
    json_decref(all);
    return st;
}

static const json_t *json_at(const json_t *json, const char *path)
{
    while (json) {
        const size_t n = strcspn(path, ".");

        json = json_object_getn(json, path, n);
        if (!path[n])
            return json;
        path += n + 1;
    }
    return NULL;
}

ot_status ot_config_source_of(const ot_config *config, const char *path, ot_config_source *source)
{
    OT_TRY(OT_GIVEN(config));
    OT_TRY(OT_GIVEN(path));
    OT_TRY(OT_GIVEN(source));
    *source = OT_CONFIG_ENVIRONMENT;
    for (int i = OT_CONFIG_N_SOURCES - 1; i >= 0; i--)
        if (json_at(config->given[i], path)) {
            *source = (ot_config_source)i;
            return OT_OK;
        }
    return ot__error(OT_ERR_NOT_FOUND, "%s is not given", path);
}

// Of all sources, those that go before others last.
static ot_status merge_sources(const ot_config *config, json_t **out)
{
    ot_status st;

    *out = json_object();
    st = *out ? OT_OK : ot__error_memory(sizeof *config);
    for (int i = 0; i < OT_CONFIG_N_SOURCES; i++)
        OT_THEN(st, merge_objects(*out, config->given[i]));
    return st;
}

ot_status ot_config_set_train_function(ot_config *config, ot_config_train_function function,
                                       void *context)
{
    OT_TRY(OT_GIVEN(config));
    config->train_function = function;
    config->train_context = context;
    ot__config_forget(config);
    return OT_OK;
}

ot_status ot_config_check(ot_config *config, char **violations)
{
    json_t *merged;
    ot_status st;

    if (violations)
        *violations = NULL;
    OT_TRY(OT_GIVEN(config));
    ot__config_forget(config);
    st = merge_sources(config, &merged);
    OT_THEN(st, ot__config_read(config, merged, violations));
    json_decref(merged);
    return st;
}

// ---- what was read ----

static bool is_checked(const ot_config *config)
{
    return OT_IS_LIVE(config) && config->arena;
}

const ot_trainer_options *ot_config_options(const ot_config *config)
{
    return is_checked(config) ? &config->options : NULL;
}

const ot_optimizer_options *ot_config_optimizer(const ot_config *config)
{
    return is_checked(config) ? &config->optimizer : NULL;
}

const ot_model_description *ot_config_description(const ot_config *config)
{
    return is_checked(config) && config->has_description ? &config->description : NULL;
}

const char *ot_config_model(const ot_config *config)
{
    return is_checked(config) ? config->model : NULL;
}

int ot_config_train_count(const ot_config *config)
{
    return is_checked(config) ? config->n_train : 0;
}

const char *ot_config_train_name(const ot_config *config, int index)
{
    return index >= 0 && index < ot_config_train_count(config) ? config->train[index].name : NULL;
}

const char *ot_config_train_value(const ot_config *config, int index)
{
    return index >= 0 && index < ot_config_train_count(config) ? config->train[index].value : NULL;
}

ot_status ot_config_text(const ot_config *config, ot_config_style style, char **json)
{
    ot__buf out = {0};
    ot_status st;

    OT_TRY(OT_GIVEN(config));
    OT_TRY(OT_OUT(json));
    if (!config->arena)
        return ot__error(OT_ERR_STATE, "the configuration has not been checked");
    ot__json_open(&out, NULL, '{');
    if (config->model)
        ot__json_string(&out, "model", config->model);
    if (config->has_description)
        ot__description_write_json(&out, "model_desc", &config->description);
    ot__optimizer_write_json(&out, "optimizer", &config->optimizer);
    ot__options_write_json(&out, "options", &config->options,
                           style == OT_CONFIG_EFFECTIVE ? OT_OPTIONS_EFFECTIVE : OT_OPTIONS_FILLED);
    if (config->train_json)
        ot__json_raw(&out, "train", config->train_json);
    ot__json_close(&out, '}');
    st = ot__buf_status(&out);
    if (st == OT_OK)
        *json = out.data;
    else
        ot__buf_deinit(&out);
    return st;
}
