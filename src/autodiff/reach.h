// SPDX-License-Identifier: Apache-2.0
// What of a graph lies between some values and a target.
#ifndef OT_AUTODIFF_REACH_H
#define OT_AUTODIFF_REACH_H

#include "autodiff/autodiff.h"

typedef struct ot__reach {
    ot_graph *graph; // sorted
    const ot_value *target;
    ot__edge_rule *edge;
    ot__uses uses;   // numbers the values and nodes; the arrays below go by these numbers
    int n_nodes;     // before anything was appended
    bool *from;      // per value: comes from a `from` value through edges that pass on a gradient
    bool *to;        // per value: goes to the target likewise
    bool *is_active; // per node: between the two
} ot__reach;

ot_status ot__reach_build(ot_graph *graph, const ot_value *target, ot_value *const *from,
                          int n_from, ot__edge_rule *edge, ot__reach *reach);
void ot__reach_deinit(ot__reach *reach);

bool ot__value_is_differentiable(const ot_value *value);   // a tensor of a float type
bool ot__output_passes(const ot_node *node, int i_output); // as ot__edge_passes()
// Is the gradient of input i needed: it comes from `from`, and the node lies on the way.
bool ot__reach_wants(const ot__reach *reach, const ot_node *node, int i_input);
// The value was in the graph when the reach was built; its number then.
static inline bool ot__reach_knows(const ot__reach *reach, const ot_value *value)
{
    return ot__has_number(&reach->uses.numbers, value);
}
static inline int ot__reach_number(const ot__reach *reach, const ot_value *value)
{
    return ot__value_number(&reach->uses.numbers, value);
}

// Does an output of the node that goes to the target pass on a gradient?
bool ot__reach_goes_on(const ot__reach *reach, const ot_node *node);

// A Loop, say, whose turns only a step tells: its gradient waits for that.
bool ot__reach_waits(const ot_node *node);
// What subgraphs of a foreign node, or of one that waits, read of this graph and could be
// differentiated.
void ot__reach_visit_captures(const ot__reach *reach, const ot_node *node,
                              void (*visit)(void *context, const ot_value *value), void *context);
// The first of it that comes from a `from` value; NULL: none does.
const ot_value *ot__reach_find_capture(const ot__reach *reach, const ot_node *node);

// Refuse: every active operator without a gradient rule in one message.
ot_status ot__reach_check_operators(const ot__reach *reach, ot_value *const *from, int n_from);
// Refuse: values that do not reach the target, all in one message.
ot_status ot__reach_check_values(const ot__reach *reach, ot_value *const *from, int n_from);

#endif
