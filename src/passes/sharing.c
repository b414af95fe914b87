// SPDX-License-Identifier: Apache-2.0
// What the passes that separate and join parameters ask of a graph.
#include "passes/sharing.h"

#include <stdlib.h>
#include <string.h>

bool ot__sharing_stays(const ot__separation *s, const char *name)
{
    bool found = false;

    for (int i = 0; i < s->kept->n; i++) {
        if (!ot__name_matches(s->kept->patterns[i], name))
            continue;
        s->kept->used[i] = found = true;
    }
    return found;
}

ot_status ot__sharing_say(ot__separation *s, ot__sharing_kind kind, const char *name,
                          const char *const *parts, int n_parts)
{
    ot__arena *arena = s->graph->model->arena;
    ot__sharing item = {.kind = kind, .name = name, .n_parts = n_parts};

    item.parts = ot__arena_memdup(arena, parts, (size_t)n_parts * sizeof *parts);
    return ot__made(item.parts && ot__arena_push(arena, &s->out->items, &s->out->capacity,
                                                 &s->out->n, &item, sizeof item));
}

// ---- values ----

bool ot__is_parameter(const ot_value *value)
{
    const ot_tensor *t = value->is_initializer ? value->constant : NULL;

    return t && ot__dtype_is_float(t->dtype) && t->shape.ndim > 0 && ot_tensor_count(t) > 0;
}

uint64_t ot__elements_hash(const ot_tensor *tensor)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    const size_t size = ot_dtype_size(tensor->dtype), n_bytes = ot_tensor_bytes(tensor);
    const char *data = tensor->data;
    uint64_t sum = 0;

    for (size_t at = 0; at + size <= n_bytes; at += size) {
        uint64_t bits = 0;

        memcpy(&bits, data + at, size);
        bits = (bits + odd) * odd;
        sum += (bits ^ bits >> 29) * odd;
    }
    return sum;
}

// ---- roles ----

// The use behind nodes that only rearrange.
static const ot__use *follow_sharing(const ot__separation *s, const ot__use *use)
{
    const int max_depth = 8;

    for (int depth = 0; depth < max_depth && use->i_input == 0 && ot__node_rearranges(use->node);
         depth++) {
        const ot_value *y = use->node->n_outputs > 0 ? use->node->outputs[0] : NULL;

        if (!y || ot__uses_count(&s->uses, y) == 0)
            break;
        use = &s->uses.use[ot__uses_first(&s->uses, y)];
    }
    return use;
}

ot__port_role ot__sharing_role(const ot__separation *s, const ot__use *use, const char **leaf)
{
    static const char *const leaves[] = {
        [OT_PORT_ROLE_OTHER] = "",        [OT_PORT_ROLE_TABLE] = "weight",
        [OT_PORT_ROLE_WEIGHT] = "weight", [OT_PORT_ROLE_BIAS] = "bias",
        [OT_PORT_ROLE_SCALE] = "weight",  [OT_PORT_ROLE_STATISTIC] = "running_mean",
    };
    enum { INPUT_VAR = 4 }; // of BatchNormalization, which alone has statistics
    const ot__use *end = follow_sharing(s, use);
    const ot__port_role role =
        end->i_input < 0 ? OT_PORT_ROLE_OTHER : ot__node_input_role(end->node, end->i_input);

    *leaf =
        role == OT_PORT_ROLE_STATISTIC && end->i_input == INPUT_VAR ? "running_var" : leaves[role];
    return role;
}

const ot_value *ot__sharing_weight_beside(const ot__use *use)
{
    const ot_node *node = use->node;
    const ot_value *weight = NULL;

    if (node->n_inputs == 2 && use->i_input < 2 &&
        ot__op_input_role(ot__node_record(node), use->i_input) !=
            OT_PORT_ROLE_BIAS) // the product is its other input
        node = node->inputs[1 - use->i_input]->producer;
    for (int i = 0; node && i < node->n_inputs && !weight; i++)
        if (node->inputs[i] && ot__node_input_role(node, i) == OT_PORT_ROLE_WEIGHT)
            weight = node->inputs[i];
    while (weight && weight->producer && weight->producer->n_inputs > 0 &&
           (ot__match_copy(weight->producer) || ot__node_rearranges(weight->producer)))
        weight = weight->producer->inputs[0];
    return weight;
}

