// SPDX-License-Identifier: Apache-2.0
// One element type of ref_recurrent.c: back through time.

// One direction while it goes back.
typedef struct FN(recurrent_back) {
    const FN(ot__recurrent_grad) * d;
    const ot__recurrent *p;
    const FN(ot__recurrent_math) * math;
    int direction;
    int64_t step;
    slope slopes[OT__CELL_ACTIVATIONS];
    T *pre;               // gradients of the pre-activations (steps, batch, gates)
    T *before;            // the states that the steps began with (steps, batch, hidden)
    T *reset;             // GRU: r * before; with resets_after the gradient of R's product
    T *linear;            // GRU with resets_after: R's product for h
    T *dh, *dc, *product; // (batch, hidden)
} FN(recurrent_back);

static slope FN(slope_of)(const ot__activation *f, double clip)
{
    T ends[2] = {(T)clip, (T)-clip};

    FN(ot__ref_activate)(ends, 2, f, clip);
    return (slope){.f = f, .high = (double)ends[0], .low = (double)ends[1], .is_clipped = clip > 0};
}

static T FN(slope_at)(T y, const slope *s)
{
    if (s->is_clipped && ((double)y == s->low || (double)y == s->high))
        return 0;
    return (T)derivative((double)y, s->f);
}

// Where the direction stands in tensors of (steps, directions, batch, width).
static int64_t FN(kept_at)(const FN(recurrent_back) * s, int64_t step, int64_t row)
{
    return (step * s->p->n_directions + s->direction) * s->p->batch + row;
}

// The row of h or c that the step began with, of tensors as `y` and `h0` are; NULL: zeros.
static const T *FN(row_before)(const FN(recurrent_back) * s, const T *all, const T *first,
                               int64_t step, int64_t row)
{
    const ot__recurrent *p = s->p;
    const int64_t previous = p->reversed[s->direction] ? step + 1 : step - 1;

    if (previous >= 0 && previous < p->steps && is_active(s->d->lengths, row, previous))
        return all + FN(kept_at)(s, previous, row) * p->hidden;
    return first == NULL ? NULL : first + (s->direction * p->batch + row) * p->hidden;
}

static void FN(collect_before)(void *context, int64_t first, int64_t last)
{
    const FN(recurrent_back) *s = context;
    const int64_t n = s->p->hidden;

    for (int64_t i = first; i < last; i++) {
        const int64_t step = i / s->p->batch, row = i % s->p->batch;
        const T *h = FN(row_before)(s, s->d->y, s->d->h0, step, row);
        const T *r = s->d->gates + FN(kept_at)(s, step, row) * s->p->n_gates * n + n;

        for (int64_t k = 0; k < n; k++)
            s->before[i * n + k] = h == NULL ? 0 : h[k];
        for (int64_t k = 0; s->p->cell == OT__CELL_GRU && !s->p->resets_after && k < n; k++)
            s->reset[i * n + k] = r[k] * s->before[i * n + k];
    }
}

static void FN(lstm_row_back)(const FN(recurrent_back) * s, const T *gates, T *pre, int64_t row)
{
    const FN(ot__recurrent_grad) *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden;
    const T *c = d->cells + FN(kept_at)(s, s->step, row) * n;
    const T *before = FN(row_before)(s, d->cells, d->c0, s->step, row);
    const T *peephole = d->p == NULL ? NULL : d->p + s->direction * 3 * n;

    for (int64_t k = 0; k < n; k++) {
        const T i = gates[k], o = gates[n + k], f = gates[2 * n + k], g = gates[3 * n + k];
        T hc = c[k], dh = s->dh[row * n + k], dc = s->dc[row * n + k];
        const T c0 = before == NULL ? 0 : before[k];

        s->math->activate(&hc, 1, s->slopes[2].f, 0);
        pre[n + k] = dh * hc * FN(slope_at)(o, &s->slopes[0]);
        dc += dh * o * FN(slope_at)(hc, &s->slopes[2]);
        if (peephole != NULL)
            dc += pre[n + k] * peephole[n + k];
        pre[k] = (dc * g - (p->couples ? dc * c0 : 0)) * FN(slope_at)(i, &s->slopes[0]);
        pre[2 * n + k] = p->couples ? 0 : dc * c0 * FN(slope_at)(f, &s->slopes[0]);
        pre[3 * n + k] = dc * i * FN(slope_at)(g, &s->slopes[1]);
        dc *= f;
        if (peephole != NULL)
            dc += pre[k] * peephole[k] + pre[2 * n + k] * peephole[2 * n + k];
        s->dc[row * n + k] = dc;
        s->dh[row * n + k] = 0;
    }
}

