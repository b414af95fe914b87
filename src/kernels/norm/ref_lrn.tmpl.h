// SPDX-License-Identifier: Apache-2.0

// d = bias + alpha * the sum of squares of the neighbours of channel c, at n places.
static void FN(lrn_divisors)(double *d, const T *x, int64_t c, int64_t n, const ot__lrn *p)
{
    const int64_t first = OT_MAX(c - p->before, 0), last = OT_MIN(c + p->after, p->channels - 1);

    for (int64_t k = 0; k < n; k++)
        d[k] = 0;
    for (int64_t i = first; i <= last; i++)
        for (int64_t k = 0; k < n; k++)
            d[k] += (double)x[i * p->inner + k] * (double)x[i * p->inner + k];
    for (int64_t k = 0; k < n; k++)
        d[k] = p->bias + p->alpha * d[k];
}

void FN(ot__ref_lrn)(T *y, const T *x, const ot__lrn *p)
{
    const int64_t pieces = (p->inner + OT__LRN_PIECE - 1) / OT__LRN_PIECE;

#pragma omp parallel for schedule(static) if (p->n * p->channels * p->inner > OT_PAR_MIN)
    for (int64_t i = 0; i < p->n * pieces; i++) {
        const int64_t from = i % pieces * OT__LRN_PIECE;
        const int64_t n = OT_MIN(p->inner - from, (int64_t)OT__LRN_PIECE);
        const int64_t image = i / pieces * p->channels * p->inner + from;
        double d[OT__LRN_PIECE];

        for (int64_t c = 0; c < p->channels; c++) {
            const int64_t at = image + c * p->inner;

            FN(lrn_divisors)(d, x + image, c, n, p);
            lrn_powers(d, n, p->beta);
            for (int64_t k = 0; k < n; k++)
                y[at + k] = (T)((double)x[at + k] * d[k]);
        }
    }
}

// With D the divisor of Y = X * D^-beta:  dX = dY * D^-beta - 2 alpha beta X * (the sum of
// dY * X * D^-beta / D over the channels that X is a neighbour of).
static void FN(lrn_grad_piece)(T *dx, const T *dy, const T *x, int64_t n, const ot__lrn *p,
                               double *powers, double *terms)
{
    for (int64_t c = 0; c < p->channels; c++) {
        const int64_t at = c * p->inner;
        double *power = powers + c * OT__LRN_PIECE, *term = terms + c * OT__LRN_PIECE;

        FN(lrn_divisors)(power, x, c, n, p);
        for (int64_t k = 0; k < n; k++)
            term[k] = (double)dy[at + k] * (double)x[at + k] / power[k];
        lrn_powers(power, n, p->beta);
        for (int64_t k = 0; k < n; k++)
            term[k] *= power[k];
    }
    for (int64_t c = 0; c < p->channels; c++) {
        const int64_t first = OT_MAX(c - p->after, 0), at = c * p->inner;
        const int64_t last = OT_MIN(c + p->before, p->channels - 1);
        const double *power = powers + c * OT__LRN_PIECE;
        double sum[OT__LRN_PIECE] = {0};

        for (int64_t i = first; i <= last; i++)
            for (int64_t k = 0; k < n; k++)
                sum[k] += terms[i * OT__LRN_PIECE + k];
        for (int64_t k = 0; k < n; k++)
            dx[at + k] = (T)((double)dy[at + k] * power[k] -
                             2 * p->alpha * p->beta * (double)x[at + k] * sum[k]);
    }
}

typedef struct FN(lrn_job) {
    T *dx;
    const T *dy, *x;
    const ot__lrn *p;
    double *scratch;
    int64_t pieces, n_parts;
} FN(lrn_job);

static void FN(lrn_grad_parts)(void *context, int64_t first, int64_t last)
{
    const FN(lrn_job) *j = context;
    const ot__lrn *p = j->p;
    const int64_t size = p->channels * OT__LRN_PIECE, n_items = p->n * j->pieces;

    if (size == 0 || n_items == 0)
        return;
    for (int64_t part = first; part < last; part++) {
        double *own = j->scratch + OT__LRN_ROWS * size * part;

        for (int64_t i = n_items * part / j->n_parts; i < n_items * (part + 1) / j->n_parts; i++) {
            const int64_t from = i % j->pieces * OT__LRN_PIECE;
            const int64_t at = i / j->pieces * p->channels * p->inner + from;
            const int64_t n = OT_MIN(p->inner - from, (int64_t)OT__LRN_PIECE);

            FN(lrn_grad_piece)(j->dx + at, j->dy + at, j->x + at, n, p, own, own + size);
        }
    }
}

void FN(ot__ref_lrn_grad)(T *dx, const T *dy, const T *x, const ot__lrn *p, int n_parts,
                          double *scratch)
{
    const int64_t pieces = (p->inner + OT__LRN_PIECE - 1) / OT__LRN_PIECE;
    FN(lrn_job) job = {dx, dy, x, p, scratch, pieces, n_parts};

    ot__parallel_for(n_parts, 1, FN(lrn_grad_parts), &job);
}
