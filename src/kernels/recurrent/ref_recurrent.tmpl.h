// SPDX-License-Identifier: Apache-2.0
// One element type of ref_recurrent.c: forward.

// y = f(y), the input cut to -clip .. clip.
static void FN(ot__ref_activate)(T *y, int64_t n, const ot__activation *f, double clip)
{
    for (int64_t k = 0; k < n; k++)
        y[k] = (T)activated(clipped((double)y[k], clip), f);
}

static void FN(recurrent_product)(const void *context, T *y, const T *a, const T *b, int64_t b_at,
                                  bool accumulates, const ot__gemm *g)
{
    (void)context;
    FN(ot__ref_gemm)(y, a, b + b_at, NULL, g, accumulates);
}

const FN(ot__recurrent_math) FN(ot__ref_recurrent_math) = {.product = FN(recurrent_product),
                                                           .activate = FN(ot__ref_activate)};

// One direction while it runs.
typedef struct FN(recurrent_pass) {
    const FN(ot__recurrent_data) * d;
    const ot__recurrent *p;
    const FN(ot__recurrent_math) * math;
    int direction;
    int64_t step;
    const T *peephole;   // of this direction
    const T *reset_bias; // GRU with resets_after: R's bias of h; may be NULL
    T *pre;              // (steps, batch, gates), by x's order of rows
    T *h, *c, *product;  // (batch, hidden)
} FN(recurrent_pass);

static T *FN(pre_at)(const FN(recurrent_pass) * s, int64_t step, int64_t row)
{
    const ot__recurrent *p = s->p;
    const int64_t index = p->x_step > p->x_row ? step * p->batch + row : row * p->steps + step;

    return s->pre + index * p->n_gates * p->hidden;
}

static int64_t FN(pre_row)(const ot__recurrent *p)
{
    return (p->x_step > p->x_row ? 1 : p->steps) * p->n_gates * p->hidden;
}

static void FN(lstm_row)(const FN(recurrent_pass) * s, T *gates, T *h, T *c)
{
    const ot__recurrent *p = s->p;
    const ot__activation *f = p->activations[s->direction];
    const int64_t n = p->hidden;
    const T *peephole = s->peephole;
    T *i = gates, *o = gates + n, *forget = gates + 2 * n, *g = gates + 3 * n;

    for (int64_t k = 0; peephole != NULL && k < n; k++) {
        i[k] += peephole[k] * c[k];
        forget[k] += peephole[2 * n + k] * c[k];
    }
    s->math->activate(i, n, &f[0], p->clip);
    if (!p->couples)
        s->math->activate(forget, n, &f[0], p->clip);
    s->math->activate(g, n, &f[1], p->clip);
    for (int64_t k = 0; k < n; k++) {
        if (p->couples)
            forget[k] = 1 - i[k];
        h[k] = c[k] = forget[k] * c[k] + i[k] * g[k];
        if (peephole != NULL)
            o[k] += peephole[n + k] * c[k];
    }
    s->math->activate(o, n, &f[0], p->clip);
    s->math->activate(h, n, &f[2], 0);
    for (int64_t k = 0; k < n; k++)
        h[k] *= o[k];
}

// h of a GRU, when z, r and the candidate are there.
static void FN(gru_row)(const FN(recurrent_pass) * s, T *gates, T *h)
{
    const int64_t n = s->p->hidden;
    const T *z = gates, *candidate = gates + 2 * n;

    s->math->activate(gates + 2 * n, n, &s->p->activations[s->direction][1], s->p->clip);
    for (int64_t k = 0; k < n; k++)
        h[k] = (1 - z[k]) * candidate[k] + z[k] * h[k];
}

static void FN(keep_row)(const FN(recurrent_pass) * s, int64_t row, bool active)
{
    const FN(ot__recurrent_data) *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, width = p->n_gates * n;
    const int64_t kept = (s->step * p->n_directions + s->direction) * p->batch + row;
    const T *gates = FN(pre_at)(s, s->step, row);

    for (int64_t k = 0; d->gates != NULL && k < width; k++)
        d->gates[kept * width + k] = active ? gates[k] : 0;
    for (int64_t k = 0; d->cells != NULL && k < n; k++)
        d->cells[kept * n + k] = active ? s->c[row * n + k] : 0;
    if (d->y != NULL) {
        T *y = d->y + s->step * p->y_step + s->direction * p->y_direction + row * p->y_row;
        for (int64_t k = 0; k < n; k++)
            y[k] = active ? s->h[row * n + k] : 0;
    }
}

static void FN(step_rows)(void *context, int64_t first, int64_t last)
{
    const FN(recurrent_pass) *s = context;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden;

    for (int64_t row = first; row < last; row++) {
        const bool active = is_active(s->d->lengths, row, s->step);
        T *gates = FN(pre_at)(s, s->step, row), *h = s->h + row * n;

        if (active && p->cell == OT__CELL_LSTM) {
            FN(lstm_row)(s, gates, h, s->c + row * n);
        } else if (active && p->cell == OT__CELL_GRU) {
            FN(gru_row)(s, gates, h);
        } else if (active) {
            s->math->activate(gates, n, &p->activations[s->direction][0], p->clip);
            for (int64_t k = 0; k < n; k++)
                h[k] = gates[k];
        }
        FN(keep_row)(s, row, active);
    }
}

