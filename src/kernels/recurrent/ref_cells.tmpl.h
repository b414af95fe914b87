// SPDX-License-Identifier: Apache-2.0
// One element type of ref_recurrent.c: a row of a step, forward and back.

// y = f(y), the input cut to -clip .. clip.
void FN(ot__ref_activate)(T *y, int64_t n, const ot__activation *f, double clip)
{
    for (int64_t k = 0; k < n; k++)
        y[k] = (T)activated(clipped((double)y[k], clip), f);
}

// ---- forward ----

static void FN(add_bias)(const FN(ot__cell_row) * r, int64_t first, int64_t end)
{
    for (int64_t gate = first; r->bias != NULL && gate < end; gate++)
        for (int64_t k = 0; k < r->n; k++)
            r->gates[ot__gate_of(r->p, gate) + k] += r->bias[ot__gate_of(r->p, gate) + k];
}

static void FN(lstm)(const FN(ot__cell_row) * r)
{
    const ot__recurrent *p = r->p;
    const int64_t n = r->n, apart = p->hidden;
    T *i = r->gates + ot__gate_of(p, 0), *o = r->gates + ot__gate_of(p, 1);
    T *forget = r->gates + ot__gate_of(p, 2), *g = r->gates + ot__gate_of(p, 3);
    const T *peephole = r->peephole;

    FN(add_bias)(r, 0, 4);
    for (int64_t k = 0; peephole != NULL && k < n; k++) {
        i[k] += peephole[k] * r->c[k];
        forget[k] += peephole[2 * apart + k] * r->c[k];
    }
    r->activate(i, n, &r->f[0], p->clip);
    if (!p->couples)
        r->activate(forget, n, &r->f[0], p->clip);
    r->activate(g, n, &r->f[1], p->clip);
    for (int64_t k = 0; k < n; k++) {
        if (p->couples)
            forget[k] = 1 - i[k];
        r->h[k] = r->c[k] = forget[k] * r->c[k] + i[k] * g[k];
        if (peephole != NULL)
            o[k] += peephole[apart + k] * r->c[k];
    }
    r->activate(o, n, &r->f[0], p->clip);
    r->activate(r->h, n, &r->f[2], 0);
    for (int64_t k = 0; k < n; k++)
        r->h[k] *= o[k];
}

static void FN(reset)(const FN(ot__cell_row) * r)
{
    const int64_t n = r->n;
    T *z = r->gates + ot__gate_of(r->p, 0), *gate = r->gates + ot__gate_of(r->p, 1);
    T *candidate = r->gates + 2 * r->p->hidden;

    FN(add_bias)(r, 0, 2);
    r->activate(z, n, &r->f[0], r->p->clip);
    r->activate(gate, n, &r->f[0], r->p->clip);
    for (int64_t k = 0; k < n; k++) {
        if (r->p->resets_after)
            candidate[k] += gate[k] * (r->product[k] + (r->reset_bias ? r->reset_bias[k] : 0));
        else
            r->product[k] = gate[k] * r->h_before[k];
    }
}

static void FN(gru)(const FN(ot__cell_row) * r)
{
    T *candidate = r->gates + 2 * r->p->hidden;
    const T *z = r->gates + ot__gate_of(r->p, 0);

    FN(add_bias)(r, 2, 3);
    r->activate(candidate, r->n, &r->f[1], r->p->clip);
    for (int64_t k = 0; k < r->n; k++)
        r->h[k] = (1 - z[k]) * candidate[k] + z[k] * r->h_before[k];
}

static void FN(rnn)(const FN(ot__cell_row) * r)
{
    FN(add_bias)(r, 0, 1);
    r->activate(r->gates, r->n, &r->f[0], r->p->clip);
    for (int64_t k = 0; k < r->n; k++)
        r->h[k] = r->gates[k];
}

// ---- back ----

ot__slope FN(ot__ref_slope)(const ot__activation *f, double clip)
{
    T ends[2] = {(T)clip, (T)-clip};

    FN(ot__ref_activate)(ends, 2, f, clip);
    return (ot__slope){
        .f = f, .high = (double)ends[0], .low = (double)ends[1], .is_clipped = clip > 0};
}

