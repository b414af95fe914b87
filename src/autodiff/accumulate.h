// SPDX-License-Identifier: Apache-2.0
// The gradients of values while they are being built: one contribution per reading edge.
#ifndef OT_AUTODIFF_ACCUMULATE_H
#define OT_AUTODIFF_ACCUMULATE_H

#include "autodiff/reach.h"

typedef struct ot__gradients {
    const ot__reach *reach;
    ot_graph *graph;
    ot_value **of;       // per value: its gradient, once complete
    ot_value **parts;    // per use: the contributions of one value stand together, in the order of
                         // their names
    int *slot;           // per use: which contribution the edge gives, -1: none
    int *n_parts;        // per value: contributions expected
    int *n_arrived;      // per value
    ot__numbers claimed; // emitted values that have become gradients
} ot__gradients;

ot_status ot__gradients_create(ot__gradients *gradients, const ot__reach *reach);
void ot__gradients_deinit(ot__gradients *gradients);
// Take `dx` as what the edge into input i of `node` gives to its value; sums when it is the last.
ot_status ot__gradients_add(ot__gradients *gradients, const ot_node *node, int i_input,
                            ot_value *dx);
// Stand-ins for what a rule did not give, so that the walk can go on to find other obstacles.
ot_status ot__gradients_pretend(ot__gradients *gradients, const ot_node *node);
// Every wanted gradient of the node's inputs has been given.
ot_status ot__gradients_check(const ot__gradients *gradients, const ot_node *node);

#endif
