// SPDX-License-Identifier: Apache-2.0
// Graphs, nodes and edges of .ort files.
#include <stdlib.h>
#include <string.h>

#include "onnx/ort/ort.h"

static const char provider[] = "CPUExecutionProvider"; // as the runtime's writer says; not read

// ---- lists of values, each once ----

typedef struct value_set {
    ot__map names; // their positions + 1
    const ot_value **items;
    int n, capacity;
} value_set;

static ot_status ort_add_value(ot__ort_writer *w, value_set *set, const ot_value *value)
{
    if (!value || ot__map_get(&set->names, value->name))
        return OT_OK;
    OT_TRY(ot__made(
        ot__arena_grow(w->model->arena, &set->items, &set->capacity, set->n, sizeof *set->items) &&
        ot__map_put(&set->names, value->name, (void *)(uintptr_t)value)));
    set->items[set->n++] = value;
    return OT_OK;
}

static ot_status ort_add_values(ot__ort_writer *w, value_set *set, ot_value *const *values, int n)
{
    for (int i = 0; i < n; i++)
        OT_TRY(ort_add_value(w, set, values[i]));
    return OT_OK;
}

// ---- what a node's subgraphs read of the graphs around them ----

static ot_status add_outer(ot__ort_writer *w, const ot_graph *graph, const ot_value *value,
                           value_set *outer)
{
    if (!value || ot__graph_find(graph, value->name) == value)
        return OT_OK;
    return ort_add_value(w, outer, value);
}

static ot_status collect_node(ot__ort_writer *w, const ot_node *node, value_set *outer);

static ot_status collect_graph(ot__ort_writer *w, const ot_graph *graph, value_set *outer)
{
    for (int i = 0; i < graph->n_outputs; i++)
        OT_TRY(add_outer(w, graph, graph->outputs[i], outer));
    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];
        value_set inner = {0};
        ot_status st = collect_node(w, node, &inner);

        for (int i = 0; i < node->n_inputs && st == OT_OK; i++)
            st = add_outer(w, graph, node->inputs[i], outer);
        for (int i = 0; i < inner.n && st == OT_OK; i++)
            st = add_outer(w, graph, inner.items[i], outer);
        ot__map_deinit(&inner.names);
        OT_TRY(st);
    }
    return OT_OK;
}

static ot_status collect_node(ot__ort_writer *w, const ot_node *node, value_set *outer)
{
    for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);)
        OT_TRY(collect_graph(w, s.graph, outer));
    return OT_OK;
}

// ---- a graph on the way out ----

typedef struct edge {
    uint32_t node, other;
    uint32_t output, input; // of the one that makes the value, and of the one that reads it
} edge;

typedef struct writing {
    ot__ort_writer *w;
    ot_graph *graph;
    ot__numbers numbers;
    value_set *implicit; // per node
    value_set values;
    bool has_omitted;
    edge *edges; // of nodes that read
    int n_edges, edges_capacity;
} writing;

static ot_status ort_add_edge(writing *g, const ot_value *value, int to, int input)
{
    const ot_node *from = value ? value->producer : NULL;

    if (!from || from->graph != g->graph)
        return OT_OK;
    OT_TRY(ot__made(ot__arena_grow(g->w->model->arena, &g->edges, &g->edges_capacity, g->n_edges,
                                   sizeof *g->edges)));
    g->edges[g->n_edges++] = (edge){(uint32_t)to, (uint32_t)ot__node_number(&g->numbers, from),
                                    (uint32_t)value->i_producer_output, (uint32_t)input};
    return OT_OK;
}

static ot_status survey_node(writing *g, int i_node)
{
    const ot_node *node = g->graph->nodes[i_node];
    value_set *implicit = &g->implicit[i_node];

    OT_TRY(collect_node(g->w, node, implicit));
    for (int i = 0; i < node->n_inputs; i++) {
        OT_TRY(ort_add_edge(g, node->inputs[i], i_node, i));
        g->has_omitted = g->has_omitted || !node->inputs[i];
    }
    for (int i = 0; i < implicit->n; i++) {
        OT_TRY(ort_add_edge(g, implicit->items[i], i_node, node->n_inputs + i));
        OT_TRY(ort_add_value(g->w, &g->values, implicit->items[i]));
    }
    for (int i = 0; i < node->n_outputs; i++)
        g->has_omitted = g->has_omitted || !node->outputs[i];
    OT_TRY(ort_add_values(g->w, &g->values, node->inputs, node->n_inputs));
    return ort_add_values(g->w, &g->values, node->outputs, node->n_outputs);
}

static ot_status survey(writing *g)
{
    const ot_graph *graph = g->graph;

    g->implicit = ot__alloc_zero((size_t)graph->n_nodes + 1, sizeof *g->implicit);
    OT_TRY(ot__made(g->implicit));
    OT_TRY(ort_add_values(g->w, &g->values, graph->inputs, graph->n_inputs));
    OT_TRY(ort_add_values(g->w, &g->values, graph->initializers, graph->n_initializers));
    OT_TRY(ot__numbers_build(graph, &g->numbers));
    for (int n = 0; n < graph->n_nodes; n++)
        OT_TRY(survey_node(g, n));
    return ort_add_values(g->w, &g->values, graph->outputs, graph->n_outputs);
}

