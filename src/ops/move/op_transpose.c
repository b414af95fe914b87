// SPDX-License-Identifier: Apache-2.0
// Transpose: the axes in another order.
#include "ops/move/move.h"

// axes->axis[k]: the axis of x that becomes axis k. Reversed without the attribute. False: not a
// permutation.
static bool read_perm(const ot_node *node, int ndim, ot__axes *axes)
{
    int n;
    const int64_t *perm = ot_attr_ints(node, "perm", &n);
    int64_t bad;

    if (ot_attr_given(node, "perm"))
        return n == ndim && ot__axes_init(axes, perm, n, ndim, &bad);
    axes->n = ndim;
    for (int k = 0; k < ndim; k++)
        axes->axis[k] = ndim - 1 - k;
    return true;
}

static void transpose_strides(ot__strided *s, const ot_shape *x, const ot_shape *y,
                              const ot__axes *perm)
{
    int64_t x_stride[OT_MAX_NDIM], y_stride[OT_MAX_NDIM];

    *s = (ot__strided){0};
    ot__shape_strides(x, x_stride);
    ot__shape_strides(y, y_stride);
    for (int k = 0; k < y->ndim; k++)
        ot__strided_add_axis(s, y->dim[k], x_stride[perm->axis[k]], y_stride[k]);
}

static void transpose_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    ot_shape y = {.ndim = x->ndim};
    ot__strided s;
    ot__axes perm;
    int n;

    if (!read_perm(ot_infer_node(c), x->ndim, &perm)) {
        ot_infer_fail(c, "perm is not a permutation of %d axes", x->ndim);
        return;
    }
    for (int k = 0; k < y.ndim; k++)
        y.dim[k] = x->dim[perm.axis[k]];
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    if (ot_infer_values(c, 0, &n) != NULL) {
        transpose_strides(&s, x, &y, &perm);
        ot__infer_moved(c, 0, &s);
    }
}

static ot_status transpose_prep(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, 0), *y = ot_prep_out(p, 0);
    ot__strided s;
    ot__axes perm;

    if (!read_perm(ot_prep_node(p), x->shape.ndim, &perm))
        return ot_prep_fail(p, OT_ERR_INVALID, "perm is not a permutation");
    transpose_strides(&s, &x->shape, &y->shape, &perm);
    return ot__prep_strided(p, &s);
}

// dX = dY with the inverse permutation.
static void transpose_grad(ot_grad *g)
{
    ot_value *dy = ot_grad_dy(g, 0);
    ot_node *node = ot_emit(g, "Transpose", NULL, &dy, 1, 1);
    int64_t inverse[OT_MAX_NDIM];
    ot__axes perm;
    int n;

    ot_attr_ints(ot_grad_node(g), "perm", &n);
    if (ot_attr_given(ot_grad_node(g), "perm") && read_perm(ot_grad_node(g), n, &perm)) {
        for (int k = 0; k < n; k++)
            inverse[perm.axis[k]] = k;
        ot_emit_ints(g, node, "perm", inverse, n);
    }
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static const ot_port transpose_out[] = {{"transposed", "T", 0}, {0}};
static const ot_attr_spec transpose_attrs[] = {{.name = "perm", .kind = OT_ATTRIBUTE_INTS}, {0}};
static const ot_kernel transpose_kernels[] = {OT__STRIDED_KERNELS(transpose_prep, ot__run_strided),
                                              {0}};
const ot_op_def ot__op_transpose[] = {
    {.name = "Transpose",
     .since = 1,
     .inputs = ot__data_in,
     .outputs = transpose_out,
     .attrs = transpose_attrs,
     .types = "T: any string",
     .infer = transpose_infer,
     .kernels = transpose_kernels,
     .grad = transpose_grad,
     .flags = OT_OP_REARRANGE},
    {0},
};