static T FN(slope_at)(T y, const ot__slope *s)
{
    if (s->is_clipped && ((double)y == s->low || (double)y == s->high))
        return 0;
    return (T)derivative((double)y, s->f);
}

static void FN(lstm_back)(const FN(ot__cell_row_back) * r)
{
    const ot__recurrent *p = r->p;
    const ot__slope *s = r->slopes;
    const int64_t apart = p->hidden, at_i = ot__gate_of(p, 0), at_o = ot__gate_of(p, 1);
    const int64_t at_f = ot__gate_of(p, 2), at_g = ot__gate_of(p, 3);
    const T *peephole = r->peephole;

    for (int64_t k = 0; k < r->n; k++) {
        const T i = r->gates[at_i + k], o = r->gates[at_o + k];
        const T f = r->gates[at_f + k], g = r->gates[at_g + k];
        const T dh = r->dh[k], c0 = r->c_before[k];
        T hc = r->c[k], dc = r->dc[k], *pre = r->pre + k;

        r->activate(&hc, 1, s[2].f, 0);
        pre[at_o] = dh * hc * FN(slope_at)(o, &s[0]);
        dc += dh * o * FN(slope_at)(hc, &s[2]);
        if (peephole != NULL)
            dc += pre[at_o] * peephole[apart + k];
        pre[at_i] = (dc * g - (p->couples ? dc * c0 : 0)) * FN(slope_at)(i, &s[0]);
        pre[at_f] = p->couples ? 0 : dc * c0 * FN(slope_at)(f, &s[0]);
        pre[at_g] = dc * i * FN(slope_at)(g, &s[1]);
        dc *= f;
        if (peephole != NULL)
            dc += pre[at_i] * peephole[k] + pre[at_f] * peephole[2 * apart + k];
        r->dc[k] = dc;
        r->dh[k] = 0;
    }
}

static void FN(gru_back)(const FN(ot__cell_row_back) * r)
{
    const int64_t at_z = ot__gate_of(r->p, 0), at_r = ot__gate_of(r->p, 1);
    const int64_t at_h = ot__gate_of(r->p, 2);

    for (int64_t k = 0; k < r->n; k++) {
        const T z = r->gates[at_z + k], gate = r->gates[at_r + k], h = r->gates[at_h + k];
        const T dh = r->dh[k];
        T *pre = r->pre + k;

        pre[at_z] = dh * (r->h_before[k] - h) * FN(slope_at)(z, &r->slopes[0]);
        pre[at_h] = dh * (1 - z) * FN(slope_at)(h, &r->slopes[1]);
        r->dh[k] = dh * z;
        if (r->p->resets_after) {
            pre[at_r] = pre[at_h] * r->linear[k] * FN(slope_at)(gate, &r->slopes[0]);
            r->reset[k] = pre[at_h] * gate;
        }
    }
}

static void FN(reset_back)(const FN(ot__cell_row_back) * r)
{
    const int64_t at_r = ot__gate_of(r->p, 1);
    const T *gate = r->gates + at_r;

    for (int64_t k = 0; k < r->n; k++) {
        r->pre[at_r + k] = r->product[k] * r->h_before[k] * FN(slope_at)(gate[k], &r->slopes[0]);
        r->dh[k] += r->product[k] * gate[k];
    }
}

static void FN(rnn_back)(const FN(ot__cell_row_back) * r)
{
    for (int64_t k = 0; k < r->n; k++) {
        r->pre[k] = r->dh[k] * FN(slope_at)(r->gates[k], &r->slopes[0]);
        r->dh[k] = 0;
    }
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

const FN(ot__cells) FN(ot__ref_cells) = {.lstm = FN(lstm),
                                         .reset = FN(reset),
                                         .gru = FN(gru),
                                         .rnn = FN(rnn),
                                         .lstm_back = FN(lstm_back),
                                         .gru_back = FN(gru_back),
                                         .reset_back = FN(reset_back),
                                         .rnn_back = FN(rnn_back),
                                         .sum_columns = FN(sum_columns)};