// r and its gradient wait for R's product, unless that is there.
static void FN(gru_row_back)(const FN(recurrent_back) * s, const T *gates, T *pre, int64_t row)
{
    const int64_t n = s->p->hidden, at = (s->step * s->p->batch + row) * n;

    for (int64_t k = 0; k < n; k++) {
        const T z = gates[k], r = gates[n + k], h = gates[2 * n + k], dh = s->dh[row * n + k];

        pre[k] = dh * (s->before[at + k] - h) * FN(slope_at)(z, &s->slopes[0]);
        pre[2 * n + k] = dh * (1 - z) * FN(slope_at)(h, &s->slopes[1]);
        s->dh[row * n + k] = dh * z;
        if (s->p->resets_after) {
            pre[n + k] = pre[2 * n + k] * s->linear[at + k] * FN(slope_at)(r, &s->slopes[0]);
            s->reset[at + k] = pre[2 * n + k] * r;
        }
    }
}

static void FN(rows_back)(void *context, int64_t first, int64_t last)
{
    const FN(recurrent_back) *s = context;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, width = p->n_gates * n;

    for (int64_t row = first; row < last; row++) {
        const int64_t kept = FN(kept_at)(s, s->step, row), at = s->step * p->batch + row;
        const T *gates = s->d->gates + kept * width;
        T *pre = s->pre + at * width, *dh = s->dh + row * n;

        if (!is_active(s->d->lengths, row, s->step)) {
            for (int64_t k = 0; k < width; k++)
                pre[k] = 0;
            for (int64_t k = 0; p->resets_after && k < n; k++)
                s->reset[at * n + k] = 0;
            continue;
        }
        for (int64_t k = 0; s->d->dy != NULL && k < n; k++)
            dh[k] += s->d->dy[kept * n + k];
        if (p->cell == OT__CELL_LSTM) {
            FN(lstm_row_back)(s, gates, pre, row);
        } else if (p->cell == OT__CELL_GRU) {
            FN(gru_row_back)(s, gates, pre, row);
        } else {
            for (int64_t k = 0; k < n; k++) {
                pre[k] = dh[k] * FN(slope_at)(gates[k], &s->slopes[0]);
                dh[k] = 0;
            }
        }
    }
}

// The product is the gradient of r * before.
static void FN(reset_rows_back)(void *context, int64_t first, int64_t last)
{
    const FN(recurrent_back) *s = context;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, width = p->n_gates * n;

    for (int64_t row = first; row < last; row++) {
        const int64_t at = s->step * p->batch + row;
        const T *r = s->d->gates + FN(kept_at)(s, s->step, row) * width + n;

        for (int64_t k = 0; k < n; k++) {
            const T product = s->product[row * n + k];

            s->pre[at * width + n + k] =
                product * s->before[at * n + k] * FN(slope_at)(r[k], &s->slopes[0]);
            s->dh[row * n + k] += product * r[k];
        }
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

    s->math->product(s->math->context, y, a, s->d->r, at, accumulates, &g);
}

static void FN(step_back)(FN(recurrent_back) * s)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, width = p->n_gates * n, grain = rows_per_thread(p);
    T *pre = s->pre + s->step * p->batch * width;

    ot__parallel_for(p->batch, grain, FN(rows_back), s);
    if (p->cell != OT__CELL_GRU) {
        FN(state_product_back)(s, s->dh, pre, width, 0, p->n_gates, true);
        return;
    }
    if (p->resets_after) {
        FN(state_product_back)(s, s->dh, s->reset + s->step * p->batch * n, n, 2, 1, true);
    } else {
        FN(state_product_back)(s, s->product, pre + 2 * n, width, 2, 1, false);
        ot__parallel_for(p->batch, grain, FN(reset_rows_back), s);
    }
    FN(state_product_back)(s, s->dh, pre, width, 0, 2, true);
}

