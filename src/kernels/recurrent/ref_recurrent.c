// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: RNN, GRU and LSTM, and their gradients back through time.
#include <math.h>

#include "kernels/kernels.h"

// The step that comes `i`-th in the direction.
static int64_t step_at(const ot__recurrent *p, int direction, int64_t i)
{
    return p->reversed[direction] ? p->steps - 1 - i : i;
}

static bool is_active(const int32_t *lengths, int64_t row, int64_t step)
{
    return lengths == NULL || step < lengths[row];
}

static int64_t add_product(int64_t sum, int64_t a, int64_t b, int64_t c)
{
    int64_t product;

    if (sum < 0 || ot__mul_overflows(a, b, &product) || ot__mul_overflows(product, c, &product) ||
        ot__add_overflows(sum, product, &sum))
        return -1;
    return sum;
}

static double clipped(double x, double clip)
{
    return clip > 0 ? fmax(fmin(x, clip), -clip) : x;
}

static double activated(double x, const ot__activation *f)
{
    switch (f->kind) {
    case OT__ACTIVATION_AFFINE:
        return f->alpha * x + f->beta;
    case OT__ACTIVATION_ELU:
        return x > 0 ? x : f->alpha * expm1(x);
    case OT__ACTIVATION_HARD_SIGMOID:
        return fmax(0, fmin(1, f->alpha * x + f->beta));
    case OT__ACTIVATION_LEAKY_RELU:
        return x > 0 ? x : f->alpha * x;
    case OT__ACTIVATION_RELU:
        return x > 0 ? x : 0;
    case OT__ACTIVATION_SCALED_TANH:
        return f->alpha * tanh(f->beta * x);
    case OT__ACTIVATION_SIGMOID:
        return 1 / (1 + exp(-x));
    case OT__ACTIVATION_SOFTPLUS:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    case OT__ACTIVATION_SOFTSIGN:
        return x / (1 + fabs(x));
    case OT__ACTIVATION_THRESHOLDED_RELU:
        return x >= f->alpha ? x : 0;
    default:
        return tanh(x);
    }
}

// The derivative where f is y. Every f here is monotone, so y tells.
static double derivative(double y, const ot__activation *f)
{
    switch (f->kind) {
    case OT__ACTIVATION_AFFINE:
        return f->alpha;
    case OT__ACTIVATION_ELU:
        return y > 0 ? 1 : y + f->alpha;
    case OT__ACTIVATION_HARD_SIGMOID:
        return y > 0 && y < 1 ? f->alpha : 0;
    case OT__ACTIVATION_LEAKY_RELU:
        return y > 0 ? 1 : f->alpha;
    case OT__ACTIVATION_RELU:
        return y > 0 ? 1 : 0;
    case OT__ACTIVATION_SCALED_TANH:
        return f->alpha == 0 ? 0 : f->beta * (f->alpha - y * y / f->alpha);
    case OT__ACTIVATION_SIGMOID:
        return y * (1 - y);
    case OT__ACTIVATION_SOFTPLUS:
        return -expm1(-y);
    case OT__ACTIVATION_SOFTSIGN:
        return (1 - fabs(y)) * (1 - fabs(y));
    case OT__ACTIVATION_THRESHOLDED_RELU:
        return y != 0 ? 1 : 0;
    default:
        return 1 - y * y;
    }
}

// The product a (m, k; rows a_row apart) * b (k, n), with y's rows y_row apart.
static ot__gemm product_of(int64_t m, int64_t n, int64_t k, int64_t a_row, int64_t y_row)
{
    return (ot__gemm){.m = m,
                      .n = n,
                      .k = k,
                      .alpha = 1,
                      .a_row = a_row,
                      .a_column = 1,
                      .b_row = n,
                      .b_column = 1,
                      .y_row = y_row};
}

// The same of b^T, b (n, k).
static ot__gemm product_of_b_transposed(int64_t m, int64_t n, int64_t k, int64_t a_row,
                                        int64_t y_row)
{
    ot__gemm g = product_of(m, n, k, a_row, y_row);

    g.b_row = 1;
    g.b_column = k;
    return g;
}

#define TEMPLATE "kernels/recurrent/ref_cells.tmpl.h"
#include "kernels/by_float.tmpl.h"
#define TEMPLATE "kernels/recurrent/ref_recurrent.tmpl.h"
#include "kernels/by_float.tmpl.h"
#define TEMPLATE "kernels/recurrent/ref_recurrent_grad.tmpl.h"
#include "kernels/by_float.tmpl.h"

// Pre-activations of all steps, the bias, states before and after a step, cell state, and a
// product.
int64_t ot__recurrent_scratch(const ot__recurrent *p)
{
    int64_t n = add_product(0, p->steps, p->batch, p->n_gates * p->hidden);

    n = add_product(n, 1, 2, p->n_gates * p->hidden);
    return add_product(n, 4, p->batch, p->hidden);
}

// Gradients of the pre-activations, the states before each step and what multiplies a GRU's third
// part of R, of all steps; gradients of the state and cell state, and two products of one step.
int64_t ot__recurrent_grad_scratch(const ot__recurrent *p)
{
    int64_t n = add_product(0, p->steps, p->batch, p->n_gates * p->hidden);

    for (int i = 0; i < (p->cell == OT__CELL_GRU ? 3 : 1); i++)
        n = add_product(n, p->steps, p->batch, p->hidden);
    n = add_product(n, 3, p->batch, p->hidden);
    return add_product(n, 1, 1, p->hidden);
}
