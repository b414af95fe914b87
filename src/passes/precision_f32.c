// SPDX-License-Identifier: Apache-2.0
// Which nodes stay f32 in mixed precision. Three rules, by records and by the graph:
//
//   - a loss: a node whose first port is OT_PORT_F32, and what follows it;
//   - what no layer follows, and what follows no layer. A layer is a node with a weight, or one
//     that reads a parameter of several elements together with other values. So losses that are
//     written in plain operators are f32, their targets, positions, masks and scaled inputs, and
//     what is computed of parameters alone: small tensors, whose sums, squares and exponentials
//     would be the first to overflow or to lose what counts. Values between layers, which are most
//     of the memory, are narrow;
//   - of the backward pass what leads from the seed down to such nodes, and what only moves or adds
//     up gradients of parameters.
//
// Nodes that move elements commute with rounding and go with their neighbours.
#include "passes/precision.h"

enum { ACCUMULATED = 1 }; // input of an operator with OT_OP_ACCUMULATE: what is added

bool ot__value_is_f32(const ot_value *v)
{
    return v != NULL && v->kind == OT_VALUE_TENSOR && v->dtype == OT_F32;
}

bool ot__value_is_single(const ot_value *v)
{
    int64_t count;

    return ot__shape_count(v->constant ? &v->constant->shape : &v->shape, &count) && count == 1;
}

bool ot__port_needs_f32(const ot_op_def *op, const ot_port *port)
{
    return (port->flags & (OT_PORT_F32 | OT_PORT_STATE)) != 0 ||
           (ot__op_type_set(op, port->type) >> OT_BF16 & 1) == 0;
}

static int number_of(const ot__f32_nodes *f, const ot_node *node)
{
    return ot__node_number(&f->uses.numbers, node);
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

// ---- losses by their records ----

static bool is_loss(const ot_node *node)
{
    const ot_port *first = ot__op_input_port(node->op, 0);

    return first != NULL && (first->flags & OT_PORT_F32) != 0 &&
           (first->flags & OT_PORT_STATE) == 0 && ot__value_is_f32(node->inputs[0]);
}

// Whether a node that reads an output of this one is marked, and of the forward pass or not.
static bool is_read_by(const ot__f32_nodes *f, const ot_node *node, const bool *marked,
                       bool forward)
{
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *y = node->outputs[i];

        if (y == NULL)
            continue;
        for (int u = ot__uses_first(&f->uses, y); u < ot__uses_end(&f->uses, y); u++) {
            const int n = number_of(f, f->uses.use[u].node);

            if (marked[n] && f->is_forward[n] == forward)
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

static bool follows(const ot__f32_nodes *f, const ot_node *node, const bool *marked)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const ot_node *producer = node->inputs[i] != NULL ? node->inputs[i]->producer : NULL;

        if (producer != NULL && marked[number_of(f, producer)])
            return true;
    }
    return false;
}

static void find_losses(ot__f32_nodes *f)
{
    const ot_graph *g = f->graph;

    for (int n = g->n_nodes - 1; n >= 0; n--)
        f->is_forward[n] =
            makes_output(g->nodes[n]) || is_read_by(f, g->nodes[n], f->is_forward, true);
    for (int n = 0; n < g->n_nodes; n++)
        f->is_kept[n] =
            f->is_forward[n] && (is_loss(g->nodes[n]) || follows(f, g->nodes[n], f->is_kept));
    for (int n = g->n_nodes - 1; n >= 0; n--)
        if (!f->is_forward[n])
            f->is_kept[n] = is_loss(g->nodes[n]) || is_read_by(f, g->nodes[n], f->is_kept, false);
    for (int n = 0; n < g->n_nodes; n++)
        f->is_kept[n] = f->is_kept[n] || has_fixed_types(g->nodes[n]);
}

// ---- what is not between layers ----

typedef struct layers {
    ot__f32_nodes *f;
    bool *is_parameter;                  // per value: an input of the graph that is one
    bool *of_parameters;                 // per node: of parameters and constants alone
    bool *is_layer, *follows, *precedes; // per node: is one; or behind, or before one
} layers;

static bool is_weight(const layers *l, const ot_value *v)
{
    return v->producer != NULL ? l->of_parameters[number_of(l->f, v->producer)]
                               : l->is_parameter[ot__value_number(&l->f->uses.numbers, v)];
}

static bool has_weight_port(const ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL &&
            (ot__op_input_port(node->op, i)->flags & OT_PORT_WEIGHT) != 0)
            return true;
    return false;
}

