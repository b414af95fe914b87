// SPDX-License-Identifier: Apache-2.0
// Vector kernels of the losses over class labels: of scores without pixels, which are rows of any
// float type, and of f32 with pixels.
#include "ops/softmax_loss/nll.h"

#include <string.h>

// ---- vector code: scores [N, C], which may be narrower than all else, and so their gradient ----

static bool scores_are_rows(const ot_arg *x)
{
    return x->count > 0 && x->shape.dim[0] * x->shape.dim[1] == x->count;
}

static bool is_f32_or_absent(const ot_arg *x)
{
    return x == NULL || x->dtype == OT_F32;
}

bool ot__sce_can_rows(const ot_prep *p)
{
    return scores_are_rows(ot_prep_in(p, SCORES)) && is_f32_or_absent(ot_prep_out(p, 0)) &&
           is_f32_or_absent(ot_prep_out(p, 1)) && is_f32_or_absent(ot_prep_in(p, WEIGHT));
}

static void sce_piece(const void *context, float *const *at, int64_t first, int64_t n)
{
    const ot__nll *p = context;
    ot__row_lines lines = {.y = at[0], .x = at[1], .n = p->classes};

    (void)first;
    ot__rows_best()->log_softmax(&lines, 0, n);
}

static ot__float_rows sce_rows(const ot__nll *p, float *log_prob, const ot_arg *scores)
{
    return (ot__float_rows){.port = {{log_prob, OT_F32, p->classes, true},
                                     {scores->data, scores->dtype, p->classes, false}},
                            .rows = p->n,
                            .grain = OT_PAR_MIN / p->classes + 1,
                            .run = sce_piece,
                            .context = p};
}

// Scratch: log_prob in f32 where it is no output, and what converts the scores.
static size_t log_prob_bytes(bool is_output, int64_t count)
{
    return is_output ? 0 : ot__align_up((size_t)count * sizeof(float));
}

ot_status ot__sce_prepare_rows(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, SCORES);
    const bool has_log_prob = ot_prep_output_count(p) > 1 && ot_prep_out(p, 1) != NULL;
    ot__float_rows rows;

    OT_TRY(ot__loss_prepare(p));
    rows = sce_rows(p->state, NULL, x);
    ot_prep_scratch(p, log_prob_bytes(has_log_prob, x->count) +
                           ot__float_rows_bytes(&rows, ot_prep_threads(p)));
    return OT_OK;
}

ot_status ot__sce_run_rows(const ot_run *r)
{
    const bool has_log_prob = ot__run_out(r, 1) != NULL;
    float *log_prob = ot__sce_log_prob(r);
    void *const for_rows = has_log_prob
                               ? r->scratch
                               : (char *)r->scratch + log_prob_bytes(false, r->in[SCORES]->count);
    ot__nll p;
    ot__float_rows rows;

    OT_TRY(ot__loss_begin(r, LABELS, IGNORE, &p));
    rows = sce_rows(&p, log_prob, r->in[SCORES]);
    ot__float_rows_run(&rows, for_rows, r->n_threads);
    if (r->out[0])
        ot__ref_nll_f32(r->out[0]->data, log_prob, r->in[LABELS]->data, ot__run_in(r, WEIGHT), &p);
    return OT_OK;
}

bool ot__sce_grad_can_rows(const ot_prep *p)
{
    return scores_are_rows(ot_prep_in(p, G_SCORES)) && is_f32_or_absent(ot_prep_in(p, G_DY)) &&
           is_f32_or_absent(ot_prep_in(p, G_SCORES)) && is_f32_or_absent(ot_prep_in(p, G_WEIGHT));
}

typedef struct sce_gradient {
    const ot__nll *p;
    const ot__rows *rows;
    const float *dy, *weight;
    const void *labels;
    double share; // of each row in a reduced loss
} sce_gradient;

