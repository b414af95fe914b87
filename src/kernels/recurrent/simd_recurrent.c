// SPDX-License-Identifier: Apache-2.0
// Cells of recurrent layers, compiled once per instruction set (OT_ISA): the usual options in one
// loop, the others as the reference has them.
#include "kernels/kernels.h"
#include "kernels/simd.h"

static bool is_usual(const ot__activation *f, ot__activation_kind kind)
{
    return f->kind == kind;
}

// Gates by the sigmoid, the candidate (and the cell) by tanh.
static bool has_usual_gates(const ot__recurrent *p, const ot__activation *f)
{
    return p->clip <= 0 && is_usual(&f[0], OT__ACTIVATION_SIGMOID) &&
           is_usual(&f[1], OT__ACTIVATION_TANH);
}

OT_SIMD_INLINE float sigmoid_of(float x)
{
    const float e = ot__vdecay(fabsf(x)); // never overflows

    return (x >= 0 ? 1.0F : e) / (1.0F + e);
}

// ---- forward ----

static void cell_lstm(const ot__cell_row_f32 *r)
{
    float *i = r->gates + ot__gate_of(r->p, 0), *o = r->gates + ot__gate_of(r->p, 1);
    float *f = r->gates + ot__gate_of(r->p, 2), *g = r->gates + ot__gate_of(r->p, 3);
    const float *bi, *bo, *bf, *bg;

    if (r->bias == NULL || !has_usual_gates(r->p, r->f) ||
        !is_usual(&r->f[2], OT__ACTIVATION_TANH) || r->p->couples || r->peephole != NULL) {
        ot__ref_cells_f32.lstm(r);
        return;
    }
    bi = r->bias + ot__gate_of(r->p, 0);
    bo = r->bias + ot__gate_of(r->p, 1);
    bf = r->bias + ot__gate_of(r->p, 2);
    bg = r->bias + ot__gate_of(r->p, 3);
    // One function a loop: several rounds of a short one are under way at once.
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++)
        i[k] = sigmoid_of(i[k] + bi[k]);
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++)
        f[k] = sigmoid_of(f[k] + bf[k]);
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++)
        o[k] = sigmoid_of(o[k] + bo[k]);
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++) {
        g[k] = ot__vtanh(g[k] + bg[k]);
        r->c[k] = f[k] * r->c[k] + i[k] * g[k];
    }
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++)
        r->h[k] = o[k] * ot__vtanh(r->c[k]);
}

static void cell_reset(const ot__cell_row_f32 *r)
{
    float *z = r->gates + ot__gate_of(r->p, 0), *gate = r->gates + ot__gate_of(r->p, 1);
    float *candidate = r->gates + ot__gate_of(r->p, 2);
    const float *bz, *br;

    if (r->bias == NULL || !has_usual_gates(r->p, r->f) ||
        (r->p->resets_after && r->reset_bias == NULL)) {
        ot__ref_cells_f32.reset(r);
        return;
    }
    bz = r->bias + ot__gate_of(r->p, 0);
    br = r->bias + ot__gate_of(r->p, 1);
    if (r->p->resets_after) {
        OT_SIMD_LOOP
        for (int64_t k = 0; k < r->n; k++) {
            z[k] = sigmoid_of(z[k] + bz[k]);
            gate[k] = sigmoid_of(gate[k] + br[k]);
            candidate[k] += gate[k] * (r->product[k] + r->reset_bias[k]);
        }
        return;
    }
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++) {
        z[k] = sigmoid_of(z[k] + bz[k]);
        gate[k] = sigmoid_of(gate[k] + br[k]);
        r->product[k] = gate[k] * r->h_before[k];
    }
}

static void cell_gru(const ot__cell_row_f32 *r)
{
    const float *z = r->gates + ot__gate_of(r->p, 0);
    float *candidate = r->gates + ot__gate_of(r->p, 2);
    const float *bh;

    if (r->bias == NULL || !has_usual_gates(r->p, r->f)) {
        ot__ref_cells_f32.gru(r);
        return;
    }
    bh = r->bias + ot__gate_of(r->p, 2);
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++) {
        candidate[k] = ot__vtanh(candidate[k] + bh[k]);
        r->h[k] = (1 - z[k]) * candidate[k] + z[k] * r->h_before[k];
    }
}

static void cell_rnn(const ot__cell_row_f32 *r)
{
    if (r->bias == NULL || r->p->clip > 0 || !is_usual(&r->f[0], OT__ACTIVATION_TANH)) {
        ot__ref_cells_f32.rnn(r);
        return;
    }
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++)
        r->h[k] = r->gates[k] = ot__vtanh(r->gates[k] + r->bias[k]);
}

// ---- back ----

static bool has_usual_slopes(const ot__cell_row_back_f32 *r)
{
    return r->p->clip <= 0 && is_usual(r->slopes[0].f, OT__ACTIVATION_SIGMOID) &&
           is_usual(r->slopes[1].f, OT__ACTIVATION_TANH);
}

