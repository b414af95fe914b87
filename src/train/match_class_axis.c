// SPDX-License-Identifier: Apache-2.0
// Labels that do not fit may fit with the classes on the other axis of the scores.
#include <string.h>

#include "train/bind.h"

// What a cross entropy compares a target with.
typedef struct scores {
    const ot_value *value;
    bool is_last; // the classes are on the last axis: rows of scores and labels are flattened
} scores;

static const ot_value *axis_source(const ot_value *value, const char *op_type)
{
    const ot_node *node = value != NULL ? value->producer : NULL;

    return node != NULL && strcmp(node->op_type, op_type) == 0 && node->n_inputs > 0
               ? node->inputs[0]
               : NULL;
}

static bool find_scores(const ot_graph *graph, const char *target, scores *out)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];
        const ot_value *labels;

        if (strcmp(node->op_type, "SoftmaxCrossEntropyLoss") != 0 || node->n_inputs < 2)
            continue;
        labels = axis_source(node->inputs[1], "Reshape");
        *out = (scores){node->inputs[0], false};
        if (labels != NULL)
            *out = (scores){axis_source(node->inputs[0], "Flatten"), true};
        else
            labels = node->inputs[1];
        if (labels != NULL && strcmp(labels->name, target) == 0)
            return out->value != NULL && out->value->has_shape && out->value->shape.ndim > 2;
    }
    return false;
}

// Rows of labels: scores [N, C, d...] or [N, d..., C] without their batch and class axes.
static bool axis_fits(const ot_shape *scores_shape, bool is_last, const ot_shape *row)
{
    const int first = is_last ? 1 : 2;

    if (row->ndim != scores_shape->ndim - 2)
        return false;
    for (int k = 0; k < row->ndim; k++) {
        const int64_t extent = scores_shape->dim[first + k];

        if (ot__dim_is_number(extent) && extent != row->dim[k])
            return false;
    }
    return true;
}

// Of the fields that the input takes.
static bool find_axis_row(const ot_dataset *dataset, const ot_binding *binding, ot_shape *row)
{
    const char *text = binding->fields;
    int first, last, n = 0;
    ot_dtype dtype;

    while (text != NULL) {
        if (ot__dataset_next_fields(dataset, binding->input, &text, &first, &last) != OT_OK ||
            ot_dataset_field_info(dataset, first, &dtype, row) != OT_OK)
            return false;
        n += last - first + 1;
    }
    if (n > 1)
        *row = (ot_shape){.ndim = 1, .dim = {n}};
    return n > 0;
}

static bool other_axis_fits(const ot_session *session, const ot_dataset *dataset,
                            const ot_binding *binding, bool *is_last)
{
    const ot_graph *graph = ot__session_graph(session, OT_MODE_TRAIN);
    ot_shape row;
    scores s;

    if (graph == NULL || !find_scores(graph, binding->input, &s) ||
        !find_axis_row(dataset, binding, &row) || axis_fits(&s.value->shape, s.is_last, &row) ||
        !axis_fits(&s.value->shape, !s.is_last, &row))
        return false;
    *is_last = !s.is_last;
    return true;
}

ot_status ot__explain_class_axis(ot_status st, const ot_session *session, const ot_dataset *dataset,
                                 const ot__inputs *inputs)
{
    char message[512];
    bool is_last;

    if (st != OT_ERR_INVALID)
        return st;
    snprintf(message, sizeof message, "%s", ot_error_message());
    for (int i = 0; i < inputs->count; i++)
        if (inputs->is_target[i] && inputs->bindings[i].fields != NULL &&
            other_axis_fits(session, dataset, &inputs->bindings[i], &is_last))
            return ot__error(st, "%s; the scores have their classes on the %s axis: class_axis=%d",
                             message, is_last ? "last" : "second", is_last ? -1 : 1);
    return ot__error(st, "%s", message);
}
