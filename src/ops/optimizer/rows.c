// SPDX-License-Identifier: Apache-2.0
// What an update is told of each tensor: the rate of its group, its bias corrections, and what its
// gradient is multiplied by.
#include "ops/optimizer/optimizer.h"

#include <math.h>

static const double clip_epsilon = 1e-6; // as PyTorch's clip_grad_norm_

// Unscaling and clipping are one factor. `norm` is that of the gradients divided by `divisor`; one
// that is not a number clips nothing.
static double gradient_scale(const ot__update_state *s, const float *hyper, double divisor,
                             double norm)
{
    const double bound = s->clip_at < 0 ? 0 : (double)hyper[s->clip_at];
    double of_all = s->max_norm / (norm + clip_epsilon), by = divisor;

    if (bound > 0 && norm > bound)
        by = divisor * norm / bound;
    if (s->max_norm > 0 && of_all < 1)
        by = by / of_all;
    return by == 1 ? 1 : 1 / by;
}

static double scalar_at(const ot_run *r, int port, double otherwise)
{
    return port < 0 ? otherwise : ot__scalar_f64(r->in[r->in_first[port]]);
}

ot_status ot__rule_fill(const ot_run *r, const ot__update_state *s, ot__update_row *rows)
{
    const int n_tensors = r->in_first[s->at.params + 1] - r->in_first[s->at.params];
    const ot_arg *rates = r->in[r->in_first[s->at.lr]];
    const ot_arg *steps = s->at.step < 0 ? NULL : r->in[r->in_first[s->at.step]];
    const double divisor = scalar_at(r, s->at.divisor, 1), norm = scalar_at(r, s->at.norm, 0);

    for (int i = 0; i < n_tensors; i++) {
        const int group = s->group == NULL ? 0 : s->group[i];
        const float *hyper = s->hyper[group];
        const int64_t step =
            steps == NULL ? 1 : ((const int64_t *)steps->data)[steps->count == 1 ? 0 : i];
        ot__update_row *row = &rows[i];

        // Most tensors are of the group and the age of the one before.
        if (i > 0 && row[-1].hyper == hyper && row[-1].step == (double)step) {
            *row = row[-1];
            continue;
        }
        *row = (ot__update_row){
            .lr = (double)((const float *)rates->data)[rates->count == 1 ? 0 : group] *
                  s->lr_factor[group],
            .scale = gradient_scale(s, hyper, divisor, norm),
            .step = (double)step,
            .c1 = 1,
            .c2 = 1,
            .hyper = hyper,
        };
        if (s->rule->needs_step && step < 1)
            return ot__error(OT_ERR_INVALID, "step is %" PRId64 ", the first update is number 1",
                             step);
        if (s->correct_at >= 0 && hyper[s->correct_at] != 0) {
            row->c1 = 1 - pow((double)hyper[0], (double)step);
            row->c2 = 1 - pow((double)hyper[1], (double)step);
        }
    }
    return OT_OK;
}
