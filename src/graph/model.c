// SPDX-License-Identifier: Apache-2.0
// A model: its arena, what it holds besides, opset imports, and what users may ask about it.
#include <stdatomic.h>
#include <string.h>

#include "graph/graph_internal.h"

static void release_model(ot__held *held)
{
    if (atomic_fetch_sub(&held->count, 1) > 1)
        return;
    if (held->arena)
        ot__arena_destroy(held->arena);
    ot__file_map_close(&held->map);
    ot_tensor_destroy(held->tensor);
    ot__free(held);
}

static bool hold_owned(ot_model *model, ot__held *held)
{
    struct ot__holdings *holdings = model->holdings;

    return ot__arena_push(model->arena, &holdings->items, &holdings->items_capacity,
                          &holdings->n_items, &held, sizeof held);
}

static ot__held *held_create(void)
{
    ot__held *held = ot__alloc_zero(1, sizeof *held);

    if (held)
        atomic_init(&held->count, 1);
    return held;
}

ot_status ot__model_keep(ot_model *model, const ot_model *other)
{
    for (int i = 0; i < other->holdings->n_items; i++) {
        OT_TRY(ot__made(hold_owned(model, other->holdings->items[i])));
        atomic_fetch_add(&other->holdings->items[i]->count, 1);
    }
    return OT_OK;
}

ot_status ot__model_hold_map(ot_model *model, const char *name, ot__file_map *map)
{
    const char *kept_name = name ? ot__arena_strdup(model->arena, name) : NULL;
    ot__held *held = name && !kept_name ? NULL : held_create();

    if (!held || !hold_owned(model, held)) {
        ot__free(held);
        ot__file_map_close(map);
        return OT_ERR_NO_MEMORY;
    }
    held->map = *map;
    held->map_name = kept_name;
    *map = (ot__file_map){0};
    return OT_OK;
}

const ot__file_map *ot__model_find_map(const ot_model *model, const char *name)
{
    for (int i = 0; i < model->holdings->n_items; i++) {
        const ot__held *held = model->holdings->items[i];

        if (held->map_name && strcmp(held->map_name, name) == 0)
            return &held->map;
    }
    return NULL;
}

const ot__file_map *ot__model_map_around(const ot_model *model, const void *bytes, size_t n_bytes)
{
    const uintptr_t at = (uintptr_t)bytes;

    for (int i = 0; i < model->holdings->n_items; i++) {
        const ot__file_map *map = &model->holdings->items[i]->map;
        const uintptr_t first = (uintptr_t)map->data;

        if (at >= first && at - first <= map->size && n_bytes <= map->size - (at - first))
            return map;
    }
    return NULL;
}

ot_status ot__model_hold_tensor(ot_model *model, ot_tensor *tensor)
{
    ot__held *held = held_create();

    if (!held || !hold_owned(model, held)) {
        ot__free(held);
        ot_tensor_destroy(tensor);
        return OT_ERR_NO_MEMORY;
    }
    held->tensor = tensor;
    return OT_OK;
}

ot_status ot__model_hold_constant(ot_model *model, ot_tensor *tensor)
{
    OT_TRY(ot__model_hold_tensor(model, tensor));
    model->holdings->items[model->holdings->n_items - 1]->is_constant = true;
    return OT_OK;
}

void ot__model_release_constants(ot_model *model,
                                 bool (*is_used)(void *context, const ot_tensor *tensor),
                                 void *context)
{
    struct ot__holdings *holdings = model->holdings;
    int kept = 0;

    for (int i = 0; i < holdings->n_items; i++) {
        ot__held *held = holdings->items[i];

        ot__file_map_forget(&held->map, 0, held->map.size);
        if (held->is_constant && !is_used(context, held->tensor))
            release_model(held);
        else
            holdings->items[kept++] = held;
    }
    holdings->n_items = kept;
}

// The arena as the first thing held, so that clones can keep it.
static ot_status model_begin(ot__arena *arena, ot__held *held, ot_model **out)
{
    ot_model *model = ot__arena_alloc(arena, sizeof *model);

    OT_TRY(ot__made(model));
    model->arena = arena;
    model->holdings = ot__arena_alloc(arena, sizeof *model->holdings);
    OT_TRY(ot__made(model->holdings && hold_owned(model, held)));
    held->arena = arena;
    OT_ENTER(model);
    *out = model;
    return OT_OK;
}

ot_status ot__model_create(ot_model **out)
{
    ot__arena *arena = ot__arena_create();
    ot__held *held = held_create();
    ot_model *model = NULL;

    *out = NULL;
    if (!arena || !held || model_begin(arena, held, &model) != OT_OK) {
        if (arena)
            ot__arena_destroy(arena);
        ot__free(held);
        return OT_ERR_NO_MEMORY;
    }
    model->producer_name = model->producer_version = model->domain = model->doc = "";
    if (ot__symbols_create(model) == OT_OK)
        model->graph = ot__graph_create(model, NULL, "");
    if (!model->graph) {
        ot_model_destroy(model);
        return OT_ERR_NO_MEMORY;
    }
    *out = model;
    return OT_OK;
}

ot_status ot__model_acquire(const ot_model *model, ot_model **out)
{
    if (!model->is_final)
        return ot__model_clone(model, out);
    atomic_fetch_add(&model->holdings->n_owners, 1);
    *out = (ot_model *)(uintptr_t)model; // which nobody changes
    return OT_OK;
}

