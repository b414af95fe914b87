// SPDX-License-Identifier: Apache-2.0
// Which initializers train, which are kept as frozen parameters, which stay constants, and why.
#ifndef OT_ARTIFACTS_PARAMETERS_H
#define OT_ARTIFACTS_PARAMETERS_H

#include "artifacts/artifacts.h"
#include "artifacts/explain/origins.h"

typedef enum ot__role {
    OT_ROLE_CONSTANT, // stays embedded in the models
    OT_ROLE_FROZEN,   // a parameter without gradient
    OT_ROLE_TRAINABLE,
} ot__role;

typedef struct ot__candidate {
    ot_value *value; // an initializer of the forward model
    ot__role role;
    const char *reason;    // of the model's arena
    bool reaches_loss;     // by some path, also one without gradient
    bool is_blocked;       // would train, but an operator in the way has no support or no gradient
    const ot_node *reader; // the first that computes with it; NULL: none does
    bool has_role;         // read as weight, bias, scale, table or statistic
    ot__origin origin;
    bool is_original;       // of that origin itself, not computed from something of it
    const ot_node *softmax; // its readers only add it to what this one takes; NULL: not so
    bool could_train;       // would train if nobody named anything
    const ot_node *place;   // a Pow or Clip whose exponent or bound it is, the first; NULL: none
    const char *held;       // why it is no parameter although it could train; NULL: it is one
} ot__candidate;

typedef struct ot__candidates { // in initializer order
    ot__candidate *items;
    int n, capacity;
    ot_graph *graph;
    ot_node **batch_norms; // that train with the batch's statistics, in the order of the graph
    int n_batch_norms;
    const ot_node *computed_norm; // the first that would, could its statistics be kept; or NULL
} ot__candidates;

// patterns.c: a list of patterns; they match a value by its name, or by the one that it had in the
// file.
typedef struct ot__patterns {
    const char *const *items; // borrowed
    int n, n_wildcards;
    ot__map names;  // of the items without wildcards -> where they are first
    int *wildcards; // numbers of the others
} ot__patterns;
typedef struct ot__pattern_matches { // of one pattern
    const ot__candidate *first;      // NULL: none
    bool any_parameter;              // not all are constants
} ot__pattern_matches;
ot_status ot__patterns_init(ot__patterns *patterns, const char *const *items, int n);
void ot__patterns_deinit(ot__patterns *patterns); // also after ot__patterns_init failed
bool ot__pattern_is_name(const char *pattern);    // no wildcards
bool ot__pattern_has(const char *pattern, const ot_value *value);
bool ot__patterns_name(const ot__patterns *patterns, const char *name); // as a whole
// The pattern that matches best: a whole name before wildcards. NULL: none.
const char *ot__patterns_match(const ot__patterns *patterns, const ot_value *value);
// One for each pattern, of the arena of the candidates' model.
ot_status ot__patterns_matches(const ot__patterns *patterns, const ot__candidates *candidates,
                               const ot__pattern_matches **out);

// What the options say of parameters.
typedef struct ot__selection {
    const ot_artifacts_options *options;
    ot__patterns trainable, frozen;
} ot__selection;
ot_status ot__selection_init(ot__selection *selection, const ot_artifacts_options *options);
void ot__selection_deinit(ot__selection *selection); // also after ot__selection_init failed

bool ot__has_input(const ot_graph *graph, const char *name);
// All initializers of the graph; also drops them from its inputs, where old models list them.
ot_status ot__candidates_collect(ot_graph *graph, ot__candidates *out);
ot_status ot__candidates_add(ot__candidates *candidates, ot_value *value);
// Give every candidate its role and reason from the patterns and the paths to the loss.
ot_status ot__candidates_classify(ot__candidates *candidates, ot_value *loss,
                                  const ot_artifacts_options *options);
// optimizer_numbers.c: names of groups that match initializers, but none that trains; NULL in *out:
// there are none.
ot_status ot__optimizer_idle_names(const ot_optimizer_options *options, const ot__candidates *c,
                                   const char **out);
// What type, place, patterns and shape say, when `role`, `reason` and `is_blocked` tell the paths.
ot_status ot__candidate_judge_structure(const ot__candidates *candidates, ot__candidate *item,
                                        const ot__selection *selection);
ot_status ot__candidates_find_places(ot__candidates *candidates); // sets place
// purpose.c: sets reader, has_role and softmax.
ot_status ot__candidates_find_purposes(ot__candidates *candidates, const ot__uses *uses);
// match_operators.c
bool ot__is_batch_norm(const ot_node *node);
bool ot__is_constant(const ot_node *node);
bool ot__was_constant(
    const ot_value *value); // by its name, what such a node gave // what a Constant node is
bool ot__is_dropout(const ot_node *node);
bool ot__node_moves(const ot_node *node, int i_input); // its elements to the outputs, as they are
bool ot__node_adds(const ot_node *node);
bool ot__node_takes_scores(const ot_node *node, int i_input); // Softmax, or what has it inside
bool ot__node_makes_probabilities(const ot_node *node);
const char *ot__loss_applies(ot_loss loss); // to scores, itself: an operator; NULL: none
// What inputs behind the first are, of a node that has constants there: "exponent" or "bound".
const char *ot__constants_of(const ot_node *node);
// Its second input holds [in, out]; all others hold [out, in, ...], as PyTorch does.
bool ot__holds_inputs_first(const ot_node *node);
// module.c: of options with names_of_module, that nothing stands for a parameter that is missing.
ot_status ot__candidates_check_module(const ot__candidates *candidates,
                                      const ot__selection *selection);
// hold.c: sets origin and held, and what purposes are.
ot_status ot__candidates_hold(ot__candidates *candidates);
// examine.c: as ot__candidates_classify, by the structure alone, for graphs with unknown operators.
ot_status ot__candidates_examine(ot__candidates *candidates, const ot_artifacts_options *options);
// folded.c: by its name, computed by an exporter from parameters that are gone.
bool ot__candidate_is_folded(const ot__candidate *item, const ot_model *model);
// The number of an earlier candidate with the same elements, for each; -1: none. Of the model's
// arena.
ot_status ot__candidates_find_twins(const ot__candidates *candidates, const int **out);

// batch_norm.c
// Decide per BatchNormalization between batch statistics (ot__candidates.batch_norms) and stored
// ones; running statistics of the first become frozen parameters.
ot_status ot__batch_norm_choose(ot__candidates *candidates, ot_batch_norm mode);
// Inference form: one output, stored statistics.
ot_status ot__batch_norm_to_inference(ot_node *node);
// com.microsoft BatchNormInternal, which trains.
ot_status ot__batch_norm_to_internal(ot_node *node);

#endif
