// SPDX-License-Identifier: Apache-2.0
#include "ops/ml/ml.h"

#include <string.h>

const ot_port ot__ml_in[] = {{"X", "T", 0}, {0}};

// ---- checks ----

bool ot__ml_check_rows(ot_infer *c)
{
    const int ndim = ot_infer_shape(c, 0)->ndim;

    return ndim == 1 || ndim == 2 || ot__refuse(c, "X has %d axes, expected 1 or 2", ndim);
}

bool ot__ml_check_list(ot_infer *c, const char *name, int n)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    const int64_t features = x->ndim > 0 ? x->dim[x->ndim - 1] : 1;

    if (n == 1 || !ot__dim_differs(n, features))
        return true;
    return ot__refuse(c, "%s has %d entries for %" PRId64 " features", name, n, features);
}

ot_dtype ot__ml_float_type(ot_infer *c, int output)
{
    const ot_node *node = ot_infer_node(c);
    const ot_value *y = output < node->n_outputs ? node->outputs[output] : NULL;
    const bool is_stated = y != NULL && y->dtype == OT_F32;

    return ot_infer_dtype(c, 0) == OT_F64 && !is_stated ? OT_F64 : OT_F32;
}

// ---- values ----

ot_value *ot__ml_emit_x(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0);

    return x == NULL || ot__dtype_is_float(ot_value_dtype(x)) ? x : ot_emit_cast(g, x, OT_F32);
}

void ot__ml_set(ot_grad *g, int output, ot_value *y)
{
    const ot_node *node = ot_grad_node(g);

    if (ot_expand_wants(g, output))
        ot_expand_set(g, output, ot_emit_cast(g, y, node->outputs[output]->dtype));
}

ot_value *ot__ml_emit_floats(ot_grad *g, const float *numbers, const ot_shape *shape,
                             const ot_value *like)
{
    ot_value *v = like == NULL ? NULL : ot__emit_tensor(g, ot_value_dtype(like), shape);

    if (v != NULL)
        (void)ot__convert(v->constant->data, v->dtype, numbers, OT_F32,
                          ot_tensor_count(v->constant));
    return v;
}

// ---- post_transform ----

static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
enum { SOFTMAX = 1, LOGISTIC, SOFTMAX_ZERO, PROBIT };

static size_t transform_of(const ot_node *node)
{
    const char *name = ot_attr_string(node, "post_transform");
    size_t i = 0;

    while (i < OT_COUNT(transforms) && strcmp(transforms[i], name) != 0)
        i++;
    return i;
}

bool ot__ml_check_transform(ot_infer *c)
{
    if (transform_of(ot_infer_node(c)) < OT_COUNT(transforms))
        return true;
    return ot__refuse(c,
                      "post_transform '%.40s' is not one of NONE, SOFTMAX, LOGISTIC, "
                      "SOFTMAX_ZERO and PROBIT",
                      ot_attr_string(ot_infer_node(c), "post_transform"));
}

static ot_value *emit_one(ot_grad *g, const char *op, const char *attrs, ot_value *x)
{
    return x == NULL ? NULL : ot_emit_output(g, ot_emit(g, op, attrs, &x, 1, 1), 0);
}

static ot_value *emit_plus(ot_grad *g, ot_value *x, double number)
{
    return ot_emit2(g, "Add", x, ot_emit_constant(g, number, x));
}

static ot_value *emit_is_zero(ot_grad *g, ot_value *x)
{
    return ot_emit2(g, "Equal", x, ot_emit_constant(g, 0, x));
}

ot_value *ot__ml_emit_divided(ot_grad *g, ot_value *x, ot_value *divisor, ot_value **is_zero)
{
    *is_zero = emit_is_zero(g, divisor);
    divisor = ot_emit3(g, "Where", *is_zero, ot_emit_constant(g, 1, divisor), divisor);
    return ot_emit2(g, "Div", x, divisor);
}

// A softmax in which scores of 0 count as 0, and smaller ones by themselves.
static ot_value *emit_softmax_zero(ot_grad *g, ot_value *x)
{
    static const double small = 1e-7;
    static const int64_t last[] = {-1};
    ot_value *largest = ot__emit_reduce(g, "ReduceMax", x, last, 1), *powers, *near, *is_large;
    ot_value *size = ot_emit1(g, "Abs", x), *is_zero;

    powers = ot_emit1(g, "Exp", ot_emit2(g, "Sub", x, largest));
    near = ot_emit2(g, "Mul", x, ot_emit1(g, "Exp", ot_emit1(g, "Neg", largest)));
    is_large = ot_emit2(g, "Greater", size, ot_emit_constant(g, small, x));
    powers = ot_emit3(g, "Where", is_large, powers, near);
    powers = ot__ml_emit_divided(g, powers, ot__emit_sum(g, powers, last, 1, true), &is_zero);
    return ot_emit3(g, "Where", is_zero, ot_emit_constant(g, 0.5, x), powers);
}

// The inverse of the normal distribution's integral: with a = 0.147, t = 2 x - 1 and l = log(1 -
// t^2), Winitzki's sign(t) sqrt(sqrt((2 / (pi a) + l / 2)^2 - l / a) - (2 / (pi a) + l / 2)) times
// the root of 2. At 0 and 1 it is 0.
static ot_value *emit_probit(ot_grad *g, ot_value *x)
{
    static const double a = 0.147, pi = 3.14159265358979323846, root = 1.41421356;
    ot_value *t = emit_plus(g, ot__emit_times(g, x, 2), -1), *l, *v, *y, *is_end, *sign;

    l = emit_plus(g, t, 1);
    l = ot_emit2(g, "Mul", l, emit_plus(g, ot_emit1(g, "Neg", t), 1));
    is_end = emit_is_zero(g, l);
    l = ot_emit1(g, "Log", ot_emit3(g, "Where", is_end, ot_emit_constant(g, 1, l), l));
    v = emit_plus(g, ot__emit_times(g, l, 0.5), 2 / (pi * a));
    y = ot_emit2(g, "Mul", v, v);
    y = ot_emit2(g, "Sub", y, ot__emit_times(g, l, 1 / a));
    y = ot_emit1(g, "Sqrt", ot_emit2(g, "Sub", ot_emit1(g, "Sqrt", y), v));
    sign = ot_emit1(g, "Sign", t);
    y = ot_emit2(g, "Mul", ot__emit_times(g, sign, root), y);
    return ot_emit3(g, "Where", is_end, ot_emit_constant(g, 0, y), y);
}

ot_value *ot__ml_emit_transform(ot_grad *g, ot_value *scores)
{
    switch (transform_of(ot_grad_node(g))) {
    case SOFTMAX:
        return emit_one(g, "Softmax", "axis = -1", scores);
    case LOGISTIC:
        return ot_emit1(g, "Sigmoid", scores);
    case SOFTMAX_ZERO:
        return emit_softmax_zero(g, scores);
    case PROBIT:
        return emit_probit(g, scores);
    default:
        return scores;
    }
}
