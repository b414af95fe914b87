// SPDX-License-Identifier: Apache-2.0
// A Gather that takes every slice along its axis, each once and in order, as exporters write an
// unfolding along an axis of one element, moves nothing: it is a Reshape, and so is its gradient.
#include "passes/fuse.h"

enum { DATA, INDICES };             // inputs of Gather
enum { GRAD_INDICES = 1, GRAD_DY }; // of its gradient

// Whether input `indices` names 0, 1, ... up to the extent of `whole` along the node's axis.
static bool takes_every_slice(const ot_node *node, int indices, const ot_value *whole)
{
    const ot_tensor *tensor = ot__fuse_constant(node, indices);
    int64_t extent;
    int axis;

    if (tensor == NULL || !whole->has_shape)
        return false;
    axis = ot__fuse_axis(node, &whole->shape);
    if (axis < 0)
        return false;
    extent = whole->shape.dim[axis];
    if (ot_tensor_count(tensor) != extent)
        return false;
    for (int64_t i = 0; i < extent; i++) {
        const int64_t index = ot__tensor_get_i64(tensor, i);

        if (index != i && index != i - extent)
            return false;
    }
    return true;
}

static ot_status reshape_instead(ot__fusing *f, ot_node *node, ot_value *x)
{
    ot__builder b = {.graph = f->graph};
    const ot_shape *shape = &node->outputs[0]->shape;
    ot_value *in[2] = {x, NULL};

    in[1] = ot__fuse_list(&b, ot__build_name(&b, "%s/shape", node->name), shape->dim, shape->ndim);
    ot__node_detach(node);
    ot__op_settle(&b, ot__op_build(&b, "", "Reshape", node->name, in, 2, node->outputs, 1));
    return b.status;
}

static ot_status fuse_whole_gather(ot__fusing *f, ot_node *node)
{
    const bool is_gather = ot__node_is(node, "", "Gather");
    const ot_value *y = node->n_outputs > 0 ? node->outputs[0] : NULL;
    int64_t count;

    if ((!is_gather && !ot__node_is(node, "com.microsoft", "GatherGrad")) || y == NULL ||
        !y->has_shape || !ot__shape_is_static(&y->shape) || !ot__shape_count(&y->shape, &count) ||
        count == 0)
        return OT_OK;
    if (is_gather && takes_every_slice(node, INDICES, node->inputs[DATA]))
        return reshape_instead(f, node, node->inputs[DATA]);
    if (!is_gather && takes_every_slice(node, GRAD_INDICES, y))
        return reshape_instead(f, node, node->inputs[GRAD_DY]);
    return OT_OK;
}

ot_status ot__fuse_gather(ot_model *model)
{
    return ot__fuse_each(model, fuse_whole_gather);
}
