// SPDX-License-Identifier: Apache-2.0
// Constants: elements that live in a model's arena, in what it holds, or in memory of their own.
#include <stdlib.h>
#include <string.h>

#include "graph/graph_internal.h"

static const size_t own_from = OT_SPAN_MIN; // smaller tensors stay in the arena

ot_tensor *ot__model_tensor_over(ot_model *model, ot_dtype dtype, const ot_shape *shape,
                                 const void *data, size_t n_bytes)
{
    ot_tensor *tensor = ot__arena_alloc(model->arena, sizeof *tensor);

    if (!tensor || !ot__arena_enter(model->arena, tensor, OT_KIND_OF(tensor)))
        return NULL;
    tensor->dtype = dtype;
    tensor->shape = *shape;
    tensor->n_bytes = n_bytes;
    tensor->data = (void *)(uintptr_t)data; // constants are never written
    return tensor;
}

// Counted like the arena's bytes, for whoever limits what a file may take.
static ot_tensor *own_memory(ot_model *model, ot_dtype dtype, const ot_shape *shape, size_t n_bytes)
{
    ot_tensor *tensor;

    if (!ot__arena_charge(model->arena, n_bytes) ||
        ot_tensor_create(dtype, shape, &tensor) != OT_OK)
        return NULL;
    return ot__model_hold_constant(model, tensor) == OT_OK ? tensor : NULL;
}

ot_tensor *ot__model_tensor_new(ot_model *model, ot_dtype dtype, const ot_shape *shape)
{
    const size_t alignment = 64;
    int64_t count;
    size_t n_bytes;
    char *data;

    if (!ot__shape_count(shape, &count) || !ot__element_bytes(dtype, count, &n_bytes) ||
        n_bytes > SIZE_MAX - alignment) {
        ot__error(OT_ERR_INVALID, "%s constant of shape %s has no size", ot_dtype_name(dtype),
                  OT_SHAPE_TEXT(shape));
        return NULL;
    }
    if (n_bytes >= own_from && dtype != OT_STRING)
        return own_memory(model, dtype, shape, n_bytes);
    data = ot__arena_alloc(model->arena, n_bytes + alignment);
    if (!data)
        return NULL;
    data += (alignment - (uintptr_t)data % alignment) % alignment;
    return ot__model_tensor_over(model, dtype, shape, data, n_bytes);
}

ot_status ot__constant_clone(const ot_model *model, const ot_tensor *constant, ot_tensor **out)
{
    const ot__file_map *map = ot__model_map_around(model, constant->data, constant->n_bytes);

    if (!map)
        return ot_tensor_clone(constant, out);
    OT_TRY(ot_tensor_create(constant->dtype, &constant->shape, out));
    ot__file_map_copy(map, (*out)->data, (size_t)((const uint8_t *)constant->data - map->data),
                      constant->n_bytes);
    return OT_OK;
}

static ot_status align(ot_model *model, ot_value *value)
{
    const ot_tensor *from = value->constant;
    const ot__file_map *map;
    ot_tensor *to;

    if (!from || ot__tensor_is_aligned(from))
        return OT_OK;
    to = ot__model_tensor_new(model, from->dtype, &from->shape);
    OT_TRY(ot__made(to));
    map = ot__model_map_around(model, from->data, from->n_bytes);
    if (map)
        ot__file_map_copy(map, to->data, (size_t)((const uint8_t *)from->data - map->data),
                          from->n_bytes);
    else
        memcpy(to->data, from->data, from->n_bytes);
    value->constant = to;
    return OT_OK;
}

ot_status ot__model_align_constants(ot_model *model)
{
    for (int i = 0; i < model->holdings->n_graphs; i++) {
        size_t position = 0;
        const char *name;
        void *value;

        while (ot__map_next(&model->holdings->graphs[i]->values, &position, &name, &value))
            OT_TRY(align(model, value));
    }
    return OT_OK;
}

