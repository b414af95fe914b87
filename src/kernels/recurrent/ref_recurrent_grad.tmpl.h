// SPDX-License-Identifier: Apache-2.0
// One element type of ref_recurrent.c: back through time.

// One direction while it goes back.
typedef struct FN(recurrent_back) {
    const FN(ot__recurrent_grad) * d;
    const ot__recurrent *p;
    int direction;
    int64_t step;
    ot__slope slopes[OT__CELL_ACTIVATIONS];
    T *pre;               // gradients of the pre-activations (steps, batch, gates)
    T *before;            // the states that the steps began with (steps, batch, hidden)
    T *reset;             // GRU: r * before; with resets_after the gradient of R's product
    T *linear;            // GRU with resets_after: R's product for h
    T *dh, *dc, *product; // (batch, hidden)
    T *zeros;             // (hidden)
} FN(recurrent_back);

// Where the direction stands in tensors of (steps, directions, batch, width).
static int64_t FN(kept_at)(const FN(recurrent_back) * s, int64_t step, int64_t row)
{
    return (step * s->p->n_directions + s->direction) * s->p->batch + row;
}

// The row of h or c that the step began with, of tensors as `y` and `h0` are.
static const T *FN(row_before)(const FN(recurrent_back) * s, const T *all, const T *first,
                               int64_t step, int64_t row)
{
    const ot__recurrent *p = s->p;
    const int64_t previous = p->reversed[s->direction] ? step + 1 : step - 1;

    if (previous >= 0 && previous < p->steps && is_active(s->d->lengths, row, previous))
        return all + FN(kept_at)(s, previous, row) * p->hidden;
    return first == NULL ? s->zeros : first + (s->direction * p->batch + row) * p->hidden;
}

static void FN(collect_before)(const FN(recurrent_back) * s)
{
    const int64_t n = s->p->hidden;

    for (int64_t i = 0; i < s->p->steps * s->p->batch; i++) {
        const int64_t step = i / s->p->batch, row = i % s->p->batch;
        const T *h = FN(row_before)(s, s->d->y, s->d->h0, step, row);
        const T *r =
            s->d->gates + FN(kept_at)(s, step, row) * s->p->n_gates * n + ot__gate_of(s->p, 1);

        for (int64_t k = 0; k < n; k++)
            s->before[i * n + k] = h[k];
        for (int64_t k = 0; s->p->cell == OT__CELL_GRU && !s->p->resets_after && k < n; k++)
            s->reset[i * n + k] = r[k] * s->before[i * n + k];
    }
}

static FN(ot__cell_row_back) FN(row_back_at)(const FN(recurrent_back) * s, int64_t row)
{
    const FN(ot__recurrent_grad) *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, width = p->n_gates * n;
    const int64_t kept = FN(kept_at)(s, s->step, row), at = s->step * p->batch + row;
    const bool has_cell = p->cell == OT__CELL_LSTM;

    return (FN(ot__cell_row_back)){
        .p = p,
        .slopes = s->slopes,
        .activate = FN(ot__ref_activate),
        .n = n,
        .gates = d->gates + kept * width,
        .c = has_cell ? d->cells + kept * n : NULL,
        .c_before = has_cell ? FN(row_before)(s, d->cells, d->c0, s->step, row) : NULL,
        .h_before = s->before + at * n,
        .peephole = d->p == NULL ? NULL : d->p + s->direction * 3 * n,
        .linear = s->linear + at * n,
        .product = s->product + row * n,
        .pre = s->pre + at * width,
        .dh = s->dh + row * n,
        .dc = s->dc + row * n,
        .reset = s->reset + at * n};
}

static void FN(rows_back)(const FN(recurrent_back) * s)
{
    static void (*const cells[])(const FN(ot__cell_row_back) *) = {[OT__CELL_RNN] = FN(rnn_back),
                                                                   [OT__CELL_GRU] = FN(gru_back),
                                                                   [OT__CELL_LSTM] = FN(lstm_back)};
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, width = p->n_gates * n;

    for (int64_t row = 0; row < p->batch; row++) {
        const FN(ot__cell_row_back) r = FN(row_back_at)(s, row);

        if (!is_active(s->d->lengths, row, s->step)) {
            for (int64_t k = 0; k < width; k++)
                r.pre[k] = 0;
            for (int64_t k = 0; p->resets_after && k < n; k++)
                r.reset[k] = 0;
            continue;
        }
        for (int64_t k = 0; s->d->dy != NULL && k < n; k++)
            r.dh[k] += s->d->dy[FN(kept_at)(s, s->step, row) * n + k];
        cells[p->cell](&r);
    }
}

