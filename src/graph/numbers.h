// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `graph`: numbers of values and nodes, and who reads what. Only graph.h
// includes this.
#ifndef OT_GRAPH_NUMBERS_H
#define OT_GRAPH_NUMBERS_H

// ---- numbers (numbers.c) ----
//
// Whoever notes something of values or nodes has arrays of his own, by numbers; nothing is noted in
// the graph. A numbering holds what it has numbered, so it can tell what it knows. A value or node
// has one number at a time: what is numbered anew while a numbering lives is unknown to that one
// from then on, and asking it for the number of what it does not know fails in debug builds.
typedef struct ot__numbers {
    ot_value **values; // by number
    ot_node **nodes;   // by number, which is the node's place in the graph
    int n_values, n_nodes;
    size_t capacity;
} ot__numbers;
// The nodes of the graph, and every value that it, its nodes and their subgraphs mention, in the
// order of mention.
ot_status ot__numbers_build(const ot_graph *graph, ot__numbers *numbers);
// One more value; one that has a number keeps it. For an empty numbering, {0}, too.
ot_status ot__numbers_add(ot__numbers *numbers, ot_value *value);
// The numbers of nodes anew, when the graph's list has become another one.
ot_status ot__numbers_set_nodes(ot__numbers *numbers, const ot_graph *graph);
void ot__numbers_deinit(ot__numbers *numbers);
static inline bool ot__has_number(const ot__numbers *numbers, const ot_value *value)
{
    return value->number < numbers->n_values && numbers->values[value->number] == value;
}
static inline bool ot__has_node_number(const ot__numbers *numbers, const ot_node *node)
{
    return node->number < numbers->n_nodes && numbers->nodes[node->number] == node;
}
static inline int ot__value_number(const ot__numbers *numbers, const ot_value *value)
{
    (void)numbers;
    assert(ot__has_number(numbers, value));
    return value->number;
}
static inline int ot__node_number(const ot__numbers *numbers, const ot_node *node)
{
    (void)numbers;
    assert(ot__has_node_number(numbers, node));
    return node->number;
}

typedef struct ot__casts { // made[i] is of[i] in another type
    ot_value **made, **of;
    int n;
} ot__casts;

// Who reads what: built once, valid until the graph changes.
typedef struct ot__use {
    ot_node *node;
    int i_input; // -1: a subgraph of the node reads it
} ot__use;
typedef struct ot__uses {
    ot__numbers numbers;
    ot__use *use;
    int *first; // use[first[v]] .. use[first[v + 1] - 1] are value v's uses, in node order
} ot__uses;
ot_status ot__uses_build(const ot_graph *graph, ot__uses *uses);
void ot__uses_deinit(ot__uses *uses);
// use[ot__uses_first()] .. use[ot__uses_end() - 1] are the value's.
static inline int ot__uses_first(const ot__uses *uses, const ot_value *value)
{
    return uses->first[ot__value_number(&uses->numbers, value)];
}
static inline int ot__uses_end(const ot__uses *uses, const ot_value *value)
{
    return uses->first[ot__value_number(&uses->numbers, value) + 1];
}
// 0 of a value that the graph did not mention.
static inline int ot__uses_count(const ot__uses *uses, const ot_value *value)
{
    return ot__has_number(&uses->numbers, value)
               ? ot__uses_end(uses, value) - ot__uses_first(uses, value)
               : 0;
}

#endif
