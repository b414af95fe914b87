// SPDX-License-Identifier: Apache-2.0
// ConcatTraining: Concat that also says how long each part is.
#include "ops/move/move.h"

static void concat_training_infer(ot_infer *c)
{
    const int n = ot_infer_input_count(c);
    int64_t lengths[OT_MAX_KNOWN];
    ot_shape y;
    int axis;

    if (!ot_infer_axis(c, ot_attr_int(ot_infer_node(c), "axis"), ot_infer_shape(c, 0)->ndim,
                       &axis) ||
        !ot__infer_concat(c, axis, &y))
        return;
    ot_infer_set(c, 1, OT_I64, &OT_SHAPE(n));
    for (int i = 0; i < n && n <= OT_MAX_KNOWN; i++)
        lengths[i] = ot_infer_shape(c, i)->dim[axis];
    ot_infer_set_values(c, 1, lengths, n);
}

// dX_i = the part of dY where X_i stands.
static void concat_training_grad(ot_grad *g)
{
    const int n = ot_grad_input_count(g);
    ot_value *in[2] = {ot_grad_dy(g, 0), ot_grad_y(g, 1)};
    ot_node *split = ot_emit(g, "com.microsoft.SplitTraining", NULL, in, 2, n);

    ot_emit_int(g, split, "axis", ot_attr_int(ot_grad_node(g), "axis"));
    for (int i = 0; i < n; i++) {
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_output(g, split, i));
    }
}

static const ot_port concat_training_in[] = {{"inputs", "T", OT_PORT_VARIADIC}, {0}};
static const ot_port concat_training_out[] = {
    {"concat_result", "T", 0},
    {"per_input_length", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_attr_spec concat_training_attrs[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED}, {0}};
static const ot_kernel concat_training_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__prep_concat,
     .run = ot__run_concat},
    {0},
};
const ot_op_def ot__op_concat_training[] = {
    {.domain = OT__MS,
     .name = "ConcatTraining",
     .since = 1,
     .inputs = concat_training_in,
     .outputs = concat_training_out,
     .attrs = concat_training_attrs,
     .types = "T: any string",
     .infer = concat_training_infer,
     .kernels = concat_training_kernels,
     .grad = concat_training_grad},
    {0},
};
