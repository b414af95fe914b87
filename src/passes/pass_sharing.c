// SPDX-License-Identifier: Apache-2.0
// Parameters that an exporter merged, since their elements were equal, become tensors of their own.
#include <string.h>

#include "passes/passes.h"

typedef struct separation {
    ot_graph *graph;
    const ot__kept_names *kept;
    ot__sharings *out;
    ot__uses uses; // of the graph as it was
} separation;

// ---- names ----

static bool stays(const separation *s, const char *name)
{
    bool found = false;

    for (int i = 0; i < s->kept->n; i++) {
        if (!ot__name_matches(s->kept->patterns[i], name))
            continue;
        s->kept->used[i] = found = true;
    }
    return found;
}

// "encoder.0.weight" is a parameter of a module; "onnx::MatMul_37" and "/l/Gemm_output_0" are not.
static bool is_parameter_name(const char *name)
{
    for (const char *p = name; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.", *p))
            return false;
    return *name != '\0';
}

// ---- what is said ----

static ot__sharing *find(const ot__sharings *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    return NULL;
}

static ot_status add_part(separation *s, const char *name, const char *part)
{
    ot__arena *arena = s->graph->model->arena;
    ot__sharing *item = find(s->out, name);

    if (!item) {
        if (!ot__arena_grow(arena, &s->out->items, &s->out->capacity, s->out->n, sizeof *item))
            return OT_ERR_NO_MEMORY;
        item = &s->out->items[s->out->n++];
        *item = (ot__sharing){.kind = OT_SHARING_SEPARATED, .name = name};
    }
    if (!ot__arena_grow(arena, &item->parts, &item->parts_capacity, item->n_parts,
                        sizeof *item->parts))
        return OT_ERR_NO_MEMORY;
    item->parts[item->n_parts++] = part;
    return OT_OK;
}

// ---- copies by name ----

// The parameter that this node copies under another parameter's name; NULL: it does not.
static ot_value *copied_parameter(const ot_node *node)
{
    const bool is_identity = node->domain[0] == '\0' && strcmp(node->op_type, "Identity") == 0 &&
                             node->n_inputs == 1 && node->n_outputs == 1 && node->inputs[0] &&
                             node->outputs[0];
    ot_value *from = is_identity ? node->inputs[0] : NULL;

    if (!from || !from->is_initializer || !from->constant || node->outputs[0]->is_output ||
        !ot__dtype_is_float(from->constant->dtype) || from->constant->shape.ndim == 0)
        return NULL;
    return is_parameter_name(node->outputs[0]->name) ? from : NULL;
}

// name = Identity (kept): a parameter of its own.
static ot_status separate_copy(separation *s, ot_node *node, ot_value *from)
{
    ot_value *value = node->outputs[0];

    if (stays(s, from->name) || stays(s, value->name))
        return OT_OK;
    ot__graph_remove_node(s->graph, node);
    if (!ot__graph_add_initializer(s->graph, value, from->constant))
        return OT_ERR_NO_MEMORY;
    return add_part(s, from->name, value->name);
}

// From the end, since separating removes nodes.
static ot_status separate_copies(separation *s)
{
    for (int n = s->graph->n_nodes - 1; n >= 0; n--) {
        ot_node *node = s->graph->nodes[n];
        ot_value *from = copied_parameter(node);

        if (from && ot__uses_count(&s->uses, from) > 1)
            OT_TRY(separate_copy(s, node, from));
    }
    return OT_OK;
}

ot_status ot__pass_sharing(ot_model *model, const ot__kept_names *kept, ot__sharings *out)
{
    separation s = {.graph = model->graph, .kept = kept, .out = out};
    ot_status st;

    *out = (ot__sharings){0};
    st = ot__uses_build(model->graph, &s.uses);
    if (st == OT_OK)
        st = separate_copies(&s);
    ot__uses_deinit(&s.uses);
    return st == OT_OK ? ot__pass_finished(model, "sharing") : st;
}
