// SPDX-License-Identifier: Apache-2.0
// Elementwise operators that hand each other their only reader's input become one ElementwiseChain:
// what lies between them is never written to memory.
#include "passes/fuse.h"

#include <string.h>

enum { MAX_STEPS = 16, MAX_INPUTS = 8 };
enum { MAX_COPIES = 4 }; // of a node, one for each reader

// The nodes of one chain in order; the last one's output is the chain's.
typedef struct chain {
    int n_nodes, n_inputs;
    ot_node *node[MAX_STEPS];
    ot_value *input[MAX_INPUTS];
    bool is_absorbed; // into a longer chain
} chain;

// Per node; NULL for nodes that cannot be part of a chain.
typedef struct chains {
    ot__uses uses;
    chain **of_node;
} chains;

static bool expr_same_dims(const ot_value *a, const ot_value *b)
{
    return a->has_shape && b->has_shape && ot__shape_equal(&a->shape, &b->shape);
}

static bool is_short_float(const ot_value *value)
{
    return value->dtype == OT_F32 || ot__dtype_is_narrow(value->dtype);
}

// One f32, f16 or bf16 output of known shape, such inputs, and a tile with vector code.
static bool is_elementwise(const ot_node *node)
{
    if (node->op == NULL || node->op->tile == NULL || node->op->tile->f32 == NULL ||
        node->n_outputs != 1 || node->outputs[0] == NULL || !is_short_float(node->outputs[0]) ||
        !node->outputs[0]->has_shape || !ot__shape_is_static(&node->outputs[0]->shape) ||
        node->n_inputs > MAX_INPUTS)
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL && !is_short_float(node->inputs[i]))
            return false;
    return true;
}

static int find_input(const chain *c, const ot_value *value)
{
    for (int i = 0; i < c->n_inputs; i++)
        if (c->input[i] == value)
            return i;
    return -1;
}

static bool is_step_of(const chain *c, const ot_value *value)
{
    for (int i = 0; i < c->n_nodes; i++)
        if (c->node[i]->outputs[0] == value)
            return true;
    return false;
}

static bool expr_input(chain *c, ot_value *value)
{
    if (value == NULL || find_input(c, value) >= 0)
        return true;
    if (c->n_inputs == MAX_INPUTS)
        return false;
    c->input[c->n_inputs++] = value;
    return true;
}

// The chain that makes `value`, when it can go before a node whose output is `y`.
static chain *producer_of(const chains *all, const ot_value *value, const ot_value *y)
{
    chain *c;

    if (value == NULL || value->producer == NULL || value->is_output || !expr_same_dims(value, y))
        return NULL;
    c = all->of_node[ot__node_number(&all->uses.numbers, value->producer)];
    if (c == NULL || c->node[c->n_nodes - 1] != value->producer)
        return NULL;
    for (int u = ot__uses_first(&all->uses, value); u < ot__uses_end(&all->uses, value); u++)
        if (all->uses.use[u].node != all->uses.use[ot__uses_first(&all->uses, value)].node ||
            all->uses.use[u].i_input < 0)
            return NULL;
    return c;
}

// `c` with `before` in front of its last node; false when that is too long or reads too much.
static bool merge_expr(const chain *before, const chain *c, chain *out)
{
    const ot_node *last = c->node[c->n_nodes - 1];

    *out = (chain){.n_nodes = 0};
    if (before->n_nodes + c->n_nodes > MAX_STEPS)
        return false;
    for (int i = 0; i < before->n_nodes; i++)
        out->node[out->n_nodes++] = before->node[i];
    for (int i = 0; i < c->n_nodes; i++)
        out->node[out->n_nodes++] = c->node[i];
    for (int n = 0; n < out->n_nodes; n++)
        for (int i = 0; i < out->node[n]->n_inputs; i++)
            if (!is_step_of(out, out->node[n]->inputs[i]) &&
                !expr_input(out, out->node[n]->inputs[i]))
                return false;
    // Full-shape inputs first: in place, the output takes the memory of input 0 or 1.
    for (int i = 1; i < out->n_inputs; i++)
        for (int k = i; k > 0 && expr_same_dims(out->input[k], last->outputs[0]) &&
                        !expr_same_dims(out->input[k - 1], last->outputs[0]);
             k--) {
            ot_value *moved = out->input[k];

            out->input[k] = out->input[k - 1];
            out->input[k - 1] = moved;
        }
    return true;
}

// ---- what is cheaper recomputed than kept ----

// One rounding for each element of one operand: whoever reads y may as well read that operand.
static bool is_cheap(const ot_node *node)
{
    const ot_value *y = node->outputs[0];
    int n_operands = 0;

    if (!is_elementwise(node) || !node->op->tile->rounds_once || node->n_attrs > 0 || y->is_output)
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] == NULL || ot__value_has_one_element(node->inputs[i]))
            continue;
        if (!expr_same_dims(node->inputs[i], y))
            return false;
        n_operands++;
    }
    return n_operands == 1;
}

// All that read `y` can have the node that makes it in their chains.
static bool is_read_by_chains(const ot__uses *uses, const ot_value *y)
{
    for (int u = ot__uses_first(uses, y); u < ot__uses_end(uses, y); u++)
        if (uses->use[u].i_input < 0 || !is_elementwise(uses->use[u].node) ||
            !expr_same_dims(uses->use[u].node->outputs[0], y))
            return false;
    return true;
}

