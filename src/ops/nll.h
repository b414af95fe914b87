// What the losses over class labels share. Private to `ops`.
#ifndef OT_OPS_NLL_H
#define OT_OPS_NLL_H

#include "kernels/kernels.h"
#include "ops/ops.h"

extern const ot_attr_spec ot__nll_attrs[]; // reduction = "mean", ignore_index
// Scores [N, C, d...], labels [N, d...], weight [C]; sets output 0, the loss. False after a
// failure.
bool ot__nll_infer_loss(ot_infer *c, int scores, int labels, int weight);
// The shapes of `scores` and `labels` into an ot__nll, which becomes the state.
ot_status ot__nll_prepare(ot_prep *p, int scores, int labels);
// Labels in range, else an error naming position, label and classes.
ot_status ot__nll_check(const ot__nll *p, const ot_arg *labels);

#endif
