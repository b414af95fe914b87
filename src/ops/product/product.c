// SPDX-License-Identifier: Apache-2.0
#include "ops/product/product.h"

// A vector counts as a row on the left, as a column on the right.
typedef struct matrix {
    int64_t rows, columns;
    int n_batch_axes;
} matrix;

static matrix matrix_of(const ot_shape *x, bool transposed, bool is_left)
{
    const int n = x->ndim;
    matrix m = {.n_batch_axes = OT_MAX(n - 2, 0)};

    if (n == 1) {
        m.rows = is_left ? 1 : x->dim[0];
        m.columns = is_left ? x->dim[0] : 1;
    } else {
        m.rows = x->dim[transposed ? n - 1 : n - 2];
        m.columns = x->dim[transposed ? n - 2 : n - 1];
    }
    return m;
}

bool ot__product_shape(ot_infer *c, const ot_shape *a, const ot_shape *b, bool a_transposed,
                       bool b_transposed, ot_shape *y)
{
    matrix ma, mb;
    ot_shape a_batch = *a, b_batch = *b;

    if (a->ndim == 0 || b->ndim == 0)
        return ot__refuse(c, "A and B must have at least one axis, got %d and %d", a->ndim,
                          b->ndim);
    ma = matrix_of(a, a_transposed, true);
    mb = matrix_of(b, b_transposed, false);
    if (ot__dim_differs(ma.columns, mb.rows))
        return ot__refuse(c, "inner dimensions differ: A has %" PRId64 ", B has %" PRId64,
                          ma.columns, mb.rows);
    a_batch.ndim = ma.n_batch_axes;
    b_batch.ndim = mb.n_batch_axes;
    if (!ot_infer_broadcast(c, &a_batch, &b_batch, y))
        return false;
    if (a->ndim > 1)
        y->dim[y->ndim++] = ma.rows;
    if (b->ndim > 1)
        y->dim[y->ndim++] = mb.columns;
    return true;
}

void ot__product_plan(ot__product *p, const ot_shape *a, const ot_shape *b, bool a_transposed,
                      bool b_transposed, double alpha)
{
    matrix ma = matrix_of(a, a_transposed, true);
    const matrix mb = matrix_of(b, b_transposed, false);
    ot_shape a_batch = *a, b_batch = *b, y_batch = {0};

    // The batches of A share B: their rows are those of one product.
    if (mb.n_batch_axes == 0 && !a_transposed)
        for (; ma.n_batch_axes > 0; ma.n_batch_axes--)
            ma.rows *= a->dim[ma.n_batch_axes - 1];
    a_batch.ndim = ma.n_batch_axes;
    b_batch.ndim = mb.n_batch_axes;
    (void)ot__shape_broadcast(&a_batch, &b_batch, &y_batch); // inference has seen that they fit
    *p = (ot__product){.gemm = {.m = ma.rows,
                                .n = mb.columns,
                                .k = ma.columns,
                                .alpha = alpha,
                                .a_row = a_transposed ? 1 : ma.columns,
                                .a_column = a_transposed ? ma.rows : 1,
                                .b_row = b_transposed ? 1 : mb.columns,
                                .b_column = b_transposed ? mb.rows : 1,
                                .y_row = mb.columns},
                       .n_batch_axes = y_batch.ndim,
                       .n_batches = 1,
                       .y_stride = ma.rows * mb.columns};
    ot__broadcast_strides(&a_batch, &y_batch, p->a_stride);
    ot__broadcast_strides(&b_batch, &y_batch, p->b_stride);
    for (int i = 0; i < y_batch.ndim; i++) {
        p->batch_dim[i] = y_batch.dim[i];
        p->n_batches *= y_batch.dim[i];
        p->a_stride[i] *= ma.rows * ma.columns;
        p->b_stride[i] *= mb.rows * mb.columns;
    }
}

void ot__product_batch_at(const ot__product *p, int64_t batch, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int i = p->n_batch_axes - 1; i >= 0; i--) {
        *a += batch % p->batch_dim[i] * p->a_stride[i];
        *b += batch % p->batch_dim[i] * p->b_stride[i];
        batch /= p->batch_dim[i];
    }
}
