// SPDX-License-Identifier: Apache-2.0
// Expansions of the gradients of the losses over class labels (expand_nll.c).
#ifndef OT_OPS_NLL_H
#define OT_OPS_NLL_H

#include "kernels/kernels.h"
#include "op/op.h"

void ot__sce_grad_expand(ot_grad *g); // of log_prob
void ot__nll_grad_expand(ot_grad *g);

#endif
