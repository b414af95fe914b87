// SPDX-License-Identifier: Apache-2.0
// Which nodes of a graph stay f32 in mixed precision (precision_f32.c; pass_precision.c asks).
#ifndef OT_PASSES_PRECISION_H
#define OT_PASSES_PRECISION_H

#include "passes/passes.h"

typedef struct ot__f32_nodes {
    ot_graph *graph;
    ot__uses uses;
    const bool *is_parameter; // per input of the graph; NULL: not known, and none is a layer
    bool *is_forward;         // per node: an output needs it
    bool *is_kept;            // per node: all its floats are f32
    bool *is_gradient;        // per value: of a parameter, or summed into one
} ot__f32_nodes;

// Of `arena`; but for `uses`, which the caller has built and frees.
ot_status ot__f32_nodes_find(ot__f32_nodes *f, ot__arena *arena);
// Ports that are f32 whatever the others are.
bool ot__port_needs_f32(const ot_op_def *op, const ot_port *port);
bool ot__value_is_f32(const ot_value *v);
bool ot__value_is_single(const ot_value *v);

#endif
