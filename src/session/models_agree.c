// SPDX-License-Identifier: Apache-2.0
// Whether ranks have the same model: what it computes, in one number.
#include <string.h>

#include "session/ranks.h"

static uint64_t mix_graph(uint64_t id, const ot_graph *graph);

static uint64_t mix_text(uint64_t id, const char *text)
{
    return ot__id_mix(id, text, strlen(text) + 1);
}

static uint64_t mix_bytes(uint64_t id, ot__bytes bytes)
{
    return bytes.size > 0 ? ot__id_mix(id, bytes.data, bytes.size) : ot__id_mix_word(id, 0);
}

static uint64_t mix_strings(uint64_t id, const ot__string *strings, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        id = mix_bytes(id, strings[i]);
    return id;
}

static uint64_t mix_elements(uint64_t id, const ot_tensor *t)
{
    id = ot__id_mix_word(id, (uint64_t)t->dtype);
    for (int k = 0; k < t->shape.ndim; k++)
        id = ot__id_mix_word(id, (uint64_t)t->shape.dim[k]);
    if (t->data == NULL)
        return ot__id_mix_word(id, 0);
    if (t->dtype == OT_STRING)
        return mix_strings(id, t->data, ot_tensor_count(t));
    return ot__id_mix_word(id, ot__crc32c(0, t->data, t->n_bytes));
}

static uint64_t mix_attribute(uint64_t id, const ot_attr *a)
{
    id = mix_text(id, a->name);
    id = ot__id_mix_word(id, (uint64_t)a->kind);
    id = ot__id_mix(id, &a->f, sizeof a->f);
    id = ot__id_mix_word(id, (uint64_t)a->i);
    id = mix_bytes(id, a->s);
    id = ot__id_mix_word(id, (uint64_t)a->n);
    if (a->floats != NULL)
        id = ot__id_mix(id, a->floats, (size_t)a->n * sizeof *a->floats);
    if (a->ints != NULL)
        id = ot__id_mix(id, a->ints, (size_t)a->n * sizeof *a->ints);
    if (a->strings != NULL)
        id = mix_strings(id, a->strings, a->n);
    if (a->t != NULL)
        id = mix_elements(id, a->t);
    for (int i = 0; a->tensors != NULL && i < a->n; i++)
        id = mix_elements(id, a->tensors[i]);
    return id;
}

static uint64_t mix_edges(uint64_t id, ot_value *const *values, int n)
{
    id = ot__id_mix_word(id, (uint64_t)n);
    for (int i = 0; i < n; i++) {
        id = mix_text(id, values[i] != NULL ? values[i]->name : "");
        if (values[i] != NULL && values[i]->constant != NULL)
            id = mix_elements(id, values[i]->constant);
    }
    return id;
}

static uint64_t mix_node(uint64_t id, const ot_node *node)
{
    id = mix_text(mix_text(id, node->domain), node->op_type);
    id = mix_edges(id, node->inputs, node->n_inputs);
    id = mix_edges(id, node->outputs, node->n_outputs);
    for (int k = 0; k < node->n_attrs; k++)
        id = mix_attribute(id, node->attrs[k]);
    for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);)
        id = mix_graph(id, s.graph);
    return id;
}

static uint64_t mix_graph(uint64_t id, const ot_graph *graph)
{
    id = mix_edges(id, graph->inputs, graph->n_inputs);
    id = mix_edges(id, graph->outputs, graph->n_outputs);
    for (int k = 0; k < graph->n_nodes; k++)
        id = mix_node(id, graph->nodes[k]);
    return id;
}

uint64_t ot__ranks_hash_model(const ot_model *model)
{
    return model != NULL ? mix_graph(1, model->graph) : 0;
}