void ot_model_destroy(ot_model *model)
{
    struct ot__holdings *holdings;

    if (!OT_IS_LIVE(model) || atomic_fetch_sub(&model->holdings->n_owners, 1) > 0 ||
        !OT_ENDS(model))
        return;
    holdings = model->holdings;
    for (int i = 0; i < holdings->n_graphs; i++) {
        ot__map_deinit(&holdings->graphs[i]->values);
        ot__map_deinit(&holdings->graphs[i]->nested);
    }
    ot__map_deinit(&holdings->suffixes);
    ot__symbols_deinit(model);
    // The list itself lives in the first item, the arena.
    for (int i = holdings->n_items - 1; i >= 0; i--)
        release_model(holdings->items[i]);
}

ot_graph *ot__graph_create(ot_model *model, ot_graph *parent, const char *name)
{
    struct ot__holdings *holdings = model->holdings;
    ot_graph *graph = ot__arena_alloc(model->arena, sizeof *graph);

    if (!graph)
        return NULL;
    graph->model = model;
    graph->parent = parent;
    graph->doc = "";
    graph->name = ot__arena_strdup(model->arena, name ? name : "");
    return graph->name &&
                   ot__arena_push(model->arena, &holdings->graphs, &holdings->graphs_capacity,
                                  &holdings->n_graphs, &graph, sizeof graph)
               ? graph
               : NULL;
}

// ---- opset imports ----

bool ot__domain_same(const char *a, const char *b)
{
    const char *x = a && strcmp(a, "ai.onnx") != 0 ? a : "";
    const char *y = b && strcmp(b, "ai.onnx") != 0 ? b : "";

    return strcmp(x, y) == 0;
}

int64_t ot__model_opset(const ot_model *model, const char *domain)
{
    for (int i = 0; i < model->n_opsets; i++)
        if (ot__domain_same(model->opsets[i].domain, domain))
            return model->opsets[i].version;
    return 0;
}

ot_status ot__model_set_opset(ot_model *model, const char *domain, int64_t version)
{
    ot__opset opset = {.version = version};

    for (int i = 0; i < model->n_opsets; i++) {
        if (ot__domain_same(model->opsets[i].domain, domain)) {
            model->opsets[i].version = version;
            return OT_OK;
        }
    }
    opset.domain = ot__arena_strdup(model->arena, domain ? domain : "");
    return ot__made(opset.domain &&
                    ot__arena_push(model->arena, &model->opsets, &model->opsets_capacity,
                                   &model->n_opsets, &opset, sizeof opset));
}

// ---- questions ----

static bool is_user_input(const ot_value *value)
{
    return !value->is_initializer;
}

int ot_model_input_count(const ot_model *model)
{
    const int n_inputs = OT_IS_LIVE(model) ? model->graph->n_inputs : 0;
    int n = 0;

    for (int i = 0; i < n_inputs; i++)
        n += is_user_input(model->graph->inputs[i]);
    return n;
}

const char *ot_model_input_name(const ot_model *model, int index)
{
    const ot_graph *graph = OT_IS_LIVE(model) ? model->graph : NULL;
    struct ot__holdings *h = graph ? model->holdings : NULL;
    int at = 0, number = 0;

    if (h && h->asked.inputs == graph->inputs && h->asked.n_inputs == graph->n_inputs &&
        h->asked.n_initializers == graph->n_initializers && h->asked.index <= index) {
        at = h->asked.at;
        number = h->asked.index;
    }
    for (; graph && index >= 0 && at < graph->n_inputs; at++) {
        if (!is_user_input(graph->inputs[at]) || number++ != index)
            continue;
        h->asked.inputs = graph->inputs;
        h->asked.n_inputs = graph->n_inputs;
        h->asked.n_initializers = graph->n_initializers;
        h->asked.index = index;
        h->asked.at = at;
        return graph->inputs[at]->name;
    }
    return NULL;
}

int ot_model_output_count(const ot_model *model)
{
    return OT_IS_LIVE(model) ? model->graph->n_outputs : 0;
}

const char *ot_model_output_name(const ot_model *model, int index)
{
    if (!OT_IS_LIVE(model) || index < 0 || index >= model->graph->n_outputs)
        return NULL;
    return model->graph->outputs[index]->name;
}

int ot_model_initializer_count(const ot_model *model)
{
    return OT_IS_LIVE(model) ? model->graph->n_initializers : 0;
}

const char *ot_model_initializer_name(const ot_model *model, int index)
{
    if (index < 0 || index >= ot_model_initializer_count(model))
        return NULL;
    return model->graph->initializers[index]->name;
}

ot_status ot_model_get_initializer(const ot_model *model, const char *name, ot_tensor **out)
{
    const ot_value *value;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(model));
    OT_TRY(OT_GIVEN(name));
    value = ot__graph_find(model->graph, name);
    if (!value || !value->is_initializer || !value->constant)
        return ot__error(OT_ERR_NOT_FOUND, "the graph has no initializer '%s'", name);
    if (value->constant->dtype == OT_STRING)
        return ot__error(OT_ERR_UNSUPPORTED, "initializer '%s' holds strings", name);
    return ot__constant_clone(model, value->constant, out);
}

ot_status ot_model_value_info(const ot_model *model, const char *name, ot_dtype *dtype,
                              ot_shape *shape)
{
    const ot_value *value;

    OT_TRY(OT_GIVEN(dtype));
    OT_TRY(OT_GIVEN(shape));
    *dtype = OT_DTYPE_UNDEFINED;
    *shape = (ot_shape){.ndim = -1};
    OT_TRY(OT_GIVEN(model));
    OT_TRY(OT_GIVEN(name));
    value = ot__graph_find(model->graph, name);
    if (!value)
        return ot__error(OT_ERR_NOT_FOUND, "the graph has no value '%s'", name);
    *dtype = value->dtype;
    if (!value->has_shape)
        return OT_OK;
    *shape = value->shape;
    for (int i = 0; i < shape->ndim; i++)
        if (!ot__dim_is_number(shape->dim[i]))
            shape->dim[i] = -1;
    return OT_OK;
}