static void writing_deinit(writing *g)
{
    ot__numbers_deinit(&g->numbers);
    for (int n = 0; g->implicit && n < g->graph->n_nodes; n++)
        ot__map_deinit(&g->implicit[n].names);
    ot__free(g->implicit);
    ot__map_deinit(&g->values.names);
}

// ---- edges ----

static int compare_edges(const void *a, const void *b)
{
    const edge *const e = a, *const f = b;
    const uint32_t x[] = {e->node, e->other, e->output, e->input};
    const uint32_t y[] = {f->node, f->other, f->output, f->input};

    for (size_t i = 0; i < OT_COUNT(x); i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

// The edges of node n, from *at on: the other node, its end and this one's.
static size_t write_edge_list(const writing *g, const edge *edges, uint32_t n, int *at)
{
    ot__buf *buf = g->w->buf;
    int end = *at;
    size_t list;

    while (end < g->n_edges && edges[end].node == n)
        end++;
    list = ot__fb_write_count(buf, (size_t)(end - *at));
    for (; *at < end; ++*at) {
        ot__fb_write_word(buf, edges[*at].other);
        ot__fb_write_word(buf, edges[*at].output);
        ot__fb_write_word(buf, edges[*at].input);
    }
    return list;
}

// The edges by consumer and by producer, and how far each list has been written.
typedef struct edge_lists {
    const writing *g;
    const edge *in, *out;
    int *at_in, *at_out;
} edge_lists;

static size_t write_edges_of_node(ot__ort_writer *w, const void *context, size_t i)
{
    const edge_lists *e = context;
    const uint32_t n = (uint32_t)i;
    ot__fb_field fields[3] = {{.n_bytes = n ? 4 : 0, .value = n}, {.n_bytes = 4}, {.n_bytes = 4}};
    const size_t position = ot__fb_write_table(w->buf, fields, 3);

    ot__fb_patch(w->buf, fields[1].position, write_edge_list(e->g, e->in, n, e->at_in));
    ot__fb_patch(w->buf, fields[2].position, write_edge_list(e->g, e->out, n, e->at_out));
    return position;
}

static size_t write_edges(writing *g)
{
    ot__arena *arena = g->w->model->arena;
    const size_t n_bytes = (size_t)OT_MAX(g->n_edges, 1) * sizeof *g->edges;
    int at_in = 0, at_out = 0;
    edge *out;

    if (g->n_edges == 0)
        g->edges = ot__arena_alloc(arena, n_bytes);
    out = g->edges ? ot__arena_memdup(arena, g->edges, n_bytes) : NULL;
    if (!out) {
        g->w->status = OT_ERR_NO_MEMORY;
        return 0;
    }
    for (int i = 0; i < g->n_edges; i++) {
        out[i].node = g->edges[i].other;
        out[i].other = g->edges[i].node;
    }
    qsort(g->edges, (size_t)g->n_edges, sizeof *g->edges, compare_edges);
    qsort(out, (size_t)g->n_edges, sizeof *out, compare_edges);
    return ot__ort_write_list(g->w, (size_t)g->graph->n_nodes, write_edges_of_node,
                              &(edge_lists){g, g->edges, out, &at_in, &at_out});
}

// ---- nodes ----

static size_t ort_write_name(ot__ort_writer *w, const void *context, size_t i)
{
    const ot_value *value = ((const ot_value *const *)context)[i];

    return ot__fb_write_string(w->buf, value ? value->name : "");
}

// How many inputs each formal one takes: a variadic last one all that are left.
static size_t write_input_counts(ot__ort_writer *w, const ot_node *node, const ot__ort_call *call)
{
    const int n_formal = ot__ort_formal_inputs(call->op);
    const size_t list = ot__fb_write_count(w->buf, (size_t)n_formal);

    for (int i = 0; i < n_formal; i++) {
        const int n_left = OT_MAX(node->n_inputs - i, 0);

        ot__fb_write_word(w->buf, (uint32_t)(i == n_formal - 1 ? n_left : OT_MIN(n_left, 1)));
    }
    return list;
}

static ot_status note_call(ot__ort_writer *w, const ot__ort_call *call)
{
    for (int i = 0; i < w->n_calls; i++)
        if (w->calls[i].op == call->op && w->calls[i].since == call->since)
            return OT_OK;
    OT_TRY(ot__made(ot__arena_grow(w->model->arena, &w->calls, &w->calls_capacity, w->n_calls,
                                   sizeof *w->calls)));
    w->calls[w->n_calls++] = *call;
    return OT_OK;
}

static size_t write_node(ot__ort_writer *w, const void *context, size_t i)
{
    const writing *g = context;
    const ot_node *node = g->graph->nodes[i];
    const value_set *implicit = &g->implicit[i];
    ot__ort_call call;
    ot__fb_field f[ORT_NODE_SLOTS] = {
        [ORT_NODE_NAME] = {.text = node->name},
        [ORT_NODE_DOC] = {.text = node->doc},
        [ORT_NODE_DOMAIN] = {.text = node->domain},
        [ORT_NODE_SINCE_VERSION] = {.n_bytes = 4},
        [ORT_NODE_INDEX] = {.n_bytes = i ? 4 : 0, .value = (uint64_t)i},
        [ORT_NODE_OP_TYPE] = {.text = node->op_type},
        [ORT_NODE_PROVIDER] = {.text = provider},
        [ORT_NODE_INPUTS] = {.n_bytes = 4},
        [ORT_NODE_OUTPUTS] = {.n_bytes = 4},
        [ORT_NODE_ATTRIBUTES] = {.n_bytes = 4},
        [ORT_NODE_INPUT_COUNTS] = {.n_bytes = 4},
        [ORT_NODE_IMPLICIT_INPUTS] = {.n_bytes = 4},
    };
    size_t position;

    w->status = ot__ort_find_call(w->model, node, &call);
    if (w->status == OT_OK)
        w->status = note_call(w, &call);
    if (w->status != OT_OK)
        return 0;
    f[ORT_NODE_SINCE_VERSION].value = (uint64_t)call.since;
    position = ot__fb_write_table(w->buf, f, ORT_NODE_SLOTS);
    ot__ort_put_list(w, &f[ORT_NODE_INPUTS], node->n_inputs, ort_write_name, node->inputs);
    ot__ort_put_list(w, &f[ORT_NODE_OUTPUTS], node->n_outputs, ort_write_name, node->outputs);
    ot__fb_patch(w->buf, f[ORT_NODE_INPUT_COUNTS].position, write_input_counts(w, node, &call));
    ot__ort_put_list(w, &f[ORT_NODE_IMPLICIT_INPUTS], implicit->n, ort_write_name, implicit->items);
    ot__ort_put_list(w, &f[ORT_NODE_ATTRIBUTES], node->n_attrs, ot__ort_write_attr, node->attrs);
    return position;
}

// ---- graphs ----

static size_t write_initializer(ot__ort_writer *w, const void *context, size_t i)
{
    const ot_value *value = ((ot_value *const *)context)[i];

    return ot__ort_write_tensor(w, value->constant, value->name, value->tensor_doc);
}

// Behind the last one stands what is omitted.
static size_t ort_write_attr_value(ot__ort_writer *w, const void *context, size_t i)
{
    const value_set *values = context;

    return ot__ort_write_value(w, i < (size_t)values->n ? values->items[i] : NULL);
}

static size_t write_graph(writing *g)
{
    const ot_graph *graph = g->graph;
    ot__ort_writer *w = g->w;
    ot__fb_field f[ORT_GRAPH_SLOTS] = {
        [ORT_GRAPH_INITIALIZERS] = {.n_bytes = 4},
        [ORT_GRAPH_VALUES] = {.n_bytes = 4},
        [ORT_GRAPH_NODES] = {.n_bytes = 4},
        [ORT_GRAPH_MAX_NODE_INDEX] = {.n_bytes = graph->n_nodes ? 4 : 0,
                                      .value = (uint64_t)graph->n_nodes},
        [ORT_GRAPH_EDGES] = {.n_bytes = 4},
        [ORT_GRAPH_INPUTS] = {.n_bytes = 4},
        [ORT_GRAPH_OUTPUTS] = {.n_bytes = 4},
        [ORT_GRAPH_SPARSE_INITIALIZERS] = {.n_bytes = 4},
    };
    const size_t position = ot__fb_write_table(w->buf, f, ORT_GRAPH_SLOTS);
    const int n_values = g->values.n + g->has_omitted;

    ot__ort_put_list(w, &f[ORT_GRAPH_INITIALIZERS], graph->n_initializers, write_initializer,
                     graph->initializers);
    ot__ort_put_list(w, &f[ORT_GRAPH_VALUES], n_values, ort_write_attr_value, &g->values);
    ot__ort_put_list(w, &f[ORT_GRAPH_INPUTS], graph->n_inputs, ort_write_name, graph->inputs);
    ot__ort_put_list(w, &f[ORT_GRAPH_OUTPUTS], graph->n_outputs, ort_write_name, graph->outputs);
    ot__fb_patch(w->buf, f[ORT_GRAPH_SPARSE_INITIALIZERS].position,
                 ot__fb_write_offsets(w->buf, 0));
    if (w->status == OT_OK)
        ot__fb_patch(w->buf, f[ORT_GRAPH_EDGES].position, write_edges(g));
    if (w->status == OT_OK)
        ot__ort_put_list(w, &f[ORT_GRAPH_NODES], graph->n_nodes, write_node, g);
    return position;
}

size_t ot__ort_write_graph(ot__ort_writer *w, ot_graph *graph)
{
    writing g = {.w = w, .graph = graph};
    size_t position = 0;

    if (w->status == OT_OK)
        w->status = survey(&g);
    if (w->status == OT_OK)
        position = write_graph(&g);
    writing_deinit(&g);
    return position;
}
