// SPDX-License-Identifier: Apache-2.0
// What the losses over class labels share. Private to `ops`.
#ifndef OT_OPS_NLL_H
#define OT_OPS_NLL_H

#include "kernels/kernels.h"
#include "op/op.h"

extern const ot_attr_spec ot__nll_attrs[]; // reduction = "mean", ignore_index
// Scores [N, C, d...], labels [N, d...], weight [C]; sets output 0, the loss. False after a
// failure.
bool ot__nll_infer_loss(ot_infer *c, int scores, int labels, int weight);
// The gradient of the scores from dY, scores (or their logarithms), labels and weight.
void ot__nll_infer_grad(ot_infer *c);
// The shapes of `scores` and `labels` into an ot__nll, which becomes the state.
ot_status ot__nll_prepare(ot_prep *p, int scores, int labels);
// Labels in range, else an error naming position, label and classes.
ot_status ot__nll_check(const ot__nll *p, const ot_arg *labels);

// ONNX Runtime's internal forms: `output_type` besides, and the ignored label at input port `port`,
// if given.
extern const ot_attr_spec ot__nll_internal_attrs[];
ot__nll ot__nll_with_ignore(const ot_run *r, int port);

// The loss (NULL: not wanted) and log_prob of scores x; the gradient of x.
ot_status ot__sce_run(const ot__nll *p, const ot_arg *x, const ot_arg *labels, const void *weight,
                      void *log_prob, ot_arg *loss);
ot_status ot__sce_grad_run(const ot__nll *p, const ot_arg *dy, const ot_arg *log_prob,
                           const ot_arg *labels, const void *weight, ot_arg *dx);
// The same by vector code: scores [N, C] in f32.
bool ot__sce_can_simd(const ot_prep *p, int scores);
ot_status ot__sce_run_simd(const ot__nll *p, const ot_arg *x, const ot_arg *labels,
                           const void *weight, void *log_prob, ot_arg *loss);
ot_status ot__sce_grad_run_simd(const ot__nll *p, const ot_arg *dy, const ot_arg *log_prob,
                                const ot_arg *labels, const void *weight, ot_arg *dx);

// The gradient rule of both forms: `op` computes the part through the loss from dY, log_prob and
// the inputs behind the scores.
void ot__sce_grad_emit(ot_grad *g, const char *op);

// ---- expansions (expand_nll.c) ----

void ot__sce_grad_expand(ot_grad *g); // of log_prob
void ot__nll_grad_expand(ot_grad *g);

#endif
