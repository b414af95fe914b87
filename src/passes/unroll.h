// SPDX-License-Identifier: Apache-2.0
// Shared by fuse_control.c and fuse_unroll.c: nodes with graphs inside that go into the graph
// around them.
#ifndef OT_PASSES_UNROLL_H
#define OT_PASSES_UNROLL_H

#include "passes/passes.h"

// What a Scan reads place by place, or makes so.
typedef struct ot__scanned {
    ot_value *value; // NULL: there is no such input; of an output what the node makes
    int64_t axis;
    bool is_backward; // the last place first
} ot__scanned;
ot__scanned ot__scanned_input(const ot_node *node, int i);

const ot_graph *ot__body_of(const ot_node *node, const char *attr); // NULL: none
// y, which may be NULL, becomes x.
ot_status ot__hand_on(ot_graph *graph, ot_value *x, ot_value *y);
bool ot__is_control(const ot_node *node); // If, Loop or Scan
// fuse_sequence.c: makes, changes or reads a sequence of tensors.
bool ot__is_sequence_node(const ot_node *node);
bool ot__gives_sequence(const ot_node *node);  // makes or changes one
int ot__sequence_decider(const ot_node *node); // its input that decides on places; -1: none
// fuse_to_loop.c: SequenceMap and Scan with a batch become Loop.
ot_status ot__to_loops(ot_graph *graph, bool *has_changed);
// Sequences whose places are known become tensors, in a specialised graph.
ot_status ot__take_sequences(ot_model *model, bool *has_changed);
// Of a specialised graph: the turns of a Loop or Scan as far as count and condition are constants,
// one after the other where a condition may end them. OT_ERR_UNSUPPORTED where there are too many.
ot_status ot__take_turns(ot_model *model, ot_node *node, int64_t *n_left, bool *has_changed);
// The turns of a Loop or Scan stand for it, and *has_changed says so; one that has too many, makes
// more than *n_left nodes, or that a condition may end, stays.
ot_status ot__unroll(ot_graph *graph, ot_node *node, int64_t n_turns, int64_t *n_left,
                     bool *has_changed);

// Where a condition may end a Loop: its next turn, behind which the Loop goes on; its end, when all
// turns are made.
ot_status ot__next_turn(ot_graph *graph, ot_node *loop, int64_t *n_left, bool *has_changed);
ot_status ot__end_turns(ot_graph *graph, ot_node *loop, bool *has_changed);
int64_t ot__turns_made(const ot_node *loop);
bool ot__goes_on_always(const ot_graph *body); // no condition ends the Loop

#endif
