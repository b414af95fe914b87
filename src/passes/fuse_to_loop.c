// SPDX-License-Identifier: Apache-2.0
// What is a Loop by another name: SequenceMap, as ONNX defines it, has a turn for each tensor of
// its first sequence, which makes a tensor of each sequence that comes out; a Scan of opset 8 one
// for each entry of the batch, of which it is a Scan without batch.
#include "passes/unroll.h"

enum { SCAN_WITHOUT_BATCH_OPSET = 9 };

// ---- nodes ----

static ot_status add_loop_node(ot_graph *graph, const char *op_type, ot_value *const *x, int n,
                               ot_value **y)
{
    *y = ot__graph_new_value(graph, op_type);
    return ot__made(*y && ot__graph_add_node(graph, "", op_type, "", x, n, y, 1));
}

static ot_status add_loop_input(ot_graph *body, const char *name, ot_value_kind kind,
                                ot_dtype dtype, ot_value **out)
{
    *out = ot__graph_new_value(body, name);
    OT_TRY(ot__made(*out));
    ot__value_set(*out, dtype, kind == OT_VALUE_TENSOR ? &OT_SHAPE_SCALAR : NULL);
    (*out)->kind = kind;
    return ot__made(ot__graph_add_input(body, *out));
}

// A body takes its turn and goes on as it was told.
static ot_status begin_body(ot_graph *graph, ot_graph **body, ot_value **turn)
{
    ot_value *go, *goes;

    *body = ot__graph_create(graph->model, graph, "turn");
    OT_TRY(ot__made(*body));
    OT_TRY(add_loop_input(*body, "turn", OT_VALUE_TENSOR, OT_I64, turn));
    OT_TRY(add_loop_input(*body, "go", OT_VALUE_TENSOR, OT_BOOL, &go));
    OT_TRY(add_loop_node(*body, "Identity", &go, 1, &goes));
    return ot__made(ot__graph_add_output(*body, goes));
}

// In the place of `node`: x[0] turns, no condition, then what is carried.
static ot_status replace_by_loop(ot_node *node, ot_graph *body, ot_value *const *x, int n)
{
    ot_value *const *outputs = node->outputs;
    const int n_outputs = node->n_outputs;
    ot_graph *graph = node->graph;
    ot_attr *attr;
    ot_node *loop;

    ot__node_detach(node);
    node->n_outputs = 0;
    loop = ot__graph_add_node(graph, "", "Loop", node->name, x, n, outputs, n_outputs);
    attr = loop ? ot__node_add_attr(loop, "body", OT_ATTR_GRAPH) : NULL;
    OT_TRY(ot__made(attr));
    attr->g = body;
    return OT_OK;
}

// ---- SequenceMap ----

typedef struct mapping {
    const ot_node *node;
    const ot_graph *each; // what is done with the tensors of one place
    ot_graph *body;       // of the Loop
    ot_value *turn;
} mapping;

static bool is_sequence(const ot_value *value)
{
    return value->kind == OT_VALUE_SEQUENCE ||
           (value->producer && ot__gives_sequence(value->producer));
}

// Of what the i-th output has tensors. Bodies of exporters often say no types: most then make
// tensors of the type that they are given.
static ot_dtype mapped_dtype(const ot_node *node, const ot_graph *each, int i)
{
    const ot_value *const said[] = {each->outputs[i], node->outputs[i], node->inputs[0]};

    for (size_t k = 0; k < OT_COUNT(said); k++)
        if (said[k]->dtype != OT_DTYPE_UNDEFINED)
            return said[k]->dtype;
    return OT_F32;
}

static bool can_map(const ot_node *node, const ot_graph *each)
{
    bool fits = each && node->n_inputs > 0 && node->n_inputs == each->n_inputs &&
                node->n_outputs <= each->n_outputs;

    for (int i = 0; fits && i < node->n_inputs; i++)
        fits = node->inputs[i] != NULL;
    for (int i = 0; fits && i < node->n_outputs; i++)
        fits = node->outputs[i] != NULL;
    return fits;
}

// The values that `each` reads and makes.
static ot_status map_once(const mapping *m, ot_value **given, ot_value **made)
{
    for (int i = 0; i < m->node->n_inputs; i++) {
        ot_value *const ends[] = {m->node->inputs[i], m->turn};

        given[i] = ends[0];
        if (i == 0 || is_sequence(ends[0]))
            OT_TRY(add_loop_node(m->body, "SequenceAt", ends, 2, &given[i]));
    }
    return ot__graph_inline_body(m->body, m->each, given, made);
}

static ot_status fill_body(const mapping *m, ot_value **given, ot_value **made)
{
    ot_value *list;

    OT_TRY(map_once(m, given, made));
    for (int i = 0; i < m->node->n_outputs; i++) {
        OT_TRY(add_loop_input(m->body, "list", OT_VALUE_SEQUENCE, mapped_dtype(m->node, m->each, i),
                              &list));
        OT_TRY(add_loop_node(m->body, "SequenceInsert", (ot_value *[]){list, made[i]}, 2, &list));
        OT_TRY(ot__made(ot__graph_add_output(m->body, list)));
    }
    return OT_OK;
}