// at[0]: dx, at[1]: log_prob
static void sce_gradient_piece(const void *context, float *const *at, int64_t first, int64_t count)
{
    const sce_gradient *g = context;
    const int64_t n = g->p->classes;

    for (int64_t r = 0; r < count; r++) {
        const int64_t label = ot__ref_nll_label(g->labels, g->p, first + r);
        double factor = g->p->reduction == OT__LOSS_NONE ? (double)g->dy[first + r] : g->share;
        float *dx = at[0] + r * n;

        if (ot__ref_nll_ignores(g->p, label)) {
            for (int64_t k = 0; k < n; k++)
                dx[k] = 0;
            continue;
        }
        if (g->weight)
            factor *= (double)g->weight[label];
        g->rows->scaled_exp(dx, at[1] + r * n, (float)factor, n);
        dx[label] -= (float)factor;
    }
}

static ot__float_rows sce_grad_rows(const ot__nll *p, const ot_arg *dx, const ot_arg *log_prob)
{
    return (ot__float_rows){.port = {{dx->data, dx->dtype, p->classes, true},
                                     {log_prob->data, log_prob->dtype, p->classes, false}},
                            .rows = p->n,
                            .grain = OT_PAR_MIN / p->classes + 1,
                            .run = sce_gradient_piece};
}

ot_status ot__sce_grad_prepare_rows(ot_prep *p)
{
    ot__float_rows rows;

    OT_TRY(ot__loss_grad_prepare(p));
    rows = sce_grad_rows(p->state, ot_prep_out(p, 0), ot_prep_in(p, G_SCORES));
    ot_prep_scratch(p, ot__float_rows_bytes(&rows, ot_prep_threads(p)));
    return OT_OK;
}

ot_status ot__sce_grad_run_rows(const ot_run *r)
{
    ot__nll p;
    sce_gradient g = {.p = &p,
                      .rows = ot__rows_best(),
                      .dy = r->in[G_DY]->data,
                      .weight = ot__run_in(r, G_WEIGHT),
                      .labels = r->in[G_LABELS]->data};
    ot__float_rows rows;

    OT_TRY(ot__loss_begin(r, G_LABELS, G_IGNORE, &p));
    g.share = ot__ref_nll_share_f32(g.dy, g.labels, g.weight, &p);
    rows = sce_grad_rows(&p, r->out[0], r->in[G_SCORES]);
    rows.context = &g;
    ot__float_rows_run(&rows, r->scratch, r->n_threads);
    return OT_OK;
}

// ---- f32: scores with pixels, and gradients that are 0 but at the labels ----

static bool has_scores(const ot_prep *p, int scores)
{
    return ot_prep_in(p, scores)->count > 0 || ot_prep_declines(p, "there is nothing to compute");
}

bool ot__sce_can_columns(const ot_prep *p)
{
    return has_scores(p, SCORES);
}

bool ot__loss_grad_can_columns(const ot_prep *p)
{
    return has_scores(p, G_SCORES);
}

static int64_t blocks_per_thread(const ot__nll *p)
{
    return OT_PAR_MIN / (p->classes * OT_MIN(p->inner, (int64_t)OT__COLUMN_BLOCK)) + 1;
}

ot_status ot__sce_run_columns(const ot_run *r)
{
    float *log_prob = ot__sce_log_prob(r);
    ot__column_lines lines = {.y = log_prob, .x = r->in[SCORES]->data};
    ot__nll p;

    OT_TRY(ot__loss_begin(r, LABELS, IGNORE, &p));
    lines.n = p.classes;
    lines.inner = p.inner;
    ot__parallel_for(p.n * ot__column_blocks(p.inner), blocks_per_thread(&p),
                     ot__columns_best()->log_softmax, &lines);
    if (r->out[0])
        ot__ref_nll_f32(r->out[0]->data, log_prob, r->in[LABELS]->data, ot__run_in(r, WEIGHT), &p);
    return OT_OK;
}