// z and r, and what the third part of R is multiplied by or the product is: r * h, or r times the
// product that is there.
static void FN(reset_rows)(void *context, int64_t first, int64_t last)
{
    const FN(recurrent_pass) *s = context;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden;

    for (int64_t row = first; row < last; row++) {
        T *gates = FN(pre_at)(s, s->step, row), *product = s->product + row * n;
        const T *r = gates + n, *h = s->h + row * n;

        s->math->activate(gates, 2 * n, &p->activations[s->direction][0], p->clip);
        for (int64_t k = 0; k < n; k++) {
            if (p->resets_after)
                gates[2 * n + k] += r[k] * (product[k] + (s->reset_bias ? s->reset_bias[k] : 0));
            else
                product[k] = r[k] * h[k];
        }
    }
}

// y (batch, parts of the gates; rows y_row apart) [+]= a * r^T from `gate` on
static void FN(state_product)(const FN(recurrent_pass) * s, T *y, int64_t y_row, const T *a,
                              int64_t gate, int64_t n_gates, bool accumulates)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden;
    const int64_t at = (s->direction * p->n_gates + gate) * n * n;
    const ot__gemm g = product_of_b_transposed(p->batch, n_gates * n, n, n, y_row);

    s->math->product(s->math->context, y, a, s->d->r, at, accumulates, &g);
}

static void FN(recurrent_step)(FN(recurrent_pass) * s)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, row = FN(pre_row)(p), grain = rows_per_thread(p);
    T *pre = FN(pre_at)(s, s->step, 0);

    if (p->cell != OT__CELL_GRU) {
        FN(state_product)(s, pre, row, s->h, 0, p->n_gates, true);
    } else {
        FN(state_product)(s, pre, row, s->h, 0, 2, true);
        if (p->resets_after)
            FN(state_product)(s, s->product, n, s->h, 2, 1, false);
        ot__parallel_for(p->batch, grain, FN(reset_rows), s);
        if (!p->resets_after)
            FN(state_product)(s, pre + 2 * n, row, s->product, 2, 1, true);
    }
    ot__parallel_for(p->batch, grain, FN(step_rows), s);
}

// Every row of `pre` begins as the bias; the product with X is added.
static void FN(input_product)(const FN(recurrent_pass) * s, T *bias)
{
    const FN(ot__recurrent_data) *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t width = p->n_gates * p->hidden, rows = p->steps * p->batch;
    const T *b = d->b == NULL ? NULL : d->b + s->direction * 2 * width;
    const ot__gemm g = product_of_b_transposed(rows, width, p->inputs, p->inputs, width);

    for (int64_t k = 0; b != NULL && k < width; k++) {
        const bool is_apart = p->resets_after && k >= 2 * p->hidden;
        bias[k] = b[k] + (is_apart ? 0 : b[width + k]);
    }
    for (int64_t i = 0; b != NULL && i < rows; i++)
        for (int64_t k = 0; k < width; k++)
            s->pre[i * width + k] = bias[k];
    s->math->product(s->math->context, s->pre, d->x, d->w, s->direction * width * p->inputs,
                     b != NULL, &g);
}

static void FN(copy_states)(T *to, int64_t to_row, const T *from, int64_t from_row,
                            const ot__recurrent *p)
{
    for (int64_t row = 0; row < p->batch; row++)
        for (int64_t k = 0; k < p->hidden; k++)
            to[row * to_row + k] = from == NULL ? 0 : from[row * from_row + k];
}

void FN(ot__ref_recurrent)(const FN(ot__recurrent_data) * d, const ot__recurrent *p,
                           const FN(ot__recurrent_math) * math)
{
    const int64_t n = p->hidden, width = p->n_gates * n, states = p->batch * n;
    T *pre = d->scratch, *bias = pre + p->steps * p->batch * width, *h = bias + 2 * width;

    for (int direction = 0; direction < p->n_directions; direction++) {
        const int64_t at = direction * p->state_direction;
        const T *b = d->b == NULL ? NULL : d->b + (direction * 2 + 1) * width + 2 * n;
        FN(recurrent_pass)
        s = {.d = d,
             .p = p,
             .math = math,
             .direction = direction,
             .peephole = d->p == NULL ? NULL : d->p + direction * 3 * n,
             .reset_bias = p->resets_after ? b : NULL,
             .pre = pre,
             .h = h,
             .c = h + states,
             .product = h + 2 * states};

        FN(input_product)(&s, bias);
        FN(copy_states)(s.h, n, d->h0 ? d->h0 + at : NULL, p->state_row, p);
        FN(copy_states)(s.c, n, d->c0 ? d->c0 + at : NULL, p->state_row, p);
        for (int64_t i = 0; i < p->steps; i++) {
            s.step = step_at(p, direction, i);
            FN(recurrent_step)(&s);
        }
        if (d->y_h != NULL)
            FN(copy_states)(d->y_h + at, p->state_row, s.h, n, p);
        if (d->y_c != NULL)
            FN(copy_states)(d->y_c + at, p->state_row, s.c, n, p);
    }
}
