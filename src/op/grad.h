// SPDX-License-Identifier: Apache-2.0
// The context behind ot_grad: where emitted nodes go and whose gradient they are.
#ifndef OT_OP_GRAD_H
#define OT_OP_GRAD_H

#include "op/op.h"

struct ot_grad {
    ot__builder build;
    const char *prefix; // of the names of nodes and values
    int n_emitted;
    ot_node *node; // the forward node; NULL in an emitter
    const ot__grad_host *host;
    int first_node;  // of the graph that an expansion has emitted
    int n_given;     // gradients that the rule has set
    bool wants_axes; // the rule has refused because it is not known how many axes a value has
};

// How what is emitted for a node is named (expand.c): by its name, or else by its first output.
// NULL: no memory.
const char *ot__node_prefix(const ot_node *node);
// For rules that need to know how many axes a value, or input 0, has: false, with the error, when
// that is not known. Such a rule asks before it sets a gradient: then a NodeGradient can stand for
// what it will write when a step tells.
bool ot__grad_knows_axes(ot_grad *g, const ot_value *x);
bool ot__grad_has_rank(ot_grad *g);
// defer.c: the node's gradients by a NodeGradient, where they are.
ot_status ot__grad_defer(ot_grad *g, bool *is_deferred);
#define OT__FORWARD_ATTR "__forward_" // before the names of the node's attributes

// A new initializer of zeros; the rule fills its elements (value->constant).
ot_value *ot__emit_tensor(ot_grad *g, ot_dtype dtype, const ot_shape *shape);
// Element i of a tensor of any numeric type.
void ot__set_element(ot_tensor *tensor, int64_t i, double value);

#endif
