// SPDX-License-Identifier: Apache-2.0
// Which optimizers the table has, and their hyper-parameters: the attributes that have bounds.
#include <math.h>
#include <string.h>

#include "op/op.h"

// The newest record of an operator that is an optimizer of today; NULL: it is none.
static const ot_op_def *optimizer_record(int index)
{
    const ot_op_def *op = ot__op_records(index);

    while (op[1].name != NULL)
        op++;
    return op->rule != NULL && op->upgrade == NULL ? op : NULL;
}

int ot_optimizer_count(void)
{
    int n = 0;

    for (int i = 0; i < ot__op_count(); i++)
        n += optimizer_record(i) != NULL;
    return n;
}

const char *ot_optimizer_name(int index)
{
    for (int i = 0; index >= 0 && i < ot__op_count(); i++) {
        const ot_op_def *op = optimizer_record(i);

        if (op != NULL && index-- == 0)
            return op->name;
    }
    return NULL;
}

const ot_op_def *ot__optimizer_find(const char *name)
{
    for (int i = 0; i < ot__op_count(); i++) {
        const ot_op_def *op = optimizer_record(i);

        if (op != NULL && strcmp(op->name, name) == 0)
            return op;
    }
    return NULL;
}

const char *ot__optimizer_state(const char *name)
{
    for (int i = 0; i < ot__op_count(); i++) {
        const ot_op_def *op = ot__op_records(i);

        if (op->rule != NULL && strcmp(op->name, name) == 0)
            return op->rule->state;
    }
    return NULL;
}

ot_status ot__optimizer_lookup(const char *name, const ot_op_def **out)
{
    ot__names names = {.wanted = name};

    *out = ot__optimizer_find(name);
    if (*out != NULL)
        return OT_OK;
    for (int i = 0; i < ot_optimizer_count(); i++)
        ot__names_add(&names, ot_optimizer_name(i));
    return ot__error(OT_ERR_NOT_FOUND, "unknown optimizer '%s', known: %s%s", name,
                     ot__names_list(&names, "optimizers"), ot__names_hint(&names));
}

// ---- hyper-parameters ----

const ot_attr_spec *ot__hyper_at(const ot_op_def *op, int index)
{
    for (const ot_attr_spec *s = op->attrs; index >= 0 && s != NULL && s->name != NULL; s++)
        if (s->low < s->high && index-- == 0)
            return s;
    return NULL;
}

ot_status ot__hyper_lookup(const ot_op_def *op, const char *name, const ot_attr_spec **out)
{
    ot__names names = {.wanted = name};

    for (int i = 0; (*out = ot__hyper_at(op, i)) != NULL; i++) {
        if (strcmp((*out)->name, name) == 0)
            return OT_OK;
        ot__names_add(&names, (*out)->name);
    }
    return ot__error(OT_ERR_NOT_FOUND, "%s has no '%s', it has: %s%s", op->name, name,
                     ot__names_list(&names, "hyper-parameters"), ot__names_hint(&names));
}

static bool is_whole_attr(const ot_attr_spec *spec)
{
    return spec->kind == OT_ATTRIBUTE_INT || spec->kind == OT_ATTRIBUTE_INTS;
}

double ot__as_written(float value)
{
    enum { DIGITS = 7 };
    double written = (double)value;
    char text[32];

    ot__print_float(text, sizeof text, DIGITS, (double)value);
    if (isfinite(value))
        (void)ot__parse_float(text, &written);
    return written;
}

double ot__hyper_fallback(const ot_op_def *op, const ot_attr_spec *spec)
{
    for (const ot_hyper *h = op->rule->artifacts; h != NULL && h->name != NULL; h++)
        if (strcmp(h->name, spec->name) == 0)
            return h->value;
    return is_whole_attr(spec) ? (double)spec->i : ot__as_written(spec->f);
}

static bool set_whole_hyper(ot_node *rule, const ot_attr_spec *spec, const double *values, int n,
                            int64_t *list)
{
    for (int i = 0; i < n; i++)
        list[i] = (int64_t)values[i];
    return spec->kind == OT_ATTRIBUTE_INT ? ot__node_set_int(rule, spec->name, list[0])
                                          : ot__node_set_ints(rule, spec->name, list, n);
}

static bool set_float_hyper(ot_node *rule, const ot_attr_spec *spec, const double *values, int n,
                            float *list)
{
    for (int i = 0; i < n; i++)
        list[i] = (float)values[i];
    return spec->kind == OT_ATTRIBUTE_FLOAT ? ot__node_set_float(rule, spec->name, list[0])
                                            : ot__node_set_floats(rule, spec->name, list, n);
}

ot_status ot__rule_set_hyper(ot_node *rule, const ot_attr_spec *spec, const double *values, int n)
{
    void *list = ot__alloc((size_t)n * sizeof(int64_t));
    ot_status st = ot__made(list != NULL);

    if (st == OT_OK)
        st = ot__made(is_whole_attr(spec) ? set_whole_hyper(rule, spec, values, n, list)
                                          : set_float_hyper(rule, spec, values, n, list));
    ot__free(list);
    return st;
}

ot_status ot_optimizer_hyper(const char *name, int index, ot_hyper_info *out)
{
    ot_hyper_info own;
    const ot_op_def *op;
    const ot_attr_spec *spec;

    OT_TRY(OT_GIVEN(name));
    OT_TRY(OT_GIVEN(out));
    OT_TRY(OT_OPTIONS_READ(ot_hyper_info, OT_HYPER_INFO_INIT, out, &own));
    OT_TRY(ot__optimizer_lookup(name, &op));
    spec = ot__hyper_at(op, index);
    if (spec == NULL)
        return ot__error(OT_ERR_NOT_FOUND, "%s has no hyper-parameter %d", name, index);
    own.name = spec->name;
    own.fallback = ot__hyper_fallback(op, spec);
    own.low = spec->low;
    own.high = spec->high;
    own.is_whole = is_whole_attr(spec);
    ot__options_write(out, &own, sizeof own);
    return OT_OK;
}