// Its record says what it has in f32.
static bool has_f32_port(const ot_op_def *op)
{
    for (const ot_port *p = op->inputs; p != NULL && p->name != NULL; p++)
        if ((p->flags & OT_PORT_F32) != 0)
            return true;
    for (const ot_port *p = op->outputs; p != NULL && p->name != NULL; p++)
        if ((p->flags & OT_PORT_F32) != 0)
            return true;
    return false;
}

// What takes truth values as it takes numbers computes nothing of them.
static bool only_moves(const ot_node *node)
{
    const ot_port *y = ot__op_output_port(node->op, 0);

    return y != NULL && ot__value_is_f32(node->outputs[0]) &&
           (ot__op_type_set(node->op, y->type) >> OT_BOOL & 1) != 0;
}

static bool is_of_parameters(const layers *l, const ot_node *node)
{
    bool reads_weight = false;

    for (int i = 0; i < node->n_inputs; i++) {
        const ot_value *x = node->inputs[i];

        if (x == NULL || (x->constant != NULL && !x->is_input))
            continue;
        if (!is_weight(l, x))
            return false;
        reads_weight = true;
    }
    return reads_weight && !has_weight_port(node) && !has_fixed_types(node);
}

static bool is_layer(const layers *l, const ot_node *node)
{
    bool makes_several = false;

    if (has_weight_port(node) || has_fixed_types(node))
        return true;
    for (int i = 0; i < node->n_outputs; i++)
        makes_several =
            makes_several || (node->outputs[i] != NULL && !ot__value_is_single(node->outputs[i]));
    for (int i = 0; makes_several && i < node->n_inputs; i++)
        if (ot__value_is_f32(node->inputs[i]) && !ot__value_is_single(node->inputs[i]) &&
            is_weight(l, node->inputs[i]))
            return true;
    return false;
}

static void find_layers(layers *l)
{
    const ot__f32_nodes *f = l->f;
    const ot_graph *g = f->graph;

    for (int n = 0; n < g->n_nodes; n++) {
        l->of_parameters[n] = is_of_parameters(l, g->nodes[n]);
        l->is_layer[n] = !l->of_parameters[n] && is_layer(l, g->nodes[n]);
        l->follows[n] = l->is_layer[n] || follows(f, g->nodes[n], l->follows);
    }
    for (int n = g->n_nodes - 1; n >= 0; n--)
        l->precedes[n] =
            f->is_forward[n] && (l->is_layer[n] || is_read_by(f, g->nodes[n], l->precedes, true));
}

static bool has_only_kept_readers(const ot__f32_nodes *f, const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *y = node->outputs[i];

        for (int u = y != NULL ? ot__uses_first(&f->uses, y) : 0;
             y != NULL && u < ot__uses_end(&f->uses, y); u++) {
            const int n = number_of(f, f->uses.use[u].node);

            if (f->is_forward[n] && !f->is_kept[n])
                return false;
        }
    }
    return true;
}

// Nodes that move elements commute with rounding: before the first layer they go with those that
// read them, behind the last one with those that they read.
static void keep_forward(layers *l)
{
    ot__f32_nodes *f = l->f;
    const ot_graph *g = f->graph;

    for (int n = 0; n < g->n_nodes; n++)
        if (f->is_forward[n] && !(l->follows[n] && l->precedes[n]) &&
            !has_f32_port(g->nodes[n]->op))
            f->is_kept[n] = f->is_kept[n] || !only_moves(g->nodes[n]) ||
                            (l->follows[n] && follows(f, g->nodes[n], f->is_kept));
    for (int n = g->n_nodes - 1; n >= 0; n--)
        if (f->is_forward[n] && !l->follows[n] && only_moves(g->nodes[n]))
            f->is_kept[n] = f->is_kept[n] || has_only_kept_readers(f, g->nodes[n]);
}

// ---- their gradients ----

// Gradients come down from the seed and from nodes that are kept; with values of layers, but with
// no other gradients. Factors of them may be made of what is kept alone.
static bool is_gradient_of_kept(const layers *l, const ot_node *node)
{
    const ot__f32_nodes *f = l->f;
    bool continues = false, is_of_kept = true, reads = false;

    for (int i = 0; i < node->n_inputs; i++) {
        const ot_value *x = node->inputs[i];
        const int from = ot__value_is_f32(x) && x->producer ? number_of(f, x->producer) : -1;

        if (!ot__value_is_f32(x))
            continue;
        reads = true;
        if (ot__value_is_single(x))
            continue;
        if (is_weight(l, x) || (from >= 0 && !f->is_forward[from] && !f->is_kept[from]))
            return false;
        continues = continues || (from >= 0 && !f->is_forward[from]);
        is_of_kept = is_of_kept && from >= 0 && f->is_kept[from];
    }
    return continues || (reads && is_of_kept);
}

