// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: what the fusions of them share.
#ifndef OT_PASSES_FUSE_LAYER_H
#define OT_PASSES_FUSE_LAYER_H

#include "passes/fuse.h"

// ONNX's operator, the form that keeps what its gradient needs, and the gradient, the latter two of
// ONNX Runtime's domain or our own. Forward both have the same inputs and first outputs.
typedef struct ot__layer_kind {
    const char *plain, *layer, *gradient;
    int n_gates, n_fixed;      // the last gates, which stay where they are in W and R
    int kept;                  // output of the layer: the gates
    int grad_p;                // input of our own gradient that ONNX Runtime's has not; 0: none
    int indices, grad_indices; // the last inputs of our own records
} ot__layer_kind;

// NULL: the node is no such layer, or has the batch first.
const ot__layer_kind *ot__layer_kind_of(const ot_node *node);
// The gradient of the layer, which alone reads the gates that it keeps; NULL with `none`: none.
ot_node *ot__layer_gradient(const ot__fusing *f, const ot_node *layer, const ot__layer_kind *kind,
                            bool *none);
ot_value *ot__layer_output(const ot_node *node, int i); // NULL: it has none

// A node of our own domain in place of another, before it is made.
enum { OT_MAX_LAYER_PORTS = 16 };
typedef struct ot__own_layer {
    const char *op_type;
    ot_value *inputs[OT_MAX_LAYER_PORTS]; // those of the other node, in the places of our record
    int n_inputs;
} ot__own_layer;
ot__own_layer ot__own_layer_of(const ot_node *layer, const ot__layer_kind *kind);
ot__own_layer ot__own_gradient_of(const ot_node *back, const ot__layer_kind *kind);
// With the other node's attributes; ot__op_settle is left to the caller.
ot_node *ot__own_layer_replace(ot__builder *b, ot_node *node, const ot__own_layer *own);

#endif
