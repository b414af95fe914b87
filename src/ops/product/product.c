// SPDX-License-Identifier: Apache-2.0
#include "ops/product/product.h"

ot__product_operand ot__product_operand_of(const ot_node *node, int i, const ot_shape *shape)
{
    static const char *const transposed[] = {"transA", "transB"};
    static const char *const across[] = {"transBatchA", "transBatchB"};

    return (ot__product_operand){shape, ot_attr_int(node, transposed[i]) != 0,
                                 shape->ndim > 2 && ot_attr_int(node, across[i]) != 0};
}

// A vector counts as a row on the left, as a column on the right.
typedef struct matrix {
    int64_t rows, columns;
    int64_t row, column; // elements from one to the next, where all extents are numbers
    ot_shape batch;
    int64_t between; // elements from batch to batch
} matrix;

static void exchange_extents(int64_t *a, int64_t *b)
{
    const int64_t kept = *a;

    *a = *b;
    *b = kept;
}

static matrix matrix_of(const ot__product_operand *x, bool is_left)
{
    const int64_t *dim = x->shape->dim;
    const int n = x->shape->ndim, at = x->is_across ? 0 : n - 2;
    matrix m = {.rows = 1, .columns = 1, .row = 1, .column = 1};

    if (n == 1) {
        *(is_left ? &m.columns : &m.rows) = dim[0];
        return m;
    }
    m.rows = dim[at];
    m.columns = dim[n - 1];
    m.batch.ndim = n - 2;
    for (int k = 0; k < n - 2; k++)
        m.batch.dim[k] = dim[k + (at == 0)];
    if (x->is_transposed)
        exchange_extents(&m.rows, &m.columns);
    return m;
}

// The same of concrete shapes.
static matrix lay_matrix(const ot__product_operand *x, bool is_left)
{
    matrix m = matrix_of(x, is_left);
    const int n = x->shape->ndim;
    const int64_t columns = n > 1 ? x->shape->dim[n - 1] : m.columns;

    m.row = columns;
    m.between = m.rows * m.columns;
    if (x->is_across) {
        m.between = columns;
        for (int k = 0; k < m.batch.ndim; k++)
            m.row *= m.batch.dim[k];
    }
    if (x->is_transposed && n > 1)
        exchange_extents(&m.row, &m.column);
    return m;
}

bool ot__product_shape(ot_infer *c, const ot__product_operand *a, const ot__product_operand *b,
                       ot_shape *y)
{
    matrix ma, mb;

    if (a->shape->ndim == 0 || b->shape->ndim == 0)
        return ot__refuse(c, "A and B must have at least one axis, got %d and %d", a->shape->ndim,
                          b->shape->ndim);
    ma = matrix_of(a, true);
    mb = matrix_of(b, false);
    if (ot__dim_differs(ma.columns, mb.rows))
        return ot__refuse(c, "inner dimensions differ: A has %" PRId64 ", B has %" PRId64,
                          ma.columns, mb.rows);
    if (!ot_infer_broadcast(c, &ma.batch, &mb.batch, y))
        return false;
    if (a->shape->ndim > 1)
        y->dim[y->ndim++] = ma.rows;
    if (b->shape->ndim > 1)
        y->dim[y->ndim++] = mb.columns;
    return true;
}

void ot__product_plan(ot__product *p, const ot__product_operand *a, const ot__product_operand *b,
                      double alpha)
{
    matrix ma = lay_matrix(a, true);
    const matrix mb = lay_matrix(b, false);
    ot_shape y_batch = {0};

    // The batches of A share B: their rows are those of one product.
    if (mb.batch.ndim == 0 && !a->is_transposed && !a->is_across)
        while (ma.batch.ndim > 0)
            ma.rows *= ma.batch.dim[--ma.batch.ndim];
    (void)ot__shape_broadcast(&ma.batch, &mb.batch, &y_batch); // inference has seen that they fit
    *p = (ot__product){.gemm = {.m = ma.rows,
                                .n = mb.columns,
                                .k = ma.columns,
                                .alpha = alpha,
                                .a_row = ma.row,
                                .a_column = ma.column,
                                .b_row = mb.row,
                                .b_column = mb.column,
                                .y_row = mb.columns},
                       .n_batch_axes = y_batch.ndim,
                       .n_batches = 1,
                       .y_stride = ma.rows * mb.columns};
    ot__broadcast_strides(&ma.batch, &y_batch, p->a_stride);
    ot__broadcast_strides(&mb.batch, &y_batch, p->b_stride);
    for (int i = 0; i < y_batch.ndim; i++) {
        p->batch_dim[i] = y_batch.dim[i];
        p->n_batches *= y_batch.dim[i];
        p->a_stride[i] *= ma.between;
        p->b_stride[i] *= mb.between;
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
