// SPDX-License-Identifier: Apache-2.0
// Mixed precision: which values of a step are f32 and which have a narrower type. Records say what
// needs f32 (OT_PORT_F32); no operator is known by its name. What the pass decides depends on the
// graph and the wish alone, so it is the same on every machine.
//
// f32 stay: ports with OT_PORT_F32; nodes that follow one whose first port is such a port (losses)
// and the gradients on their way back to it; scalars; gradients of parameters, which are made in
// f32 of narrower operands; parameters, whose readers get a Cast.
#include "passes/passes.h"

enum { ACCUMULATED = 1 }; // input of an operator with OT_OP_ACCUMULATE: what is added

enum { OTHER_TYPE, STAYS_F32, LOWERED };

typedef struct lowering {
    ot_model *model;
    ot_graph *graph;
    ot_dtype narrow;
    ot__uses uses;
    ot__arena *arena;
    ot__builder b;
    bool *is_forward, *is_kept; // per node: an output needs it; all its floats are f32
    bool *is_gradient;          // per value: of a parameter, or summed into one
    unsigned char *type;        // per value: of those that were f32, the one it has now
    ot_value **other;           // per value: the same in the other of the two types
} lowering;

static bool is_f32_value(const ot_value *v)
{
    return v != NULL && v->kind == OT_VALUE_TENSOR && v->dtype == OT_F32;
}

static bool is_single(const ot_value *v)
{
    int64_t count;

    return ot__shape_count(v->constant ? &v->constant->shape : &v->shape, &count) && count == 1;
}

// Ports that are f32 whatever the others are.
static bool needs_f32(const ot_op_def *op, const ot_port *port)
{
    return (port->flags & (OT_PORT_F32 | OT_PORT_STATE)) != 0 ||
           (ot__op_type_set(op, port->type) >> OT_BF16 & 1) == 0;
}

// ---- nodes that keep f32 ----

static bool is_loss(const ot_node *node)
{
    const ot_port *first = ot__op_input_port(node->op, 0);

    return first != NULL && (first->flags & OT_PORT_F32) != 0 &&
           (first->flags & OT_PORT_STATE) == 0 && is_f32_value(node->inputs[0]);
}

static bool is_read_by(const lowering *l, const ot_node *node, const bool *marked, bool forward)
{
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *y = node->outputs[i];

        if (y == NULL)
            continue;
        for (int u = ot__uses_first(&l->uses, y); u < ot__uses_end(&l->uses, y); u++) {
            const int n = ot__node_number(&l->uses.numbers, l->uses.use[u].node);

            if (marked[n] && l->is_forward[n] == forward)
                return true;
        }
    }
    return false;
}

static bool makes_output(const ot_node *node)
{
    if ((node->op->flags & OT_OP_ACCUMULATE) != 0)
        return false;
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] != NULL && node->outputs[i]->is_output)
            return true;
    return false;
}

static bool follows_kept(const lowering *l, const ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const ot_node *producer = node->inputs[i] != NULL ? node->inputs[i]->producer : NULL;

        if (producer != NULL && l->is_kept[ot__node_number(&l->uses.numbers, producer)])
            return true;
    }
    return false;
}

// Sequences and what subgraphs read have one type throughout.
static bool has_fixed_types(const ot_node *node)
{
    if (ot__next_subgraph(&(ot__subgraphs){.node = node}))
        return true;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL && node->inputs[i]->kind != OT_VALUE_TENSOR)
            return true;
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] != NULL && node->outputs[i]->kind != OT_VALUE_TENSOR)
            return true;
    return false;
}

static void find_losses(lowering *l)
{
    const ot_graph *g = l->graph;

    for (int n = g->n_nodes - 1; n >= 0; n--)
        l->is_forward[n] =
            makes_output(g->nodes[n]) || is_read_by(l, g->nodes[n], l->is_forward, true);
    for (int n = 0; n < g->n_nodes; n++)
        l->is_kept[n] = l->is_forward[n] && (is_loss(g->nodes[n]) || follows_kept(l, g->nodes[n]));
    for (int n = g->n_nodes - 1; n >= 0; n--)
        if (!l->is_forward[n])
            l->is_kept[n] = is_loss(g->nodes[n]) || is_read_by(l, g->nodes[n], l->is_kept, false);
    for (int n = 0; n < g->n_nodes; n++)
        l->is_kept[n] = l->is_kept[n] || has_fixed_types(g->nodes[n]);
}

