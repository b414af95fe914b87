// SPDX-License-Identifier: Apache-2.0
// Contributions to gradients: their names, and their sum.
#include <string.h>

#include "autodiff/accumulate.h"

// ONNX Runtime names contributions in this order.
static bool is_numbered_late(const ot_node *node)
{
    return (node->op->flags & OT_OP_LATE_PARTS) != 0;
}

static void number_parts(ot__gradients *g, int value)
{
    const ot__uses *uses = &g->reach->uses;

    for (int late = 0; late < 2; late++) {
        for (int u = uses->first[value]; u < uses->first[value + 1]; u++) {
            const ot__use *use = &uses->use[u];

            if (use->i_input >= 0 && is_numbered_late(use->node) == (late == 1) &&
                ot__reach_wants(g->reach, use->node, use->i_input))
                g->slot[u] = g->n_parts[value]++;
        }
    }
}

ot_status ot__gradients_create(ot__gradients *g, const ot__reach *reach)
{
    const size_t n_values = (size_t)reach->uses.numbers.n_values;
    const size_t n_uses = (size_t)reach->uses.first[n_values];

    *g = (ot__gradients){.reach = reach, .graph = reach->graph};
    g->of = ot__alloc_zero(n_values, sizeof(ot_value *));
    g->parts = ot__alloc_zero(n_uses, sizeof(ot_value *));
    g->slot = ot__alloc(n_uses * sizeof *g->slot);
    g->n_parts = ot__alloc_zero(n_values, sizeof *g->n_parts);
    g->n_arrived = ot__alloc_zero(n_values, sizeof *g->n_arrived);
    OT_TRY(ot__made(g->of && g->parts && g->slot && g->n_parts && g->n_arrived));
    for (size_t u = 0; u < n_uses; u++)
        g->slot[u] = -1;
    for (int v = 0; v < reach->uses.numbers.n_values; v++)
        number_parts(g, v);
    return OT_OK;
}

void ot__gradients_deinit(ot__gradients *g)
{
    ot__numbers_deinit(&g->claimed);
    ot__free(g->of);
    ot__free(g->parts);
    ot__free(g->slot);
    ot__free(g->n_parts);
    ot__free(g->n_arrived);
}

static bool is_fresh(const ot__gradients *g, const ot_value *dx)
{
    return dx->producer && !ot__reach_knows(g->reach, dx) && !ot__has_number(&g->claimed, dx);
}

// A gradient has one name and one reader's claim: what is a forward value, a constant or another
// value's gradient is handed on by an Identity.
static ot_status own(const ot__gradients *g, const ot_node *node, int i_input, ot_value **dx)
{
    ot__builder b = {.graph = g->graph};
    ot_value *copy;
    const char *name;

    if (is_fresh(g, *dx))
        return OT_OK;
    name = ot__build_name(&b, "%s_Grad/Identity_dx%d", node->name, i_input);
    copy = ot__build_value(&b, name);
    ot__op_settle(&b, ot__op_build(&b, "", "Identity", name, dx, 1, &copy, 1));
    *dx = copy;
    return b.status;
}

static ot_status check_gradient_type(const ot__gradients *g, const ot_node *node, const ot_value *x,
                                     const ot_value *dx)
{
    if (dx->kind == OT_VALUE_TENSOR && dx->dtype == x->dtype &&
        (!dx->has_shape || !x->has_shape || ot__shape_may_equal(&dx->shape, &x->shape)))
        return OT_OK;
    return ot__error(OT_ERR_INTERNAL, "%s: its rule gives '%s' a gradient %s%s, expected %s%s",
                     OT_LABEL(node), x->name, ot_dtype_name(dx->dtype),
                     OT_DIMS_TEXT(g->graph->model, &dx->shape), ot_dtype_name(x->dtype),
                     OT_DIMS_TEXT(g->graph->model, &x->shape));
}

// Name the value as a gradient of x: "<x>_grad<suffix>".
static ot_status claim(ot__gradients *g, const ot_value *x, ot_value *dx, const char *suffix)
{
    const char *name = ot__arena_printf(g->graph->model->arena, "%s_grad%s", x->name, suffix);

    OT_TRY(ot__made(name && ot__graph_rename_value(g->graph, dx, name)));
    OT_TRY(ot__numbers_add(&g->claimed, dx));
    if (x->has_shape)
        ot__value_set(dx, x->dtype, &x->shape);
    return OT_OK;
}

