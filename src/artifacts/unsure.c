// SPDX-License-Identifier: Apache-2.0
// What trains although nothing says that it is a parameter: neither the file nor the port of an
// operator that is made for one.
#include <math.h>
#include <string.h>

#include "artifacts/forward.h"

enum { MAX_NAMED = 3 };

// Those of one shape that one kind of operator reads are told together.
typedef struct group {
    const ot__candidate *items[MAX_NAMED];
    int n;
    double min, max;
} group;

static bool is_named(const ot_artifacts_options *options, const ot_value *value)
{
    for (int i = 0; i < options->n_trainable; i++)
        if (ot__pattern_is_name(options->trainable[i]) &&
            ot__pattern_has(options->trainable[i], value))
            return true;
    return false;
}

static bool is_unsure(const ot__candidate *item, const ot_artifacts_options *options)
{
    return item->role == OT_ROLE_TRAINABLE && !item->has_role && item->reader &&
           item->origin != OT_ORIGIN_PARAMETER && !is_named(options, item->value);
}

static bool belong_together(const ot__candidate *a, const ot__candidate *b)
{
    return a->value->dtype == b->value->dtype &&
           ot__shape_equal(&a->value->shape, &b->value->shape) &&
           strcmp(a->reader->domain, b->reader->domain) == 0 &&
           strcmp(a->reader->op_type, b->reader->op_type) == 0;
}

static void add(group *g, const ot__candidate *item)
{
    const ot_tensor *t = item->value->constant;

    for (int64_t i = 0; t && i < ot_tensor_count(t); i++) {
        const double x = ot__tensor_get_f64(t, i);

        g->min = fmin(g->min, x);
        g->max = fmax(g->max, x);
    }
    if (g->n < MAX_NAMED)
        g->items[g->n] = item;
    g->n++;
}

static void say_names(ot__buf *text, const group *g)
{
    for (int i = 0; i < g->n && i < MAX_NAMED; i++)
        ot__buf_printf(text, "%s'%s'",
                       i == 0          ? ""
                       : i + 1 == g->n ? " and "
                                       : ", ",
                       g->items[i]->value->name);
    if (g->n > MAX_NAMED)
        ot__buf_printf(text, " and %d more", g->n - MAX_NAMED);
}

static void say_range(ot__buf *text, const group *g)
{
    const ot_value *value = g->items[0]->value;
    char shape[160];

    ot__buf_printf(text, ", %s%s", ot_dtype_name(value->dtype),
                   ot__shape_text(&value->shape, shape, sizeof shape));
    if (g->min < g->max)
        ot__buf_printf(text, " from %g to %g", g->min, g->max);
    else if (g->min == g->max)
        ot__buf_printf(text, ", all %g", g->min);
}

static ot_status say(ot__forward *forward, const group *g)
{
    const ot_node *reader = g->items[0]->reader;
    ot__buf text = {0};
    char label[160];
    ot_status st;

    say_names(&text, g);
    say_range(&text, g);
    ot__node_label(reader, label, sizeof label);
    if (g->n == 1)
        ot__buf_printf(&text, ", trains as an operand of %s", label);
    else
        ot__buf_printf(&text, ", train as operands of %s, the first one of %s", reader->op_type,
                       label);
    ot__buf_printf(&text,
                   ", not as weight, bias, scale or table of an operator; freeze %s (--freeze, "
                   "frozen=)",
                   g->n == 1 ? "it if it is a buffer" : "those that are buffers");
    st = ot__buf_status(&text);
    if (st == OT_OK)
        st = ot__forward_note(forward, OT_LOG_INFO,
                              ot__arena_strdup(forward->model->arena, text.data));
    ot__buf_deinit(&text);
    return st;
}

static ot_status say_all(ot__forward *forward, const ot_artifacts_options *options, bool *is_said)
{
    const ot__candidates *c = &forward->candidates;

    for (int i = 0; i < c->n; i++) {
        group g = {.min = INFINITY, .max = -INFINITY};

        if (is_said[i] || !is_unsure(&c->items[i], options))
            continue;
        for (int k = i; k < c->n; k++) {
            if (is_said[k] || !is_unsure(&c->items[k], options) ||
                !belong_together(&c->items[i], &c->items[k]))
                continue;
            is_said[k] = true;
            add(&g, &c->items[k]);
        }
        OT_TRY(say(forward, &g));
    }
    return OT_OK;
}

ot_status ot__forward_note_unsure(ot__forward *forward, const ot_artifacts_options *options)
{
    bool *is_said;
    ot_status st;

    if (options->train_buffers)
        return OT_OK;
    is_said = ot__alloc_zero((size_t)forward->candidates.n + 1, sizeof *is_said);
    if (!is_said)
        return OT_ERR_NO_MEMORY;
    st = say_all(forward, options, is_said);
    ot__free(is_said);
    return st;
}