// ---- gradients of parameters ----

// A node whose result is the gradient, and that only moves or adds up what others made.
static bool hands_on_gradient(const ot_node *node)
{
    if ((node->op->flags & (OT_OP_REARRANGE | OT_OP_VIEW)) != 0)
        return true;
    if (node->op->tile == NULL || node->n_outputs != 1)
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (!is_f32_value(node->inputs[i]) || node->inputs[i]->producer == NULL ||
            !ot__values_same_shape(node->inputs[i], node->outputs[0]))
            return false;
    return true;
}

static bool has_one_reader(const lowering *l, const ot_value *v)
{
    return !v->is_output && ot__uses_count(&l->uses, v) == 1;
}

static void find_parameter_gradients(lowering *l)
{
    for (int n = l->graph->n_nodes - 1; n >= 0; n--) {
        const ot_node *node = l->graph->nodes[n];
        const bool accumulates =
            (node->op->flags & OT_OP_ACCUMULATE) != 0 && node->n_inputs > ACCUMULATED;
        bool makes_gradient = false;

        if (accumulates && node->inputs[ACCUMULATED] != NULL)
            l->is_gradient[ot__value_number(&l->uses.numbers, node->inputs[ACCUMULATED])] = true;
        for (int i = 0; i < node->n_outputs; i++)
            makes_gradient = makes_gradient ||
                             (node->outputs[i] != NULL &&
                              l->is_gradient[ot__value_number(&l->uses.numbers, node->outputs[i])]);
        if (accumulates || !makes_gradient || !hands_on_gradient(node))
            continue;
        for (int i = 0; i < node->n_inputs; i++)
            if (is_f32_value(node->inputs[i]) && !has_one_reader(l, node->inputs[i]))
                makes_gradient = false;
        if (!makes_gradient)
            continue;
        l->is_kept[n] = true;
        for (int i = 0; i < node->n_inputs; i++)
            if (is_f32_value(node->inputs[i]))
                l->is_gradient[ot__value_number(&l->uses.numbers, node->inputs[i])] = true;
    }
}

// ---- values ----

static bool stays_f32(const lowering *l, const ot_value *v)
{
    const ot_node *node = v->producer;

    return node == NULL || is_single(v) || l->is_kept[ot__node_number(&l->uses.numbers, node)] ||
           l->is_gradient[ot__value_number(&l->uses.numbers, v)] ||
           needs_f32(node->op, ot__op_output_port(node->op, v->i_producer_output));
}

typedef enum wish { WISH_F32, WISH_NARROW, WISH_NONE } wish;

// What a node wants an input to be that was f32 before.
static wish wish_of(const lowering *l, const ot_node *node, int i)
{
    const ot_value *x = node->inputs[i];
    const ot_port *port = ot__op_input_port(node->op, i);

    if ((port->flags & OT_PORT_STATE) != 0 || (i == 0 && (node->op->flags & OT_OP_SHAPE_ONLY) != 0))
        return WISH_NONE;
    if (l->is_kept[ot__node_number(&l->uses.numbers, node)] || needs_f32(node->op, port) ||
        ((node->op->flags & OT_OP_ACCUMULATE) != 0 && i == ACCUMULATED))
        return WISH_F32;
    // Of a parameter's rows those that are chosen are converted, not all.
    if (is_single(x) || ((port->flags & OT_PORT_TABLE) != 0 && x->producer == NULL))
        return WISH_NONE;
    return WISH_NARROW;
}

static ot_value *cast_constant(lowering *l, const ot_value *x, ot_value *to)
{
    to->constant = ot__model_tensor_new(l->model, l->narrow, &x->constant->shape);
    if (!ot__build_made(&l->b, to->constant != NULL))
        return NULL;
    (void)ot__convert(to->constant->data, l->narrow, x->constant->data, OT_F32,
                      ot_tensor_count(x->constant));
    return to;
}

