// SPDX-License-Identifier: Apache-2.0
// Graphs, nodes and edges of .ort files.
#include <stdlib.h>
#include <string.h>

#include "onnx/ort/ort.h"

static const char provider[] = "CPUExecutionProvider"; // as the runtime's writer says; not read

void ot__ort_write_text(ot__ort_writer *w, const ot__fb_field *field, const char *text)
{
    if (text && text[0])
        ot__fb_patch(w->buf, field->position, ot__fb_write_string(w->buf, text));
}

// ---- lists of values, each once ----

typedef struct value_set {
    ot__map names; // their positions + 1
    const ot_value **items;
    int n, capacity;
} value_set;

static ot_status add_value(ot__ort_writer *w, value_set *set, const ot_value *value)
{
    if (!value || ot__map_get(&set->names, value->name))
        return OT_OK;
    if (!ot__arena_grow(w->model->arena, &set->items, &set->capacity, set->n, sizeof *set->items) ||
        !ot__map_put(&set->names, value->name, (void *)(uintptr_t)value))
        return OT_ERR_NO_MEMORY;
    set->items[set->n++] = value;
    return OT_OK;
}

static ot_status add_values(ot__ort_writer *w, value_set *set, ot_value *const *values, int n)
{
    for (int i = 0; i < n; i++)
        OT_TRY(add_value(w, set, values[i]));
    return OT_OK;
}

// ---- what a node's subgraphs read of the graphs around them ----

static ot_status add_outer(ot__ort_writer *w, const ot_graph *graph, const ot_value *value,
                           value_set *outer)
{
    if (!value || ot__graph_find(graph, value->name) == value)
        return OT_OK;
    return add_value(w, outer, value);
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
    for (int a = 0; a < node->n_attrs; a++)
        for (int g = 0; g < ot__attr_n_graphs(node->attrs[a]); g++)
            OT_TRY(collect_graph(w, ot__attr_graph(node->attrs[a], g), outer));
    return OT_OK;
}

// ---- a graph on the way out ----

typedef struct edge {
    uint32_t from, to;
    uint32_t output, input; // of those nodes
} edge;

typedef struct writing {
    ot__ort_writer *w;
    ot_graph *graph;
    ot__numbers numbers;
    value_set *implicit; // per node
    value_set values;
    bool has_omitted;
    edge *edges;
    int n_edges, edges_capacity;
} writing;

static ot_status add_edge(writing *g, const ot_value *value, int to, int input)
{
    const ot_node *from = value ? value->producer : NULL;

    if (!from || from->graph != g->graph)
        return OT_OK;
    if (!ot__arena_grow(g->w->model->arena, &g->edges, &g->edges_capacity, g->n_edges,
                        sizeof *g->edges))
        return OT_ERR_NO_MEMORY;
    g->edges[g->n_edges++] = (edge){(uint32_t)ot__node_number(&g->numbers, from), (uint32_t)to,
                                    (uint32_t)value->i_producer_output, (uint32_t)input};
    return OT_OK;
}

static ot_status survey_node(writing *g, int i_node)
{
    const ot_node *node = g->graph->nodes[i_node];
    value_set *implicit = &g->implicit[i_node];

    OT_TRY(collect_node(g->w, node, implicit));
    for (int i = 0; i < node->n_inputs; i++) {
        OT_TRY(add_edge(g, node->inputs[i], i_node, i));
        g->has_omitted = g->has_omitted || !node->inputs[i];
    }
    for (int i = 0; i < implicit->n; i++) {
        OT_TRY(add_edge(g, implicit->items[i], i_node, node->n_inputs + i));
        OT_TRY(add_value(g->w, &g->values, implicit->items[i]));
    }
    for (int i = 0; i < node->n_outputs; i++)
        g->has_omitted = g->has_omitted || !node->outputs[i];
    OT_TRY(add_values(g->w, &g->values, node->inputs, node->n_inputs));
    return add_values(g->w, &g->values, node->outputs, node->n_outputs);
}

