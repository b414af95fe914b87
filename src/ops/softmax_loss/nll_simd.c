// SPDX-License-Identifier: Apache-2.0
// Softmax cross entropy over contiguous rows in f32.
#include "ops/softmax_loss/nll.h"

bool ot__sce_can_simd(const ot_prep *p, int scores)
{
    const ot_arg *x = ot_prep_in(p, scores);

    return x->dtype == OT_F32 && x->count > 0 && x->shape.dim[0] * x->shape.dim[1] == x->count;
}

ot_status ot__sce_run_simd(const ot__nll *p, const ot_arg *x, const ot_arg *labels,
                           const void *weight, void *log_prob, ot_arg *loss)
{
    ot__row_lines lines = {.y = log_prob, .x = x->data, .n = p->classes};

    OT_TRY(ot__nll_check(p, labels));
    ot__parallel_for(p->n, OT_PAR_MIN / p->classes + 1, ot__rows_best()->log_softmax, &lines);
    if (loss)
        ot__ref_nll_f32(loss->data, log_prob, labels->data, weight, p);
    return OT_OK;
}

// ---- gradient ----

typedef struct gradient {
    const ot__nll *p;
    const ot__rows *rows;
    float *dx;
    const float *dy, *log_prob, *weight;
    const void *labels;
    double share; // of each row in a reduced loss
} gradient;

static bool counts(const ot__nll *p, int64_t label)
{
    return !p->has_ignore || label != p->ignore;
}

static void gradient_rows(void *context, int64_t first, int64_t last)
{
    const gradient *g = context;
    const int64_t n = g->p->classes;

    for (int64_t r = first; r < last; r++) {
        const int64_t label = ot__ref_nll_label(g->labels, g->p, r);
        double factor = g->p->reduction == OT__LOSS_NONE ? (double)g->dy[r] : g->share;

        if (!counts(g->p, label)) {
            for (int64_t k = 0; k < n; k++)
                g->dx[r * n + k] = 0;
            continue;
        }
        if (g->weight)
            factor *= (double)g->weight[label];
        g->rows->scaled_exp(g->dx + r * n, g->log_prob + r * n, (float)factor, n);
        g->dx[r * n + label] -= (float)factor;
    }
}

static double total_weight(const ot__nll *p, const void *labels, const float *weight)
{
    double total = 0;

    for (int64_t r = 0; r < p->n; r++) {
        const int64_t label = ot__ref_nll_label(labels, p, r);

        if (counts(p, label))
            total += weight ? (double)weight[label] : 1;
    }
    return total;
}

ot_status ot__sce_grad_run_simd(const ot__nll *p, const ot_arg *dy, const ot_arg *log_prob,
                                const ot_arg *labels, const void *weight, ot_arg *dx)
{
    gradient g = {p, ot__rows_best(), dx->data, dy->data, log_prob->data, weight, labels->data, 0};

    OT_TRY(ot__nll_check(p, labels));
    if (p->reduction != OT__LOSS_NONE)
        g.share = (double)g.dy[0];
    if (p->reduction == OT__LOSS_MEAN) {
        const double total = total_weight(p, labels->data, weight);

        g.share = total != 0 ? g.share / total : 0;
    }
    ot__parallel_for(p->n, OT_PAR_MIN / p->classes + 1, gradient_rows, &g);
    return OT_OK;
}
