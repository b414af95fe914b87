// SPDX-License-Identifier: Apache-2.0
// Nodes that only choose and order elements, as views of what they read.
#include <string.h>

#include "passes/passes.h"
#include "passes/view.h"

static bool view_add(ot__view *view, int64_t size, int64_t stride, int axis)
{
    if (size == 1)
        return true;
    if (view->n == OT_VIEW_ATOMS)
        return false;
    view->atoms[view->n++] = (ot__atom){size, stride, axis};
    return true;
}

bool ot__view_of(ot_value *value, ot__view *view)
{
    int64_t stride[OT_MAX_NDIM], count = 1;
    int64_t n;

    *view = (ot__view){.source = value, .shape = value->shape};
    if (!value->has_shape || !ot__shape_is_static(&value->shape) ||
        !ot__shape_count(&value->shape, &n) || n == 0)
        return false;
    for (int k = value->shape.ndim - 1; k >= 0; k--) {
        stride[k] = count;
        count *= value->shape.dim[k];
    }
    for (int k = 0; k < value->shape.ndim; k++)
        if (!view_add(view, value->shape.dim[k], stride[k], k))
            return false;
    return true;
}

bool ot__view_reshape(ot__view *view, const ot_shape *shape)
{
    ot__view y = {.source = view->source, .offset = view->offset, .shape = *shape};
    int at = 0;

    for (int k = 0; k < shape->ndim; k++)
        for (int64_t left = shape->dim[k]; left > 1;) {
            ot__atom *atom = &view->atoms[at];
            int64_t inner;

            if (at == view->n)
                return false;
            if (left % atom->size == 0) { // whole
                if (!view_add(&y, atom->size, atom->stride, k))
                    return false;
                left /= atom->size;
                at++;
                continue;
            }
            if (atom->size % left != 0)
                return false;
            inner = atom->size / left;
            if (!view_add(&y, left, atom->stride * inner, k))
                return false;
            atom->size = inner;
            left = 1;
        }
    if (at != view->n)
        return false;
    *view = y;
    return true;
}

void ot__view_join(ot__view *view)
{
    int kept = 0;

    for (int k = 0; k < view->n; k++) {
        ot__atom *last = kept > 0 ? &view->atoms[kept - 1] : NULL;
        const ot__atom atom = view->atoms[k];

        if (last != NULL && last->axis == atom.axis && last->stride == atom.stride * atom.size)
            *last = (ot__atom){last->size * atom.size, atom.stride, atom.axis};
        else
            view->atoms[kept++] = atom;
    }
    view->n = kept;
}

bool ot__view_stride(const ot__view *view, int axis, int64_t *stride)
{
    int n = 0;

    *stride = 0;
    for (int k = 0; k < view->n; k++)
        if (view->atoms[k].axis == axis) {
            *stride = view->atoms[k].stride;
            n++;
        }
    return n <= 1;
}

// ---- nodes ----

static bool view_transpose(const ot_node *node, ot__view *view)
{
    const int ndim = view->shape.ndim;
    ot__view y = {.source = view->source, .offset = view->offset, .shape = {.ndim = ndim}};
    const int64_t *perm = NULL;
    int n;

    if (ot_attr_given(node, "perm"))
        perm = ot_attr_ints(node, "perm", &n);
    for (int k = 0; k < ndim; k++) {
        const int from = perm != NULL ? (int)perm[k] : ndim - 1 - k;

        y.shape.dim[k] = view->shape.dim[from];
        for (int a = 0; a < view->n; a++)
            if (view->atoms[a].axis == from)
                (void)view_add(&y, view->atoms[a].size, view->atoms[a].stride, k);
    }
    *view = y;
    return true;
}

// From `start` on, `size` of the elements along an axis.
static bool narrow_axis(ot__view *view, int axis, int64_t start, int64_t size)
{
    ot__view y = {.source = view->source, .offset = view->offset, .shape = view->shape};
    int64_t stride;

    if (size == view->shape.dim[axis])
        return start == 0;
    ot__view_join(view);
    if (!ot__view_stride(view, axis, &stride) || start < 0 || size < 1 ||
        start + size > view->shape.dim[axis])
        return false;
    y.offset += start * stride;
    y.shape.dim[axis] = size;
    for (int k = 0; k < view->n; k++)
        if (!view_add(&y, view->atoms[k].axis == axis ? size : view->atoms[k].size,
                      view->atoms[k].stride, view->atoms[k].axis))
            return false;
    *view = y;
    return true;
}

