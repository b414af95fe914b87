// SPDX-License-Identifier: Apache-2.0
// Shared by the files of `graph`: what a model holds beyond its arena, and its symbols.
#ifndef OT_GRAPH_INTERNAL_H
#define OT_GRAPH_INTERNAL_H

#include <stdatomic.h>

#include "graph/graph.h"

// Something that lives as long as the last model that refers to it. Counted: a clone refers to what
// its original held when it was made. Clones may die on other threads.
typedef struct ot__held {
    atomic_int count;
    ot__arena *arena; // exactly one of the three is there
    ot__file_map map;
    const char
        *map_name; // in the arena of the model that took the map, which outlives it; NULL: none
    ot_tensor *tensor;
    bool is_constant; // the tensor was made for a value or an attribute of a model
} ot__held;

struct ot__holdings {
    atomic_int n_owners; // besides the first: ot__model_acquire
    ot__held **items;    // the model's own arena is the first
    int n_items, items_capacity;
    ot_graph **graphs; // every graph of the model, for the maps in them
    int n_graphs, graphs_capacity;
    ot__map suffixes; // base of a new name -> the last number tried behind it
    struct {          // the input that was asked for last, so that asking for all is one walk
        ot_value **inputs;
        int n_inputs, n_initializers; // what the graph had
        int index, at;                // its number, and where it is among the graph's
    } asked;
};

// dim.c
ot_status ot__symbols_create(ot_model *model);
ot_status ot__symbols_copy(const ot_model *from, ot_model *to); // extents keep their coding
void ot__symbols_deinit(ot_model *model);

// model.c
// As ot__model_hold_tensor, for what ot__model_release_constants may let go of.
ot_status ot__model_hold_constant(ot_model *model, ot_tensor *tensor);
// The held map in which these bytes are; NULL: none.
const ot__file_map *ot__model_map_around(const ot_model *model, const void *bytes, size_t n_bytes);
void ot__model_release_constants(ot_model *model,
                                 bool (*is_used)(void *context, const ot_tensor *tensor),
                                 void *context);

bool ot__graph_adopt_value(ot_graph *graph, ot_value *value); // node.c: under its name

bool ot__domain_same(const char *a, const char *b); // "ai.onnx" is ""

// copy.c: copies of nodes and graphs, to another model or within one
typedef struct ot__copy_scope {
    const ot_graph *from;
    ot_graph *to;
    ot__map renamed; // names in `from` -> values of `to`, when the copier renames
    struct ot__copy_scope *outer;
} ot__copy_scope;

typedef struct ot__copier {
    bool rename; // copies get new names and lose what is known of their shapes; else everything
                 // stays
    // What stands for an attribute that refers to a function's: NULL drops it. NULL function: kept
    // as it is.
    ot_status (*resolve)(void *context, const ot_node *node, const ot_attr *attr,
                         const ot_attr **out);
    void *context;
    const ot_value *omitted; // stands for an input that a call leaves out
} ot__copier;

// The copy of `value`; one that no scope owns stands for itself.
ot_status ot__copy_value(const ot__copier *copier, ot__copy_scope *scope, ot_value *value,
                         ot_value **out);
ot_status ot__copy_node(const ot__copier *copier, ot__copy_scope *scope, const ot_node *node,
                        ot_node **out);
ot_status ot__copy_graph(const ot__copier *copier, ot__copy_scope *scope);

// sort.c: a node on a cycle, or NULL (also when out of memory). Assigns the scratch indices.
const ot_node *ot__graph_find_cycle(ot_graph *graph);

#endif