typedef struct loss_gradient {
    const ot__nll *p;
    const ot__columns *columns;
    float *dx;
    const float *dy, *log_prob, *weight; // log_prob NULL: its gradient, not that of the scores
    const void *labels;
    double share; // of each pixel in a reduced loss
} loss_gradient;

// The gradient of the loss that pixel i has; 0 where its label is ignored.
static float pixel_factor(const loss_gradient *g, int64_t i, int64_t label)
{
    const double share = g->p->reduction == OT__LOSS_NONE ? (double)g->dy[i] : g->share;

    if (ot__ref_nll_ignores(g->p, label))
        return 0;
    return (float)(g->weight ? share * (double)g->weight[label] : share);
}

// Blocks first .. last - 1 of neighbouring pixels.
static void gradient_blocks(void *context, int64_t first, int64_t last)
{
    const loss_gradient *g = context;
    const int64_t inner = g->p->inner, classes = g->p->classes;
    const int64_t n_blocks = ot__column_blocks(inner);

    for (int64_t item = first; item < last; item++) {
        const int64_t image = item / n_blocks, from = item % n_blocks * OT__COLUMN_BLOCK;
        const int64_t n = OT_MIN((int64_t)OT__COLUMN_BLOCK, inner - from);
        const int64_t at = image * classes * inner + from;
        float factor[OT__COLUMN_BLOCK];
        int64_t label[OT__COLUMN_BLOCK];

        for (int64_t c = 0; c < n; c++) {
            label[c] = ot__ref_nll_label(g->labels, g->p, image * inner + from + c);
            factor[c] = pixel_factor(g, image * inner + from + c, label[c]);
        }
        if (g->log_prob != NULL)
            g->columns->scaled_exp(g->dx + at, g->log_prob + at, factor, classes, inner, n);
        for (int64_t k = 0; g->log_prob == NULL && k < classes; k++)
            memset(g->dx + at + k * inner, 0, (size_t)n * sizeof *g->dx);
        for (int64_t c = 0; c < n; c++)
            if (!ot__ref_nll_ignores(g->p, label[c]))
                g->dx[at + label[c] * inner + c] -= factor[c];
    }
}

// Without pixels a row is all that a block has: zeros are written in one go.
static void gradient_rows(void *context, int64_t first, int64_t last)
{
    const loss_gradient *g = context;
    const int64_t n = g->p->classes;

    memset(g->dx + first * n, 0, (size_t)((last - first) * n) * sizeof *g->dx);
    for (int64_t r = first; r < last; r++) {
        const int64_t label = ot__ref_nll_label(g->labels, g->p, r);

        if (!ot__ref_nll_ignores(g->p, label))
            g->dx[r * n + label] = -pixel_factor(g, r, label);
    }
}

static ot_status loss_grad_run_simd(const ot_run *r, const float *log_prob)
{
    ot__nll p;
    loss_gradient g = {.p = &p,
                       .columns = ot__columns_best(),
                       .dx = r->out[0]->data,
                       .dy = r->in[G_DY]->data,
                       .log_prob = log_prob,
                       .weight = ot__run_in(r, G_WEIGHT),
                       .labels = r->in[G_LABELS]->data};

    OT_TRY(ot__loss_begin(r, G_LABELS, G_IGNORE, &p));
    g.share = ot__ref_nll_share_f32(g.dy, g.labels, g.weight, &p);
    ot__parallel_for(p.n * ot__column_blocks(p.inner), blocks_per_thread(&p),
                     log_prob == NULL && p.inner == 1 ? gradient_rows : gradient_blocks, &g);
    return OT_OK;
}

ot_status ot__nll_grad_run_columns(const ot_run *r)
{
    return loss_grad_run_simd(r, NULL);
}

ot_status ot__sce_grad_run_columns(const ot_run *r)
{
    return loss_grad_run_simd(r, r->in[G_SCORES]->data);
}
