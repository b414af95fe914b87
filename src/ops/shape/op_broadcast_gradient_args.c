// SPDX-License-Identifier: Apache-2.0
#include "ops/move/move.h"

// The axes, last to first, along which a value of shape `own` was stretched beside one of shape
// `other`.
static int stretched_axes(const int64_t *own, int n_own, const int64_t *other, int n_other,
                          int64_t *axes)
{
    const int ndim = OT_MAX(n_own, n_other);
    int n = 0;

    for (int k = ndim - 1; k >= 0; k--) {
        const int i = k - (ndim - n_own), j = k - (ndim - n_other);
        const int64_t own_dim = i < 0 ? 1 : own[i], other_dim = j < 0 ? 1 : other[j];

        if (i < 0 || (own_dim == 1 && other_dim != 1))
            axes[n++] = k;
    }
    return n;
}

static void broadcast_gradient_args_infer(ot_infer *c)
{
    int64_t axes[OT_MAX_KNOWN];
    int n_a, n_b, n;
    const int64_t *a = ot_infer_values(c, 0, &n_a), *b = ot_infer_values(c, 1, &n_b);

    if (a == NULL || b == NULL || !ot__all_numbers(a, n_a) || !ot__all_numbers(b, n_b)) {
        for (int i = 0; i < 2; i++)
            ot_infer_set(c, i, OT_I64, &OT_SHAPE(ot_dim_unknown()));
        return;
    }
    n = stretched_axes(a, n_a, b, n_b, axes);
    ot_infer_set(c, 0, OT_I64, &OT_SHAPE(n));
    ot_infer_set_values(c, 0, axes, n);
    n = stretched_axes(b, n_b, a, n_a, axes);
    ot_infer_set(c, 1, OT_I64, &OT_SHAPE(n));
    ot_infer_set_values(c, 1, axes, n);
}

static ot_status broadcast_gradient_args_run(const ot_run *r)
{
    for (int i = 0; i < r->n_out; i++) {
        const ot_arg *own = r->in[i], *other = r->in[1 - i];
        ot_arg *y = r->out[i];
        int64_t axes[OT_MAX_KNOWN];

        if (y == NULL)
            continue;
        if (own->count > OT_MAX_NDIM || other->count > OT_MAX_NDIM ||
            stretched_axes(own->data, (int)own->count, other->data, (int)other->count, axes) !=
                y->count)
            return ot__error(OT_ERR_INVALID,
                             "BroadcastGradientArgs: the shapes are not those planned for");
        for (int64_t k = 0; k < y->count; k++)
            ((int64_t *)y->data)[k] = axes[k];
    }
    return OT_OK;
}

static const ot_port broadcast_gradient_args_in[] = {
    {"a_shape", "i64", 0}, {"b_shape", "i64", 0}, {0}};
static const ot_port broadcast_gradient_args_out[] = {
    {"a_axes", "i64", OT_PORT_OPTIONAL}, {"b_axes", "i64", OT_PORT_OPTIONAL}, {0}};
static const ot_kernel broadcast_gradient_args_kernels[] = {
    OT__REF_KERNEL(NULL, NULL, broadcast_gradient_args_run), {0}};
const ot_op_def ot__op_broadcast_gradient_args[] = {
    {.domain = OT__MS,
     .name = "BroadcastGradientArgs",
     .since = 1,
     .inputs = broadcast_gradient_args_in,
     .outputs = broadcast_gradient_args_out,
     .infer = broadcast_gradient_args_infer,
     .kernels = broadcast_gradient_args_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