static ot_status sum_parts(ot__gradients *g, const ot_value *x)
{
    const int v = ot__reach_number(g->reach, x);
    ot__builder b = {.graph = g->graph};
    const char *name = ot__build_name(&b, "AccumulateGrad_%s_grad", x->name);
    ot_value *sum = ot__build_value(&b, ot__build_name(&b, "%s_grad", x->name));

    ot__op_settle(&b, ot__op_build(&b, "", "Sum", name, &g->parts[g->reach->uses.first[v]],
                                   g->n_parts[v], &sum, 1));
    OT_TRY(b.status);
    OT_TRY(ot__numbers_add(&g->claimed, sum));
    if (x->has_shape)
        ot__value_set(sum, x->dtype, &x->shape);
    g->of[v] = sum;
    return OT_OK;
}

// Uses stand in this order: by node, then by input, and what a subgraph reads last.
static bool is_before(const ot__numbers *numbers, const ot__use *use, const ot_node *node,
                      int i_input)
{
    const int at = ot__node_number(numbers, use->node), n = ot__node_number(numbers, node);

    if (at != n)
        return at < n;
    return use->i_input >= 0 && use->i_input < i_input;
}

static int slot_of(const ot__gradients *g, const ot_node *node, int i_input)
{
    const ot__uses *uses = &g->reach->uses;
    const int v = ot__reach_number(g->reach, node->inputs[i_input]), end = uses->first[v + 1];
    int low = uses->first[v], high = end;

    while (low < high) {
        const int middle = low + (high - low) / 2;

        if (is_before(&uses->numbers, &uses->use[middle], node, i_input))
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && uses->use[low].node == node && uses->use[low].i_input == i_input
               ? g->slot[low]
               : -1;
}

ot_status ot__gradients_add(ot__gradients *g, const ot_node *node, int i_input, ot_value *dx)
{
    const ot_value *x = i_input < node->n_inputs ? node->inputs[i_input] : NULL;
    const int slot = x ? slot_of(g, node, i_input) : -1;
    char suffix[32] = "";
    ot_value **part;
    int v;

    if (slot < 0) // a rule may give what nobody asked for
        return OT_OK;
    v = ot__reach_number(g->reach, x);
    part = &g->parts[g->reach->uses.first[v] + slot];
    if (*part)
        return ot__error(OT_ERR_INTERNAL, "%s: its rule gives the gradient of input %d twice",
                         OT_LABEL(node), i_input);
    OT_TRY(check_gradient_type(g, node, x, dx));
    OT_TRY(own(g, node, i_input, &dx));
    if (g->n_parts[v] > 1)
        snprintf(suffix, sizeof suffix, "_%d", slot);
    OT_TRY(claim(g, x, dx, suffix));
    *part = dx;
    if (++g->n_arrived[v] < g->n_parts[v])
        return OT_OK;
    if (g->n_parts[v] > 1)
        return sum_parts(g, x);
    g->of[v] = dx;
    return OT_OK;
}

static bool is_missing(const ot__gradients *g, const ot_node *node, int i_input)
{
    const int slot = node->inputs[i_input] ? slot_of(g, node, i_input) : -1;

    return slot >= 0 && !g->parts[ot__uses_first(&g->reach->uses, node->inputs[i_input]) + slot];
}

ot_status ot__gradients_pretend(ot__gradients *g, const ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const ot_value *x = node->inputs[i];
        ot_value *stand_in;

        if (!is_missing(g, node, i))
            continue;
        stand_in = ot__graph_new_value(g->graph, "stand_in");
        OT_TRY(ot__made(stand_in));
        ot__value_set(stand_in, x->dtype, x->has_shape ? &x->shape : NULL);
        OT_TRY(ot__gradients_add(g, node, i, stand_in));
    }
    return OT_OK;
}

ot_status ot__gradients_check(const ot__gradients *g, const ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (is_missing(g, node, i))
            return ot__error(OT_ERR_INTERNAL, "%s: its rule gives no gradient of input %d",
                             OT_LABEL(node), i);
    return OT_OK;
}
