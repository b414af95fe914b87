// SPDX-License-Identifier: Apache-2.0
// What the files of the losses over class labels share.
#ifndef OT_OPS_NLL_H
#define OT_OPS_NLL_H

#include "kernels/kernels.h"
#include "op/op.h"

enum { SCORES, LABELS, WEIGHT, IGNORE };
// Inputs of gradients. BIAS and both ignored labels are those of ONNX Runtime's
// internal forms.
enum { G_DY, G_SCORES, G_LABELS, G_WEIGHT, G_IGNORE, G_BIAS };

// nll.c: the state, an ot__nll; and that with the ignored label of input port `ignore` if it is
// given, after a look at the labels.
ot_status ot__loss_prepare(ot_prep *p);
ot_status ot__loss_grad_prepare(ot_prep *p);
ot_status ot__loss_begin(const ot_run *r, int labels, int ignore, ot__nll *p);
void *ot__sce_log_prob(const ot_run *r);

// nll_vector.c: of scores without pixels, which are rows,
bool ot__sce_can_rows(const ot_prep *p);
ot_status ot__sce_prepare_rows(ot_prep *p);
ot_status ot__sce_run_rows(const ot_run *r);
bool ot__sce_grad_can_rows(const ot_prep *p);
ot_status ot__sce_grad_prepare_rows(ot_prep *p);
ot_status ot__sce_grad_run_rows(const ot_run *r);
// and of f32, with pixels or without.
bool ot__sce_can_columns(const ot_prep *p);
ot_status ot__sce_run_columns(const ot_run *r);
bool ot__loss_grad_can_columns(const ot_prep *p);
ot_status ot__nll_grad_run_columns(const ot_run *r);
ot_status ot__sce_grad_run_columns(const ot_run *r);

// expand_nll.c: the gradients in other operators.
void ot__sce_grad_expand(ot_grad *g); // of log_prob
void ot__nll_grad_expand(ot_grad *g);

#endif
