// SPDX-License-Identifier: Apache-2.0
// Regions: several forward nodes that become one operator, with what is their gradient in the same
// graph. Whoever finds them (fuse_attention.c, fuse_group_norm.c, fuse_layer_norm.c) looks at the
// forward nodes alone. Their gradient is what the rules of their operators give (region_grad.c),
// written once more and recognised where the graph has it already, because what is computed alike
// has one class (classes.c).
#ifndef OT_PASSES_REGION_H
#define OT_PASSES_REGION_H

#include "passes/fuse.h"

// ---- classes.c ----

// Values that are computed alike: by the same operator with the same attributes, of values of the
// same classes. For a sorted graph, valid until it changes.
typedef struct ot__classes {
    ot__uses uses;
    int *of; // per value
    int n;
} ot__classes;

ot_status ot__classes_build(const ot_graph *graph, ot__classes *classes);
void ot__classes_deinit(ot__classes *classes);
static inline int ot__class_of(const ot__classes *classes, const ot_value *value)
{
    return classes->of[ot__value_number(&classes->uses.numbers, value)];
}

// ---- regions ----

enum {
    OT_REGION_NODES = 96,
    OT_REGION_INPUTS = 4,
    OT_REGION_PARTS = 8,    // of the gradient of one input
    OT_REGION_READERS = 64, // of a value that a pattern is looked for behind
};

typedef struct ot__region ot__region;
struct ot__region {
    ot_node *nodes[OT_REGION_NODES]; // forward, in the order of the graph
    int n_nodes;
    ot_value *inputs[OT_REGION_INPUTS]; // that a gradient may go to, each once; or NULL
    int n_inputs;
    ot_value *output; // the only one that is read elsewhere
    // Writes the fused nodes: they make `output` and, of `dy`, those `gradients` that are not NULL.
    ot_status (*write)(ot__fusing *f, const ot__region *region);
    const void *what;      // for `write`
    ot__region *otherwise; // a smaller one, where this one has nodes that must stay; or NULL

    ot_value *dy;                          // the gradient of the output; NULL: the graph has none
    ot_value *gradients[OT_REGION_INPUTS]; // of the inputs; NULL: the graph has none
    ot_value *parts[OT_REGION_INPUTS][OT_REGION_PARTS]; // whose sum a gradient is
    int n_parts[OT_REGION_INPUTS];
};

// Adds a node to a region that is being put together, unless it is there. False: it is full.
bool ot__region_add(const ot__numbers *numbers, ot__region *region, ot_node *node);
// The k-th reader of a value, of those that patterns look at; NULL: there are no more.
const ot__use *ot__region_reader(const ot__uses *uses, const ot_value *value, int k);
bool ot__region_has(const ot__region *region, const ot_node *node);
// Whether the node is there that makes the value.
bool ot__region_makes(const ot__region *region, const ot_value *value);
// Whether an attribute, which is f32, keeps a number as exactly as values like `x` do.
bool ot__region_keeps(const ot_value *x, double number);
bool ot__region_has_gradients(const ot__region *region); // any, when it is written
// region_grad.c: appends the gradient of a region with `dy` to the graph, and notes its parts.
// OT_ERR_UNSUPPORTED: a node has none.
ot_status ot__region_derive(ot_graph *graph, ot__region *region);

// Inputs of the regions of normalisations, and of InstanceNormalization.
enum { OT_NORM_X, OT_NORM_SCALE, OT_NORM_BIAS };
// Looks for the region around `node`; *out, of `arena`, stays NULL where there is none.
typedef ot_status (*ot__region_matcher)(const ot__uses *uses, ot_node *node, ot__arena *arena,
                                        ot__region **out);
ot_status ot__match_activation(const ot__uses *uses, ot_node *node, ot__arena *arena,
                               ot__region **out);
ot_status ot__match_attention(const ot__uses *uses, ot_node *node, ot__arena *arena,
                              ot__region **out);
ot_status ot__match_group_norm(const ot__uses *uses, ot_node *node, ot__arena *arena,
                               ot__region **out);
ot_status ot__match_layer_norm(const ot__uses *uses, ot_node *node, ot__arena *arena,
                               ot__region **out);

#endif
