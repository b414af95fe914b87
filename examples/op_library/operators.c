// SPDX-License-Identifier: Apache-2.0
// Two operators of one's own, as a shared library that onnxtrain loads:
//
//   cc -shared -fPIC -O2 operators.c -o operators.so -lm    (-I where onnxtrain/ is)
//   onnxtrain train model.onnxtxt --op-library ./operators.so --data line.csv --loss mse
//
// Squareplus is elementwise: a function of one value, which the library broadcasts, runs in threads
// and fuses. Center has a kernel of its own.
#include <math.h>
#include <onnxtrain/op.h>

#define DOMAIN "example"

// ---- Squareplus: Y = (X + sqrt(X^2 + b)) / 2, a smooth Relu (Barron, 2021) ----

static void squareplus_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    for (int64_t k = 0; k < n; k++)
        y[k] = 0.5f * (x[0][k] + sqrtf(x[0][k] * x[0][k] + attrs[0]));
}

static void squareplus_f64(double *y, const double *const *x, int64_t n, const float *attrs)
{
    for (int64_t k = 0; k < n; k++)
        y[k] = 0.5 * (x[0][k] + sqrt(x[0][k] * x[0][k] + (double)attrs[0]));
}

// dX = dY * (1 + X / sqrt(X^2 + b)) / 2; inputs are dY and X.
static void squareplus_grad_f32(float *y, const float *const *x, int64_t n, const float *attrs)
{
    for (int64_t k = 0; k < n; k++)
        y[k] = 0.5f * x[0][k] * (1 + x[1][k] / sqrtf(x[1][k] * x[1][k] + attrs[0]));
}

static void squareplus_grad_f64(double *y, const double *const *x, int64_t n, const float *attrs)
{
    for (int64_t k = 0; k < n; k++)
        y[k] = 0.5 * x[0][k] * (1 + x[1][k] / sqrt(x[1][k] * x[1][k] + (double)attrs[0]));
}

static void infer_as_input(ot_infer *c)
{
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
}

static void squareplus_grad(ot_grad *g)
{
    ot_value *const inputs[] = {ot_grad_dy(g, 0), ot_grad_x(g, 0)};
    ot_node *node = ot_emit(g, DOMAIN ".SquareplusGrad", NULL, inputs, 2, 1);

    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static const ot_port x_in[] = {{"X", "T", 0}, {0}}, y_out[] = {{"Y", "T", 0}, {0}};
static const ot_port dy_x_in[] = {{"dY", "T", 0}, {"X", "T", 0}, {0}},
                     dx_out[] = {{"dX", "T", 0}, {0}};
static const ot_attr_spec b_attr[] = {
    // at least 0
    {.name = "b",
     .kind = OT_ATTRIBUTE_FLOAT,
     .flags = OT_ATTR_HAS_DEFAULT,
     .f = 4,
     .high = INFINITY},
    {0},
};
static const ot_tile squareplus_tile = {.f32 = squareplus_f32, .f64 = squareplus_f64};
static const ot_tile squareplus_grad_tile = {.f32 = squareplus_grad_f32,
                                             .f64 = squareplus_grad_f64};

static const ot_op_def squareplus[] = {
    {.domain = DOMAIN,
     .name = "Squareplus",
     .since = 1,
     .inputs = x_in,
     .outputs = y_out,
     .attrs = b_attr,
     .types = "T: f32 f64",
     .infer = infer_as_input,
     .tile = &squareplus_tile,
     .grad = squareplus_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
static const ot_op_def squareplus_grad_op[] = {
    {.domain = DOMAIN,
     .name = "SquareplusGrad",
     .since = 1,
     .inputs = dy_x_in,
     .outputs = dx_out,
     .attrs = b_attr,
     .types = "T: f32 f64",
     .infer = infer_as_input,
     .tile = &squareplus_grad_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};

// ---- Center: Y = X minus its mean along the last axis. dX = dY minus its mean, so it is its own
// gradient ----

static void center_infer(ot_infer *c)
{
    if (ot_infer_shape(c, 0)->ndim < 1)
        ot_infer_fail(c, "X is a scalar, expected at least one axis");
    else
        infer_as_input(c);
}

static void center_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_emit1(g, DOMAIN ".Center", ot_grad_dy(g, 0)));
}

// x, y: (rows, cols)
static ot_status center_f32(const ot_run *r)
{
    const ot_arg *x = r->in[0];
    const int64_t cols = x->shape.dim[x->shape.ndim - 1], rows = cols > 0 ? x->count / cols : 0;

    for (int64_t i = 0; i < rows; i++) {
        const float *from = (const float *)x->data + i * cols;
        float *to = (float *)r->out[0]->data + i * cols;
        double sum = 0;

        for (int64_t k = 0; k < cols; k++)
            sum += (double)from[k];
        for (int64_t k = 0; k < cols; k++)
            to[k] = (float)((double)from[k] - sum / (double)cols);
    }
    return OT_OK;
}

static ot_status center_f64(const ot_run *r)
{
    const ot_arg *x = r->in[0];
    const int64_t cols = x->shape.dim[x->shape.ndim - 1], rows = cols > 0 ? x->count / cols : 0;

    for (int64_t i = 0; i < rows; i++) {
        const double *from = (const double *)x->data + i * cols;
        double *to = (double *)r->out[0]->data + i * cols;
        double sum = 0;

        for (int64_t k = 0; k < cols; k++)
            sum += from[k];
        for (int64_t k = 0; k < cols; k++)
            to[k] = from[k] - sum / (double)cols;
    }
    return OT_OK;
}

static const ot_kernel center_kernels[] = {
    {.name = "ref",
     .types = "T: f32",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .run = center_f32},
    {.name = "ref",
     .types = "T: f64",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .run = center_f64},
    {0},
};
static const ot_op_def center[] = {
    {.domain = DOMAIN,
     .name = "Center",
     .since = 1,
     .inputs = x_in,
     .outputs = y_out,
     .types = "T: f32 f64",
     .infer = center_infer,
     .kernels = center_kernels,
     .grad = center_grad,
     .flags = OT_OP_IN_PLACE},
    {0},
};

// ---- the library ----

const struct ot_op_library *ot_op_library(void)
{
    static const ot_op_def *const ops[] = {squareplus, squareplus_grad_op, center};
    static const struct ot_op_library library = {
        .abi = OT_OP_ABI, .n_ops = sizeof ops / sizeof ops[0], .ops = ops};

    return &library;
}
