// SPDX-License-Identifier: Apache-2.0
// What the stages of a plan share. Internal to `exec`.
#ifndef OT_EXEC_PLAN_H
#define OT_EXEC_PLAN_H

#include "exec/exec.h"

// ---- order (order.c) ----

// A node of the graph as ordering sees it: numbers of values.
typedef struct ot__order_node {
    const int *reads, *makes;
    const int *overwrites; // values whose memory it changes; they are among `reads`
    const int *becomes;    // for each of them: the value that is the memory's new content, or -1
    int n_reads, n_makes, n_overwrites;
    bool is_ordered; // runs behind the ordered nodes before it
    bool is_early;   // runs as soon as it can
    bool is_late;    // runs when no other can
} ot__order_node;

typedef struct ot__order_problem {
    const ot__order_node *nodes; // in the file's order, which is topological
    int n_nodes;
    const size_t *value_bytes; // 0 for what takes no memory of the plan
    const bool *value_kept;    // needed after the last node
    int n_values;
} ot__order_problem;

// order[k] is the k-th node to run. A node that can never run (it reads what an overwriting node
// has replaced) is named in *stuck and OT_ERR_INVALID returned without a message; else *stuck is
// -1. More dependencies than any model has are OT_ERR_UNSUPPORTED. *peak: most bytes of values
// alive at once in that order.
ot_status ot__order(const ot__order_problem *problem, int *order, size_t *peak, int *stuck);

// ---- the plan ----

typedef enum ot__source {
    OT_SOURCE_INPUT,    // bound from outside
    OT_SOURCE_CONSTANT, // in the model's memory, never written
    OT_SOURCE_STATE,    // a constant that a node writes: the plan's own copy, which lasts
    OT_SOURCE_PLANNED,  // in the block
} ot__source;

// One tensor. A sequence is several entries in a row.
typedef struct ot__entry {
    ot_arg arg;
    const char *name;
    ot__source source;
    int root; // the entry whose memory this one shares; itself when it has its own
    int next; // the next entry with the same root; -1: none
    size_t n_bytes;
    size_t offset;   // PLANNED roots: in the block
    size_t place;    // in the memory of the root
    bool is_written; // roots: some node changes it in place
    bool is_updated; // roots: only updates do, whose results no node of the plan reads
    bool is_old;     // the memory of the root before it is updated
    bool is_direct;  // roots: computed in its accumulation buffer, in some runs at least
    int first, last; // roots: steps that use it, through whatever entry
    int usage;       // roots: its usage record; -1: none
} ot__entry;

typedef struct ot__range {
    int first, count; // entries
} ot__range;

typedef struct ot__plan_step {
    const ot_kernel *kernel;
    ot_run run;
    ot__edges *edges;   // NULL unless the kernel is one for f32 and `run` has f16 or bf16
    const char *label;  // "Gemm 'fc1'"
    const char *reason; // why this kernel; NULL: it is the first, and takes all that there is
    size_t scratch_bytes, scratch_offset, state_bytes;
    bool is_ordered; // runs whatever has failed before it
    double seconds;  // of all runs, when profiling
} ot__plan_step;

// A value that is computed in its accumulation buffer (entries, `value` being a root): in every
// run when step `adder` can add to output `bit`, else (-1) in runs where `flag` says "replace".
typedef struct ot__direct {
    int value, buffer;
    int flag; // -1: none, it adds
    int adder;
    unsigned bit; // in ot_run.accumulates
} ot__direct;

struct ot__plan {
    ot__arena *arena; // everything but the block and the kernels' states
    ot__entry *entries;
    int n_entries;
    ot__plan_step *steps;
    int n_steps;
    int n_before_pause; // steps of the first half; all, when there is no pause
    ot__range *inputs, *outputs;
    ot__direct *direct;
    int n_direct;
    void **bound; // per output: where its elements go after a run, or NULL
    int n_inputs, n_outputs;
    unsigned char *block;
    bool borrows_block;
    size_t block_bytes;
    size_t gradient_bytes; // of the block: for gradients that are added to what is there
    size_t least_bytes;    // the block of any plan with this order and these lifetimes
    ot_step step;          // of the present run
    uint64_t exchange_id;  // of what ranks exchange, in its order
    int n_threads;
    bool profile;
    int64_t n_runs;
    const char *name;
};

// ---- building it ----

typedef struct ot__plan_builder {
    ot_graph *graph;
    const ot__plan_options *options;
    const int *sequence_lengths;
    const ot_shape *const *sequence_shapes;
    ot__plan *plan;
    ot__arena *arena;          // for the time of building
    ot__numbers numbers;       // of the graph; ot__numbers_deinit() is left to whoever built them
    ot__range *ranges;         // per value
    const ot_layout **layouts; // per value; NULL is row-major
    const bool *open;          // per value: its layout is still to be chosen; NULL: none is
    int entries_capacity;
    ot_node **order; // nodes as they run
    bool *is_view;   // per node: runs no kernel
    const ot_op_def **step_ops;
    const ot_node **step_nodes;
} ot__plan_builder;

static inline ot__range ot__builder_range(const ot__plan_builder *b, const ot_value *value)
{
    return b->ranges[ot__value_number(&b->numbers, value)];
}
// Every argument is the first member of its entry.
static inline const ot__entry *ot__entry_of(const ot_arg *arg)
{
    return (const ot__entry *)(const void *)arg;
}
static inline ot__entry *ot__plan_root(const ot__plan *plan, int entry)
{
    return &plan->entries[plan->entries[entry].root];
}

// view.c: one node as its kernels see it before memory exists.
typedef struct ot__view {
    ot_arg *args; // inputs, then outputs
    const ot_arg **in, **out;
    const void **constant;
    const ot_layout **want_in, **want_out;
    int *first;
    bool *open;
    bool is_complete; // every argument is a tensor of known shape; else the node keeps to row-major
    bool is_widened;  // a kernel for f32 runs it, between conversions
} ot__view;
ot_status ot__view_make(const ot__plan_builder *b, const ot_node *node, ot__view *v);
ot_status ot__view_ask(const ot__plan_builder *b, const ot_node *node,
                       ot__view *v); // sets want_in, want_out, is_widened

// layout.c: the layout of every value, and Reorder nodes between layouts.
ot_status ot__build_layout(ot__plan_builder *b);
// entries.c
// values become entries; which of them share memory.
ot_status ot__build_entries(ot__plan_builder *b);
// order_graph.c
ot_status ot__build_order(ot__plan_builder *b);
// lifetimes.c: from steps to a block.
ot_status ot__build_memory(ot__plan_builder *b);

// join.c, between lifetimes and memory: inputs that are made in the memory of an output.
ot_status ot__build_joins(ot__plan_builder *b);

// accumulate.c, between lifetimes and memory
ot_status ot__build_accumulation(ot__plan_builder *b);
void ot__plan_direct_gradients(ot__plan *plan); // before each run, with everything bound

// profile.c
bool ot__profile_wanted(void);
void ot__plan_describe_step(ot__buf *out, const ot__plan *plan, const ot__plan_step *step);
void ot__profile_log(const ot__plan *plan);

#endif