// Of nodes without a formula: Expand, Reshape, sums along axes.
static bool goes_with_readers(const ot_node *node)
{
    int n = 0;

    for (int i = 0; i < node->n_inputs; i++)
        n += ot__value_is_f32(node->inputs[i]);
    return n == 1 && node->op->tile == NULL;
}

static void keep_backward(layers *l)
{
    ot__f32_nodes *f = l->f;
    const ot_graph *g = f->graph;

    for (int n = 0; n < g->n_nodes; n++)
        if (!f->is_forward[n] && (g->nodes[n]->op->flags & OT_OP_ACCUMULATE) == 0 &&
            !has_weight_port(g->nodes[n]) && !has_f32_port(g->nodes[n]->op))
            f->is_kept[n] = f->is_kept[n] || is_gradient_of_kept(l, g->nodes[n]);
    for (int n = g->n_nodes - 1; n >= 0; n--)
        if (!f->is_forward[n] && goes_with_readers(g->nodes[n]) && !has_fixed_types(g->nodes[n]) &&
            !is_loss(g->nodes[n]))
            f->is_kept[n] = is_read_by(f, g->nodes[n], f->is_kept, false);
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
        if (!ot__value_is_f32(node->inputs[i]) || node->inputs[i]->producer == NULL ||
            !ot__values_same_shape(node->inputs[i], node->outputs[0]))
            return false;
    return true;
}

static bool has_one_reader(const ot__f32_nodes *f, const ot_value *v)
{
    return !v->is_output && ot__uses_count(&f->uses, v) == 1;
}

static void find_parameter_gradients(ot__f32_nodes *f)
{
    for (int n = f->graph->n_nodes - 1; n >= 0; n--) {
        const ot_node *node = f->graph->nodes[n];
        const bool accumulates =
            (node->op->flags & OT_OP_ACCUMULATE) != 0 && node->n_inputs > ACCUMULATED;
        bool makes_gradient = false;

        if (accumulates && node->inputs[ACCUMULATED] != NULL)
            f->is_gradient[ot__value_number(&f->uses.numbers, node->inputs[ACCUMULATED])] = true;
        for (int i = 0; i < node->n_outputs; i++)
            makes_gradient = makes_gradient ||
                             (node->outputs[i] != NULL &&
                              f->is_gradient[ot__value_number(&f->uses.numbers, node->outputs[i])]);
        if (accumulates || !makes_gradient || !hands_on_gradient(node))
            continue;
        for (int i = 0; i < node->n_inputs; i++)
            if (ot__value_is_f32(node->inputs[i]) && !has_one_reader(f, node->inputs[i]))
                makes_gradient = false;
        if (!makes_gradient)
            continue;
        f->is_kept[n] = true;
        for (int i = 0; i < node->n_inputs; i++)
            if (ot__value_is_f32(node->inputs[i]))
                f->is_gradient[ot__value_number(&f->uses.numbers, node->inputs[i])] = true;
    }
}

static ot_status find_between_layers(ot__f32_nodes *f, ot__arena *arena)
{
    const size_t n_nodes = (size_t)f->graph->n_nodes + 1;
    layers l = {.f = f,
                .is_parameter = ot__arena_alloc(arena, (size_t)f->uses.numbers.n_values + 1),
                .of_parameters = ot__arena_alloc(arena, n_nodes),
                .is_layer = ot__arena_alloc(arena, n_nodes),
                .follows = ot__arena_alloc(arena, n_nodes),
                .precedes = ot__arena_alloc(arena, n_nodes)};

    OT_TRY(ot__made(l.is_parameter != NULL && l.of_parameters != NULL && l.is_layer != NULL &&
                    l.follows != NULL && l.precedes != NULL));
    for (int i = 0; i < f->graph->n_inputs; i++)
        l.is_parameter[ot__value_number(&f->uses.numbers, f->graph->inputs[i])] =
            f->is_parameter[i];
    find_layers(&l);
    keep_forward(&l);
    keep_backward(&l);
    return OT_OK;
}

ot_status ot__f32_nodes_find(ot__f32_nodes *f, ot__arena *arena)
{
    const size_t n_nodes = (size_t)f->graph->n_nodes + 1;

    f->is_forward = ot__arena_alloc(arena, n_nodes);
    f->is_kept = ot__arena_alloc(arena, n_nodes);
    f->is_gradient = ot__arena_alloc(arena, (size_t)f->uses.numbers.n_values + 1);
    OT_TRY(ot__made(f->is_forward != NULL && f->is_kept != NULL && f->is_gradient != NULL));
    find_losses(f);
    if (f->is_parameter != NULL)
        OT_TRY(find_between_layers(f, arena));
    find_parameter_gradients(f);
    return OT_OK;
}
