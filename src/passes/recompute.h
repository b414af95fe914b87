// SPDX-License-Identifier: Apache-2.0
// What the passes that make values again for the backward pass share: which nodes are forward, the
// patterns that options name (match_recompute_*.c), and writing the nodes (recompute.c).
#ifndef OT_PASSES_RECOMPUTE_H
#define OT_PASSES_RECOMPUTE_H

#include "passes/passes.h"

// A graph whose forward nodes come first: all that an output of the user needs. The rest is the
// backward pass.
typedef struct ot__again {
    ot_graph *graph;
    ot__uses uses;    // positions of nodes are their numbers
    ot__arena *arena; // for the time of the pass
    int n_nodes, n_forward;
    bool spares_readers;
    // Per forward node:
    bool *can;       // it can be made again,
    bool *is_copy;   // by a copy; else by the node that its record's callback has made,
    ot_node **made;  // which gives output 0 alone
    bool *is_chosen; // it is made again, if anything needs that
    int *place;      // the backward node before which it is; n_nodes: nothing needs it
} ot__again;

// Sorts the graph and numbers it. `outputs`: the user's, by position. `spares_readers`: what reads
// the graph's inputs cannot be made again.
ot_status ot__again_start(ot__again *a, ot_graph *graph, const int *outputs, int n_outputs,
                          bool spares_readers);
// Whether a node reads an input of its graph.
bool ot__reads_graph_input(const ot_node *node);
// Sets `place` for what is chosen.
void ot__again_find_places(ot__again *a);
// Puts the nodes in. Afterwards only ot__again_deinit() is left to do.
ot_status ot__again_write(ot__again *a);
void ot__again_deinit(ot__again *a);

// Whether the backward pass has output `i` of a forward node with a place from the node that is
// made again.
static inline bool ot__again_gives(const ot__again *a, int node, int i)
{
    return a->is_copy[node] || i == 0;
}

// Whether a node is made again.
static inline bool ot__again_has_place(const ot__again *a, int node)
{
    return node < a->n_forward && a->is_chosen[node] && a->place[node] < a->n_nodes;
}

// Which nodes the user's outputs need; marks has one per node, and the graph is sorted.
ot_status ot__find_forward(const ot_graph *graph, const ot__numbers *numbers, const int *outputs,
                           int n_outputs, bool *marks);

// ---- patterns, in a graph that is specialised, of which only regions are fused ----

typedef struct ot__matching {
    ot_graph *graph;
    ot__uses uses;
    bool *is_forward; // per node
    ot__recompute_regions *out;
} ot__matching;

// The k-th node of the forward pass that reads `value`; NULL: there are not so many.
ot_node *ot__forward_reader(const ot__matching *m, const ot_value *value, int k);
// The first value that is not only `value` in another shape, order or type, upwards.
ot_value *ot__before_rearranging(ot_value *value);
// Softmax and both products of attention in one.
bool ot__match_attention_node(const ot_node *node);
bool ot__match_product(const ot_node *node); // MatMul, Gemm and their fused forms
// What lies between `first` and `last`, up to what the first product behind `last` reads, with
// other shapes, types and a Dropout between; *n: one more where there is such a product.
ot_status ot__add_region_to_product(ot__matching *m, ot_value *first, ot_value *last, int *n);
// The value that a Gelu makes of `*x`, which `node` is or belongs to; NULL: it does not.
ot_value *ot__match_gelu(const ot__matching *m, ot_node *node, ot_value **x);
// What lies between `first` and `last`, whose node belongs to it where `has_last`.
ot_status ot__add_region(ot__matching *m, ot_value *first, ot_value *last, bool has_last);

// Each adds its regions; *n: how many.
ot_status ot__match_recompute_attention(ot__matching *m, int *n);
ot_status ot__match_recompute_gelu(ot__matching *m, int *n);
// Of the first `n_layers` layers, 0: of all but the last.
ot_status ot__match_recompute_layer(ot__matching *m, int n_layers, bool warns);

#endif
