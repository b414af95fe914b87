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

    if (a->ndim == 0 || b->ndim == 0) {
        ot_infer_fail(c, "A and B must have at least one axis, got %d and %d", a->ndim, b->ndim);
        return false;
    }
    ma = matrix_of(a, a_transposed, true);
    mb = matrix_of(b, b_transposed, false);
    if (ot_dim_is_number(ma.columns) && ot_dim_is_number(mb.rows) && ma.columns != mb.rows) {
        ot_infer_fail(c, "inner dimensions differ: A has %" PRId64 ", B has %" PRId64, ma.columns,
                      mb.rows);
        return false;
    }
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

// Where the operands of one batch begin, in elements.
static void batch_at(const ot__product *p, int64_t batch, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int i = p->n_batch_axes - 1; i >= 0; i--) {
        *a += batch % p->batch_dim[i] * p->a_stride[i];
        *b += batch % p->batch_dim[i] * p->b_stride[i];
        batch /= p->batch_dim[i];
    }
}

void ot__product_compute_ref(const ot__product *p, const ot_run *r, void *y, const void *c)
{
    const ot_arg *a = r->in[0], *b = r->in[1];
    const size_t size = ot_dtype_size(a->dtype);

    for (int64_t batch = 0; batch < p->n_batches; batch++) {
        int64_t a_at, b_at;

        batch_at(p, batch, &a_at, &b_at);
        void *yb = (char *)y + (size_t)(batch * p->y_stride) * size;
        const void *ab = (const char *)a->data + (size_t)a_at * size;
        const void *bb = (const char *)b->data + (size_t)b_at * size;
        if (a->dtype == OT_F32)
            ot__ref_gemm_f32(yb, ab, bb, c, &p->gemm, r->adds != 0);
        else
            ot__ref_gemm_f64(yb, ab, bb, c, &p->gemm, r->adds != 0);
    }
}

static const void *addend(const ot_run *r)
{
    return r->n_in > 2 && r->in[2] != NULL ? r->in[2]->data : NULL;
}

ot_status ot__product_run_ref(const ot_run *r)
{
    ot__product_compute_ref(r->state, r, r->out[0]->data, addend(r));
    return OT_OK;
}

// ---- vector code ----

bool ot__product_can_simd(const ot_prep *p)
{
    const ot_arg *a = ot_prep_in(p, 0), *b = ot_prep_in(p, 1);

    return a->dtype == OT_F32 && a->count > 0 && b->count > 0;
}

ot_status ot__product_prepare_simd(ot_prep *p, ot__product *product)
{
    const int n_threads = ot_prep_threads(p);

    product->kernel = ot__gemm_kernel_best();
    // Whole products are shared out before parts of one.
    ot__gemm_plan_make(&product->plan, product->kernel, &product->gemm,
                       product->n_batches >= n_threads ? 1 : n_threads);
    ot_prep_scratch(p, product->plan.scratch_bytes * (size_t)n_threads);
    return OT_OK;
}

typedef struct batches {
    const ot__product *product;
    const ot__gemm_data *first; // of batch 0
} batches;

static void batch_data(const void *context, int64_t batch, ot__gemm_data *data)
{
    const batches *all = context;
    int64_t a, b;

    batch_at(all->product, batch, &a, &b);
    *data = *all->first;
    data->y += batch * all->product->y_stride;
    data->a += a;
    data->b += b;
    if (data->epilogue.other != NULL)
        data->epilogue.other += batch * all->product->y_stride;
}

void ot__product_compute_simd(const ot__product *p, const ot_run *r, ot__gemm_data *first)
{
    const batches all = {p, first};

    first->a = r->in[0]->data;
    first->b = r->in[1]->data;
    first->adds = r->adds != 0;
    ot__gemm_run(p->kernel, &p->plan,
                 &(ot__gemm_batches){.n_batches = p->n_batches, .at = batch_data, .context = &all},
                 r->scratch, r->n_threads);
}

ot_status ot__product_run_simd(const ot_run *r)
{
    ot__product_compute_simd(r->state, r, &(ot__gemm_data){.y = r->out[0]->data, .c = addend(r)});
    return OT_OK;
}
