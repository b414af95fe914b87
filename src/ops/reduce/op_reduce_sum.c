// SPDX-License-Identifier: Apache-2.0
// ReduceSum: sums over axes.
#include "op/expand.h"
#include "ops/reduce/reduction.h"

#include <string.h>

static void reduce_sum_infer(ot_infer *c)
{
    ot__infer_reduce_known(c, ot_infer_add);
}

static ot_status reduce_sum_prep(ot_prep *p)
{
    return ot__prep_reduce(p, OT__REDUCE_SUM);
}

// dX = dY, the same for every element of the sum.
static void reduce_sum_grad(ot_grad *g)
{
    ot_value *dy = ot__reduce_restore(g, ot_grad_dy(g, 0));

    ot_grad_set_dx(g, 0, ot_emit2(g, "Expand", dy, ot_emit_shape(g, ot_grad_x(g, 0))));
}

// 1 in front of a list up to n elements.
static ot_value *fill_up(ot_grad *g, ot_value *list, int n)
{
    const int64_t ones[OT_MAX_NDIM] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const int n_own = list == NULL ? n : (int)ot_value_shape(list)->dim[0];
    ot_value *parts[] = {NULL, list};

    if (n_own == n)
        return list;
    parts[0] = ot_emit_constant_i64(g, ones, n - n_own);
    return ot__emit_concat(g, parts, 2, 0);
}

// Pairs (extent to sum over, extent to keep), one of them 1, as extents of an array.
static ot_value *emit_pairs(ot_grad *g, ot_value *summed, ot_value *kept)
{
    const int64_t axis = 1, all = -1;
    ot_value *at = ot_emit_constant_i64(g, &axis, 1);
    ot_value *column = ot_emit2(g, "Unsqueeze", summed, at);
    ot_value *const columns[] = {column, ot_emit2(g, "Unsqueeze", kept, at)};

    return ot__emit_reshape(g, ot__emit_concat(g, columns, 2, 1), &all, 1);
}

// A sum that undoes broadcasting over axes that only the run knows: each axis is split into the
// part to sum over and the part to keep, so that the axes are always the same.
static void reduce_sum_expand(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *axes = ot_grad_x(g, 1), *own, *other, *one, *is_one, *kept;
    const ot_node *args = axes == NULL ? NULL : axes->producer;
    const int n = ot_value_shape(x)->ndim;
    int64_t summed[OT_MAX_NDIM];

    if (args == NULL || strcmp(args->op_type, "BroadcastGradientArgs") != 0 ||
        2 * n > OT_MAX_NDIM || ot_attr_int(ot_grad_node(g), "keepdims") == 0)
        return;
    own = args->inputs[axes->i_producer_output];
    other = args->inputs[1 - axes->i_producer_output];
    for (int k = 0; k < n; k++)
        summed[k] = INT64_C(2) * k;
    for (int i = 0; i < 2; i++)
        if (!ot_dim_is_number(ot_value_shape(args->inputs[i])->dim[0]) ||
            ot_value_shape(args->inputs[i])->dim[0] > n)
            return;
    own = fill_up(g, own, n);
    other = fill_up(g, other, n);
    one = own == NULL ? NULL : ot_emit_constant(g, 1.0, own);
    is_one = ot_emit2(g, "Equal", own, one);
    kept = ot_emit3(g, "Where", is_one, one, other);
    x = ot_emit2(g, "Reshape", x, emit_pairs(g, ot_emit3(g, "Where", is_one, other, one), kept));
    ot_expand_set(g, 0, ot__emit_sum(g, x, summed, n, false));
}

static const ot_kernel reduce_sum_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_sum_prep,
     .run = ot__run_reduce},
    {0},
};
const ot_op_def ot__op_reduce_sum[] = {
    {.name = "ReduceSum",
     .since = 1,
     .inputs = ot__reduce_in_1,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs_1,
     .types = "T: f32 f64 i32 i64",
     .infer = reduce_sum_infer,
     .upgrade = ot__reduce_upgrade},
    {.name = "ReduceSum",
     .since = 13,
     .inputs = ot__reduce_in,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs,
     .types = "T: f32 f64 i32 i64",
     .infer = reduce_sum_infer,
     .kernels = reduce_sum_kernels,
     .grad = reduce_sum_grad,
     .expand = reduce_sum_expand},
    {0},
};