// `x` in the other of the two types, made once.
static ot_value *cast_value(lowering *l, ot_value *x)
{
    const int v = ot__value_number(&l->uses.numbers, x);
    const ot_dtype to = l->type[v] == STAYS_F32 ? l->narrow : OT_F32;
    ot_value *value = l->other[v];
    const char *name;
    ot_node *node;

    if (value != NULL || l->b.status != OT_OK)
        return value;
    name = ot__build_name(&l->b, "%s.%s", x->name, ot_dtype_name(to));
    value = ot__build_value(&l->b, name);
    if (value == NULL)
        return NULL;
    l->other[v] = value;
    ot__value_set(value, to, x->constant != NULL ? &x->constant->shape : &x->shape);
    if (x->constant != NULL && !x->is_input)
        return cast_constant(l, x, value);
    node = ot__op_build(&l->b, "", "Cast", name, &x, 1, &value, 1);
    ot__build_int(&l->b, node, "to", (int64_t)to);
    ot__op_settle(&l->b, node);
    return value;
}

static void cast_inputs(lowering *l, ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        ot_value *x = node->inputs[i];
        const int type = x == NULL ? OTHER_TYPE : l->type[ot__value_number(&l->uses.numbers, x)];
        const wish want = type == OTHER_TYPE ? WISH_NONE : wish_of(l, node, i);

        if ((want == WISH_F32 && type == LOWERED) || (want == WISH_NARROW && type == STAYS_F32))
            node->inputs[i] = cast_value(l, x);
    }
}

static void cast_outputs(lowering *l)
{
    for (int i = 0; i < l->graph->n_outputs; i++) {
        ot_value *y = l->graph->outputs[i], *to;

        if (l->type[ot__value_number(&l->uses.numbers, y)] != LOWERED)
            continue;
        to = cast_value(l, y);
        if (to == NULL)
            return;
        y->is_output = false;
        to->is_output = true;
        l->graph->outputs[i] = to;
    }
}

static ot_status lower(lowering *l)
{
    const size_t n_nodes = (size_t)l->graph->n_nodes + 1;
    const size_t n_values = (size_t)l->uses.numbers.n_values + 1;
    const int n_before = l->graph->n_nodes;

    l->is_forward = ot__arena_alloc(l->arena, n_nodes);
    l->is_kept = ot__arena_alloc(l->arena, n_nodes);
    l->is_gradient = ot__arena_alloc(l->arena, n_values);
    l->type = ot__arena_alloc(l->arena, n_values);
    l->other = ot__arena_alloc(l->arena, n_values * sizeof(ot_value *));
    OT_TRY(ot__made(l->is_forward != NULL && l->is_kept != NULL && l->is_gradient != NULL &&
                    l->type != NULL && l->other != NULL));
    find_losses(l);
    find_parameter_gradients(l);
    for (int v = 0; v < l->uses.numbers.n_values; v++) {
        const ot_value *value = l->uses.numbers.values[v];

        if (is_f32_value(value))
            l->type[v] = stays_f32(l, value) ? STAYS_F32 : LOWERED;
    }
    for (int v = 0; v < l->uses.numbers.n_values; v++)
        if (l->type[v] == LOWERED)
            l->uses.numbers.values[v]->dtype = l->narrow;
    l->model->narrow = l->narrow;
    for (int n = 0; n < n_before; n++)
        cast_inputs(l, l->graph->nodes[n]);
    cast_outputs(l);
    OT_TRY(l->b.status);
    return ot__graph_sort(l->graph);
}

ot_status ot__pass_precision(ot_model *model, ot_dtype narrow)
{
    lowering l = {.model = model, .graph = model->graph, .narrow = narrow};
    ot_status st;

    l.b.graph = model->graph;
    l.arena = ot__arena_create();
    st = l.arena == NULL ? OT_ERR_NO_MEMORY : ot__uses_build(model->graph, &l.uses);
    OT_THEN(st, lower(&l));
    ot__uses_deinit(&l.uses);
    ot__arena_destroy(l.arena);
    return st == OT_OK ? ot__pass_finished(model, "precision") : st;
}
