// SPDX-License-Identifier: Apache-2.0
// Which parameter of which module an input of a node stands for, as far as PyTorch's exporters say.
#ifndef OT_PASSES_OWNER_H
#define OT_PASSES_OWNER_H

#include "graph/graph.h"
#include "op/op.h"

typedef enum ot__owner_source {
    OT_OWNER_NONE,    // nothing says
    OT_OWNER_CLASSIC, // the node's name, "/enc/enc.0/Gemm"
    OT_OWNER_SCOPES,  // metadata: the path of modules
    OT_OWNER_EXACT,   // metadata: the operator's arguments before the export
} ot__owner_source;

typedef struct ot__owner {
    ot__owner_source source;
    const char *module;    // "enc.0"; "" is the model itself; NULL: nothing says
    const char *parameter; // OT_OWNER_EXACT: "enc.0.weight"
    bool is_buffer;        // OT_OWNER_EXACT: the framework does not train it
    bool is_unit; // a buffer of ones or zeros that the module has not; only its call says so
} ot__owner;

// What a graph says of its modules. Texts are of the model's arena.
typedef struct ot__owners {
    ot_graph *graph;
    const char **parameters; // names, sorted
    const char **nodes;      // names, sorted
    int n_parameters, n_nodes;
    ot__map signature; // of the exported program: what its inputs are, by their names in it
    ot__map targets;   // the same by the names of parameters and buffers
    struct ot__placeholder **inputs; // the same in order
    int n_inputs, inputs_capacity;
    struct ot__node_owners *found; // per node, by its address: what was asked for so far
} ot__owners;

ot_status ot__owners_init(ot__owners *owners, ot_graph *graph);
void ot__owners_deinit(ot__owners *owners);
// `leaf` is what PyTorch calls a parameter that is read so, "weight"; "" when nothing says.
ot_status ot__owner_find(const ot__owners *owners, const ot_node *node, const char *leaf,
                         ot__owner *out);

static inline bool ot__is_word_character(char c)
{
    return ot__is_letter(c) || ot__is_digit(c) || c == '_';
}

// ---- owner_newer.c ----

// What the newer exporter lists of the exported program: "p_l_weight: PARAMETER target='l.weight'".
ot_status ot__owners_read_signature(ot__owners *owners, const char *text);
// As ot__owner_find(), of a node that has a path of modules, `scopes`.
ot_status ot__owner_find_newer(const ot__owners *owners, const ot_node *node, const char *scopes,
                               const char *leaf, ot__owner *out);
// Does the exported program have a parameter of this name?
bool ot__owners_list(const ot__owners *owners, const char *name);
// The parameter of the exported program that the node had as bias there; NULL: none, or nothing
// says.
const char *ot__owner_bias(const ot__owners *owners, const ot_node *node);
// The exporter computed this tensor, and from no parameter or buffer of the exported program.
ot_status ot__owner_is_nobody(const ot__owners *owners, const ot_value *value, bool *out);
// Parameters of the exported program that are no tensor of the graph any more, in the order of the
// signature. Lists are of the model's arena.
typedef struct ot__missing {
    const char **lost;   // operators took them, or something was computed from them
    const char **unused; // nothing in the graph mentions them
    int n_lost, n_unused;
} ot__missing;
ot_status ot__owners_missing(const ot__owners *owners, ot__missing *out);

#endif
