// SPDX-License-Identifier: Apache-2.0
// InstanceNormalization becomes GroupNormTraining: each channel is a group, or, where an exporter
// has reshaped the channels into groups before it, whose scale and bias stand behind it, a group is
// what was one.
#include "passes/region.h"

typedef struct group_norm {
    int64_t groups;
    double epsilon;
} group_norm;

// Every element of a constant is the number.
static bool is_filled(const ot_value *value, double number)
{
    const ot_tensor *tensor = ot__match_constant_value(value);

    if (tensor == NULL)
        return false;
    for (int64_t k = 0; k < ot_tensor_count(tensor); k++)
        if (ot__tensor_get_f64(tensor, k) != number)
            return false;
    return true;
}

// Whether `value` broadcasts along axis 1 of the image, and nothing else.
static bool is_by_channel(const ot_value *value, const ot_value *image)
{
    const int before = image->shape.ndim - (value->has_shape ? value->shape.ndim : 0);

    if (!value->has_shape || value->dtype != image->dtype || before < 0 || before > 1)
        return false;
    for (int k = 0; k < value->shape.ndim; k++)
        if (value->shape.dim[k] != (k + before == 1 ? image->shape.dim[1] : 1))
            return false;
    return true;
}

// The first operator of ai.onnx that reads `value` as its first input, or as either where the image
// is given, whose channels the other operand then has; NULL: there is none.
static ot_node *reader_of(const ot__uses *uses, const ot_value *value, const char *op_type,
                          const ot_value *image, ot_value **operand)
{
    const ot__use *use;

    for (int k = 0; (use = ot__region_reader(uses, value, k)) != NULL; k++) {
        if (!ot__node_is(use->node, "", op_type) || (image == NULL && use->i_input != 0))
            continue;
        *operand = use->node->inputs[1 - use->i_input];
        if (image == NULL || is_by_channel(*operand, image))
            return use->node;
    }
    return NULL;
}

// The image whose channels the normalised x has in groups; NULL: it has none.
static ot_value *image_of_groups(const ot_value *x)
{
    ot_value *image = ot__node_is(x->producer, "", "Reshape") ? x->producer->inputs[0] : NULL;
    const int64_t groups = x->shape.dim[1];

    return image != NULL && image->has_shape && image->shape.ndim > 1 &&
                   image->shape.dim[0] == x->shape.dim[0] &&
                   ot_dim_is_number(image->shape.dim[1]) && image->shape.dim[1] % groups == 0
               ? image
               : NULL;
}

// From the Reshape before the node to that behind it, and to the scale and bias behind that.
static bool take_grouping(const ot__uses *uses, ot_node *node, ot__region *region)
{
    ot_value *image = image_of_groups(node->inputs[OT_NORM_X]), *y = node->outputs[0], *operand;
    ot_node *next = reader_of(uses, y, "Reshape", NULL, &operand);

    if (image == NULL || next == NULL || !is_filled(node->inputs[OT_NORM_SCALE], 1) ||
        !is_filled(node->inputs[OT_NORM_BIAS], 0))
        return false;
    y = next->outputs[0];
    if (!y->has_shape || !ot__shape_equal(&y->shape, &image->shape) ||
        !ot__region_add(&uses->numbers, region, node->inputs[OT_NORM_X]->producer) ||
        !ot__region_add(&uses->numbers, region, next))
        return false;
    region->inputs[OT_NORM_X] = image;
    region->output = y;
    next = reader_of(uses, y, "Mul", image, &operand);
    if (next == NULL || !ot__region_add(&uses->numbers, region, next))
        return true;
    region->inputs[OT_NORM_SCALE] = operand;
    region->output = next->outputs[0];
    next = reader_of(uses, region->output, "Add", image, &operand);
    if (next == NULL || !ot__shape_equal(&operand->shape, &region->inputs[OT_NORM_SCALE]->shape) ||
        !ot__region_add(&uses->numbers, region, next))
        return true;
    region->inputs[OT_NORM_BIAS] = operand;
    region->output = next->outputs[0];
    return true;
}

static ot_status write_group_norm(ot__fusing *f, const ot__region *region)
{
    const group_norm *norm = region->what;
    const char *name = region->output->name;
    ot__builder b = {.graph = f->graph};
    ot_value *mean = ot__build_value(&b, ot__build_name(&b, "%s_1", name));
    ot_value *inv_std = ot__build_value(&b, ot__build_name(&b, "%s_2", name));
    ot_value *const *in = region->inputs;
    ot_value *out[] = {region->output, mean, inv_std};
    ot_value *grad_in[] = {region->dy, in[OT_NORM_X], in[OT_NORM_SCALE], mean, inv_std};
    const int n_in = in[OT_NORM_BIAS] != NULL ? 3 : in[OT_NORM_SCALE] != NULL ? 2 : 1;
    ot_node *node = ot__op_build(&b, "ai.onnxtrain", "GroupNormTraining", name, in, n_in, out, 3);

    ot__build_int(&b, node, "num_groups", norm->groups);
    ot__build_float(&b, node, "epsilon", norm->epsilon);
    ot__op_settle(&b, node);
    if (!ot__region_has_gradients(region) || b.status != OT_OK)
        return b.status;
    node = ot__op_build(&b, "ai.onnxtrain", "GroupNormGrad", name, grad_in, 5,
                        (ot_value **)(uintptr_t)region->gradients, n_in);
    ot__build_int(&b, node, "num_groups", norm->groups);
    ot__op_settle(&b, node);
    return b.status;
}

static ot__region *new_region(const ot__uses *uses, ot_node *node, const group_norm *norm,
                              ot__arena *arena)
{
    ot__region *region = ot__arena_alloc(arena, sizeof *region);

    if (region == NULL)
        return NULL;
    *region = (ot__region){.write = write_group_norm,
                           .what = norm,
                           .inputs = {node->inputs[OT_NORM_X], node->inputs[OT_NORM_SCALE],
                                      node->inputs[OT_NORM_BIAS]},
                           .n_inputs = OT_NORM_BIAS + 1,
                           .output = node->outputs[0]};
    (void)ot__region_add(&uses->numbers, region, node);
    return region;
}

ot_status ot__match_group_norm(const ot__uses *uses, ot_node *node, ot__arena *arena,
                               ot__region **out)
{
    const ot_value *x = node->n_inputs > 0 ? node->inputs[OT_NORM_X] : NULL;
    ot__region *region, *around;
    group_norm *norm;

    if (!ot__node_is(node, "", "InstanceNormalization") || !x->has_shape ||
        !ot_dim_is_number(x->shape.dim[1]) || x->shape.dim[1] < 1)
        return OT_OK;
    norm = ot__arena_alloc(arena, sizeof *norm);
    OT_TRY(ot__made(norm != NULL));
    *norm = (group_norm){x->shape.dim[1], (double)ot_attr_float(node, "epsilon")};
    region = new_region(uses, node, norm, arena);
    around = new_region(uses, node, norm, arena);
    OT_TRY(ot__made(region != NULL && around != NULL));
    *out = region;
    around->inputs[OT_NORM_SCALE] = around->inputs[OT_NORM_BIAS] = NULL;
    if (take_grouping(uses, node, around)) {
        around->otherwise = region;
        *out = around;
    }
    return OT_OK;
}
