// SPDX-License-Identifier: Apache-2.0
// Graphs and nodes:
//   name (float[N,128] X) => (float[N,10] Y) <float[2] w = {1, 2}, float[N,64] h> { [node] h = Relu
//   (X) ... }
#include <string.h>

#include "onnx/text/parse.h"

// A name with its type, which is applied when the value exists.
typedef struct described {
    const char *name;
    ot_value type;
} described;

typedef struct descriptions {
    described *items;
    int n, capacity;
} descriptions;

static ot_status parse_described(ot__parser *p, described *out)
{
    *out = (described){0};
    OT_TRY(ot__parse_enter(p));
    p->depth--;
    if (ot__parse_is_type(p))
        OT_TRY(ot__parse_type(p, &out->type, NULL));
    OT_TRY(ot__parse_name(p, &out->name));
    return *out->name ? OT_OK : ot__parse_error(p, "a value has an empty name");
}

static void text_apply(const described *from, ot_value *to)
{
    if (from->type.kind == OT_VALUE_UNTYPED || to->constant)
        return;
    to->kind = from->type.kind;
    to->dtype = from->type.dtype;
    to->has_shape = from->type.has_shape;
    to->shape = from->type.shape;
    to->type_bytes = from->type.type_bytes;
}

static ot_status text_remember(ot__parser *p, descriptions *list, const described *item)
{
    OT_TRY(ot__made(ot__arena_grow(p->model->arena, &list->items, &list->capacity, list->n,
                                   sizeof *list->items)));
    list->items[list->n++] = *item;
    return OT_OK;
}

// ---- inputs, initializers, outputs ----

static ot_status parse_initializer(ot__parser *p, ot_graph *graph, const described *item)
{
    ot_value *value = ot__graph_value(graph, item->name);
    ot_tensor *tensor;

    OT_TRY(ot__made(value));
    if (value->is_initializer)
        return ot__parse_error(p, "initializer '%s' is defined twice", item->name);
    OT_TRY(ot__parse_tensor(p, &item->type, item->name, &tensor));
    return ot__made(ot__graph_add_initializer(graph, value, tensor));
}

static ot_status parse_inputs(ot__parser *p, ot_graph *graph)
{
    if (!ot__parse_accept(p, '(') || ot__parse_accept(p, ')'))
        return OT_OK;
    do {
        described item;
        ot_value *value;

        OT_TRY(parse_described(p, &item));
        if (ot__graph_find(graph, item.name))
            return ot__parse_error(p, "input '%s' is listed twice", item.name);
        value = ot__graph_value(graph, item.name);
        OT_TRY(ot__made(ot__graph_add_input(graph, value)));
        text_apply(&item, value);
        if (ot__parse_accept(p, '='))
            OT_TRY(parse_initializer(p, graph, &item));
    } while (ot__parse_accept(p, ','));
    return ot__parse_expect(p, ')');
}

// Values up to `close`, of which those of `graph` (NULL: none) may be initializers.
static ot_status parse_values(ot__parser *p, ot_graph *graph, char close, descriptions *values)
{
    if (ot__parse_accept(p, close))
        return OT_OK;
    do {
        described item;

        OT_TRY(parse_described(p, &item));
        if (graph && ot__parse_accept(p, '='))
            OT_TRY(parse_initializer(p, graph, &item));
        else
            OT_TRY(text_remember(p, values, &item));
    } while (ot__parse_accept(p, ','));
    return ot__parse_expect(p, close);
}

static ot_status text_add_outputs(ot_graph *graph, const descriptions *outputs)
{
    for (int i = 0; i < outputs->n; i++) {
        ot_value *value;

        OT_TRY(ot__find_node_input(graph, outputs->items[i].name, &value));
        OT_TRY(ot__made(ot__graph_add_output(graph, value)));
        if (!value->is_input)
            text_apply(&outputs->items[i], value);
    }
    return OT_OK;
}

static void apply_infos(ot_graph *graph, const descriptions *infos)
{
    for (int i = 0; i < infos->n; i++) {
        ot_value *value = ot__graph_find(graph, infos->items[i].name);

        if (value && value->producer)
            text_apply(&infos->items[i], value);
    }
}

static ot_status parse_graph(ot__parser *p, ot_graph *graph)
{
    descriptions outputs = {0}, infos = {0};

    OT_TRY(ot__parse_name(p, &graph->name));
    OT_TRY(parse_inputs(p, graph));
    OT_TRY(ot__parse_arrow(p));
    OT_TRY(ot__parse_expect(p, '('));
    OT_TRY(parse_values(p, NULL, ')', &outputs));
    if (ot__parse_accept(p, '<'))
        OT_TRY(parse_values(p, graph, '>', &infos));
    ot__drop_initialized_inputs(graph);
    OT_TRY(ot__parse_nodes(p, graph));
    apply_infos(graph, &infos);
    return text_add_outputs(graph, &outputs);
}

