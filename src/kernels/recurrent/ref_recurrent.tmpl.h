// SPDX-License-Identifier: Apache-2.0
// One element type of ref_recurrent.c: forward.

// Of one direction; R's of the candidate stands apart where r multiplies it.
void FN(ot__ref_join_bias)(T *bias, const T *b, const ot__recurrent *p)
{
    const int64_t n = p->hidden;

    for (int64_t gate = 0; gate < p->n_gates; gate++)
        for (int64_t k = 0; k < n; k++)
            bias[ot__gate_of(p, gate) + k] =
                b[gate * n + k] +
                (p->resets_after && gate == 2 ? 0 : b[(p->n_gates + gate) * n + k]);
}

// One direction while it runs.
typedef struct FN(recurrent_pass) {
    const FN(ot__recurrent_data) * d;
    const ot__recurrent *p;
    int direction;
    int64_t step;
    const T *bias, *peephole;      // of this direction; may be NULL
    const T *reset_bias;           // GRU with resets_after: R's bias of h; may be NULL
    T *pre;                        // (steps, batch, gates), by x's order of rows
    T *h_before, *h, *c, *product; // (batch, hidden)
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

static FN(ot__cell_row) FN(row_at)(const FN(recurrent_pass) * s, int64_t row)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden;

    return (FN(ot__cell_row)){.p = p,
                              .f = p->activations[s->direction],
                              .activate = FN(ot__ref_activate),
                              .n = n,
                              .gates = FN(pre_at)(s, s->step, row),
                              .bias = s->bias,
                              .h_before = s->h_before + row * n,
                              .peephole = s->peephole,
                              .reset_bias = s->reset_bias,
                              .h = s->h + row * n,
                              .c = s->c + row * n,
                              .product = s->product + row * n};
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

static void FN(step_rows)(const FN(recurrent_pass) * s)
{
    static void (*const cells[])(const FN(ot__cell_row) *) = {
        [OT__CELL_RNN] = FN(rnn), [OT__CELL_GRU] = FN(gru), [OT__CELL_LSTM] = FN(lstm)};
    const int64_t n = s->p->hidden;

    for (int64_t row = 0; row < s->p->batch; row++) {
        const bool active = is_active(s->d->lengths, row, s->step);
        const FN(ot__cell_row) r = FN(row_at)(s, row);

        if (active)
            cells[s->p->cell](&r);
        for (int64_t k = 0; !active && k < n; k++)
            r.h[k] = r.h_before[k];
        FN(keep_row)(s, row, active);
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

    FN(ot__ref_gemm)(y, a, s->d->r + at, NULL, &g, accumulates);
}

static void FN(recurrent_step)(FN(recurrent_pass) * s)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, row = FN(pre_row)(p);
    T *pre = FN(pre_at)(s, s->step, 0), *h = s->h;

    s->h = s->h_before;
    s->h_before = h;
    if (p->cell != OT__CELL_GRU) {
        FN(state_product)(s, pre, row, h, 0, p->n_gates, true);
    } else {
        FN(state_product)(s, pre, row, h, 0, 2, true);
        if (p->resets_after)
            FN(state_product)(s, s->product, n, h, 2, 1, false);
        for (int64_t i = 0; i < p->batch; i++) {
            const FN(ot__cell_row) r = FN(row_at)(s, i);

            FN(reset)(&r);
        }
        if (!p->resets_after)
            FN(state_product)(s, pre + 2 * n, row, s->product, 2, 1, true);
    }
    FN(step_rows)(s);
}

static void FN(input_product)(const FN(recurrent_pass) * s)
{
    const ot__recurrent *p = s->p;
    const int64_t width = p->n_gates * p->hidden, rows = p->steps * p->batch;
    const T *w = s->d->w + s->direction * width * p->inputs;
    const int64_t n_at_once = p->table > 0 ? 1 : rows; // those of a table need not be neighbours
    const ot__gemm g = product_of_b_transposed(n_at_once, width, p->inputs, p->inputs, width);

    for (int64_t i = 0; i < rows; i += n_at_once)
        FN(ot__ref_gemm)
    (s->pre + i * width, s->d->x + (p->table > 0 ? s->d->rows[i] : i) * p->inputs, w, NULL, &g,
     false);
}

static void FN(copy_states)(T *to, int64_t to_row, const T *from, int64_t from_row,
                            const ot__recurrent *p)
{
    for (int64_t row = 0; row < p->batch; row++)
        for (int64_t k = 0; k < p->hidden; k++)
            to[row * to_row + k] = from == NULL ? 0 : from[row * from_row + k];
}

void FN(ot__ref_recurrent)(const FN(ot__recurrent_data) * d, const ot__recurrent *p)
{
    const int64_t n = p->hidden, width = p->n_gates * n, states = p->batch * n;
    T *pre = d->scratch, *bias = pre + p->steps * p->batch * width, *h = bias + 2 * width;

    for (int direction = 0; direction < p->n_directions; direction++) {
        const int64_t at = direction * p->state_direction;
        const T *b = d->b == NULL ? NULL : d->b + direction * 2 * width;
        FN(recurrent_pass)
        s = {.d = d,
             .p = p,
             .direction = direction,
             .bias = b == NULL ? NULL : bias,
             .peephole = d->p == NULL ? NULL : d->p + direction * 3 * n,
             .reset_bias = p->resets_after && b != NULL ? b + width + 2 * n : NULL,
             .pre = pre,
             .h_before = h,
             .h = h + states,
             .c = h + 2 * states,
             .product = h + 3 * states};

        if (b != NULL)
            FN(ot__ref_join_bias)(bias, b, p);
        FN(input_product)(&s);
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
