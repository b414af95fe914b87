// SPDX-License-Identifier: Apache-2.0
// BatchNormalization: exporters do not tell whether its statistics are to be trained.
#include <string.h>

#include "artifacts/parameters.h"

enum { INPUT_SCALE = 1, INPUT_BIAS, INPUT_MEAN, INPUT_VAR, N_INTERNAL_OUTPUTS = 5 };

// ---- which statistics ----

// What a value is computed from.
enum { FROM_TRAINED = 1, FROM_OTHER_PARAMETER = 2 };

typedef struct marking {
    ot__numbers numbers;
    int *mark;      // per value
    int *candidate; // per value: its number among the candidates, from 1; 0: none
} marking;

static int *mark_of(const marking *m, const ot_value *value)
{
    return &m->mark[ot__value_number(&m->numbers, value)];
}

static bool reads_elements(const ot_node *node)
{
    return (node->op->flags & OT_OP_SHAPE_ONLY) == 0;
}

static ot_status mark_origins(const ot__candidates *c, marking *m)
{
    OT_TRY(ot__numbers_build(c->graph, &m->numbers));
    m->mark = ot__alloc_zero((size_t)m->numbers.n_values, sizeof *m->mark);
    m->candidate = ot__alloc_zero((size_t)m->numbers.n_values, sizeof *m->candidate);
    OT_TRY(ot__made(m->mark && m->candidate));
    for (int i = 0; i < c->n; i++) {
        const ot_value *value = c->items[i].value;
        const bool could_train = ot__dtype_is_float(value->dtype) && value->shape.ndim > 0;

        *mark_of(m, value) = c->items[i].role == OT_ROLE_TRAINABLE ? FROM_TRAINED
                             : could_train                         ? FROM_OTHER_PARAMETER
                                                                   : 0;
        m->candidate[ot__value_number(&m->numbers, value)] = i + 1;
    }
    for (int n = 0; n < c->graph->n_nodes; n++) {
        const ot_node *node = c->graph->nodes[n];
        int mark = 0;

        for (int i = 0; i < node->n_inputs && reads_elements(node); i++)
            mark |= node->inputs[i] ? *mark_of(m, node->inputs[i]) : 0;
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i])
                *mark_of(m, node->outputs[i]) = mark;
    }
    return OT_OK;
}

// Scale and bias that come from no parameter, as those of a layer made without them, are not
// frozen: there is nothing to freeze.
static bool uses_batch(const marking *m, const ot_node *node, ot_batch_norm mode)
{
    const int mark = *mark_of(m, node->inputs[INPUT_SCALE]) | *mark_of(m, node->inputs[INPUT_BIAS]);

    if (mode != OT_BATCH_NORM_AUTO)
        return mode == OT_BATCH_NORM_BATCH;
    return (mark & FROM_TRAINED) != 0 || (mark & FROM_OTHER_PARAMETER) == 0;
}

// ---- running statistics ----

// What the node writes must be a parameter itself: not a copy of one, not a Constant's value.
static ot_status resolve_statistic(ot__candidates *c, const marking *m, ot_node *node, int i_input,
                                   ot__candidate **out)
{
    ot_value *value = node->inputs[i_input];
    ot_tensor *constant;
    int *candidate;

    while (ot__match_copy(value->producer))
        value = value->producer->inputs[0];
    node->inputs[i_input] = value;
    candidate = &m->candidate[ot__value_number(&m->numbers, value)];
    if (*candidate > 0) {
        *out = &c->items[*candidate - 1];
        return OT_OK;
    }
    constant = ot__match_constant(value->producer);
    if (!constant)
        return ot__error(
            OT_ERR_UNSUPPORTED,
            "%s: running statistics '%s' are not an initializer, so they cannot be kept "
            "in the checkpoint",
            OT_LABEL(node), value->name);
    ot__node_detach(value->producer);
    OT_TRY(ot__made(ot__graph_add_initializer(c->graph, value, constant)));
    OT_TRY(ot__candidates_add(c, value));
    *candidate = c->n;
    *out = &c->items[c->n - 1];
    return OT_OK;
}

static ot_status freeze_statistic(ot__candidates *c, const marking *m, ot_node *node, int i_input)
{
    ot__candidate *item = NULL;

    OT_TRY(resolve_statistic(c, m, node, i_input, &item));
    const char *label = OT_LABEL(node);
    if (item->role == OT_ROLE_TRAINABLE)
        return ot__error(OT_ERR_INVALID,
                         "'%s' holds running statistics of %s, which are not trained by gradient",
                         item->value->name, label);
    item->role = OT_ROLE_FROZEN;
    item->reason = ot__arena_printf(c->graph->model->arena, "running statistics of %s", label);
    return ot__made(item->reason);
}

