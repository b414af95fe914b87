// SPDX-License-Identifier: Apache-2.0
// What models have asked of ot__alloc. Clones share what they hold: it counts once.
#include <stdlib.h>

#include "graph/dim_internal.h"
#include "graph/graph_internal.h"

typedef struct model_bytes {
    size_t structure, constants;
} model_bytes;

static int by_holder(const void *left, const void *right)
{
    const uintptr_t a = (uintptr_t) * (const ot__held *const *)left,
                    b = (uintptr_t) * (const ot__held *const *)right;

    return (a > b) - (a < b);
}

static void add_held(const ot__held *held, model_bytes *sum)
{
    sum->structure += sizeof *held + ot__arena_taken(held->arena);
    if (held->map.data && !held->map.is_mapped)
        sum->structure += held->map.size;
    if (!held->tensor)
        return;
    sum->constants += held->tensor->n_bytes;
    sum->structure += ot__tensor_taken(held->tensor) - held->tensor->n_bytes;
}

static void add_maps(const ot_model *model, model_bytes *sum)
{
    const struct ot__holdings *holdings = model->holdings;

    for (int i = 0; i < holdings->n_graphs; i++)
        sum->structure += ot__map_taken(&holdings->graphs[i]->values) +
                          ot__map_taken(&holdings->graphs[i]->nested);
    sum->structure += ot__map_taken(&holdings->suffixes) + ot__map_taken(&model->symbols->names) +
                      ot__map_taken(&model->symbols->expressions);
}

static bool is_counted_model(const ot_model *const *models, int n, const ot_model *model)
{
    for (int i = 0; i < n; i++)
        if (models[i] == model)
            return true;
    return false;
}

// Of all models, those that they share once.
static void add_each(const ot__held **items, size_t n, model_bytes *sum)
{
    qsort(items, n, sizeof *items, by_holder);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || items[i] != items[i - 1])
            add_held(items[i], sum);
}

ot_status ot__models_measure(const ot_model *const *models, int n_models, size_t *structure,
                             size_t *constants)
{
    model_bytes sum = {0};
    const ot__held **items;
    size_t n = 0;

    for (int i = 0; i < n_models; i++)
        n += (size_t)models[i]->holdings->n_items;
    items = ot__alloc_zero(n + 1, sizeof *items);
    OT_TRY(ot__made(items));
    n = 0;
    for (int i = 0; i < n_models; i++) {
        for (int k = 0; k < models[i]->holdings->n_items; k++)
            items[n++] = models[i]->holdings->items[k];
        if (!is_counted_model(models, i, models[i]))
            add_maps(models[i], &sum);
    }
    add_each(items, n, &sum);
    ot__free(items);
    *structure = sum.structure;
    *constants = sum.constants;
    return OT_OK;
}