static ot_value *copy_step(ot__builder *b, const ot_node *node)
{
    ot_value *y = ot__build_value(b, ot__build_name(b, "%s_copy", node->outputs[0]->name));

    ot__op_settle(b, ot__op_build(b, node->domain, node->op_type,
                                  ot__build_name(b, "%s_copy", node->name), node->inputs,
                                  node->n_inputs, &y, 1));
    return y;
}

// A cheap node is copied for every reader, so that none has another.
static ot_status copy_cheap_steps(ot_graph *graph, const ot__uses *uses)
{
    const int n_nodes = graph->n_nodes;
    ot__builder b = {.graph = graph};

    for (int n = 0; n < n_nodes && b.status == OT_OK; n++) {
        const ot_node *node = graph->nodes[n], *reader = NULL;
        ot_value *y = node->n_outputs > 0 ? node->outputs[0] : NULL, *copy = y;

        if (y == NULL || ot__uses_count(uses, y) > MAX_COPIES || !is_cheap(node) ||
            !is_read_by_chains(uses, y))
            continue;
        for (int u = ot__uses_first(uses, y); u < ot__uses_end(uses, y); u++) {
            const ot__use *use = &uses->use[u];

            if (reader != NULL && use->node != reader)
                copy = copy_step(&b, node);
            reader = use->node;
            use->node->inputs[use->i_input] = copy;
        }
    }
    return b.status;
}

static ot_status copy_cheap(ot_graph *graph)
{
    ot__uses uses;
    ot_status st;

    OT_TRY(ot__uses_build(graph, &uses));
    st = copy_cheap_steps(graph, &uses);
    ot__uses_deinit(&uses);
    return st;
}

static ot_status collect_expr(ot_graph *graph, chains *all)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];
        chain *c, merged;

        if (!is_elementwise(node))
            continue;
        c = ot__arena_alloc(graph->model->arena, sizeof(*c));
        OT_TRY(ot__made(c != NULL));
        c->node[c->n_nodes++] = node;
        for (int i = 0; i < node->n_inputs; i++) {
            chain *before = producer_of(all, node->inputs[i], node->outputs[0]);

            if (before == NULL || before->is_absorbed || !merge_expr(before, c, &merged))
                continue;
            *c = merged;
            before->is_absorbed = true;
        }
        all->of_node[ot__node_number(&all->uses.numbers, node)] = c;
    }
    return OT_OK;
}

// ---- writing ----

static void write_operand(ot__buf *text, const chain *c, const ot_value *value)
{
    for (int i = 0; i < c->n_nodes; i++)
        if (c->node[i]->outputs[0] == value) {
            ot__buf_printf(text, " r%d", i);
            return;
        }
    if (value == NULL)
        ot__buf_text(text, " -");
    else
        ot__buf_printf(text, " x%d", find_input(c, value));
}

static void write_step(ot__buf *text, const chain *c, int i)
{
    const ot_node *node = c->node[i];

    ot__buf_text(text, i == 0 ? "" : "; ");
    ot__fuse_write_tile(text, node);
    for (int k = 0; k < node->n_inputs; k++)
        write_operand(text, c, node->inputs[k]);
}

static ot_status replace_expr(ot_graph *graph, const chain *c)
{
    ot_node *last = c->node[c->n_nodes - 1], *fused;
    ot_value *y = last->outputs[0];
    ot__builder b = {.graph = graph};
    ot__buf text = {0};
    ot_status st;

    for (int i = 0; i < c->n_nodes; i++)
        write_step(&text, c, i);
    st = ot__buf_status(&text);
    if (st == OT_OK) {
        for (int i = 0; i < c->n_nodes; i++)
            ot__node_detach(c->node[i]);
        fused = ot__op_build(&b, "ai.onnxtrain", "ElementwiseChain", last->name, c->input,
                             c->n_inputs, &y, 1);
        ot__build_string(&b, fused, "program", text.data);
        ot__op_settle(&b, fused);
        st = b.status;
    }
    ot__buf_deinit(&text);
    return st;
}

static ot_status replace_all(ot_model *model, const chains *all, int n_nodes)
{
    bool any = false;

    for (int n = 0; n < n_nodes; n++) {
        const chain *c = all->of_node[n];

        if (c == NULL || c->is_absorbed || c->n_nodes < 2)
            continue;
        OT_TRY(replace_expr(model->graph, c));
        any = true;
    }
    ot__graph_drop_detached(model->graph);
    return any ? ot__graph_sort(model->graph) : OT_OK;
}

ot_status ot__fuse_elementwise(ot_model *model)
{
    chains all = {0};
    int n_nodes;
    ot_status st;

    OT_TRY(copy_cheap(model->graph));
    OT_TRY(ot__graph_sort(model->graph)); // producers before readers
    n_nodes = model->graph->n_nodes;
    st = ot__uses_build(model->graph, &all.uses);
    if (st == OT_OK) {
        all.of_node = ot__alloc_zero((size_t)n_nodes + 1, sizeof(*all.of_node));
        st = all.of_node == NULL ? OT_ERR_NO_MEMORY : collect_expr(model->graph, &all);
    }
    OT_THEN(st, replace_all(model, &all, n_nodes));
    ot__free(all.of_node);
    ot__uses_deinit(&all.uses);
    return st;
}
