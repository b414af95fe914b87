// SPDX-License-Identifier: Apache-2.0
// Y = (X - mean) / (sqrt(variance) + 1e-9) over `axes`. The root is that of the sum of squares, a
// norm, whose gradient is 0 where all elements are equal, as PyTorch has it of a standard
// deviation.
#include "op/expand.h"

#include <math.h>

static const double mvn_epsilon = 1e-9;

// False with the failure in `c`, which is NULL where inference has seen the axes.
static bool read_mvn_axes(ot_infer *c, const ot_node *node, int ndim, int64_t *axes, int *n)
{
    static const int64_t images[] = {0, 2, 3};
    const int64_t *given = ot_attr_ints(node, "axes", n);
    bool has[OT_MAX_NDIM] = {false};

    if (!ot_attr_given(node, "axes")) {
        given = images;
        *n = (int)OT_COUNT(images);
    }
    if (*n == 0) { // all
        for (*n = 0; *n < ndim; (*n)++)
            axes[*n] = *n;
        return true;
    }
    for (int i = 0; i < *n; i++) {
        int axis;

        if (!ot__axis_normalize(given[i], ndim, &axis) || has[axis]) {
            if (c != NULL)
                ot_infer_fail(c, "axes has %" PRId64 ", expected each of X's %d axes once at most",
                              given[i], ndim);
            return false;
        }
        has[axis] = true;
        axes[i] = axis;
    }
    return true;
}

static void mvn_infer(ot_infer *c)
{
    int64_t axes[OT_MAX_NDIM];
    int n;

    if (read_mvn_axes(c, ot_infer_node(c), ot_infer_shape(c, 0)->ndim, axes, &n))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
}

// 1 / sqrt(n) for n elements that become one of `norms`.
static ot_value *emit_root_of_share(ot_grad *g, ot_value *x, ot_value *norms, const int64_t *axes,
                                    int n)
{
    const ot_shape *shape = ot_value_shape(x);
    const ot_dtype dtype = ot_value_dtype(x);
    double count = 1;
    ot_value *parts;

    for (int i = 0; i < n; i++)
        count = ot_dim_is_number(shape->dim[axes[i]]) ? count * (double)shape->dim[axes[i]] : NAN;
    if (!isnan(count))
        return ot_emit_constant(g, 1 / sqrt(count), x);
    parts = ot_emit_cast(g, ot_emit1(g, "Size", norms), dtype);
    parts = ot_emit2(g, "Div", parts, ot_emit_cast(g, ot_emit1(g, "Size", x), dtype));
    return ot_emit1(g, "Sqrt", parts);
}

static void mvn_compose(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *mean, *centred, *norm;
    const ot_dtype dtype = ot_value_dtype(x);
    int64_t axes[OT_MAX_NDIM];
    int n;

    if (!ot_value_has_shape(x) ||
        !read_mvn_axes(NULL, ot_grad_node(g), ot_value_shape(x)->ndim, axes, &n))
        return;
    x = ot_emit_cast(g, x, dtype == OT_F64 ? OT_F64 : OT_F32); // 1e-9 is 0 in f16
    mean = ot__emit_reduce(g, "ReduceMean", x, axes, n);
    centred = ot_emit2(g, "Sub", x, mean);
    norm = ot__emit_reduce(g, "ReduceL2", centred, axes, n);
    norm = ot_emit2(g, "Mul", norm, emit_root_of_share(g, x, norm, axes, n));
    norm = ot_emit2(g, "Add", norm, ot_emit_constant(g, mvn_epsilon, norm));
    ot_expand_set(g, 0, ot_emit_cast(g, ot_emit2(g, "Div", centred, norm), dtype));
}

static const ot_attr_spec mvn_attrs[] = {{.name = "axes", .kind = OT_ATTRIBUTE_INTS}, {0}};
const ot_op_def ot__op_mean_variance_normalization[] = {
    {.name = "MeanVarianceNormalization",
     .since = 9,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .attrs = mvn_attrs,
     .types = "T: f32 f64",
     .infer = mvn_infer,
     .train = mvn_compose},
    {0},
};
