// SPDX-License-Identifier: Apache-2.0
// The layout of every value. A node asks for layouts through its kernel; elementwise nodes take
// that of their operands, so whole regions come to share one and Reorder nodes stand only at their
// borders. What the plan hands out or others own (outputs, state, inputs whose layout is not given)
// is row-major.
#include <assert.h>

#include "exec/plan.h"

// A copy of a value in another layout that is already there.
typedef struct copy {
    ot_value *value;
    const ot_layout *layout;
} copy;

typedef struct chooser {
    ot__plan_builder *b;
    ot_graph *graph;
    ot_node **nodes; // the new list
    int n_nodes;
    copy *copies; // the latest of each value
    int capacity; // values there is room for
} chooser;

// ---- new nodes ----

static int layout_number(const chooser *l, const ot_value *value)
{
    return ot__value_number(&l->b->numbers, value);
}

static ot_value *layout_of_new_value(chooser *l, const ot_value *like, const ot_layout *layout)
{
    ot_value *value = ot__graph_new_value(l->graph, like->name);

    if (value == NULL)
        return NULL;
    ot__value_set(value, like->dtype, like->constant ? &like->constant->shape : &like->shape);
    if (ot__numbers_add(&l->b->numbers, value) != OT_OK)
        return NULL;
    l->b->layouts[layout_number(l, value)] = layout;
    return value;
}

static ot_status add_reorder(chooser *l, ot_value *from, ot_value *to)
{
    const int n_before = l->graph->n_nodes;
    ot__builder b = {.graph = l->graph};
    ot_node *node = ot__op_build(&b, "ai.onnxtrain", "Reorder", to->name, &from, 1, &to, 1);

    l->graph->n_nodes = n_before; // it goes where it is needed, not behind
    if (node != NULL)
        l->nodes[l->n_nodes++] = node;
    return b.status;
}

static ot_status bring_input(chooser *l, ot_node *node, int i, const ot_layout *layout)
{
    ot_value *value = node->inputs[i];
    copy *have = &l->copies[layout_number(l, value)];

    if (ot__layout_equal(l->b->layouts[layout_number(l, value)], layout))
        return OT_OK;
    if (have->value == NULL || !ot__layout_equal(have->layout, layout)) {
        ot_value *to = layout_of_new_value(l, value, layout);

        OT_TRY(ot__made(to != NULL));
        OT_TRY(add_reorder(l, value, to));
        *have = (copy){to, layout};
    }
    node->inputs[i] = have->value;
    return OT_OK;
}

// An output that must be row-major while its kernel writes another layout.
static ot_status bring_output(chooser *l, ot_node *node, int i, const ot_layout *layout)
{
    ot_value *value = node->outputs[i];
    ot_value *made = layout_of_new_value(l, value, layout);

    OT_TRY(ot__made(made != NULL));
    made->producer = node;
    made->i_producer_output = i;
    node->outputs[i] = made;
    value->producer = NULL;
    OT_TRY(add_reorder(l, made, value));
    l->copies[layout_number(l, value)] = (copy){made, layout};
    return OT_OK;
}

// ---- what a node wants ----

static bool is_scalar(const ot_arg *x)
{
    return x->count == 1;
}

// How many operands have a layout. There are few layouts, but there may be many operands.
typedef struct tally {
    const ot_layout *layout;
    int n;
} tally;

static tally *tally_of(tally *tallies, int *n_tallies, const ot_layout *layout)
{
    int i = 0;

    while (i < *n_tallies && !ot__layout_equal(tallies[i].layout, layout))
        i++;
    if (i == *n_tallies)
        tallies[(*n_tallies)++] = (tally){layout, 0};
    return &tallies[i];
}

// Whether what is computed has one shape, but for single elements. Where it is not, positions in
// one tensor follow from those in another, and the kernel must know how.
static bool has_one_shape(const ot_node *node, const ot__view *v)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (v->out[i] != NULL && !ot__shape_equal(&v->out[i]->shape, &v->out[0]->shape))
            return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (v->in[i] != NULL && !is_scalar(v->in[i]) &&
            !ot__shape_equal(&v->in[i]->shape, &v->out[0]->shape))
            return false;
    return true;
}

// The layout most operands of full shape have, and of equally frequent ones not the row-major one.
static const ot_layout *elementwise_layout(const ot_node *node, const ot__view *v, tally *tallies)
{
    const ot_layout *best = NULL;
    int most = 0, n_tallies = 0;

    for (int i = 0; i < node->n_inputs; i++)
        if (v->in[i] != NULL)
            tally_of(tallies, &n_tallies, v->in[i]->layout)->n++;
    for (int i = 0; i < node->n_inputs; i++) {
        if (v->in[i] == NULL || is_scalar(v->in[i]))
            continue;
        const int n = tally_of(tallies, &n_tallies, v->in[i]->layout)->n;

        if (n > most || (n == most && best == NULL)) {
            most = n;
            best = v->in[i]->layout;
        }
    }
    return best;
}