ot_status ot__parse_graph(ot__parser *p, ot_graph *graph)
{
    OT_TRY(ot__parse_enter(p));
    OT_TRY(parse_graph(p, graph));
    p->depth--;
    return OT_OK;
}

// ---- nodes ----

typedef struct names {
    const char **items;
    int n, capacity;
} names;

// Names with commas between; an empty one is "" or nothing before a comma.
static ot_status parse_names(ot__parser *p, names *list)
{
    do {
        const char *name;
        bool is_quoted = ot__parse_peek(p) == '"';

        OT_TRY(ot__parse_optional_name(p, &name));
        if (!*name && !is_quoted && ot__parse_peek(p) != ',')
            return OT_OK;
        OT_TRY(ot__made(ot__arena_grow(p->model->arena, &list->items, &list->capacity, list->n,
                                       sizeof *list->items)));
        list->items[list->n++] = name;
        OT_TRY(ot__parse_enter(p));
        p->depth--;
    } while (ot__parse_accept(p, ','));
    return OT_OK;
}

static ot_status text_find_values(ot__parser *p, ot_graph *graph, const names *list,
                                  ot__finding find, ot_value ***out)
{
    *out = ot__arena_alloc(p->model->arena, ((size_t)list->n + 1) * sizeof **out);
    OT_TRY(ot__made(*out));
    for (int i = 0; i < list->n; i++)
        if (list->items[i][0])
            OT_TRY(ot__parse_locate(p, find(graph, list->items[i], &(*out)[i])));
    return OT_OK;
}

// domain.with.points.Operator
static ot_status parse_operator(ot__parser *p, const char **domain, const char **op_type)
{
    *domain = "";
    OT_TRY(ot__parse_name(p, op_type));
    while (ot__parse_accept(p, '.')) {
        *domain =
            **domain ? ot__arena_printf(p->model->arena, "%s.%s", *domain, *op_type) : *op_type;
        OT_TRY(ot__made(*domain));
        OT_TRY(ot__parse_name(p, op_type));
    }
    return **op_type ? OT_OK : ot__parse_error(p, "an operator has an empty name");
}

// The node with its inputs; attributes may stand on either side of these, and are read when the
// node is there.
static ot_status parse_call(ot__parser *p, ot_graph *graph, const char *name, const names *outputs)
{
    const char *domain, *op_type, *overload = "";
    ot_value **input_values, **output_values;
    ot_node head = {0}, *node;
    names inputs = {0};

    OT_TRY(parse_operator(p, &domain, &op_type));
    if (ot__parse_accept(p, ':'))
        OT_TRY(ot__parse_name(p, &overload));
    head.graph = graph;
    OT_TRY(ot__parse_attr_list(p, &head));
    OT_TRY(ot__parse_expect(p, '('));
    OT_TRY(parse_names(p, &inputs));
    OT_TRY(ot__parse_expect(p, ')'));
    OT_TRY(text_find_values(p, graph, &inputs, ot__find_node_input, &input_values));
    if (head.n_attrs == 0)
        OT_TRY(ot__parse_attr_list(p, &head));
    OT_TRY(text_find_values(p, graph, outputs, ot__find_node_output, &output_values));
    node = ot__graph_add_node(graph, domain, op_type, name, input_values, inputs.n, output_values,
                              outputs->n);
    OT_TRY(ot__made(node));
    node->overload = overload;
    node->attrs = head.attrs;
    node->n_attrs = head.n_attrs;
    return ot__parse_locate(p, ot__check_node_outputs(node));
}

static ot_status parse_node(ot__parser *p, ot_graph *graph)
{
    const char *name = "";
    names outputs = {0};

    OT_TRY(ot__parse_enter(p));
    if (ot__parse_accept(p, '[')) {
        OT_TRY(ot__parse_optional_name(p, &name));
        OT_TRY(ot__parse_expect(p, ']'));
    }
    OT_TRY(parse_names(p, &outputs));
    OT_TRY(ot__parse_expect(p, '='));
    OT_TRY(parse_call(p, graph, name, &outputs));
    p->depth--;
    return OT_OK;
}

ot_status ot__parse_nodes(ot__parser *p, ot_graph *graph)
{
    OT_TRY(ot__parse_expect(p, '{'));
    while (!ot__parse_accept(p, '}')) {
        if (ot__parse_at_end(p))
            return ot__parse_error(p, "expected '}', found the end");
        OT_TRY(parse_node(p, graph));
    }
    return OT_OK;
}
