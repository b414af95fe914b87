// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/heads.h"

#include <math.h>

// ---- numbers ----

ot_value *ot__emit_scalar(ot_grad *g, int64_t number)
{
    ot_value *v = ot__emit_tensor(g, OT_I64, &OT_SHAPE_SCALAR);

    if (v)
        *(int64_t *)v->constant->data = number;
    return v;
}

ot_value *ot__emit_size(ot_grad *g, ot_value *v, int axis)
{
    if (v == NULL)
        return NULL;
    if (ot_dim_is_number(ot_value_shape(v)->dim[axis]))
        return ot__emit_scalar(g, ot_value_shape(v)->dim[axis]);
    return ot__emit_at(g, ot_emit1(g, "Shape", v), axis);
}

ot_value *ot__emit_axes(ot_grad *g, ot_value *v, int64_t first, int n)
{
    int64_t axes[OT_MAX_NDIM];

    for (int k = 0; k < n; k++)
        axes[k] = first + k;
    return ot_emit2(g, "Unsqueeze", v, ot_emit_constant_i64(g, axes, n));
}

ot_value *ot__emit_swapped(ot_grad *g, ot_value *v)
{
    static const int64_t perm[] = {0, 2, 1, 3};

    return ot__emit_transpose(g, v, perm, 4);
}

// ---- heads ----

ot_value *ot__emit_heads(ot_grad *g, ot_value *v, int64_t heads)
{
    const int64_t hidden = v == NULL ? -1 : ot_value_shape(v)->dim[2];
    const int64_t dims[] = {0, 0, heads, ot_dim_is_number(hidden) ? hidden / heads : -1};

    return ot__emit_swapped(g, ot__emit_reshape(g, v, dims, 4));
}

ot_value *ot__emit_joined_heads(ot_grad *g, ot_value *v)
{
    static const int64_t joined[] = {0, 0, -1};

    return ot__emit_reshape(g, ot__emit_swapped(g, v), joined, 3);
}

ot_value *ot__emit_repeated_heads(ot_grad *g, ot_value *v, int64_t heads, int64_t q_heads)
{
    const int64_t repeats = q_heads / heads, stretched[] = {1, 1, repeats, 1, 1};
    ot_value *parts[2], *many;
    int64_t dims[] = {0, q_heads, -1, -1};

    if (v == NULL || q_heads == heads)
        return v;
    many = ot__emit_axes(g, v, 2, 1);
    many = ot_emit2(g, "Expand", many, ot_emit_constant_i64(g, stretched, 5));
    dims[3] = ot_value_shape(v)->dim[3];
    if (ot_dim_is_number(dims[3])) {
        dims[2] = ot_dim_is_number(ot_value_shape(v)->dim[2]) ? ot_value_shape(v)->dim[2] : -1;
        return ot__emit_reshape(g, many, dims, 4);
    }
    parts[0] = ot_emit_constant_i64(g, dims, 2);
    parts[1] = ot__emit_extents(g, v, 2, 4);
    return ot_emit2(g, "Reshape", many, ot__emit_concat(g, parts, 2, 0));
}

// ---- scores ----

static ot_value *emit_scaled_queries(ot_grad *g, ot_value *q, double scale)
{
    int64_t size;
    ot_value *root;

    if (q == NULL)
        return NULL;
    size = ot_value_shape(q)->dim[3];
    if (isnan(scale) && !ot_dim_is_number(size)) {
        root = ot_emit1(g, "Sqrt", ot_emit_cast(g, ot__emit_size(g, q, 3), ot_value_dtype(q)));
        return ot_emit2(g, "Mul", q, ot_emit1(g, "Reciprocal", root));
    }
    scale = isnan(scale) ? 1 / sqrt((double)size) : scale;
    return ot_emit2(g, "Mul", q, ot_emit_constant(g, scale, q));
}

ot_value *ot__emit_scores(ot_grad *g, ot_value *q, ot_value *k, double scale)
{
    static const int64_t perm[] = {0, 1, 3, 2};
    ot_value *scaled = emit_scaled_queries(g, q, scale);

    return ot_emit2(g, "MatMul", scaled, ot__emit_transpose(g, k, perm, 4));
}

ot_value *ot__emit_softcap(ot_grad *g, ot_value *scores, double cap)
{
    ot_value *limit;

    if (!(cap > 0))
        return scores;
    limit = ot_emit_constant(g, cap, scores);
    return ot_emit2(g, "Mul", ot_emit1(g, "Tanh", ot_emit2(g, "Div", scores, limit)), limit);
}