static ot_status make_body(const mapping *m)
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
static ot_status map_to_loop(ot_node *node)
{
    ot_graph *graph = node->graph;
    mapping m = {.node = node, .each = ot__body_of(node, "body")};
    ot_value **x =
        ot__arena_alloc(graph->model->arena, (size_t)(node->n_outputs + 2) * sizeof(ot_value *));

    OT_TRY(ot__made(x));
    OT_TRY(begin_body(graph, &m.body, &m.turn));
    OT_TRY(make_body(&m));
    OT_TRY(add_loop_node(graph, "SequenceLength", node->inputs, 1, &x[0]));
    for (int i = 0; i < node->n_outputs; i++) {
        OT_TRY(add_loop_node(graph, "SequenceEmpty", NULL, 0, &x[2 + i]));
        OT_TRY(
            ot__made(ot__node_set_int(x[2 + i]->producer, "dtype", mapped_dtype(node, m.each, i))));
    }
    return replace_by_loop(node, m.body, x, 2 + node->n_outputs);
}

// ---- Scan of opset 8 ----

enum { STATES = 1 }; // behind the lengths

// Lengths would end the Scan of each entry elsewhere. A Scan that this has made has none to omit.
static bool can_scan(const ot_node *node, const ot_graph *each)
{
    bool fits = each && node->n_inputs > STATES && node->inputs[0] == NULL &&
                node->n_inputs == STATES + each->n_inputs && node->n_outputs <= each->n_outputs;

    for (int i = STATES; fits && i < node->n_inputs; i++)
        fits = node->inputs[i] != NULL;
    for (int i = 0; fits && i < node->n_outputs; i++)
        fits = node->outputs[i] != NULL;
    return fits;
}

static ot_status add_entry_scan(ot_graph *body, const ot_node *node, ot_value *turn)
{
    const ot_attr *directions = ot__node_attr(node, "directions");
    ot__arena *arena = body->model->arena;
    ot_value **x = ot__arena_alloc(arena, (size_t)node->n_inputs * sizeof(ot_value *));
    ot_value **y = ot__arena_alloc(arena, (size_t)node->n_outputs * sizeof(ot_value *));
    ot_node *scan;

    OT_TRY(ot__made(x && y));
    for (int i = STATES; i < node->n_inputs; i++)
        OT_TRY(add_loop_node(body, "Gather", (ot_value *[]){node->inputs[i], turn}, 2,
                             &x[i - STATES]));
    for (int i = 0; i < node->n_outputs; i++) {
        y[i] = ot__graph_new_value(body, node->outputs[i]->name);
        OT_TRY(ot__made(y[i] && ot__graph_add_output(body, y[i])));
    }
    scan = ot__graph_add_node(body, "", "Scan", node->name, x, node->n_inputs - STATES, y,
                              node->n_outputs);
    OT_TRY(ot__made(scan && ot__node_copy_attrs(scan, node)));
    if (!directions || directions->kind != OT_ATTR_INTS)
        return OT_OK;
    ot__node_remove_attr(scan, "directions");
    return ot__made(
        ot__node_set_ints(scan, "scan_input_directions", directions->ints, directions->n));
}

// As many turns as the first input has entries.
static ot_status count_entries(ot_graph *graph, const ot_node *node, ot_value **out)
{
    ot_tensor *zero = ot__model_tensor_new(graph->model, OT_I64, &OT_SHAPE_SCALAR);
    ot_value *ends[2] = {NULL, zero ? ot__graph_new_value(graph, "zero") : NULL};

    OT_TRY(ot__made(ends[1] && ot__graph_add_initializer(graph, ends[1], zero)));
    OT_TRY(add_loop_node(graph, "Shape", &node->inputs[STATES], 1, &ends[0]));
    return add_loop_node(graph, "Gather", ends, 2, out);
}

static ot_status scan_to_loop(ot_node *node)
{
    ot_value *x[2] = {NULL}, *turn; // no condition
    ot_graph *body;

    OT_TRY(begin_body(node->graph, &body, &turn));
    OT_TRY(add_entry_scan(body, node, turn));
    OT_TRY(count_entries(node->graph, node, &x[0]));
    return replace_by_loop(node, body, x, 2);
}

// ---- the whole ----

static bool scans_batches(const ot_node *node)
{
    return ot__node_is(node, "", "Scan") &&
           ot__model_opset(node->graph->model, "") < SCAN_WITHOUT_BATCH_OPSET;
}

ot_status ot__to_loops(ot_graph *graph, bool *has_changed)
{
    const int n_nodes = graph->n_nodes;

    for (int n = 0; n < n_nodes; n++) {
        ot_node *node = graph->nodes[n];
        const ot_graph *each = ot__body_of(node, "body");

        if (ot__node_is(node, "", "SequenceMap") && can_map(node, each))
            OT_TRY(map_to_loop(node));
        else if (scans_batches(node) && can_scan(node, each))
            OT_TRY(scan_to_loop(node));
        else
            continue;
        *has_changed = true;
    }
    return OT_OK;
}
