// SPDX-License-Identifier: Apache-2.0
// The gradients of gathering in ONNX's operators: what was gathered is added to zeros where it came
// from.
#include "op/expand.h"
#include "ops/move/move.h"

static int rank_of(const ot_value *v)
{
    return ot_value_shape(v)->ndim;
}

// The axis of the indices in front, so that ScatterND can do it: dY's axes are those of the data
// with `axis` replaced by the indices' own.
void ot__gather_grad_expand(ot_grad *g)
{
    ot_value *shape = ot_grad_x(g, 0), *indices = ot_grad_x(g, 1), *dy = ot_grad_x(g, 2);
    ot_value *column, *dx;
    const int q = rank_of(indices), n = rank_of(dy), ndim = n - q + 1;
    const int64_t given = ot_attr_int(ot_grad_node(g), "axis"), last = q;
    const int axis = (int)(given < 0 ? given + ndim : given);
    int64_t front[OT_MAX_NDIM], order[OT_MAX_NDIM], back[OT_MAX_NDIM];

    if (ndim < 1 || ndim > OT_MAX_NDIM || axis < 0 || axis >= ndim)
        return;
    for (int k = 0; k < n; k++)
        front[k] = k < q ? axis + k : k < q + axis ? k - q : k;
    for (int k = 0; k < ndim; k++) {
        order[k] = k == 0 ? axis : k <= axis ? k - 1 : k;
        back[order[k]] = k;
    }
    column = ot_emit_constant_i64(g, &last, 1);
    indices = ot_emit2(g, "Unsqueeze", ot_emit_cast(g, indices, OT_I64), column);
    if (axis > 0) {
        dy = ot__emit_transpose(g, dy, front, n);
        shape = ot_emit2(g, "Gather", shape, ot_emit_constant_i64(g, order, ndim));
    }
    dx = dy ? ot__emit_scatter_add(g, "ScatterND", 0, ot__emit_zeros(g, shape, dy), indices, dy)
            : NULL;
    ot_expand_set(g, 0, axis > 0 ? ot__emit_transpose(g, dx, back, ndim) : dx);
}

void ot__gather_elements_grad_expand(ot_grad *g)
{
    ot_value *dy = ot_grad_x(g, 0), *shape = ot_grad_x(g, 1), *indices = ot_grad_x(g, 2);

    ot_expand_set(g, 0,
                  ot__emit_scatter_add(g, "ScatterElements", ot_attr_int(ot_grad_node(g), "axis"),
                                       ot__emit_zeros(g, shape, dy), indices, dy));
}

// The positions along batch axis `axis` as a column beside the indices.
static ot_value *emit_batch_column(ot_grad *g, ot_value *indices, ot_value *column_shape, int axis)
{
    const int n = rank_of(indices);
    int64_t dims[OT_MAX_NDIM];
    ot_value *limit = ot__emit_at(g, ot_emit1(g, "Shape", indices), axis);

    for (int k = 0; k < n; k++)
        dims[k] = k == axis ? -1 : 1;
    return ot_emit2(g, "Expand", ot__emit_reshape(g, ot__emit_count_up(g, limit), dims, n),
                    column_shape);
}

void ot__gather_nd_grad_expand(ot_grad *g)
{
    ot_value *shape = ot_grad_x(g, 0), *indices = ot_grad_x(g, 1), *dy = ot_grad_x(g, 2);
    const int n = rank_of(indices), n_batch = (int)ot_attr_int(ot_grad_node(g), "batch_dims");
    ot_value *columns[OT_MAX_NDIM + 1];

    if (n_batch < 0 || n_batch >= n)
        return;
    if (n_batch > 0) {
        const int64_t one = 1;
        ot_value *rows = ot__emit_extents(g, indices, 0, n - 1);
        ot_value *const parts[] = {rows, ot_emit_constant_i64(g, &one, 1)};
        ot_value *column_shape = ot__emit_concat(g, parts, 2, 0);

        for (int k = 0; k < n_batch; k++)
            columns[k] = emit_batch_column(g, indices, column_shape, k);
        columns[n_batch] = indices;
        indices = ot__emit_concat(g, columns, n_batch + 1, n - 1);
    }
    ot_expand_set(
        g, 0, ot__emit_scatter_add(g, "ScatterND", 0, ot__emit_zeros(g, shape, dy), indices, dy));
}

// The slice is taken of the positions, and dY put there.
void ot__slice_grad_expand(ot_grad *g)
{
    const int n_in = ot_grad_input_count(g);
    const int64_t all = -1;
    ot_value *dy = ot_grad_x(g, 0), *shape = ot_grad_x(g, 1), *sum;
    ot_value *zeros = ot__emit_zeros(g, shape, dy);
    ot_value *slice[5] = {
        ot_emit2(g, "Reshape", ot__emit_count_up(g, ot_emit1(g, "Size", zeros)), shape)};
    ot_value *scatter[3] = {ot__emit_reshape(g, zeros, &all, 1)};

    scatter[2] = ot__emit_reshape(g, dy, &all, 1);
    for (int i = 2; i < n_in; i++)
        slice[i - 1] = ot_grad_x(g, i);
    if (!slice[0])
        return;
    scatter[1] = ot__emit_reshape(
        g, ot_emit_output(g, ot_emit(g, "Slice", NULL, slice, n_in - 1, 1), 0), &all, 1);
    if (!scatter[1])
        return;
    sum = ot_emit_output(g, ot_emit(g, "ScatterElements", NULL, scatter, 3, 1), 0);
    ot_expand_set(g, 0, ot_emit2(g, "Reshape", sum, shape));
}
