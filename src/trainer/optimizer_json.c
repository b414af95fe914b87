// SPDX-License-Identifier: Apache-2.0
// An optimizer as JSON: {"name": "AdamOptimizer", "lr": 0.001, "alpha": 0.9, "params": [{"params":
// ["*.bias"], "lambda_coef": 0}]}. Which hyper-parameters there are, and their bounds, the operator
// says.
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "trainer/options.h"

// Of the optimizer, and of a group.
static const char *const optimizer_keys[] = {"name", "lr", "max_norm", "average_decay", "params"};
static const char *const group_keys[] = {"params", "lr_factor"};

// ---- hyper-parameters ----

// "lambda" and "lambda_coef" are the same.
static const ot_attr_spec *find_hyper(const ot_op_def *op, const char *key, ot__names *names)
{
    static const char suffix[] = "_coef";
    const ot_attr_spec *spec;

    for (int i = 0; (spec = ot__hyper_at(op, i)) != NULL; i++) {
        const size_t n = strlen(spec->name);

        if (strncmp(spec->name, key, n) == 0 && (!key[n] || strcmp(key + n, suffix) == 0))
            return spec;
        ot__names_add(names, spec->name);
    }
    return NULL;
}

static void read_hyper(ot__reader *r, const json_t *json, const ot_attr_spec *spec, ot_hyper *hyper,
                       int *n)
{
    double value = json_is_true(json);

    if (!json_is_boolean(json) && !ot__reader_number(r, json, &value))
        return;
    for (int i = 0; i < *n; i++)
        if (strcmp(hyper[i].name, spec->name) == 0) {
            ot__violate(r->v, "", "%s is given twice", spec->name);
            return;
        }
    if (ot__attr_check_bounds(spec, value) != OT_OK)
        ot__violate(r->v, "", "%s", ot_error_message());
    hyper[(*n)++] = (ot_hyper){spec->name, value};
}

// All members that are not among `keys`.
static void read_hypers(ot__reader *r, const json_t *json, const ot_op_def *op,
                        const char *const *keys, int n_keys, const ot_hyper **out, int *n)
{
    ot_hyper *hyper = ot__reader_alloc(r, json_object_size(json) * sizeof *hyper);
    const char *key;
    const json_t *value;

    *n = 0;
    *out = hyper;
    if (!hyper)
        return;
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        ot__names names = {.wanted = key};
        const ot_attr_spec *spec;

        if (ot__index_of(keys, n_keys, key) >= 0)
            continue;
        for (int i = 0; i < n_keys; i++)
            ot__names_add(&names, keys[i]);
        spec = op ? find_hyper(op, key, &names) : NULL;
        ot__violations_enter(r->v, key);
        if (spec)
            read_hyper(r, value, spec, hyper, n);
        else
            ot__unknown_field(r, &names);
        ot__violations_leave(r->v);
    }
}

// ---- members ----

static void read_least_zero(ot__reader *r, const json_t *json, const char *name, double most,
                            double *value)
{
    const json_t *member = json_object_get(json, name);

    if (!member)
        return;
    ot__violations_enter(r->v, name);
    if (ot__reader_number(r, member, value) && !(*value >= 0 && *value < most))
        ot__violate(r->v, "", "is %g, expected at least 0 and below %g", *value, most);
    ot__violations_leave(r->v);
}

static void read_param_group(ot__reader *r, const json_t *json, const ot_op_def *op,
                             ot_param_group *group)
{
    const json_t *params = json_object_get(json, "params");

    if (!ot__reader_object(r, json))
        return;
    ot__violations_enter(r->v, "params");
    if (!params)
        ot__violate(r->v, "", "required field");
    else
        ot__reader_names(r, params, &group->params, &group->n_params);
    ot__violations_leave(r->v);
    if (params && json_object_size(json) == 1)
        ot__violate(r->v, "", "must have a hyper-parameter besides params");
    read_least_zero(r, json, "lr_factor", INFINITY, &group->lr_factor);
    read_hypers(r, json, op, group_keys, (int)OT_COUNT(group_keys), &group->hyper, &group->n_hyper);
}

static void read_param_groups(ot__reader *r, const json_t *json, const ot_op_def *op,
                              ot_optimizer_options *optimizer)
{
    const ot_param_group init = OT_PARAM_GROUP_INIT;
    ot_param_group *groups;
    const json_t *item;
    size_t i;

    if (!ot__reader_list(r, json))
        return;
    groups = ot__reader_alloc(r, json_array_size(json) * sizeof *groups);
    if (!groups)
        return;
    json_array_foreach(json, i, item)
    {
        groups[i] = init;
        ot__violations_enter_index(r->v, i);
        read_param_group(r, item, op, &groups[i]);
        ot__violations_leave(r->v);
    }
    optimizer->groups = groups;
    optimizer->n_groups = (int)json_array_size(json);
}