static ot_status list_batch_norms(ot__candidates *c, const marking *m, ot_batch_norm mode)
{
    ot_graph *graph = c->graph;

    c->n_batch_norms = 0;
    c->batch_norms =
        ot__arena_alloc(graph->model->arena, ((size_t)graph->n_nodes + 1) * sizeof(ot_node *));
    OT_TRY(ot__made(c->batch_norms));
    for (int n = 0; n < graph->n_nodes; n++)
        if (ot__is_batch_norm(graph->nodes[n]) && uses_batch(m, graph->nodes[n], mode))
            c->batch_norms[c->n_batch_norms++] = graph->nodes[n];
    return OT_OK;
}

ot_status ot__batch_norm_choose(ot__candidates *c, ot_batch_norm mode)
{
    marking m = {0};
    ot_status st = mark_origins(c, &m);

    OT_THEN(st, list_batch_norms(c, &m, mode));
    for (int k = c->n_batch_norms; st == OT_OK && k-- > 0;) {
        st = freeze_statistic(c, &m, c->batch_norms[k], INPUT_MEAN);
        OT_THEN(st, freeze_statistic(c, &m, c->batch_norms[k], INPUT_VAR));
    }
    ot__graph_drop_detached(c->graph);
    ot__free(m.mark);
    ot__free(m.candidate);
    ot__numbers_deinit(&m.numbers);
    return st;
}

// ---- forms ----

static bool is_read(const ot_graph *graph, const ot_value *value)
{
    if (value->is_output)
        return true;
    for (int n = 0; n < graph->n_nodes; n++)
        for (int i = 0; i < graph->nodes[n]->n_inputs; i++)
            if (graph->nodes[n]->inputs[i] == value)
                return true;
    return false;
}

static ot_status drop_output(ot_node *node, int i_output)
{
    ot_value *value = node->outputs[i_output];

    if (!value)
        return OT_OK;
    if (is_read(node->graph, value))
        return ot__error(
            OT_ERR_UNSUPPORTED,
            "%s: output %d, '%s', is read, but has no value when statistics are stored",
            OT_LABEL(node), i_output, value->name);
    value->producer = NULL;
    ot__graph_forget_value(node->graph, value);
    node->outputs[i_output] = NULL;
    return OT_OK;
}

ot_status ot__batch_norm_to_inference(ot_node *node)
{
    // The attribute is there from opset 14 on; a node that has none is in inference form already.
    if (ot__node_attr(node, "training_mode") && !ot__node_set_int(node, "training_mode", 0))
        return OT_ERR_NO_MEMORY;
    for (int i = 1; i < node->n_outputs; i++)
        OT_TRY(drop_output(node, i));
    node->n_outputs = OT_MIN(node->n_outputs, 1);
    return OT_OK;
}

ot_status ot__batch_norm_to_internal(ot_node *node)
{
    static const char *const suffixes[N_INTERNAL_OUTPUTS] = {"", "_running_mean", "_running_var",
                                                             "_saved_mean", "_saved_inv_std"};
    ot_graph *graph = node->graph;
    ot_value **outputs =
        ot__arena_alloc(graph->model->arena, sizeof(ot_value *[N_INTERNAL_OUTPUTS]));
    const int n_kept = OT_MIN(node->n_outputs, 3); // the old form's saved variance is another thing

    OT_TRY(ot__made(outputs));
    for (int i = n_kept; i < node->n_outputs; i++)
        OT_TRY(drop_output(node, i));
    for (int i = 0; i < N_INTERNAL_OUTPUTS; i++) {
        if (i < n_kept)
            outputs[i] = node->outputs[i];
        if (!outputs[i]) {
            const char *name =
                ot__arena_printf(graph->model->arena, "%s%s", node->outputs[0]->name, suffixes[i]);

            outputs[i] = name ? ot__graph_new_value(graph, name) : NULL;
        }
        OT_TRY(ot__made(outputs[i]));
        outputs[i]->producer = node;
        outputs[i]->i_producer_output = i;
    }
    node->outputs = outputs;
    node->n_outputs = N_INTERNAL_OUTPUTS;
    node->domain = "com.microsoft";
    node->op_type = "BatchNormInternal";
    OT_TRY(ot__made(ot__node_set_int(node, "training_mode", 1)));
    OT_TRY(ot__model_set_opset(graph->model, node->domain, 1));
    OT_TRY(ot__op_lookup(graph->model, node, &node->op));
    return ot__op_infer(node);
}
