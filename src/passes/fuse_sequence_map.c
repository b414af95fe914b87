// SPDX-License-Identifier: Apache-2.0
// SequenceMap becomes the Loop that ONNX defines it by: a turn for each tensor of its first
// sequence, which makes a tensor of each sequence that comes out.
#include "passes/unroll.h"

typedef struct mapping {
    const ot_node *node;
    const ot_graph *each; // what is done with the tensors of one place
    ot_graph *body;       // of the loop
    ot_value *turn;
} mapping;

static bool is_sequence(const ot_value *value)
{
    const ot_node *node = value->producer;

    return value->kind == OT_VALUE_SEQUENCE ||
           (node && ot__is_sequence_node(node) && !ot__node_is(node, "", "SequenceAt") &&
            !ot__node_is(node, "", "SequenceLength") &&
            !ot__node_is(node, "", "ConcatFromSequence"));
}

static bool can_map(const ot_node *node, const ot_graph *each)
{
    bool fits = each && node->n_inputs > 0 && node->n_inputs == each->n_inputs &&
                node->n_outputs <= each->n_outputs;

    for (int i = 0; fits && i < node->n_inputs; i++)
        fits = node->inputs[i] != NULL;
    for (int i = 0; fits && i < node->n_outputs; i++)
        fits = node->outputs[i] != NULL && each->outputs[i]->dtype != OT_DTYPE_UNDEFINED;
    return fits;
}

static ot_status add_map_node(ot_graph *graph, const char *op_type, ot_value *const *x, int n,
                              ot_value **y)
{
    *y = ot__graph_new_value(graph, op_type);
    return ot__made(*y && ot__graph_add_node(graph, "", op_type, "", x, n, y, 1));
}

static ot_status add_map_input(ot_graph *body, const char *name, ot_value_kind kind, ot_dtype dtype,
                               ot_value **out)
{
    *out = ot__graph_new_value(body, name);
    OT_TRY(ot__made(*out));
    ot__value_set(*out, dtype, kind == OT_VALUE_TENSOR ? &OT_SHAPE_SCALAR : NULL);
    (*out)->kind = kind;
    return ot__made(ot__graph_add_input(body, *out));
}

// The values that `each` reads and makes.
static ot_status map_once(const mapping *m, ot_value **given, ot_value **made)
{
    for (int i = 0; i < m->node->n_inputs; i++) {
        ot_value *const ends[] = {m->node->inputs[i], m->turn};

        given[i] = ends[0];
        if (i == 0 || is_sequence(ends[0]))
            OT_TRY(add_map_node(m->body, "SequenceAt", ends, 2, &given[i]));
    }
    return ot__graph_inline_body(m->body, m->each, given, made);
}

static ot_status fill_body(mapping *m, ot_value **given, ot_value **made)
{
    ot_value *go, *goes, *list;

    OT_TRY(add_map_input(m->body, "turn", OT_VALUE_TENSOR, OT_I64, &m->turn));
    OT_TRY(add_map_input(m->body, "go", OT_VALUE_TENSOR, OT_BOOL, &go));
    OT_TRY(map_once(m, given, made));
    OT_TRY(add_map_node(m->body, "Identity", &go, 1, &goes));
    OT_TRY(ot__made(ot__graph_add_output(m->body, goes)));
    for (int i = 0; i < m->node->n_outputs; i++) {
        OT_TRY(
            add_map_input(m->body, "list", OT_VALUE_SEQUENCE, m->each->outputs[i]->dtype, &list));
        OT_TRY(add_map_node(m->body, "SequenceInsert", (ot_value *[]){list, made[i]}, 2, &list));
        OT_TRY(ot__made(ot__graph_add_output(m->body, list)));
    }
    return OT_OK;
}

static ot_status make_body(mapping *m)
{
    ot_value **given = ot__alloc_zero((size_t)m->each->n_inputs + 1, sizeof(ot_value *));
    ot_value **made = ot__alloc_zero((size_t)m->each->n_outputs + 1, sizeof(ot_value *));
    ot_status st = ot__made(given && made);

    OT_THEN(st, fill_body(m, given, made));
    ot__free(given);
    ot__free(made);
    return st;
}

// The Loop starts from empty sequences.
static ot_status add_loop(const mapping *m)
{
    ot_graph *graph = m->node->graph;
    ot_value **x =
        ot__arena_alloc(graph->model->arena, (size_t)(m->node->n_outputs + 2) * sizeof(ot_value *));
    ot_node *loop;
    ot_attr *body;

    OT_TRY(ot__made(x));
    OT_TRY(add_map_node(graph, "SequenceLength", m->node->inputs, 1, &x[0]));
    for (int i = 0; i < m->node->n_outputs; i++) {
        OT_TRY(add_map_node(graph, "SequenceEmpty", NULL, 0, &x[2 + i]));
        OT_TRY(ot__made(ot__node_set_int(x[2 + i]->producer, "dtype", m->each->outputs[i]->dtype)));
    }
    loop = ot__graph_add_node(graph, "", "Loop", m->node->name, x, 2 + m->node->n_outputs,
                              m->node->outputs, m->node->n_outputs);
    body = loop ? ot__node_add_attr(loop, "body", OT_ATTR_GRAPH) : NULL;
    OT_TRY(ot__made(body));
    body->g = m->body;
    return OT_OK;
}

ot_status ot__map_to_loop(ot_graph *graph, bool *has_changed)
{
    const int n_nodes = graph->n_nodes;

    for (int n = 0; n < n_nodes; n++) {
        ot_node *node = graph->nodes[n];
        mapping m = {.node = node, .each = ot__body_of(node, "body")};

        if (!ot__node_is(node, "", "SequenceMap") || !can_map(node, m.each))
            continue;
        m.body = ot__graph_create(graph->model, graph, "map");
        OT_TRY(ot__made(m.body));
        OT_TRY(make_body(&m));
        OT_TRY(add_loop(&m));
        node->n_outputs = 0;
        ot__node_detach(node);
        *has_changed = true;
    }
    return OT_OK;
}
