// SPDX-License-Identifier: Apache-2.0
// Building graphs: values, nodes, attributes.
#include <string.h>

#include "graph/graph_internal.h"

// ---- values ----

ot_value *ot__graph_find(const ot_graph *graph, const char *name)
{
    return ot__map_get(&graph->values, name);
}

ot_value *ot__graph_find_visible(const ot_graph *graph, const char *name)
{
    for (; graph; graph = graph->parent) {
        ot_value *value = ot__graph_find(graph, name);

        if (value)
            return value;
    }
    return NULL;
}

static ot_graph *root_graph(ot_graph *graph)
{
    while (graph->parent)
        graph = graph->parent;
    return graph;
}

// How many graphs inside the root have the name.
static uintptr_t count_nested(const ot_graph *root, const char *name)
{
    return (uintptr_t)ot__map_get(&root->nested, name);
}

static bool set_nested(ot_graph *root, const char *name, uintptr_t count)
{
    if (count == 0) {
        ot__map_remove(&root->nested, name);
        return true;
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the map's values are only carried
    return ot__map_put(&root->nested, name, (void *)count);
}

bool ot__graph_adopt_value(ot_graph *graph, ot_value *value)
{
    ot_graph *root = root_graph(graph);

    return ot__map_put(&graph->values, value->name, value) &&
           (root == graph || set_nested(root, value->name, count_nested(root, value->name) + 1));
}

// `name` is kept.
static ot_value *node_add_value(ot_graph *graph, const char *name)
{
    ot_value *value = name ? ot__arena_alloc(graph->model->arena, sizeof *value) : NULL;

    if (!value)
        return NULL;
    value->name = name;
    return ot__graph_adopt_value(graph, value) ? value : NULL;
}

void ot__graph_forget_value(ot_graph *graph, const ot_value *value)
{
    ot_graph *root = root_graph(graph);

    if (ot__map_remove(&graph->values, value->name) && root != graph)
        set_nested(root, value->name, count_nested(root, value->name) - 1);
}

ot_value *ot__graph_value(ot_graph *graph, const char *name)
{
    ot_value *value = ot__graph_find(graph, name);

    return value ? value : node_add_value(graph, ot__arena_strdup(graph->model->arena, name));
}

// Subgraphs count too: a name that means two things in nested graphs is refused by other runtimes.
static bool name_is_taken(ot_graph *graph, const char *name)
{
    const ot_graph *root = root_graph(graph);

    return ot__graph_find(root, name) || count_nested(root, name) > 0;
}

ot_value *ot__graph_new_value(ot_graph *graph, const char *base)
{
    ot_model *model = graph->model;
    uintptr_t suffix;
    const char *name;

    if (*base && !name_is_taken(graph, base))
        return ot__graph_value(graph, base);
    // Remembered, or the thousandth value of one base would ask for a thousand names.
    suffix = (uintptr_t)ot__map_get(&model->holdings->suffixes, base);
    if (suffix == 0) {
        base = ot__arena_strdup(model->arena, base);
        if (!base)
            return NULL;
    }
    do {
        name = ot__arena_printf(model->arena, "%s_%" PRIuPTR, base, ++suffix);
        if (!name)
            return NULL;
    } while (name_is_taken(graph, name));
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the map's values are only carried
    if (!ot__map_put(&model->holdings->suffixes, base, (void *)suffix))
        return NULL;
    return node_add_value(graph, name);
}

void ot__value_set(ot_value *value, ot_dtype dtype, const ot_shape *shape)
{
    value->kind = OT_VALUE_TENSOR;
    value->dtype = dtype;
    value->has_shape = shape != NULL;
    if (shape)
        value->shape = *shape;
}

bool ot__graph_add_input(ot_graph *graph, ot_value *value)
{
    if (!value || !ot__arena_push(graph->model->arena, &graph->inputs, &graph->inputs_capacity,
                                  &graph->n_inputs, &value, sizeof value))
        return false;
    value->is_input = true;
    return true;
}

bool ot__graph_add_output(ot_graph *graph, ot_value *value)
{
    if (!value || !ot__arena_push(graph->model->arena, &graph->outputs, &graph->outputs_capacity,
                                  &graph->n_outputs, &value, sizeof value))
        return false;
    value->is_output = true;
    return true;
}

bool ot__graph_add_initializer(ot_graph *graph, ot_value *value, ot_tensor *constant)
{
    if (!constant || !value ||
        !ot__arena_push(graph->model->arena, &graph->initializers, &graph->initializers_capacity,
                        &graph->n_initializers, &value, sizeof value))
        return false;
    value->is_initializer = true;
    value->constant = constant;
    ot__value_set(value, constant->dtype, &constant->shape);
    return true;
}

// ---- nodes ----

static ot_value **copy_values(ot_model *model, ot_value *const *values, int n)
{
    if (n == 0)
        return ot__arena_alloc(model->arena, sizeof(ot_value *));
    return ot__arena_memdup(model->arena, values, (size_t)n * sizeof(ot_value *));
}

ot_node *ot__graph_add_node(ot_graph *graph, const char *domain, const char *op_type,
                            const char *name, ot_value *const *inputs, int n_inputs,
                            ot_value *const *outputs, int n_outputs)
{
    ot__arena *arena = graph->model->arena;
    ot_node *node = ot__arena_alloc(arena, sizeof *node);

    if (!node)
        return NULL;
    node->domain = ot__arena_strdup(arena, ot__domain_same(domain, "") ? "" : domain);
    node->op_type = ot__arena_strdup(arena, op_type);
    node->name = ot__arena_strdup(arena, name ? name : "");
    node->overload = node->doc = "";
    node->inputs = copy_values(graph->model, inputs, n_inputs);
    node->outputs = copy_values(graph->model, outputs, n_outputs);
    node->n_inputs = n_inputs;
    node->n_outputs = n_outputs;
    node->graph = graph;
    if (!node->domain || !node->op_type || !node->name || !node->inputs || !node->outputs ||
        !ot__arena_push(arena, &graph->nodes, &graph->nodes_capacity, &graph->n_nodes, &node,
                        sizeof node))
        return NULL;
    for (int i = 0; i < n_outputs; i++) {
        if (!outputs[i])
            continue;
        outputs[i]->producer = node;
        outputs[i]->i_producer_output = i;
    }
    return node;
}

bool ot__node_put_input(ot_node *node, int i, ot_value *value)
{
    if (i >= node->n_inputs) {
        ot_value **inputs =
            ot__arena_alloc(node->graph->model->arena, ((size_t)i + 1) * sizeof *inputs);

        if (!inputs)
            return false;
        for (int k = 0; k < node->n_inputs; k++)
            inputs[k] = node->inputs[k];
        node->inputs = inputs;
        node->n_inputs = i + 1;
    }
    node->inputs[i] = value;
    return true;
}

const char *ot__node_label(const ot_node *node, char *text, size_t size)
{
    // A node without a name is known by what it makes.
    if (node->name[0])
        snprintf(text, size, "%s '%s'", node->op_type, node->name);
    else if (node->n_outputs > 0 && node->outputs[0])
        snprintf(text, size, "%s of '%s'", node->op_type, node->outputs[0]->name);
    else
        snprintf(text, size, "%s", node->op_type);
    return text;
}

// ---- attributes ----

bool ot__node_is(const ot_node *node, const char *domain, const char *op_type)
{
    return node && strcmp(node->op_type, op_type) == 0 && strcmp(node->domain, domain) == 0;
}

ot_attr *ot__node_attr(const ot_node *node, const char *name)
{
    for (int i = 0; i < node->n_attrs; i++)
        if (strcmp(node->attrs[i]->name, name) == 0)
            return node->attrs[i];
    return NULL;
}

// The list has room for a power of two of entries, at least four.
static bool has_room(int count)
{
    return count != 0 && (count < 4 || (count & (count - 1)) != 0);
}

static bool append_attr(ot_node *node, ot_attr *attr)
{
    if (!has_room(node->n_attrs)) {
        size_t room = node->n_attrs ? (size_t)node->n_attrs * 2 : 4;
        ot_attr **grown = ot__arena_alloc(node->graph->model->arena, room * sizeof *grown);

        if (!grown)
            return false;
        if (node->n_attrs)
            memcpy(grown, node->attrs, (size_t)node->n_attrs * sizeof *grown);
        node->attrs = grown;
    }
    node->attrs[node->n_attrs++] = attr;
    return true;
}

ot_attr *ot__node_add_attr(ot_node *node, const char *name, ot_attr_kind kind)
{
    ot__arena *arena = node->graph->model->arena;
    ot_attr *attr = ot__node_attr(node, name);

    if (attr) {
        *attr = (ot_attr){.name = attr->name, .kind = kind};
        return attr;
    }
    attr = ot__arena_alloc(arena, sizeof *attr);
    if (!attr)
        return NULL;
    attr->name = ot__arena_strdup(arena, name);
    attr->kind = kind;
    return attr->name && append_attr(node, attr) ? attr : NULL;
}

bool ot__node_set_int(ot_node *node, const char *name, int64_t value)
{
    ot_attr *attr = ot__node_add_attr(node, name, OT_ATTR_INT);

    if (attr)
        attr->i = value;
    return attr != NULL;
}

bool ot__node_set_float(ot_node *node, const char *name, float value)
{
    ot_attr *attr = ot__node_add_attr(node, name, OT_ATTR_FLOAT);

    if (attr)
        attr->f = value;
    return attr != NULL;
}

bool ot__node_set_ints(ot_node *node, const char *name, const int64_t *values, int n)
{
    ot_attr *attr = ot__node_add_attr(node, name, OT_ATTR_INTS);

    if (!attr)
        return false;
    if (n > 0) {
        attr->ints =
            ot__arena_memdup(node->graph->model->arena, values, (size_t)n * sizeof *values);
        if (!attr->ints)
            return false;
    }
    attr->n = n;
    return true;
}

bool ot__node_set_floats(ot_node *node, const char *name, const float *values, int n)
{
    ot_attr *attr = ot__node_add_attr(node, name, OT_ATTR_FLOATS);
    float *copy =
        attr ? ot__arena_memdup(node->graph->model->arena, values, (size_t)n * sizeof *values)
             : NULL;

    if (!copy)
        return false;
    attr->floats = copy;
    attr->n = n;
    return true;
}

bool ot__node_set_strings(ot_node *node, const char *name, const char *const *values, int n)
{
    ot__arena *arena = node->graph->model->arena;
    ot_attr *attr = ot__node_add_attr(node, name, OT_ATTR_STRINGS);
    ot__string *strings = attr ? ot__arena_alloc(arena, ((size_t)n + 1) * sizeof *strings) : NULL;

    if (!strings)
        return false;
    for (int i = 0; i < n; i++) {
        char *copy = ot__arena_strdup(arena, values[i]);

        if (!copy)
            return false;
        strings[i] = (ot__string){(const uint8_t *)copy, strlen(copy)};
    }
    attr->strings = strings;
    attr->n = n;
    return true;
}

bool ot__node_set_string(ot_node *node, const char *name, const char *value)
{
    ot_attr *attr = ot__node_add_attr(node, name, OT_ATTR_STRING);
    char *copy = attr ? ot__arena_strdup(node->graph->model->arena, value) : NULL;

    if (!copy)
        return false;
    attr->s = (ot__string){(const uint8_t *)copy, strlen(copy)};
    return true;
}

bool ot__node_set_tensor(ot_node *node, const char *name, ot_tensor *value)
{
    ot_attr *attr = value ? ot__node_add_attr(node, name, OT_ATTR_TENSOR) : NULL;

    if (attr)
        attr->t = value;
    return attr != NULL;
}

void ot__node_remove_attr(ot_node *node, const char *name)
{
    int kept = 0;

    for (int i = 0; i < node->n_attrs; i++)
        if (strcmp(node->attrs[i]->name, name) != 0)
            node->attrs[kept++] = node->attrs[i];
    // Room may shrink below the next power of two; the list is copied again when it grows.
    node->n_attrs = kept;
}

static bool is_listed_before(const ot_graph *graph, int n, bool (*is_listed)(const ot_node *node))
{
    for (int k = 0; k < n; k++)
        if (is_listed(graph->nodes[k]) &&
            ot__node_is(graph->nodes[k], graph->nodes[n]->domain, graph->nodes[n]->op_type))
            return true;
    return false;
}

void ot__graph_list_operators(const ot_graph *graph, bool (*is_listed)(const ot_node *node),
                              ot__buf *text)
{
    bool is_first = true;

    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];

        if (!is_listed(node) || is_listed_before(graph, n, is_listed))
            continue;
        ot__buf_printf(text, "%s%s%s%s", is_first ? "" : ", ", node->domain,
                       node->domain[0] == '\0' ? "" : ".", node->op_type);
        is_first = false;
    }
}