// y (batch, hidden) [+]= a (batch, n_gates of hidden; rows a_row apart) * r from `gate` on
static void FN(state_product_back)(const FN(recurrent_back) * s, T *y, const T *a, int64_t a_row,
                                   int64_t gate, int64_t n_gates, bool accumulates)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden;
    const int64_t at = (s->direction * p->n_gates + gate) * n * n;
    const ot__gemm g = product_of(p->batch, n, n_gates * n, a_row, n);

    FN(ot__ref_gemm)(y, a, s->d->r + at, NULL, &g, accumulates);
}

static void FN(step_back)(FN(recurrent_back) * s)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, width = p->n_gates * n;
    T *pre = s->pre + s->step * p->batch * width;

    FN(rows_back)(s);
    if (p->cell != OT__CELL_GRU) {
        FN(state_product_back)(s, s->dh, pre, width, 0, p->n_gates, true);
        return;
    }
    if (p->resets_after) {
        FN(state_product_back)(s, s->dh, s->reset + s->step * p->batch * n, n, 2, 1, true);
    } else {
        FN(state_product_back)(s, s->product, pre + 2 * n, width, 2, 1, false);
        for (int64_t row = 0; row < p->batch; row++) {
            const FN(ot__cell_row_back) r = FN(row_back_at)(s, row);

            if (is_active(s->d->lengths, row, s->step))
                FN(reset_back)(&r);
        }
    }
    FN(state_product_back)(s, s->dh, pre, width, 0, 2, true);
}

// y (columns of a, columns of b) = a^T * b over all steps and rows
static void FN(weight_product)(const FN(recurrent_back) * s, T *y, const T *a, int64_t a_row,
                               int64_t m, const T *b, int64_t n)
{
    ot__gemm g = product_of(m, n, s->p->steps * s->p->batch, 1, n);

    g.a_column = a_row;
    FN(ot__ref_gemm)(y, a, b, NULL, &g, s->d->accumulates);
}

// dW and dx [+]= of n rows of X, which `pre` has as many of.
static void FN(input_rows_back)(const FN(recurrent_back) * s, const T *x, const T *pre, T *dx,
                                int64_t n, bool adds_dw, bool adds_dx)
{
    const FN(ot__recurrent_grad) *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t width = p->n_gates * p->hidden, at = s->direction * width * p->inputs;
    const ot__gemm of_x = product_of(n, p->inputs, width, width, p->inputs);
    ot__gemm of_w = product_of(width, p->inputs, n, 1, p->inputs);

    of_w.a_column = width;
    if (d->dw != NULL)
        FN(ot__ref_gemm)(d->dw + at, pre, x, NULL, &of_w, adds_dw);
    if (dx != NULL)
        FN(ot__ref_gemm)(dx, pre, d->w + at, NULL, &of_x, adds_dx);
}

// Of a table row by row, in the order of the steps.
static void FN(input_back)(const FN(recurrent_back) * s)
{
    const FN(ot__recurrent_grad) *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t width = p->n_gates * p->hidden, rows = p->steps * p->batch;
    const int64_t n_dw = p->table > 0 && !d->accumulates && d->dw != NULL ? width * p->inputs : 0;
    const int64_t n_dx = s->direction == 0 && d->dx != NULL ? p->table * p->inputs : 0;

    if (p->table == 0)
        FN(input_rows_back)(s, d->x, s->pre, d->dx, rows, d->accumulates, s->direction > 0);
    for (int64_t k = 0; k < n_dw; k++)
        d->dw[s->direction * n_dw + k] = 0;
    for (int64_t k = 0; k < n_dx; k++)
        d->dx[k] = 0;
    for (int64_t i = 0; p->table > 0 && i < rows; i++) {
        const int64_t at = d->rows[i] * p->inputs;

        FN(input_rows_back)
        (s, d->x + at, s->pre + i * width, d->dx == NULL ? NULL : d->dx + at, 1, true, true);
    }
}

// R's product for h, as resets_after multiplies it by r.
static void FN(make_linear)(const FN(recurrent_back) * s)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, rows = p->steps * p->batch;
    const T *b = s->d->b == NULL ? NULL : s->d->b + s->direction * 6 * n + 5 * n;
    const ot__gemm g = product_of_b_transposed(rows, n, n, n, n);

    for (int64_t i = 0; b != NULL && i < rows; i++)
        for (int64_t k = 0; k < n; k++)
            s->linear[i * n + k] = b[k];
    FN(ot__ref_gemm)
    (s->linear, s->before, s->d->r + (s->direction * 3 + 2) * n * n, NULL, &g, b != NULL);
}