// NULL: there is no such optimizer, or none is wanted.
static const ot_op_def *read_optimizer_name(ot__reader *r, const json_t *json,
                                            ot_optimizer_options *optimizer)
{
    const json_t *name = json_object_get(json, "name");
    const ot_op_def *op = NULL;

    if (json_is_null(name))
        optimizer->name = NULL;
    ot__violations_enter(r->v, "name");
    if (!name || (json_is_string(name) && ot__reader_text(r, name, &optimizer->name))) {
        ot__names names = {.wanted = optimizer->name};

        op = ot__optimizer_find(optimizer->name);
        for (int i = 0; i < ot_optimizer_count(); i++)
            ot__names_add(&names, ot_optimizer_name(i));
        if (!op)
            ot__violate(r->v, ot__names_hint(&names), "unallowed value '%s'", optimizer->name);
    } else if (!json_is_null(name) && !json_is_string(name)) {
        ot__violate(r->v, "", "must be of string type");
    }
    ot__violations_leave(r->v);
    return op;
}

void ot__optimizer_from_json(ot__reader *r, const json_t *json, ot_optimizer_options *optimizer)
{
    const json_t *params = json_object_get(json, "params");
    const ot_op_def *op;

    if (!ot__reader_object(r, json))
        return;
    op = read_optimizer_name(r, json, optimizer);
    read_least_zero(r, json, "lr", INFINITY, &optimizer->lr);
    read_least_zero(r, json, "max_norm", INFINITY, &optimizer->max_norm);
    read_least_zero(r, json, "average_decay", 1, &optimizer->average_decay);
    if (op || !optimizer->name) // else every one would be unknown
        read_hypers(r, json, op, optimizer_keys, (int)OT_COUNT(optimizer_keys), &optimizer->hyper,
                    &optimizer->n_hyper);
    if (!params)
        return;
    ot__violations_enter(r->v, "params");
    if (op || !optimizer->name)
        read_param_groups(r, params, op, optimizer);
    else
        ot__reader_list(r, params);
    ot__violations_leave(r->v);
}

// ---- writing ----

static void write_hyper(ot__buf *out, const ot_attr_spec *spec, double value)
{
    if (spec->kind == OT_ATTRIBUTE_INT || spec->kind == OT_ATTRIBUTE_INTS)
        ot__json_int(out, spec->name, (int64_t)value);
    else if (isfinite(value)) // JSON has no infinity, which is a default
        ot__json_float(out, spec->name, value);
}

static void write_hypers(ot__buf *out, const ot_op_def *op, const ot_hyper *hyper, int n,
                         bool with_defaults)
{
    const ot_attr_spec *spec;

    for (int i = 0; op && (spec = ot__hyper_at(op, i)) != NULL; i++) {
        double value = ot__hyper_fallback(op, spec);
        bool is_given = false;

        for (int k = 0; k < n; k++)
            if (strcmp(hyper[k].name, spec->name) == 0) {
                value = hyper[k].value;
                is_given = true;
            }
        if (is_given || with_defaults)
            write_hyper(out, spec, value);
    }
}

void ot__optimizer_write_json(ot__buf *out, const char *name, const ot_optimizer_options *optimizer)
{
    const ot_op_def *op = optimizer->name ? ot__optimizer_find(optimizer->name) : NULL;

    ot__json_open(out, name, '{');
    ot__json_string(out, "name", optimizer->name);
    ot__json_float(out, "lr", optimizer->lr);
    write_hypers(out, op, optimizer->hyper, optimizer->n_hyper, true);
    ot__json_float(out, "max_norm", optimizer->max_norm);
    ot__json_float(out, "average_decay", optimizer->average_decay);
    ot__json_open(out, "params", '[');
    for (int i = 0; i < optimizer->n_groups; i++) {
        const ot_param_group *group = &optimizer->groups[i];

        ot__json_open(out, NULL, '{');
        ot__json_open(out, "params", '[');
        for (int k = 0; k < group->n_params; k++)
            ot__json_string(out, NULL, group->params[k]);
        ot__json_close(out, ']');
        ot__json_float(out, "lr_factor", group->lr_factor);
        write_hypers(out, op, group->hyper, group->n_hyper, false);
        ot__json_close(out, '}');
    }
    ot__json_close(out, ']');
    ot__json_close(out, '}');
}
