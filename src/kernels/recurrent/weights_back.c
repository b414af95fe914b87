// SPDX-License-Identifier: Apache-2.0
// Recurrent layers by vector code: gradients of weights and of X, a few steps at a time.
#include <string.h>

#include "kernels/recurrent/back.h"

// y (columns of a, columns of b) [+]= a^T * b, which have k rows
static void multiply_weights(const ot__back_pass *s, int64_t k, float *y, const float *a,
                             int64_t a_row, int64_t m, const float *b, int64_t n)
{
    const ot__wide_product w = {.g = {.m = m,
                                      .n = n,
                                      .k = k,
                                      .alpha = 1,
                                      .a_row = 1,
                                      .a_column = a_row,
                                      .b_row = n,
                                      .b_column = 1,
                                      .y_row = n},
                                .y = y,
                                .a = a,
                                .b = b,
                                .accumulates = s->accumulates};

    ot__wide_multiply(&w, s->by, s->m.for_gemm);
}

static void r_back(const ot__back_pass *s)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, width = p->n_gates * n, k = s->n_steps * p->batch;
    const bool is_gru = p->cell == OT__CELL_GRU;
    float *dr = s->d->dr + s->direction * width * n;

    multiply_weights(s, k, dr, s->m.pre, s->pre_pitch, is_gru ? 2 * n : width, s->m.before, n);
    if (is_gru && p->resets_after)
        multiply_weights(s, k, dr + 2 * n * n, s->m.reset, n, n, s->m.before, n);
    else if (is_gru)
        multiply_weights(s, k, dr + 2 * n * n, s->m.pre + 2 * n, s->pre_pitch, n, s->m.reset, n);
}

typedef struct bias_job {
    const ot__back_pass *s;
    float *y;
    const float *x;
    int64_t x_row;
} bias_job;

static void sum_bias(void *context, int64_t first, int64_t last)
{
    const bias_job *j = context;

    j->s->by->cells->sum_columns(j->y + first, j->x + first, j->x_row,
                                 j->s->n_steps * j->s->p->batch, last - first, j->s->accumulates);
}

static void b_back(const ot__back_pass *s)
{
    enum { COLUMNS_PER_THREAD = 128 };
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, width = p->n_gates * n;
    float *db = s->d->db + s->direction * 2 * width;
    bias_job of_reset = {s, db + width + 2 * n, s->m.reset, n};

    for (int64_t gate = 0; gate < p->n_gates; gate++) {
        bias_job of_gate = {s, db + gate * n, s->m.pre + ot__gate_of(p, gate), s->pre_pitch};

        ot__parallel_for(n, COLUMNS_PER_THREAD, sum_bias, &of_gate);
    }
    memcpy(db + width, db, (size_t)(p->resets_after ? 2 * n : width) * sizeof *db);
    if (p->resets_after)
        ot__parallel_for(n, COLUMNS_PER_THREAD, sum_bias, &of_reset);
}

// dx (m, inputs) [+]= the rows of `pre` * W
static void x_back(const ot__back_pass *s, float *dx, const float *pre, int64_t m)
{
    const ot__recurrent *p = s->p;
    const int64_t width = p->n_gates * p->hidden;
    const ot__wide_product w = {.g = {.m = m,
                                      .n = p->inputs,
                                      .k = width,
                                      .alpha = 1,
                                      .a_row = s->pre_pitch,
                                      .a_column = 1,
                                      .b_row = p->inputs,
                                      .b_column = 1,
                                      .y_row = p->inputs,
                                      .b_type = s->by->w_type},
                                .y = dx,
                                .a = pre,
                                .b = s->d->w,
                                .b_at = s->direction * width * p->inputs,
                                .accumulates = s->direction > 0};

    ot__wide_multiply(&w, s->by, s->m.for_gemm);
}

// dP: of i and f by the cell that the step began with, of o by the one it made.
static void sum_peepholes(void *context, int64_t first, int64_t last)
{
    const ot__back_pass *s = context;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden;
    float *dp = s->d->dp + s->direction * 3 * n;

    for (int64_t k = first; k < last; k++) {
        double sums[3] = {0};

        for (int64_t i = 0; i < s->n_steps * p->batch; i++) {
            const int64_t step = s->first + i / p->batch, row = i % p->batch;
            const float *pre = s->m.pre + i * s->pre_pitch + k;
            const float *c = s->d->cells + ot__kept_row(s, step, row) * n;
            const float *before = ot__state_before(s, s->d->cells, s->d->c0, step, row);

            sums[0] += (double)pre[ot__gate_of(p, 0)] * (double)before[k];
            sums[1] += (double)pre[ot__gate_of(p, 1)] * (double)c[k];
            sums[2] += (double)pre[ot__gate_of(p, 2)] * (double)before[k];
        }
        for (int64_t gate = 0; gate < 3; gate++)
            dp[gate * n + k] =
                s->accumulates ? dp[gate * n + k] + (float)sums[gate] : (float)sums[gate];
    }
}

// dW and dX of rows of X, which `pre` has as many of.
static void input_back(const ot__back_pass *s, const float *x, const float *pre, float *dx,
                       int64_t n_rows)
{
    const ot__recurrent *p = s->p;
    const int64_t width = p->n_gates * p->hidden;

    if (s->d->dw != NULL)
        multiply_weights(s, n_rows, s->d->dw + s->direction * width * p->inputs, pre, s->pre_pitch,
                         width, x, p->inputs);
    if (dx != NULL)
        x_back(s, dx, pre, n_rows);
}

// Gradients of the steps at hand are added to those of the rows of the table that they read.
static void add_to_rows(void *context, int64_t first, int64_t last)
{
    const ot__back_pass *s = context;
    const int64_t n_rows = s->n_steps * s->p->batch, *rows = s->d->rows + s->first * s->p->batch;

    for (int64_t i = 0; i < n_rows; i++) {
        const float *from = s->m.pre + i * s->pre_pitch;
        float *to = s->m.of_rows + rows[i] * s->pre_pitch;

        for (int64_t k = first; k < last; k++)
            to[k] += from[k];
    }
}

void ot__weights_back(ot__back_pass *s)
{
    enum { COLUMNS_PER_THREAD = 64 };
    const ot__recurrent_grad_f32 *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t at = s->first * p->batch * p->inputs;

    if (d->dr != NULL)
        r_back(s);
    if (d->db != NULL)
        b_back(s);
    if (p->table == 0)
        input_back(s, d->x + at, s->m.pre, d->dx == NULL ? NULL : d->dx + at,
                   s->n_steps * p->batch);
    else if (d->dw != NULL || d->dx != NULL)
        ot__parallel_for(p->n_gates * p->hidden, COLUMNS_PER_THREAD, add_to_rows, s);
    if (d->dp != NULL)
        ot__parallel_for(p->hidden, 1, sum_peepholes, s);
}

void ot__table_back(ot__back_pass *s)
{
    s->accumulates = s->d->accumulates;
    input_back(s, s->d->x, s->m.of_rows, s->d->dx, s->p->table);
}