// y (columns of a, columns of b) = a^T * b over all steps and rows
static void FN(weight_product)(const FN(recurrent_back) * s, T *y, const T *a, int64_t a_row,
                               int64_t m, const T *b, int64_t n)
{
    ot__gemm g = product_of(m, n, s->p->steps * s->p->batch, 1, n);

    g.a_column = a_row;
    s->math->product(s->math->context, y, a, b, 0, s->d->accumulates, &g);
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
    s->math->product(s->math->context, s->linear, s->before, s->d->r,
                     (s->direction * 3 + 2) * n * n, b != NULL, &g);
}

static void FN(sum_columns)(T *y, const T *x, int64_t x_row, int64_t rows, int64_t columns,
                            bool accumulates)
{
    enum { BLOCK = 64 };

    for (int64_t first = 0; first < columns; first += BLOCK) {
        const int64_t n = OT_MIN(columns - first, (int64_t)BLOCK);
        double sum[BLOCK] = {0};

        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = 0; k < n; k++)
                sum[k] += (double)x[i * x_row + first + k];
        for (int64_t k = 0; k < n; k++)
            y[first + k] = accumulates ? y[first + k] + (T)sum[k] : (T)sum[k];
    }
}

static void FN(weights_back)(const FN(recurrent_back) * s)
{
    const FN(ot__recurrent_grad) *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, width = p->n_gates * n, rows = p->steps * p->batch;
    const bool is_gru = p->cell == OT__CELL_GRU;

    if (d->dw != NULL)
        FN(weight_product)
    (s, d->dw + s->direction * width * p->inputs, s->pre, width, width, d->x, p->inputs);
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

        FN(sum_columns)(db, s->pre, width, rows, width, d->accumulates);
        for (int64_t k = 0; k < (p->resets_after ? 2 * n : width); k++)
            db[width + k] = db[k];
        if (p->resets_after)
            FN(sum_columns)(db + width + 2 * n, s->reset, n, rows, n, d->accumulates);
    }
    if (d->dx != NULL) {
        const ot__gemm g = product_of(rows, p->inputs, width, width, p->inputs);

        s->math->product(s->math->context, d->dx, s->pre, d->w, s->direction * width * p->inputs,
                         s->direction > 0, &g);
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
            const T *pre = s->pre + i * 4 * n, *c = s->d->cells + FN(kept_at)(s, step, row) * n;
            const T *before = FN(row_before)(s, s->d->cells, s->d->c0, step, row);

            sums[0] += before == NULL ? 0 : (double)pre[k] * (double)before[k];
            sums[1] += (double)pre[n + k] * (double)c[k];
            sums[2] += before == NULL ? 0 : (double)pre[2 * n + k] * (double)before[k];
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

    ot__parallel_for(p->steps * p->batch, rows_per_thread(p), FN(collect_before), s);
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

void FN(ot__ref_recurrent_grad)(const FN(ot__recurrent_grad) * d, const ot__recurrent *p,
                                const FN(ot__recurrent_math) * math)
{
    const int64_t all = p->steps * p->batch * p->hidden, states = p->batch * p->hidden;
    const int64_t n_kept = p->cell == OT__CELL_GRU ? 3 : 1;
    T *before = d->scratch + all * p->n_gates, *dh = before + n_kept * all;

    for (int direction = 0; direction < p->n_directions; direction++) {
        const ot__activation *f = p->activations[direction];
        FN(recurrent_back)
        s = {.d = d,
             .p = p,
             .math = math,
             .direction = direction,
             .pre = d->scratch,
             .before = before,
             .reset = before + (n_kept > 1 ? all : 0),
             .linear = before + (n_kept > 1 ? 2 * all : 0),
             .dh = dh,
             .dc = dh + states,
             .product = dh + 2 * states};

        for (int i = 0; i < OT__CELL_ACTIVATIONS; i++)
            s.slopes[i] = FN(slope_of)(&f[i], i == 2 ? 0 : p->clip);
        FN(direction_back)(&s);
    }
}
