// SPDX-License-Identifier: Apache-2.0
// Gradient rules of the Reduce* records (reduce_grad.c).
#ifndef OT_OPS_REDUCE_H
#define OT_OPS_REDUCE_H

#include "ops/move/move.h"

void ot__reduce_sum_grad(ot_grad *g);
void ot__reduce_mean_grad(ot_grad *g);
void ot__reduce_l1_grad(ot_grad *g);
void ot__reduce_sum_square_grad(ot_grad *g);
void ot__reduce_l2_grad(ot_grad *g);
void ot__reduce_prod_grad(ot_grad *g);
void ot__reduce_log_sum_grad(ot_grad *g);
void ot__reduce_log_sum_exp_grad(ot_grad *g);
void ot__reduce_extreme_grad(ot_grad *g); // of ReduceMax and ReduceMin
void ot__reduce_sum_expand(ot_grad *g);

#endif
