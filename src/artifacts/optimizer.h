// SPDX-License-Identifier: Apache-2.0
// The parts of an optimizer model.
#ifndef OT_ARTIFACTS_OPTIMIZER_H
#define OT_ARTIFACTS_OPTIMIZER_H

#include "artifacts/block.h"

// What one is built of: the options, checked, and the record that is asked for.
typedef struct ot__optimizer_plan {
    const ot_optimizer_options *options;
    const ot_op_def *asked, *op; // op: the record that is written, of the same state
    ot__optimizer_wiring wiring;
    int n_groups;      // those of the options and, where there are any, group 0 of all others
    int n_slots;       // moments that the record reads
    bool has_norm;     // of all gradients
    bool clips_groups; // max_norm_clip is above 0 somewhere
} ot__optimizer_plan;

// optimizer_numbers.c
// Checks the options, whose name is that of an optimizer, and chooses the record.
ot_status ot__optimizer_plan_make(const ot_optimizer_options *options,
                                  const ot__optimizer_wiring *wiring, ot__optimizer_plan *plan);
// The attributes of a node of plan->op, of all parameters or of each group.
void ot__optimizer_set_attrs(ot_block *block, ot_node *node, const ot__optimizer_plan *plan);
#endif
