// SPDX-License-Identifier: Apache-2.0
// What trains although nothing says that it is a parameter: neither the file nor the port of an
// operator that is made for one. And numbers that do not train, though they may be parameters.
#include <math.h>
#include <string.h>

#include "artifacts/forward.h"
#include "passes/passes.h"

enum { MAX_GROUPS = 32 };

// Those of one shape that one kind of operator reads are told together.
typedef struct group {
    const ot__candidate *first;
    ot__shown_names shown;
    double min, max;
} group;

static bool is_named_by_caller(const ot__patterns *trainable, const ot_value *value)
{
    const char *pattern = ot__patterns_match(trainable, value);

    return pattern && ot__pattern_is_name(pattern);
}

static bool is_unsure(const ot__candidate *item, const ot__patterns *trainable)
{
    return item->role == OT_ROLE_TRAINABLE && !item->has_role && item->reader &&
           item->origin != OT_ORIGIN_PARAMETER && !is_named_by_caller(trainable, item->value);
}

static void add_unsure(group *g, const ot__candidate *item)
{
    const ot_tensor *t = item->value->constant;

    for (int64_t i = 0; t && i < ot_tensor_count(t); i++) {
        const double x = ot__tensor_get_f64(t, i);

        g->min = fmin(g->min, x);
        g->max = fmax(g->max, x);
    }
    if (g->shown.n == 0)
        g->first = item;
    ot__shown_names_add(&g->shown, item->value->name);
}

static void say_range(ot__buf *text, const group *g)
{
    const ot_value *value = g->first->value;

    ot__buf_printf(text, ", %s%s", ot_dtype_name(value->dtype), OT_SHAPE_TEXT(&value->shape));
    if (g->min < g->max)
        ot__buf_printf(text, " from %g to %g", g->min, g->max);
    else if (g->min == g->max)
        ot__buf_printf(text, ", all %g", g->min);
}

// Frees the text.
static ot_status note_text(ot__forward *forward, ot__buf *text)
{
    ot_status st = ot__buf_status(text);

    OT_THEN(st, ot__forward_note(forward, OT_LOG_INFO,
                                 ot__arena_strdup(forward->model->arena, text->data)));
    ot__buf_deinit(text);
    return st;
}

static ot_status say(ot__forward *forward, const group *g)
{
    const ot_node *reader = g->first->reader;
    ot__buf text = {0};

    ot__buf_names(&text, g->shown.names, g->shown.n);
    say_range(&text, g);
    const char *label = OT_LABEL(reader);
    if (g->shown.n == 1)
        ot__buf_printf(&text, ", trains as an operand of %s", label);
    else
        ot__buf_printf(&text, ", train as operands of %s, the first one of %s", reader->op_type,
                       label);
    ot__buf_printf(&text,
                   ", not as weight, bias, scale or table of an operator; freeze %s (--freeze, "
                   "frozen=)",
                   g->shown.n == 1 ? "it if it is a buffer" : "those that are buffers");
    return note_text(forward, &text);
}

// ---- scalars ----

// The classic exporter writes numbers of the code as nodes, or calls them "onnx::Mul_7": a scalar
// with a name of its own was a parameter or a buffer.
static bool is_named_scalar(const ot__forward *forward, const ot__candidate *item)
{
    const ot_value *value = item->value;

    return item->role == OT_ROLE_CONSTANT && value->shape.ndim == 0 && item->reaches_loss &&
           !item->place && !item->held && item->origin == OT_ORIGIN_UNKNOWN &&
           ot__dtype_is_float(value->dtype) && ot__is_letter(value->name[0]) &&
           ot__is_parameter_name(forward->model->graph, value->name) &&
           !ot__is_value_name(value->name);
}

static ot_status say_scalars(ot__forward *forward, const ot__patterns *frozen)
{
    const ot__candidates *c = &forward->candidates;
    ot__buf text = {0};
    group g = {0};

    for (int i = 0; i < c->n; i++) {
        if (!is_named_scalar(forward, &c->items[i]) ||
            ot__patterns_match(frozen, c->items[i].value))
            continue;
        add_unsure(&g, &c->items[i]);
    }
    if (g.shown.n == 0)
        return OT_OK;
    ot__buf_names(&text, g.shown.names, g.shown.n);
    ot__buf_printf(&text, "%s; train %s (--train, trainable=)",
                   g.shown.n == 1 ? ", a scalar, stays as it is" : ", scalars, stay as they are",
                   g.shown.n == 1 ? "it if it is a parameter" : "those that are parameters");
    return note_text(forward, &text);
}

static ot_status note_scalars(ot__forward *forward, const ot_artifacts_options *options)
{
    ot__patterns frozen;
    ot_status st;

    if (options->train_scalars || ot__origins_are_listed(forward->model->graph) ||
        strcmp(forward->model->producer_name, "pytorch") != 0)
        return OT_OK;
    st = ot__patterns_init(&frozen, options->frozen, options->n_frozen);
    OT_THEN(st, say_scalars(forward, &frozen));
    ot__patterns_deinit(&frozen);
    return st;
}

// ---- groups ----

typedef struct groups {
    ot__map by_kind; // of the item: what belongs together
    group **all;     // in the order of their first items
    int n, capacity;
} groups;

// The group of the item, which may be new. Texts and groups are of the arena; NULL: out of memory.
static group *find_group(groups *all, ot__arena *arena, const ot__candidate *item)
{
    const ot_value *value = item->value;
    const char *kind =
        ot__arena_printf(arena, "%d%s %s %s", (int)value->dtype, OT_SHAPE_TEXT(&value->shape),
                         item->reader->domain, item->reader->op_type);
    group *g = kind ? ot__map_get(&all->by_kind, kind) : NULL;

    if (g || !kind)
        return g;
    g = ot__arena_alloc(arena, sizeof *g);
    if (!g || !ot__map_put(&all->by_kind, kind, g) ||
        !ot__arena_push(arena, &all->all, &all->capacity, &all->n, &g, sizeof g))
        return NULL;
    *g = (group){.min = INFINITY, .max = -INFINITY};
    return g;
}

static ot_status say_more(ot__forward *forward, int n)
{
    return ot__forward_note(forward, OT_LOG_INFO,
                            ot__arena_printf(forward->model->arena,
                                             "%d more group%s of tensors train%s as operands", n,
                                             n == 1 ? "" : "s", n == 1 ? "s" : ""));
}

static ot_status say_all(ot__forward *forward, const ot__patterns *trainable, groups *all)
{
    const ot__candidates *c = &forward->candidates;

    for (int i = 0; i < c->n; i++) {
        group *g;

        if (!is_unsure(&c->items[i], trainable))
            continue;
        g = find_group(all, forward->model->arena, &c->items[i]);
        OT_TRY(ot__made(g));
        add_unsure(g, &c->items[i]);
    }
    for (int i = 0; i < all->n && i < MAX_GROUPS; i++)
        OT_TRY(say(forward, all->all[i]));
    return all->n > MAX_GROUPS ? say_more(forward, all->n - MAX_GROUPS) : OT_OK;
}

ot_status ot__forward_note_unsure(ot__forward *forward, const ot_artifacts_options *options)
{
    ot__patterns trainable;
    groups all = {0};
    ot_status st;

    if (options->train_buffers)
        return OT_OK;
    st = ot__patterns_init(&trainable, options->trainable, options->n_trainable);
    OT_THEN(st, say_all(forward, &trainable, &all));
    ot__patterns_deinit(&trainable);
    ot__map_deinit(&all.by_kind);
    OT_THEN(st, note_scalars(forward, options));
    return st;
}
