// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax_loss/softmax.h"

const ot_attr_spec ot__axis_last[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = -1}, {0}};
const ot_attr_spec ot__axis_first[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 1}, {0}};

void ot__lines_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    int axis;

    if (ot_infer_axis(c, ot_attr_int(ot_infer_node(c), "axis"), x->ndim, &axis))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), x);
}

void ot__lines_grad_infer(ot_infer *c)
{
    if (ot__infer_matches(c, 0, 1))
        ot__lines_infer(c);
}

static ot_status prepare(ot_prep *p, bool is_flat)
{
    const ot_shape *x = &ot_prep_in(p, 0)->shape;
    ot__lines *lines = ot_prep_state(p, sizeof(*lines));
    int axis = 0;

    if (!lines)
        return OT_ERR_NO_MEMORY;
    ot__axis_normalize(ot_attr_int(ot_prep_node(p), "axis"), x->ndim, &axis);
    *lines = (ot__lines){1, 1, 1};
    for (int i = 0; i < x->ndim; i++)
        *(i < axis ? &lines->outer : i == axis || is_flat ? &lines->n : &lines->inner) *= x->dim[i];
    if (ot_prep_in(p, 0)->count == 0)
        lines->outer = 0; // lines without elements may be very many
    return OT_OK;
}

ot_status ot__lines_prepare(ot_prep *p)
{
    return prepare(p, false);
}

ot_status ot__lines_prepare_flat(ot_prep *p)
{
    return prepare(p, true);
}

bool ot__lines_can_simd(const ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, 0);
    int axis = 0;

    if (x->dtype != OT_F32 || x->count == 0)
        return false;
    ot__axis_normalize(ot_attr_int(ot_prep_node(p), "axis"), x->shape.ndim, &axis);
    for (int i = axis + 1; i < x->shape.ndim; i++)
        if (x->shape.dim[i] != 1)
            return false;
    return true;
}

ot_status ot__lines_run_simd(const ot_run *r,
                             void (*rows)(void *context, int64_t first, int64_t last))
{
    const ot__lines *l = r->state;
    ot__row_lines lines = {.y = r->out[0]->data,
                           .x = r->in[0]->data,
                           .z = r->n_in > 1 ? r->in[1]->data : NULL,
                           .n = l->n};

    ot__parallel_for(l->outer, OT_PAR_MIN / l->n + 1, rows, &lines);
    return OT_OK;
}

void ot__lines_upgrade(ot_upgrade *u)
{
    ot_node *node = ot_upgrade_node(u);
    ot_graph *graph = node->graph;
    ot_value *x = node->inputs[0], *y = node->outputs[0];
    const int64_t axis = ot_attr_int(node, "axis");
    ot_value *flat, *line, *shape;
    ot_node *flatten;

    ot_upgrade_set_int(u, "axis", -1);
    if (axis == -1 || (x && x->has_shape && axis == x->shape.ndim - 1) || !x || !y)
        return;
    flat = ot__graph_new_value(graph, "softmax_lines");
    line = flat ? ot__graph_new_value(graph, "softmax_line_result") : NULL;
    shape = line ? ot__graph_new_value(graph, "softmax_shape") : NULL;
    if (!shape) {
        ot_upgrade_fail(u, "%s", ot_error_message());
        return;
    }
    flatten = ot__graph_add_node(graph, "", "Flatten", "", &x, 1, &flat, 1);
    node->inputs[0] = flat;
    node->outputs[0] = line;
    line->producer = node;
    line->i_producer_output = 0;
    if (!flatten || !ot__node_set_int(flatten, "axis", axis) ||
        !ot__graph_add_node(graph, "", "Shape", "", &x, 1, &shape, 1) ||
        !ot__graph_add_node(graph, "", "Reshape", "", (ot_value *[]){line, shape}, 2, &y, 1))
        ot_upgrade_fail(u, "%s", ot_error_message());
}