// ---- letting go ----

// Addresses of the tensors that a model refers to.
typedef struct references {
    const ot_tensor **items;
    int n, capacity;
    ot__arena *arena; // of the list
    bool failed;
} references;

static void add_constant_value(references *r, const ot_tensor *tensor)
{
    if (tensor && !r->failed)
        r->failed =
            !ot__arena_push(r->arena, &r->items, &r->capacity, &r->n, &tensor, sizeof tensor);
}

static void add_attr(references *r, const ot_attr *attr)
{
    add_constant_value(r, attr->t);
    for (int k = 0; attr->tensors && k < attr->n; k++)
        add_constant_value(r, attr->tensors[k]);
}

static void add_constant_node(references *r, const ot_node *node)
{
    for (int i = 0; i < node->n_attrs; i++)
        add_attr(r, node->attrs[i]);
    // Values may have been renamed, or have lost their place among the names.
    for (int i = 0; i < node->n_inputs; i++)
        add_constant_value(r, node->inputs[i] ? node->inputs[i]->constant : NULL);
}

static void add_graph(references *r, const ot_graph *graph)
{
    size_t position = 0;
    const char *name;
    void *value;

    while (ot__map_next(&graph->values, &position, &name, &value))
        add_constant_value(r, ((const ot_value *)value)->constant);
    for (int i = 0; i < graph->n_initializers; i++)
        add_constant_value(r, graph->initializers[i]->constant);
    for (int i = 0; i < graph->n_nodes; i++)
        add_constant_node(r, graph->nodes[i]);
}

static void add_functions(references *r, const ot_model *model)
{
    for (int i = 0; i < model->n_functions; i++)
        for (int k = 0; k < model->functions[i]->n_attr_defaults; k++)
            add_attr(r, model->functions[i]->attr_defaults[k]);
}

static int by_address(const void *left, const void *right)
{
    const uintptr_t a = (uintptr_t) * (const ot_tensor *const *)left,
                    b = (uintptr_t) * (const ot_tensor *const *)right;

    return (a > b) - (a < b);
}

static bool is_referred_to(void *context, const ot_tensor *tensor)
{
    const references *r = context;

    return r->n > 0 &&
           bsearch(&tensor, r->items, (size_t)r->n, sizeof *r->items, by_address) != NULL;
}

ot_status ot__model_drop_unused(ot_model *model)
{
    references r = {.arena = ot__arena_create()};

    OT_TRY(ot__made(r.arena));
    for (int i = 0; i < model->holdings->n_graphs; i++)
        add_graph(&r, model->holdings->graphs[i]);
    add_functions(&r, model);
    if (!r.failed) {
        if (r.n > 0)
            qsort(r.items, (size_t)r.n, sizeof *r.items, by_address);
        ot__model_release_constants(model, is_referred_to, &r);
    }
    ot__arena_destroy(r.arena);
    return r.failed ? OT_ERR_NO_MEMORY : OT_OK;
}

typedef struct constant_lister {
    ot_graph *graph;
    ot_status status;
} constant_lister;

static void list_constant(void *context, ot_value *x)
{
    constant_lister *l = context;

    if (!x->constant || x->is_initializer || x->producer || l->status != OT_OK ||
        ot__graph_find(l->graph, x->name) != x) // of a graph inside
        return;
    l->status = ot__made(ot__graph_add_initializer(l->graph, x, x->constant));
}

ot_status ot__graph_list_constants(ot_graph *graph)
{
    constant_lister l = {graph, OT_OK};

    for (int n = 0; n < graph->n_nodes; n++) {
        for (int i = 0; i < graph->nodes[n]->n_inputs; i++)
            if (graph->nodes[n]->inputs[i])
                list_constant(&l, graph->nodes[n]->inputs[i]);
        ot__node_visit_captures(graph->nodes[n], list_constant, &l);
    }
    return l.status;
}
