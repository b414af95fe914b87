// SPDX-License-Identifier: Apache-2.0
// Interface of `autodiff`: appends gradient nodes to a graph by walking its nodes backwards.
#ifndef OT_AUTODIFF_AUTODIFF_H
#define OT_AUTODIFF_AUTODIFF_H

#include "graph/graph.h"
#include "op/op.h"
#include "passes/passes.h"

// Does input number i of the node pass on a gradient, as far as its record and type say?
typedef bool ot__edge_rule(const ot_node *node, int i_input);
ot__edge_rule ot__edge_passes;
// The same for what may train unless somebody names it: running statistics do not.
ot__edge_rule ot__edge_trains;

// What differentiable paths exist, for reports before anything is built.
typedef enum ot__path_status {
    OT_PATH_OK,          // reaches the target through differentiable inputs
    OT_PATH_NONE,        // no path at all
    OT_PATH_STOPPED,     // only through inputs that pass on no gradient
    OT_PATH_UNSUPPORTED, // through an operator without a gradient rule
} ot__path_status;

// One status per `from` value towards `target`. `blocker[i]` (may be NULL) receives the operator in
// the way, or NULL.
ot_status ot__autodiff_paths(ot_graph *graph, ot_value *target, ot_value *const *from, int n_from,
                             ot__edge_rule *edge, ot__path_status *status, ot_node **blocker);

// Append the gradient of `target` with respect to `from`: grads[i] is a value called "<from>_grad"
// with its shape. seed NULL: a constant 1 called "<target>_grad". Contributions are counted per
// edge and summed by "AccumulateGrad_<value>". OT_ERR_UNSUPPORTED names every operator without
// gradient on the way at once, with the parameter, the path, and what to freeze; OT_ERR_INVALID
// names values that do not reach the target.
ot_status ot__autodiff_build(ot_graph *graph, ot_value *target, ot_value *seed,
                             ot_value *const *from, int n_from, ot_value **grads);

// Of a specialised model: a Backward, which ot__autodiff_build leaves where a Loop's turns were not
// known, becomes the gradients; zeros where none arrives. *changed: there was one.
ot_status ot__autodiff_late(ot_model *model, bool *changed);

#endif
