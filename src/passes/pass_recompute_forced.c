// SPDX-License-Identifier: Apache-2.0
// What options name is made again for the backward pass: the patterns are looked for before the
// fusions, as regions between two values, and the nodes that lie there afterwards are made again.
#include "onnxtrain/session.h"
#include "passes/recompute.h"

// ---- finding ----

ot_node *ot__forward_reader(const ot__matching *m, const ot_value *value, int k)
{
    const ot_node *before = NULL;

    for (int u = ot__uses_first(&m->uses, value); u < ot__uses_end(&m->uses, value); u++) {
        ot_node *reader = m->uses.use[u].node;

        if (reader == before || !m->is_forward[ot__node_number(&m->uses.numbers, reader)])
            continue;
        before = reader;
        if (k-- == 0)
            return reader;
    }
    return NULL;
}

ot_value *ot__before_rearranging(ot_value *value)
{
    while (value != NULL && value->producer != NULL && ot__node_rearranges(value->producer))
        value = value->producer->inputs[0];
    return value;
}

ot_status ot__add_region(ot__matching *m, ot_value *first, ot_value *last, bool has_last)
{
    const ot__recompute_region region = {first, last, has_last};

    return ot__made(ot__arena_push(m->graph->model->arena, &m->out->items, &m->out->capacity,
                                   &m->out->n, &region, sizeof region));
}

static ot_status find_regions(ot__matching *m, const ot__recompute_options *options)
{
    int n = 0;

    if ((options->what & OT_RECOMPUTE_ATTN_DROPOUT) != 0) {
        OT_TRY(ot__match_recompute_attention(m, &n));
        if (n == 0 && options->warns)
            ot__log(OT_LOG_WARNING, "attn_dropout_recompute: no Dropout that is on in training "
                                    "stands between a Softmax and a MatMul, nothing is made again "
                                    "for it (without the input training_mode a Dropout is off)");
    }
    if ((options->what & OT_RECOMPUTE_GELU) != 0) {
        OT_TRY(ot__match_recompute_gelu(m, &n));
        if (n == 0 && options->warns)
            ot__log(OT_LOG_WARNING, "gelu_recompute: no Gelu stands before a MatMul, nothing is "
                                    "made again for it");
    }
    return (options->what & OT_RECOMPUTE_LAYER) != 0
               ? ot__match_recompute_layer(m, options->n_layers, options->warns)
               : OT_OK;
}

ot_status ot__pass_recompute_match(ot_model *model, const ot__recompute_options *options,
                                   const int *outputs, int n_outputs, ot__recompute_regions *out)
{
    ot__matching m = {.graph = model->graph, .out = out};
    ot_status st;

    *out = (ot__recompute_regions){0};
    if (options->what == 0)
        return OT_OK;
    OT_TRY(ot__pass_simplify(model)); // as the fusions do: what only renames would hide a pattern
    OT_TRY(ot__uses_build(m.graph, &m.uses));
    m.is_forward = ot__alloc_zero((size_t)m.graph->n_nodes + 1, sizeof *m.is_forward);
    st = ot__made(m.is_forward != NULL);
    OT_THEN(st, ot__find_forward(m.graph, &m.uses.numbers, outputs, n_outputs, m.is_forward));
    OT_THEN(st, find_regions(&m, options));
    ot__free(m.is_forward);
    ot__uses_deinit(&m.uses);
    return st;
}

// ---- making again ----

// What fusions have taken in is no longer there to be made again.
static bool is_in_graph(const ot__again *a, const ot_value *value)
{
    return ot__has_number(&a->uses.numbers, value) &&
           (value->producer == NULL || value->producer->graph == a->graph);
}

static bool has_marked(const ot__numbers *numbers, ot_value *const *values, int n,
                       const bool *marks)
{
    for (int i = 0; i < n; i++)
        if (values[i] != NULL && marks[ot__value_number(numbers, values[i])])
            return true;
    return false;
}

static void mark_all(const ot__numbers *numbers, ot_value *const *values, int n, bool *marks)
{
    for (int i = 0; i < n; i++)
        if (values[i] != NULL)
            marks[ot__value_number(numbers, values[i])] = true;
}

// The nodes on the ways from the first value to the last.
static ot_status choose_region(ot__again *a, const ot__recompute_region *region)
{
    const ot__numbers *numbers = &a->uses.numbers;
    bool *below, *above;

    if (!is_in_graph(a, region->first) || !is_in_graph(a, region->last))
        return OT_OK;
    below = ot__alloc_zero((size_t)numbers->n_values + 1, 2 * sizeof *below);
    OT_TRY(ot__made(below != NULL));
    above = below + numbers->n_values + 1;
    below[ot__value_number(numbers, region->first)] = true;
    above[ot__value_number(numbers, region->last)] = true;
    for (int n = 0; n < a->n_forward; n++) {
        const ot_node *node = a->graph->nodes[n];

        if (has_marked(numbers, node->inputs, node->n_inputs, below))
            mark_all(numbers, node->outputs, node->n_outputs, below);
    }
    for (int n = a->n_forward - 1; n >= 0; n--) {
        const ot_node *node = a->graph->nodes[n];

        if (!has_marked(numbers, node->outputs, node->n_outputs, above))
            continue;
        mark_all(numbers, node->inputs, node->n_inputs, above);
        if (a->can[n] && has_marked(numbers, node->inputs, node->n_inputs, below) &&
            (region->has_last || node != region->last->producer))
            a->is_chosen[n] = true;
    }
    ot__free(below);
    return OT_OK;
}

ot_status ot__pass_recompute_forced(ot_model *model, const ot__recompute_regions *regions,
                                    const int *outputs, int n_outputs)
{
    ot__again a;
    ot_status st;

    if (regions->n == 0)
        return OT_OK;
    st = ot__again_start(&a, model->graph, outputs, n_outputs, false);
    for (int i = 0; st == OT_OK && i < regions->n; i++)
        st = choose_region(&a, &regions->items[i]);
    OT_THEN(st, ot__again_write(&a));
    ot__again_deinit(&a);
    return st == OT_OK ? ot__pass_finished(model, "recompute_forced") : st;
}
