// SPDX-License-Identifier: Apache-2.0
// BatchNormalization: exporters do not tell whether its statistics are to be trained.
#include <string.h>

#include "artifacts/parameters.h"

enum { INPUT_X, INPUT_SCALE, INPUT_BIAS, INPUT_MEAN, INPUT_VAR, N_INTERNAL_OUTPUTS = 5 };

// ---- which statistics ----

// What a value is computed from.
enum { FROM_TRAINED = 1, FROM_OTHER_PARAMETER = 2, FROM_INPUT = 4 };

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
    for (int i = 0; i < c->graph->n_inputs; i++)
        *mark_of(m, c->graph->inputs[i]) = FROM_INPUT;
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

static ot_value *behind_copies(ot_value *value)
{
    while (ot__match_copy(value->producer))
        value = value->producer->inputs[0];
    return value;
}

// The elements of a statistic that is computed, or a node's constant, but of nothing that changes;
// NULL: there are none.
static ot_status constant_statistic(const ot__candidates *c, const marking *m,
                                    const ot_value *value, const ot_tensor **out)
{
    *out = ot__match_constant(value->producer);
    if (*out != NULL || (*mark_of(m, value) & (FROM_TRAINED | FROM_INPUT)) != 0)
        return OT_OK;
    return ot__pass_known_constant(c->graph->model, value, out);
}

static ot_status can_be_kept(const ot__candidates *c, const marking *m, const ot_node *node,
                             bool *out)
{
    *out = true;
    for (int i = INPUT_MEAN; i <= INPUT_VAR && *out; i++) {
        const ot_value *value = behind_copies(node->inputs[i]);
        const ot_tensor *constant;

        if (m->candidate[ot__value_number(&m->numbers, value)] > 0)
            continue;
        OT_TRY(constant_statistic(c, m, value, &constant));
        *out = constant != NULL;
    }
    return OT_OK;
}

// Scale and bias that come from no parameter, as those of a layer made without them, are not
// frozen: there is nothing to freeze. What is no batch has no statistics of one, and where they
// cannot be kept, those that the model computes stand.
static ot_status uses_batch(ot__candidates *c, const marking *m, const ot_node *node,
                            ot_batch_norm mode, bool *out)
{
    const int mark = *mark_of(m, node->inputs[INPUT_SCALE]) | *mark_of(m, node->inputs[INPUT_BIAS]);
    bool is_kept;

    *out = mode == OT_BATCH_NORM_BATCH;
    if (mode != OT_BATCH_NORM_AUTO || (*mark_of(m, node->inputs[INPUT_X]) & FROM_INPUT) == 0)
        return OT_OK;
    *out = (mark & FROM_TRAINED) != 0 || (mark & FROM_OTHER_PARAMETER) == 0;
    if (!*out)
        return OT_OK;
    OT_TRY(can_be_kept(c, m, node, &is_kept));
    *out = is_kept;
    if (!is_kept && c->computed_norm == NULL)
        c->computed_norm = node;
    return OT_OK;
}

// ---- running statistics ----

static int count_reads(const ot_graph *graph, const ot_value *value)
{
    int n_reads = value->is_output;

    for (int n = 0; n < graph->n_nodes; n++)
        for (int i = 0; i < graph->nodes[n]->n_inputs; i++)
            n_reads += graph->nodes[n]->inputs[i] == value;
    return n_reads;
}

