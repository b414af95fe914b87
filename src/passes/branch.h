// SPDX-License-Identifier: Apache-2.0
// If without graphs inside (fuse_branch.c): both branches are in the graph, until it is known which
// one is taken.
#ifndef OT_PASSES_BRANCH_H
#define OT_PASSES_BRANCH_H

#include "passes/passes.h"

// The nodes of both branches stand for an If whose condition only data tell, and *has_changed says
// so; one of anything but tensors stays.
ot_status ot__branch_both(ot_graph *graph, ot_node *node, bool *has_changed);
// For gradients: what enters a branch does so by a node, at which the gradient of a branch that is
// not taken ends. The graph is sorted and inferred.
ot_status ot__branches_enter(ot_model *model);
bool ot__has_branches(const ot_graph *graph);
// Of conditions that are constants: the taken branch is read by whoever reads the If, the other one
// goes. The graph is sorted.
ot_status ot__branches_take(ot_model *model, bool *has_changed);
// The nodes of one branch: from all that leads nowhere else to the BranchOutputs of a condition.
enum { OT_BRANCH_THEN = 1, OT_BRANCH_ELSE }; // inputs of BranchOutput
typedef struct ot__branch {
    ot_graph *graph; // sorted
    ot_value *condition;
    int port;
    ot__uses uses;
    bool *is_inside; // per node, as far as there were any then
} ot__branch;
ot_status ot__branch_find(ot__branch *b); // deinit also after a failure
void ot__branch_deinit(ot__branch *b);
bool ot__branch_ends(const ot__branch *b, const ot_node *node);
// Each once, that of a branch before those of branches inside it; the caller's.
ot_status ot__branch_conditions(const ot_graph *graph, ot_value ***out, int *n_conditions);
// Of a node at which a branch begins or ends: whether its condition is not known, and that.
bool ot__is_open_branch(const ot_node *node);
ot_value *ot__branch_condition(const ot_node *node);

#endif