static void cell_lstm_back(const ot__cell_row_back_f32 *r)
{
    const int64_t at_i = ot__gate_of(r->p, 0), at_o = ot__gate_of(r->p, 1);
    const int64_t at_f = ot__gate_of(r->p, 2), at_g = ot__gate_of(r->p, 3);
    const float *gi = r->gates + at_i, *go = r->gates + at_o;
    const float *gf = r->gates + at_f, *gg = r->gates + at_g;
    float *di = r->pre + at_i, *d_o = r->pre + at_o, *df = r->pre + at_f, *dg = r->pre + at_g;

    if (!has_usual_slopes(r) || !is_usual(r->slopes[2].f, OT__ACTIVATION_TANH) || r->p->couples ||
        r->peephole != NULL) {
        ot__ref_cells_f32.lstm_back(r);
        return;
    }
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++) {
        const float i = gi[k], o = go[k], f = gf[k], g = gg[k];
        const float hc = ot__vtanh(r->c[k]), dh = r->dh[k];
        const float dc = r->dc[k] + dh * o * (1 - hc * hc);

        d_o[k] = dh * hc * (o * (1 - o));
        di[k] = dc * g * (i * (1 - i));
        df[k] = dc * r->c_before[k] * (f * (1 - f));
        dg[k] = dc * i * (1 - g * g);
        r->dc[k] = dc * f;
        r->dh[k] = 0;
    }
}

static void cell_gru_back(const ot__cell_row_back_f32 *r)
{
    const int64_t at_z = ot__gate_of(r->p, 0), at_r = ot__gate_of(r->p, 1);
    const int64_t at_h = ot__gate_of(r->p, 2);
    const float *gz = r->gates + at_z, *gr = r->gates + at_r, *gh = r->gates + at_h;
    float *dz = r->pre + at_z, *dr = r->pre + at_r, *d_h = r->pre + at_h;

    if (!has_usual_slopes(r)) {
        ot__ref_cells_f32.gru_back(r);
        return;
    }
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++) {
        const float z = gz[k], h = gh[k], dh = r->dh[k];

        dz[k] = dh * (r->h_before[k] - h) * (z * (1 - z));
        d_h[k] = dh * (1 - z) * (1 - h * h);
        r->dh[k] = dh * z;
    }
    if (!r->p->resets_after)
        return;
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++) {
        dr[k] = d_h[k] * r->linear[k] * (gr[k] * (1 - gr[k]));
        r->reset[k] = d_h[k] * gr[k];
    }
}

static void cell_reset_back(const ot__cell_row_back_f32 *r)
{
    const float *gr = r->gates + ot__gate_of(r->p, 1);
    float *dr = r->pre + ot__gate_of(r->p, 1);

    if (!has_usual_slopes(r)) {
        ot__ref_cells_f32.reset_back(r);
        return;
    }
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++) {
        dr[k] = r->product[k] * r->h_before[k] * (gr[k] * (1 - gr[k]));
        r->dh[k] += r->product[k] * gr[k];
    }
}

static void cell_rnn_back(const ot__cell_row_back_f32 *r)
{
    if (r->p->clip > 0 || !is_usual(r->slopes[0].f, OT__ACTIVATION_TANH)) {
        ot__ref_cells_f32.rnn_back(r);
        return;
    }
    OT_SIMD_LOOP
    for (int64_t k = 0; k < r->n; k++) {
        r->pre[k] = r->dh[k] * (1 - r->gates[k] * r->gates[k]);
        r->dh[k] = 0;
    }
}

// ---- bias ----

enum { SUMS = 4 * OT_VECTOR_LANES };

OT_SIMD_INLINE void sum_few_columns(float *y, const float *x, int64_t x_row, int64_t rows,
                                    int64_t n, bool accumulates)
{
    double sum[SUMS] = {0};

    for (int64_t i = 0; i < rows; i++) {
        OT_SIMD_LOOP
        for (int64_t k = 0; k < n; k++)
            sum[k] += (double)x[i * x_row + k];
    }
    for (int64_t k = 0; k < n; k++)
        y[k] = accumulates ? y[k] + (float)sum[k] : (float)sum[k];
}

static void cell_sum_columns(float *y, const float *x, int64_t x_row, int64_t rows, int64_t columns,
                             bool accumulates)
{
    int64_t k = 0;

    for (; k + SUMS <= columns; k += SUMS) // a length that the compiler knows
        sum_few_columns(y + k, x + k, x_row, rows, SUMS, accumulates);
    if (k < columns)
        sum_few_columns(y + k, x + k, x_row, rows, columns - k, accumulates);
}

const ot__cells OT_ISA_NAME(ot__cells) = {.lstm = cell_lstm,
                                          .reset = cell_reset,
                                          .gru = cell_gru,
                                          .rnn = cell_rnn,
                                          .lstm_back = cell_lstm_back,
                                          .gru_back = cell_gru_back,
                                          .reset_back = cell_reset_back,
                                          .rnn_back = cell_rnn_back,
                                          .sum_columns = cell_sum_columns};