// An initializer of the constant: the node writes it, so nothing else may read it.
static ot_status own_statistic(ot__candidates *c, ot_node *node, int i_input,
                               const ot_tensor *constant)
{
    const bool is_alone = count_reads(c->graph, node->inputs[i_input]) == 1;
    ot_value *value = node->inputs[i_input];
    ot_tensor *copy;

    if (is_alone) {
        ot__node_detach(value->producer);
    } else {
        const char *name = ot__arena_printf(c->graph->model->arena, "%s_%s", value->name,
                                            i_input == INPUT_MEAN ? "running_mean" : "running_var");

        value = name == NULL ? NULL : ot__graph_new_value(c->graph, name);
        OT_TRY(ot__made(value != NULL));
        ot__value_set(value, constant->dtype, &constant->shape);
    }
    OT_TRY(ot_tensor_clone(constant, &copy));
    OT_TRY(ot__model_hold_tensor(c->graph->model, copy));
    OT_TRY(ot__made(ot__graph_add_initializer(c->graph, value, copy)));
    node->inputs[i_input] = value;
    return ot__candidates_add(c, value);
}

// What the node writes must be a parameter itself: not a copy of one, not a Constant's value.
static ot_status resolve_statistic(ot__candidates *c, const marking *m, ot_node *node, int i_input,
                                   ot__candidate **out)
{
    ot_value *value = behind_copies(node->inputs[i_input]);
    const int candidate = m->candidate[ot__value_number(&m->numbers, value)];
    const ot_tensor *constant;

    node->inputs[i_input] = value;
    if (candidate > 0) {
        *out = &c->items[candidate - 1];
        return OT_OK;
    }
    OT_TRY(constant_statistic(c, m, value, &constant));
    if (constant == NULL)
        return ot__error(
            OT_ERR_UNSUPPORTED,
            "%s: running statistics '%s' are not an initializer, so they cannot be kept "
            "in the checkpoint",
            OT_LABEL(node), value->name);
    OT_TRY(own_statistic(c, node, i_input, constant));
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
    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];
        bool is_batch;

        if (!ot__is_batch_norm(node))
            continue;
        OT_TRY(uses_batch(c, m, node, mode, &is_batch));
        if (is_batch)
            c->batch_norms[c->n_batch_norms++] = node;
    }
    return OT_OK;
}

// ---- weights that are standardised ----

static bool reads_statistics(const ot_graph *graph, const ot_node *node)
{
    for (int i = 1; i < node->n_outputs; i++)
        if (node->outputs[i] != NULL && count_reads(graph, node->outputs[i]) > 0)
            return true;
    return false;
}

// By a batch normalisation in training form over channels of one row that no input reaches:
// exporters write that for what is normalised by its own statistics, also in inference.
static bool standardises(const ot_graph *graph, const marking *m, const ot_node *node)
{
    const ot_value *x = node->inputs[INPUT_X];
    const ot_attr *training = ot__node_attr(node, "training_mode");

    return training != NULL && training->i != 0 && (*mark_of(m, x) & FROM_INPUT) == 0 &&
           x->has_shape && x->shape.ndim > 2 && x->shape.dim[0] == 1 &&
           !reads_statistics(graph, node);
}

static ot_status to_own_statistics(ot_node *node)
{
    OT_TRY(ot__batch_norm_to_inference(node)); // drops outputs
    node->op_type = "InstanceNormalization";
    node->n_inputs = INPUT_BIAS + 1;
    ot__node_remove_attr(node, "training_mode");
    ot__node_remove_attr(node, "momentum");
    OT_TRY(ot__op_lookup(node->graph->model, node, &node->op));
    return ot__op_infer(node);
}

static ot_status settle_standardised(ot_graph *graph, const marking *m)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (ot__is_batch_norm(graph->nodes[n]) && standardises(graph, m, graph->nodes[n]))
            OT_TRY(to_own_statistics(graph->nodes[n]));
    return OT_OK;
}

ot_status ot__batch_norm_choose(ot__candidates *c, ot_batch_norm mode)
{
    marking m = {0};
    ot_status st = mark_origins(c, &m);

    OT_THEN(st, settle_standardised(c->graph, &m));
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

static ot_status drop_output(ot_node *node, int i_output)
{
    ot_value *value = node->outputs[i_output];

    if (!value)
        return OT_OK;
    if (count_reads(node->graph, value) > 0)
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