// What is written in place stays as it lies: what else has its shape is read in that layout.
static bool ask_for_state(const ot_node *node, ot__view *v)
{
    const ot_arg *state = NULL;

    for (int i = 0; i < node->n_inputs && state == NULL; i++)
        if ((ot__op_input_port(node->op, i)->flags & OT_PORT_STATE) != 0)
            state = v->in[i];
    for (int i = 0; state != NULL && i < node->n_inputs; i++)
        if (v->in[i] != NULL && ot__shape_equal(&v->in[i]->shape, &state->shape))
            v->want_in[i] = state->layout;
    return state != NULL;
}

static ot_status ask_elementwise(const chooser *l, const ot_node *node, ot__view *v)
{
    tally *tallies = ot__arena_alloc(l->b->arena, ((size_t)node->n_inputs + 1) * sizeof *tallies);
    const ot_layout *layout;

    OT_TRY(ot__made(tallies != NULL));
    if (ask_for_state(node, v) || v->out[0] == NULL)
        return OT_OK;
    if (!has_one_shape(node, v))
        return ot__view_ask(l->b, node, v);
    layout = elementwise_layout(node, v, tallies);
    for (int i = 0; i < node->n_inputs; i++)
        if (v->in[i] != NULL && !is_scalar(v->in[i]))
            v->want_in[i] = layout;
    for (int i = 0; i < node->n_outputs; i++)
        v->want_out[i] = layout;
    return OT_OK;
}

// A layout that does not fit its tensor would lose elements, so it is not taken.
static const ot_layout *fitting(const ot_layout *layout, const ot_arg *arg)
{
    return arg != NULL && ot__layout_fits(layout, &arg->shape) ? layout : NULL;
}

static bool must_be_plain(const ot_node *node, int i_output)
{
    const ot_port *port = ot__op_output_port(node->op, i_output);

    return node->outputs[i_output]->is_output || (port->flags & OT_PORT_STATE) != 0;
}

static ot_status lay_out(chooser *l, ot_node *node)
{
    ot__view v;

    OT_TRY(ot__view_make(l->b, node, &v));
    if (v.is_complete) {
        if ((node->op->flags & OT_OP_ANY_LAYOUT) != 0)
            OT_TRY(ask_elementwise(l, node, &v));
        else
            OT_TRY(ot__view_ask(l->b, node, &v));
    }
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL)
            OT_TRY(bring_input(l, node, i, fitting(v.want_in[i], v.in[i])));
    l->nodes[l->n_nodes++] = node;
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_layout *layout;

        if (node->outputs[i] == NULL)
            continue;
        layout = fitting(v.want_out[i], v.out[i]);
        if (layout != NULL && must_be_plain(node, i))
            OT_TRY(bring_output(l, node, i, layout));
        else
            l->b->layouts[layout_number(l, node->outputs[i])] = layout;
    }
    return OT_OK;
}

// A parameter in a layout of its own that is an output too is handed out row-major.
static ot_status lay_out_output(chooser *l, int i_output)
{
    ot_value *value = l->graph->outputs[i_output], *to;

    if (l->b->layouts[layout_number(l, value)] == NULL)
        return OT_OK;
    to = layout_of_new_value(l, value, NULL);
    OT_TRY(ot__made(to != NULL));
    value->is_output = false;
    to->is_output = true;
    l->graph->outputs[i_output] = to;
    return add_reorder(l, value, to);
}

// ---- the stage ----

static ot_status prepare_layouts(chooser *l)
{
    ot__arena *arena = l->b->arena;
    const ot_graph *g = l->graph;
    int n_nodes = g->n_nodes + g->n_outputs;

    l->capacity = l->b->numbers.n_values + g->n_outputs;
    for (int n = 0; n < g->n_nodes; n++) {
        l->capacity += g->nodes[n]->n_inputs + g->nodes[n]->n_outputs;
        n_nodes += g->nodes[n]->n_inputs + g->nodes[n]->n_outputs;
    }
    l->nodes = ot__arena_alloc(g->model->arena, ((size_t)n_nodes + 1) * sizeof *l->nodes);
    l->copies = ot__arena_alloc(arena, ((size_t)l->capacity + 1) * sizeof *l->copies);
    l->b->layouts = ot__arena_alloc(arena, ((size_t)l->capacity + 1) * sizeof *l->b->layouts);
    OT_TRY(ot__made(l->nodes != NULL && l->copies != NULL && l->b->layouts != NULL));
    for (int i = 0; i < g->n_inputs && l->b->options->input_layouts != NULL; i++) {
        assert(ot__layout_fits(l->b->options->input_layouts[i], &g->inputs[i]->shape));
        l->b->layouts[layout_number(l, g->inputs[i])] = l->b->options->input_layouts[i];
    }
    return OT_OK;
}

ot_status ot__build_layout(ot__plan_builder *b)
{
    chooser l = {.b = b, .graph = b->graph};

    OT_TRY(ot__numbers_build(b->graph, &b->numbers));
    OT_TRY(prepare_layouts(&l));
    for (int n = 0; n < b->graph->n_nodes; n++)
        OT_TRY(lay_out(&l, b->graph->nodes[n]));
    for (int i = 0; i < b->graph->n_outputs; i++)
        OT_TRY(lay_out_output(&l, i));
    b->graph->nodes = l.nodes;
    b->graph->n_nodes = b->graph->nodes_capacity = l.n_nodes;
    return ot__numbers_set_nodes(&b->numbers, b->graph);
}
