// SPDX-License-Identifier: Apache-2.0
// Concat: the inputs side by side along one axis.
#include "ops/move/move.h"

static void concat_infer(ot_infer *c)
{
    ot_shape y;
    int axis;

    if (ot_infer_axis(c, ot_attr_int(ot_infer_node(c), "axis"), ot_infer_shape(c, 0)->ndim, &axis))
        ot__infer_concat(c, axis, &y);
}

// Extents of the inputs along the axis: a constant when they are all numbers.
static ot_value *emit_sizes(ot_grad *g, int axis)
{
    const int n = ot_grad_input_count(g);
    ot__arena *arena = ot_grad_node(g)->graph->model->arena;
    int64_t *numbers = ot__arena_alloc(arena, (size_t)n * sizeof(*numbers));
    ot_value **sizes = ot__arena_alloc(arena, (size_t)n * sizeof(ot_value *));
    ot_value *index;
    bool is_static = true;

    if (numbers == NULL || sizes == NULL) {
        ot_grad_fail(g, "%s", ot_error_message());
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        const ot_value *x = ot_grad_x(g, i);

        numbers[i] = ot_value_has_shape(x) ? ot_value_shape(x)->dim[axis] : ot_dim_unknown();
        is_static = is_static && ot_dim_is_number(numbers[i]);
    }
    if (is_static)
        return ot_emit_constant_i64(g, numbers, n);
    index = ot_emit_constant_i64(g, &(int64_t){axis}, 1);
    for (int i = 0; i < n; i++)
        sizes[i] = ot_dim_is_number(numbers[i])
                       ? ot_emit_constant_i64(g, &numbers[i], 1)
                       : ot_emit2(g, "Gather", ot_emit_shape(g, ot_grad_x(g, i)), index);
    return ot_emit_output(g, ot_emit(g, "Concat", "axis = 0", sizes, n, 1), 0);
}

// dX_i = the part of dY where X_i stands. Parts that nobody wants keep their output: ONNX Runtime's
// Split needs them all.
static void concat_grad(ot_grad *g)
{
    const int n = ot_grad_input_count(g);
    int axis = 0;
    ot_value *in[2] = {ot_grad_dy(g, 0), NULL};
    ot_node *split;

    if (!ot__grad_has_rank(g))
        return;
    ot__axis_normalize(ot_attr_int(ot_grad_node(g), "axis"), ot_value_shape(ot_grad_x(g, 0))->ndim,
                       &axis);
    in[1] = emit_sizes(g, axis);
    split = ot_emit(g, "Split", NULL, in, 2, n);
    ot_emit_int(g, split, "axis", axis);
    for (int i = 0; i < n; i++) {
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_output(g, split, i));
    }
}

static const ot_port concat_in[] = {{"inputs", "T", OT_PORT_VARIADIC}, {0}};
static const ot_port concat_out[] = {{"concat_result", "T", 0}, {0}};
static const ot_attr_spec concat_attrs[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED}, {0}};
static const ot_kernel concat_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__prep_concat,
     .run = ot__run_concat},
    {0},
};
const ot_op_def ot__op_concat[] = {
    {.name = "Concat",
     .since = 4,
     .inputs = concat_in,
     .outputs = concat_out,
     .attrs = concat_attrs,
     .types = "T: any string",
     .infer = concat_infer,
     .kernels = concat_kernels,
     .grad = concat_grad},
    {0},
};