static bool is_copy_of_parameter(const ot_value *value)
{
    while (value && value->producer && ot__match_copy(value->producer))
        value = value->producer->inputs[0];
    return value && ot__is_parameter(value);
}

bool ot__sharing_is_beside_weight(const ot__use *use)
{
    const ot_node *node = use->node;

    for (int i = 0; i < node->n_inputs; i++)
        if (i != use->i_input && ot__node_input_role(node, i) == OT_PORT_ROLE_WEIGHT &&
            is_copy_of_parameter(node->inputs[i]))
            return true;
    return false;
}

// ---- what is left over ----

ot_status ot__sharing_forget(ot__separation *s, ot_value *value)
{
    return ot__made(ot__arena_push(s->graph->model->arena, &s->forgotten, &s->forgotten_capacity,
                                   &s->n_forgotten, &value, sizeof value));
}

// Identities whose outputs have become tensors have none.
static bool is_empty_copy(const ot_node *node)
{
    return node->n_outputs == 1 && !node->outputs[0] && ot__match_copy(node);
}

static void compact(ot_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (is_empty_copy(graph->nodes[n]))
            ot__node_detach(graph->nodes[n]);
    ot__graph_drop_detached(graph);
    ot__graph_relist(graph);
}

static void drop(ot_graph *graph, ot_value *value)
{
    if (value->producer)
        value->producer->outputs[0] = NULL;
    value->producer = NULL;
    value->is_initializer = false;
    ot__graph_forget_value(graph, value);
}

ot_status ot__sharing_drop_forgotten(ot__separation *s)
{
    compact(s->graph);
    ot__uses_deinit(&s->uses);
    OT_TRY(ot__uses_build(s->graph, &s->uses));
    for (int i = 0; i < s->n_forgotten; i++) {
        ot_value *value = s->forgotten[i];

        if (!value->is_output && ot__uses_count(&s->uses, value) == 0)
            drop(s->graph, value);
    }
    compact(s->graph);
    s->n_forgotten = 0;
    return OT_OK;
}

// ---- equal parameters ----

typedef struct equal_item {
    const ot_tensor *tensor;
    uint64_t hash;
} equal_item;

static int shared_by_elements(const void *left, const void *right)
{
    const equal_item *a = left, *b = right;

    if (a->tensor->dtype != b->tensor->dtype)
        return a->tensor->dtype < b->tensor->dtype ? -1 : 1;
    if (a->tensor->n_bytes != b->tensor->n_bytes)
        return a->tensor->n_bytes < b->tensor->n_bytes ? -1 : 1;
    return (a->hash > b->hash) - (a->hash < b->hash);
}

// Named, of one axis, and read as scale or bias: what exporters merge most of all.
static bool is_witness(const ot__separation *s, const ot_value *value)
{
    if (!ot__is_parameter(value) || value->constant->shape.ndim != 1 ||
        ot_tensor_count(value->constant) < 2 || !ot__is_parameter_name(s->graph, value->name))
        return false;
    for (int u = ot__uses_first(&s->uses, value); u < ot__uses_end(&s->uses, value); u++) {
        const char *leaf;
        const ot__port_role role = ot__sharing_role(s, &s->uses.use[u], &leaf);

        if (role == OT_PORT_ROLE_SCALE || role == OT_PORT_ROLE_BIAS)
            return true;
    }
    return false;
}

ot_status ot__sharing_find_equal(ot__separation *s)
{
    equal_item *items = ot__alloc_zero((size_t)s->graph->n_initializers + 1, sizeof *items);
    int n = 0;

    OT_TRY(ot__made(items));
    for (int i = 0; i < s->graph->n_initializers; i++) {
        const ot_value *value = s->graph->initializers[i];

        s->is_optimised =
            s->is_optimised || (value->name[0] == '/' && strstr(value->name, "_output_"));
        if (is_witness(s, value))
            items[n++] = (equal_item){value->constant, ot__elements_hash(value->constant)};
    }
    qsort(items, (size_t)n, sizeof *items, shared_by_elements);
    for (int i = 1; i < n; i++) {
        const ot_tensor *a = items[i - 1].tensor, *b = items[i].tensor;

        if (shared_by_elements(&items[i - 1], &items[i]) != 0 ||
            memcmp(a->data, b->data, a->n_bytes) != 0)
            continue;
        s->has_equal = true;
        s->has_small_equal = s->has_small_equal || ot_tensor_count(a) <= OT_MERGED_MAX;
    }
    ot__free(items);
    return OT_OK;
}