static void FN(weights_back)(const FN(recurrent_back) * s)
{
    const FN(ot__recurrent_grad) *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, width = p->n_gates * n, rows = p->steps * p->batch;
    const bool is_gru = p->cell == OT__CELL_GRU;

    FN(input_back)(s);
    if (d->dr != NULL) {
        T *dr = d->dr + s->direction * width * n;

        FN(weight_product)(s, dr, s->pre, width, is_gru ? 2 * n : width, s->before, n);
        if (is_gru && p->resets_after)
            FN(weight_product)(s, dr + 2 * n * n, s->reset, n, n, s->before, n);
        else if (is_gru)
            FN(weight_product)(s, dr + 2 * n * n, s->pre + 2 * n, width, n, s->reset, n);
    }
    if (d->db != NULL) {
        T *db = d->db + s->direction * 2 * width;

        for (int64_t gate = 0; gate < p->n_gates; gate++)
            FN(sum_columns)
        (db + gate * n, s->pre + ot__gate_of(p, gate), width, rows, n, d->accumulates);
        for (int64_t k = 0; k < (p->resets_after ? 2 * n : width); k++)
            db[width + k] = db[k];
        if (p->resets_after)
            FN(sum_columns)(db + width + 2 * n, s->reset, n, rows, n, d->accumulates);
    }
}

// dP: of i and f by the cell that the step began with, of o by the one it made.
static void FN(peepholes_back)(const FN(recurrent_back) * s)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden;
    T *dp = s->d->dp + s->direction * 3 * n;

    for (int64_t k = 0; k < n; k++) {
        double sums[3] = {0};

        for (int64_t i = 0; i < p->steps * p->batch; i++) {
            const int64_t step = i / p->batch, row = i % p->batch;
            const T *pre = s->pre + i * 4 * n + k, *c = s->d->cells + FN(kept_at)(s, step, row) * n;
            const T *before = FN(row_before)(s, s->d->cells, s->d->c0, step, row);

            sums[0] += (double)pre[ot__gate_of(p, 0)] * (double)before[k];
            sums[1] += (double)pre[ot__gate_of(p, 1)] * (double)c[k];
            sums[2] += (double)pre[ot__gate_of(p, 2)] * (double)before[k];
        }
        for (int64_t gate = 0; gate < 3; gate++)
            dp[gate * n + k] = s->d->accumulates ? dp[gate * n + k] + (T)sums[gate] : (T)sums[gate];
    }
}

static void FN(direction_back)(FN(recurrent_back) * s)
{
    const FN(ot__recurrent_grad) *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, states = p->batch * n, at = s->direction * states;

    FN(collect_before)(s);
    if (p->resets_after)
        FN(make_linear)(s);
    FN(copy_states)(s->dh, n, d->dy_h ? d->dy_h + at : NULL, n, p);
    FN(copy_states)(s->dc, n, d->dy_c ? d->dy_c + at : NULL, n, p);
    for (int64_t i = p->steps - 1; i >= 0; i--) {
        s->step = step_at(p, s->direction, i);
        FN(step_back)(s);
    }
    FN(weights_back)(s);
    if (d->dp != NULL)
        FN(peepholes_back)(s);
    if (d->dh0 != NULL)
        FN(copy_states)(d->dh0 + at, n, s->dh, n, p);
    if (d->dc0 != NULL)
        FN(copy_states)(d->dc0 + at, n, s->dc, n, p);
}

void FN(ot__ref_recurrent_grad)(const FN(ot__recurrent_grad) * d, const ot__recurrent *p)
{
    const int64_t all = p->steps * p->batch * p->hidden, states = p->batch * p->hidden;
    const int64_t n_kept = p->cell == OT__CELL_GRU ? 3 : 1;
    T *before = d->scratch + all * p->n_gates, *dh = before + n_kept * all;

    for (int direction = 0; direction < p->n_directions; direction++) {
        const ot__activation *f = p->activations[direction];
        FN(recurrent_back)
        s = {.d = d,
             .p = p,
             .direction = direction,
             .pre = d->scratch,
             .before = before,
             .reset = before + (n_kept > 1 ? all : 0),
             .linear = before + (n_kept > 1 ? 2 * all : 0),
             .dh = dh,
             .dc = dh + states,
             .product = dh + 2 * states,
             .zeros = dh + 3 * states};

        for (int i = 0; i < OT__CELL_ACTIVATIONS; i++)
            s.slopes[i] = FN(ot__ref_slope)(&f[i], i == 2 ? 0 : p->clip);
        for (int64_t k = 0; k < p->hidden; k++)
            s.zeros[k] = 0;
        FN(direction_back)(&s);
    }
}
