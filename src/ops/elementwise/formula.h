// SPDX-License-Identifier: Apache-2.0
// Formulas of kernels/elementwise/*.def as ONNX's operators.
#ifndef OT_OPS_FORMULA_H
#define OT_OPS_FORMULA_H

#include "op/op.h"

typedef struct ot__formula {
    const char *given; // "GIVEN(t, TANH(x))" ..., or ""
    const char *text;  // "dy * (1 - t * t)"
} ot__formula;

typedef struct ot__named {
    const char *name; // NULL ends a list
    ot_value *value;
} ot__named;

// Emits the formula of `names`, the first of which says the element type, and of the float
// attributes of the context's node; SUM(v) sums v to the shape of `sum_to`. NULL after an error.
ot_value *ot__emit_formula(ot_grad *g, const ot__formula *formula, const ot__named *names,
                           ot_value *sum_to);

#endif
