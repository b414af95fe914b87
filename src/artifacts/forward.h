// SPDX-License-Identifier: Apache-2.0
// The forward model made ready: prepared, with its loss, with the role of every initializer.
#ifndef OT_ARTIFACTS_FORWARD_H
#define OT_ARTIFACTS_FORWARD_H

#include "artifacts/parameters.h"

typedef struct ot__name_list {
    const char **names;
    int n;
} ot__name_list;

typedef struct ot__forward {
    ot_model *model;
    ot_value *loss;
    ot__name_list given; // outputs that the model had of its own
    ot__candidates candidates;
    ot_value **inputs; // those whose gradients are summed as parameters' are, in graph order
    int n_inputs;
    bool is_classified;
    bool has_lost;   // parameters that preparing has named
    ot__note *notes; // strings of the model's arena
    int n_notes, notes_capacity;
    ot__optimizer_wiring wiring; // what is asked of the optimizer model
} ot__forward;

// The caller's options as structs of this version: what `options` points to is there, too.
typedef struct ot__options_taken {
    ot_artifacts_options options;
    ot_optimizer_options optimizer;
    ot_param_group *groups;
    ot_loss_options *losses;
} ot__options_taken;
ot_status ot__options_take(const ot_artifacts_options *given, ot__options_taken *taken);
void ot__options_drop(ot__options_taken *taken); // also after a failure
// What becomes of operators that are not known.
typedef enum ot__foreign { OT_FOREIGN_REFUSED, OT_FOREIGN_CARRIED } ot__foreign;
// A copy of the model, put right unless the options say otherwise, prepared, with its initial
// values drawn and its candidates.
ot_status ot__forward_open(const ot_model *model, const ot_artifacts_options *options,
                           ot__foreign foreign, ot__forward *forward);
// named_copies.c: copies of initializers that the options name become initializers.
ot_status ot__named_copies_take(ot_graph *graph, const ot_artifacts_options *options);
// The losses of the options behind it (none: its first output is the loss), the outputs, the roles.
ot_status ot__forward_close(ot__forward *forward, const ot_artifacts_options *options);
// Both. On failure what there is stays, for reports; ot__forward_deinit in any case.
ot_status ot__forward_build(const ot_model *model, const ot_artifacts_options *options,
                            ot__foreign foreign, ot__forward *forward);
// masters.c: what trains and is f16 or bf16 becomes f32, behind a Cast.
ot_status ot__forward_widen(ot__forward *forward);
// reach.c: OT_ERR_INVALID naming the float initializers that are read but do not reach the loss;
// notes on what is read by nothing or does not train.
ot_status ot__forward_check_reach(ot__forward *forward);
// Adds a note; `text` NULL is OT_ERR_NO_MEMORY.
ot_status ot__forward_note(ot__forward *forward, ot_log_level level, const char *text);
// loss_fit.c: notes on scores that went through the softmax or sigmoid that their loss does itself.
ot_status ot__losses_judge(ot__forward *forward, const ot_artifacts_options *options);
// unsure.c: notes on what trains although nothing says that it is a parameter.
ot_status ot__forward_note_unsure(ot__forward *forward, const ot_artifacts_options *options);
// folded.c: what trains in place of parameters that an exporter computed away, and how to export
// instead, where preparing has not named them.
ot_status ot__forward_note_folded(ot__forward *forward);
void ot__forward_deinit(ot__forward *forward);

#endif
