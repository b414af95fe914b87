// SPDX-License-Identifier: Apache-2.0
// What is constant before nodes are folded.
#ifndef OT_OP_CONSTANT_H
#define OT_OP_CONSTANT_H

#include "op/op.h"

// What a Constant node says in one of its forms, where it lies in the model; false: it is sparse,
// or nothing is said.
bool ot__constant_view(const ot_node *node, ot_tensor *view);
// The elements of x; NULL: not known. A node of constants is evaluated where it and they have few
// elements; the model holds the result. Fails for memory alone.
ot_status ot__op_known_constant(ot_model *model, const ot_value *x, const ot_tensor **out);

#endif
