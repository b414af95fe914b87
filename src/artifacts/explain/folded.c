// SPDX-License-Identifier: Apache-2.0
// Traces of what an exporter did to a framework's parameters before the file was written.
#include <inttypes.h>
#include <string.h>

#include "artifacts/forward.h"

// What an optimiser named after nodes, as "/l/Transpose_output_0", or after its own fusions.
static bool is_of_optimiser(const char *name)
{
    return (name[0] == '/' && strstr(name, "_output_")) || ot__starts_with(name, "ConvBnFusion_") ||
           ot__starts_with(name, "ConvMulFusion_") || ot__starts_with(name, "ConvAddFusion_");
}

bool ot__candidate_is_folded(const ot__candidate *item, const ot_model *model)
{
    const char *name = item->value->name;

    if (!ot__dtype_is_float(item->value->dtype) || item->value->shape.ndim == 0)
        return false;
    // "onnx::MatMul_37" is the classic exporter's; "0.weight_bias" is left of a BatchNormalization.
    if (strncmp(name, "onnx::", 6) == 0 || ot__ends_with(name, ".weight_bias") ||
        is_of_optimiser(name))
        return true;
    return strcmp(model->producer_name, "pytorch") == 0 && ot__is_value_name(name);
}

// ---- twins ----

enum { SAMPLE = 256 }; // bytes at either end

// An initial value is not a weight that was shared.
static bool may_be_twin(const ot_tensor *t)
{
    return t && ot__dtype_is_float(t->dtype) && ot_tensor_count(t) >= 2 &&
           !ot__tensor_is_uniform(t);
}

// Tensors with the same elements have the same key, and few others have it.
static const char *twin_key(ot__arena *arena, const ot_tensor *t)
{
    const uint8_t *data = t->data;
    const size_t n_bytes = ot_tensor_bytes(t), n = OT_MIN(n_bytes, (size_t)SAMPLE);
    const uint64_t prime = UINT64_C(0x100000001b3); // FNV-1a
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ data[i]) * prime;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ data[n_bytes - n + i]) * prime;
    return ot__arena_printf(arena, "%d %zu %016" PRIx64, (int)t->dtype, n_bytes, hash);
}

// Candidates with the same elements, by the first of them.
typedef struct sameness {
    int before; // another first one with the same key; -1: none
    int other;  // the first with the elements in another tensor; -1: none
} sameness;

typedef struct twins {
    const ot__candidates *c;
    ot__map last; // by key: the latest first one that has it
    sameness *of; // per candidate
} twins;

static const ot_tensor *folded_tensor(const twins *w, int i)
{
    return w->c->items[i].value->constant;
}

// The first candidate with the elements of number i; -1: that is i.
static ot_status find_first(twins *w, int i, int *first)
{
    const ot_tensor *a = folded_tensor(w, i);
    const char *key = twin_key(w->c->graph->model->arena, a);
    const ot__candidate *last = key ? ot__map_get(&w->last, key) : NULL;

    OT_TRY(ot__made(key));
    *first = last ? (int)(last - w->c->items) : -1;
    w->of[i] = (sameness){*first, -1};
    while (*first >= 0 && memcmp(a->data, folded_tensor(w, *first)->data, ot_tensor_bytes(a)) != 0)
        *first = w->of[*first].before;
    if (*first >= 0)
        return OT_OK;
    return ot__made(ot__map_put(&w->last, key, &w->c->items[i]));
}

static ot_status find_twin(twins *w, int i, int *twin)
{
    const ot_tensor *a = folded_tensor(w, i);
    int first;

    *twin = -1;
    if (!may_be_twin(a))
        return OT_OK;
    OT_TRY(find_first(w, i, &first));
    if (first < 0)
        return OT_OK;
    if (folded_tensor(w, first) == a) // the very same tensor: separated on purpose
        first = w->of[first].other;
    else if (w->of[first].other < 0)
        w->of[first].other = i;
    if (a->shape.ndim >= 2)
        *twin = first;
    return OT_OK;
}

ot_status ot__candidates_find_twins(const ot__candidates *c, const int **out)
{
    ot__arena *arena = c->graph->model->arena;
    int *found = ot__arena_alloc(arena, ((size_t)c->n + 1) * sizeof *found);
    twins w = {.c = c, .of = ot__arena_alloc(arena, ((size_t)c->n + 1) * sizeof *w.of)};
    ot_status st = ot__made(found && w.of);

    for (int i = 0; st == OT_OK && i < c->n; i++)
        st = find_twin(&w, i, &found[i]);
    ot__map_deinit(&w.last);
    *out = found;
    return st;
}

// ---- the note ----

static const ot_value *first_folded(const ot__forward *forward, int *n)
{
    const ot__candidates *c = &forward->candidates;
    const ot_value *first = NULL;

    *n = 0;
    for (int i = 0; i < c->n; i++)
        if (c->items[i].role == OT_ROLE_TRAINABLE && !c->items[i].is_blocked &&
            ot__candidate_is_folded(&c->items[i], forward->model) && (*n)++ == 0)
            first = c->items[i].value;
    return first;
}

// A number that the exporter computed from parameters which are there, too, as a penalty on them.
static const ot_value *first_number(const ot__forward *forward)
{
    const ot__candidates *c = &forward->candidates;

    for (int i = 0; i < c->n; i++) {
        const ot__candidate *item = &c->items[i];

        if (item->role == OT_ROLE_CONSTANT && item->value->shape.ndim == 0 && item->reaches_loss &&
            item->origin == OT_ORIGIN_PARAMETER && !item->is_original)
            return item->value;
    }
    return NULL;
}

static ot_status note_number(ot__forward *forward, const char *name)
{
    return ot__forward_note(
        forward, OT_LOG_INFO,
        ot__arena_printf(forward->model->arena,
                         "'%s', a scalar, is what an exporter computed from parameters, which get "
                         "no gradient through it; to train them by it, too, export with "
                         "torch.onnx.export(model.train(), ..., optimize=False)",
                         name));
}

static ot_status note_tensors(ot__forward *forward, const ot_value *first, int n)
{
    const bool optimised = is_of_optimiser(first->name);

    return ot__forward_note(
        forward, OT_LOG_INFO,
        ot__arena_printf(
            forward->model->arena,
            "'%s'%s by name what an %s computed from parameters that are gone, and trains in "
            "their place; to train those, %s with torch.onnx.export(model.train(), ..., "
            "optimize=False), or with dynamo=False, training=TrainingMode.TRAINING and "
            "do_constant_folding=False",
            first->name, n > 1 ? " and others are" : " is", optimised ? "optimiser" : "exporter",
            optimised ? "train the file that it read, exported" : "export"));
}

ot_status ot__forward_note_folded(ot__forward *forward)
{
    int n;
    const ot_value *first = first_folded(forward, &n), *number = first_number(forward);

    if (forward->has_lost)
        return OT_OK;
    if (first)
        OT_TRY(note_tensors(forward, first, n));
    return number ? note_number(forward, number->name) : OT_OK;
}
