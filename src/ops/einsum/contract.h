// SPDX-License-Identifier: Apache-2.0
// Products of two operands of an Einsum, in other operators. Private to `ops`.
#ifndef OT_OPS_CONTRACT_H
#define OT_OPS_CONTRACT_H

#include "op/expand.h"
#include "ops/einsum/einsum.h"

// A value and what its axes stand for. After a failure the value is NULL, and stays so.
typedef struct ot__operand {
    ot_value *v;
    ot__einsum_term term;
} ot__operand;

// Input i, of what is repeated the diagonal.
ot__operand ot__operand_of(ot_grad *g, const ot__einsum *e, int i);
// a * b, summed over what neither the output nor inputs from `next` on have.
ot__operand ot__contract(ot_grad *g, const ot__einsum *e, int next, ot__operand *a, ot__operand *b);
// What the output has, in its order; the rest is summed.
ot_value *ot__operand_ordered(ot_grad *g, const ot__einsum *e, ot__operand *a);

#endif