static bool get_integers(const ot_value *value, int64_t *numbers, int capacity, int *n)
{
    *n = 0;
    if (value == NULL || value->constant == NULL || value->is_input ||
        !ot__dtype_is_int(value->constant->dtype) || ot_tensor_count(value->constant) > capacity)
        return false;
    *n = (int)ot_tensor_count(value->constant);
    return ot__convert(numbers, OT_I64, value->constant->data, value->constant->dtype, *n);
}

static bool view_gather(const ot_node *node, const ot_value *output, ot__view *view)
{
    int64_t index;
    int axis, n;

    if (!ot__axis_normalize(ot_attr_int(node, "axis"), view->shape.ndim, &axis) ||
        !get_integers(node->inputs[1], &index, 1, &n) || n != 1)
        return false;
    if (index < 0)
        index += view->shape.dim[axis];
    return narrow_axis(view, axis, index, 1) && ot__view_reshape(view, &output->shape);
}

static bool view_split(const ot_node *node, const ot_value *output, ot__view *view)
{
    int64_t start = 0;
    int axis;

    if (!ot__axis_normalize(ot_attr_int(node, "axis"), view->shape.ndim, &axis))
        return false;
    for (int i = 0; i < node->n_outputs; i++) {
        if (node->outputs[i] == NULL)
            return false;
        if (node->outputs[i] == output)
            return narrow_axis(view, axis, start, output->shape.dim[axis]);
        start += node->outputs[i]->shape.dim[axis];
    }
    return false;
}

static bool view_slice(const ot_node *node, const ot_value *output, ot__view *view)
{
    int64_t starts[OT_MAX_NDIM], axes[OT_MAX_NDIM], steps[OT_MAX_NDIM];
    int n, n_axes = 0, n_steps = 0;

    if (node->n_inputs < 3 || !get_integers(node->inputs[1], starts, OT_MAX_NDIM, &n) ||
        (node->n_inputs > 3 && node->inputs[3] != NULL &&
         !get_integers(node->inputs[3], axes, OT_MAX_NDIM, &n_axes)) ||
        (node->n_inputs > 4 && node->inputs[4] != NULL &&
         !get_integers(node->inputs[4], steps, OT_MAX_NDIM, &n_steps)))
        return false;
    for (int k = 0; k < n; k++) {
        int axis;
        int64_t extent;

        if (!ot__axis_normalize(n_axes > 0 ? axes[k] : k, view->shape.ndim, &axis) ||
            (n_steps > 0 && steps[k] != 1))
            return false;
        extent = view->shape.dim[axis];
        if (!narrow_axis(view, axis,
                         OT_MAX(starts[k] < 0 ? starts[k] + extent : OT_MIN(starts[k], extent), 0),
                         output->shape.dim[axis]))
            return false;
    }
    return ot__shape_equal(&view->shape, &output->shape);
}

bool ot__match_view(const ot_node *node)
{
    static const char *const choose[] = {"Transpose", "Gather", "Split", "Slice"};

    if (node == NULL || node->n_inputs == 0 || node->inputs[0] == NULL)
        return false;
    if ((node->op->flags & OT_OP_VIEW) != 0)
        return true;
    for (size_t k = 0; k < sizeof choose / sizeof *choose; k++)
        if (ot__node_is(node, "", choose[k]))
            return true;
    return false;
}

bool ot__view_apply(const ot_node *node, const ot_value *output, ot__view *view)
{
    if (!output->has_shape || !ot__shape_is_static(&output->shape))
        return false;
    if (ot__node_is(node, "", "Transpose"))
        return view_transpose(node, view);
    if (ot__node_is(node, "", "Gather"))
        return view_gather(node, output, view);
    if (ot__node_is(node, "", "Split"))
        return view_split(node, output, view);
    if (ot__node_is(node, "", "Slice"))
        return view_slice(node, output, view);
    return (node->op->flags & OT_OP_VIEW) != 0 && ot__view_reshape(view, &output->shape);
}