static ot_status survey(writing *g)
{
    const ot_graph *graph = g->graph;

    g->implicit = ot__alloc_zero((size_t)graph->n_nodes + 1, sizeof *g->implicit);
    if (!g->implicit)
        return OT_ERR_NO_MEMORY;
    OT_TRY(add_values(g->w, &g->values, graph->inputs, graph->n_inputs));
    OT_TRY(add_values(g->w, &g->values, graph->initializers, graph->n_initializers));
    OT_TRY(ot__numbers_build(graph, &g->numbers));
    for (int n = 0; n < graph->n_nodes; n++)
        OT_TRY(survey_node(g, n));
    return add_values(g->w, &g->values, graph->outputs, graph->n_outputs);
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

static int compare_numbers(const uint32_t *a, const uint32_t *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int by_producer(const void *a, const void *b)
{
    const edge *x = a, *y = b;

    return compare_numbers((uint32_t[]){x->from, x->to, x->output, x->input},
                           (uint32_t[]){y->from, y->to, y->output, y->input}, 4);
}

static int by_consumer(const void *a, const void *b)
{
    const edge *x = a, *y = b;

    return compare_numbers((uint32_t[]){x->to, x->from, x->output, x->input},
                           (uint32_t[]){y->to, y->from, y->output, y->input}, 4);
}

// The edges of node n, from *at on: the other node, its end and this one's.
static size_t write_edge_list(const writing *g, const edge *edges, bool is_input, uint32_t n,
                              int *at)
{
    ot__buf *buf = g->w->buf;
    int end = *at;
    size_t list;

    while (end < g->n_edges && (is_input ? edges[end].to : edges[end].from) == n)
        end++;
    list = ot__fb_write_count(buf, (size_t)(end - *at));
    for (; *at < end; ++*at) {
        ot__fb_write_word(buf, is_input ? edges[*at].from : edges[*at].to);
        ot__fb_write_word(buf, edges[*at].output);
        ot__fb_write_word(buf, edges[*at].input);
    }
    return list;
}

static size_t write_edges(writing *g)
{
    ot__buf *buf = g->w->buf;
    const size_t n_nodes = (size_t)g->graph->n_nodes;
    const size_t list = ot__fb_write_offsets(buf, n_nodes);
    edge *outgoing;
    int at_in = 0, at_out = 0;

    if (g->n_edges == 0)
        g->edges = ot__arena_alloc(g->w->model->arena, sizeof *g->edges);
    outgoing = !g->edges ? NULL
                         : ot__arena_memdup(g->w->model->arena, g->edges,
                                            (size_t)OT_MAX(g->n_edges, 1) * sizeof *g->edges);
    if (!outgoing) {
        g->w->status = OT_ERR_NO_MEMORY;
        return list;
    }
    qsort(g->edges, (size_t)g->n_edges, sizeof *g->edges, by_consumer);
    qsort(outgoing, (size_t)g->n_edges, sizeof *outgoing, by_producer);
    for (uint32_t n = 0; n < n_nodes; n++) {
        ot__fb_field fields[3] = {
            {.n_bytes = n ? 4 : 0, .value = n}, {.n_bytes = 4}, {.n_bytes = 4}};

        ot__fb_patch(buf, list + 4 + 4 * (size_t)n, ot__fb_write_table(buf, fields, 3));
        ot__fb_patch(buf, fields[1].position, write_edge_list(g, g->edges, true, n, &at_in));
        ot__fb_patch(buf, fields[2].position, write_edge_list(g, outgoing, false, n, &at_out));
    }
    return list;
}

// ---- nodes ----

static size_t write_names(ot__ort_writer *w, const ot_value *const *values, int n)
{
    const size_t list = ot__fb_write_offsets(w->buf, (size_t)n);

    for (int i = 0; i < n; i++)
        ot__fb_patch(w->buf, list + 4 + 4 * (size_t)i,
                     ot__fb_write_string(w->buf, values[i] ? values[i]->name : ""));
    return list;
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

static size_t write_attrs(ot__ort_writer *w, const ot_node *node)
{
    const size_t list = ot__fb_write_offsets(w->buf, (size_t)node->n_attrs);

    for (int i = 0; i < node->n_attrs && w->status == OT_OK; i++)
        ot__fb_patch(w->buf, list + 4 + 4 * (size_t)i, ot__ort_write_attr(w, node->attrs[i]));
    return list;
}

static ot_status note_call(ot__ort_writer *w, const ot__ort_call *call)
{
    for (int i = 0; i < w->n_calls; i++)
        if (w->calls[i].op == call->op && w->calls[i].since == call->since)
            return OT_OK;
    if (!ot__arena_grow(w->model->arena, &w->calls, &w->calls_capacity, w->n_calls,
                        sizeof *w->calls))
        return OT_ERR_NO_MEMORY;
    w->calls[w->n_calls++] = *call;
    return OT_OK;
}

static size_t write_node(const writing *g, int i_node)
{
    ot__ort_writer *w = g->w;
    const ot_node *node = g->graph->nodes[i_node];
    const value_set *implicit = &g->implicit[i_node];
    ot__ort_call call;
    ot__fb_field f[ORT_NODE_SLOTS] = {
        [ORT_NODE_INDEX] = {.n_bytes = i_node ? 4 : 0, .value = (uint64_t)i_node},
    };
    size_t position;

    w->status = ot__ort_find_call(w->model, node, &call);
    if (w->status == OT_OK)
        w->status = note_call(w, &call);
    if (w->status != OT_OK)
        return 0;
    for (int slot = 0; slot < ORT_NODE_SLOTS; slot++)
        if (slot != ORT_NODE_INDEX && slot != ORT_NODE_TYPE)
            f[slot].n_bytes = 4;
    f[ORT_NODE_SINCE_VERSION].value = (uint64_t)call.since;
    position = ot__fb_write_table(w->buf, f, ORT_NODE_SLOTS);
    ot__fb_patch(w->buf, f[ORT_NODE_NAME].position, ot__fb_write_string(w->buf, node->name));
    ot__fb_patch(w->buf, f[ORT_NODE_DOC].position, ot__fb_write_string(w->buf, node->doc));
    ot__fb_patch(w->buf, f[ORT_NODE_DOMAIN].position, ot__fb_write_string(w->buf, node->domain));
    ot__fb_patch(w->buf, f[ORT_NODE_OP_TYPE].position, ot__fb_write_string(w->buf, node->op_type));
    ot__fb_patch(w->buf, f[ORT_NODE_PROVIDER].position, ot__fb_write_string(w->buf, provider));
    ot__fb_patch(w->buf, f[ORT_NODE_INPUTS].position,
                 write_names(w, (const ot_value *const *)node->inputs, node->n_inputs));
    ot__fb_patch(w->buf, f[ORT_NODE_OUTPUTS].position,
                 write_names(w, (const ot_value *const *)node->outputs, node->n_outputs));
    ot__fb_patch(w->buf, f[ORT_NODE_INPUT_COUNTS].position, write_input_counts(w, node, &call));
    ot__fb_patch(w->buf, f[ORT_NODE_IMPLICIT_INPUTS].position,
                 write_names(w, implicit->items, implicit->n));
    ot__fb_patch(w->buf, f[ORT_NODE_ATTRIBUTES].position, write_attrs(w, node));
    return position;
}

// ---- graphs ----

static size_t write_initializers(const writing *g)
{
    ot__ort_writer *w = g->w;
    const ot_graph *graph = g->graph;
    const size_t list = ot__fb_write_offsets(w->buf, (size_t)graph->n_initializers);

    for (int i = 0; i < graph->n_initializers && w->status == OT_OK; i++) {
        const ot_value *value = graph->initializers[i];

        ot__fb_patch(w->buf, list + 4 + 4 * (size_t)i,
                     ot__ort_write_tensor(w, value->constant, value->name, value->tensor_doc));
    }
    return list;
}

static size_t write_values(const writing *g)
{
    ot__ort_writer *w = g->w;
    const size_t n = (size_t)g->values.n, list = ot__fb_write_offsets(w->buf, n + g->has_omitted);

    for (size_t i = 0; i < n && w->status == OT_OK; i++)
        ot__fb_patch(w->buf, list + 4 + 4 * i, ot__ort_write_value(w, g->values.items[i]));
    if (g->has_omitted && w->status == OT_OK)
        ot__fb_patch(w->buf, list + 4 + 4 * n, ot__ort_write_value(w, NULL));
    return list;
}

static size_t write_nodes(const writing *g)
{
    const int n = g->graph->n_nodes;
    const size_t list = ot__fb_write_offsets(g->w->buf, (size_t)n);

    for (int i = 0; i < n && g->w->status == OT_OK; i++)
        ot__fb_patch(g->w->buf, list + 4 + 4 * (size_t)i, write_node(g, i));
    return list;
}

static size_t write_graph(writing *g)
{
    const ot_graph *graph = g->graph;
    ot__buf *buf = g->w->buf;
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
    const size_t position = ot__fb_write_table(buf, f, ORT_GRAPH_SLOTS);

    ot__fb_patch(buf, f[ORT_GRAPH_INITIALIZERS].position, write_initializers(g));
    ot__fb_patch(buf, f[ORT_GRAPH_VALUES].position, write_values(g));
    ot__fb_patch(buf, f[ORT_GRAPH_INPUTS].position,
                 write_names(g->w, (const ot_value *const *)graph->inputs, graph->n_inputs));
    ot__fb_patch(buf, f[ORT_GRAPH_OUTPUTS].position,
                 write_names(g->w, (const ot_value *const *)graph->outputs, graph->n_outputs));
    ot__fb_patch(buf, f[ORT_GRAPH_SPARSE_INITIALIZERS].position, ot__fb_write_offsets(buf, 0));
    ot__fb_patch(buf, f[ORT_GRAPH_EDGES].position, write_edges(g));
    if (g->w->status == OT_OK)
        ot__fb_patch(buf, f[ORT_GRAPH_NODES].position, write_nodes(g));
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
