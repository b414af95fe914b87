// SPDX-License-Identifier: Apache-2.0
// Interface of `exec`: from a specialised graph to a plan (order, kernels, layouts, memory) and
// running it.
#ifndef OT_EXEC_EXEC_H
#define OT_EXEC_EXEC_H

#include "graph/graph.h"
#include "op/op.h"

// ---- memory planning (memory.c): a pure function of usage records ----

typedef struct ot__usage {
    int first, last; // steps that use it, both included
    size_t n_bytes;
    int alias_of;  // >= 0: wants the memory of that earlier record (in place); -1: none
    size_t offset; // result, 64-byte aligned
} ot__usage;
// Fills in the offsets; total is the size of the block. An alias is granted when the earlier record
// ends in the step the later one begins in and both are of one size; else it is ignored.
ot_status ot__memory_plan(ot__usage *usages, int n_usages, size_t *total);
// The largest sum of live bytes over all steps: no plan can be smaller.
size_t ot__memory_lower_bound(const ot__usage *usages, int n_usages);

// ---- plans ----

typedef struct ot__plan ot__plan;

typedef struct ot__plan_options {
    int n_threads;       // 0: all
    bool reproducible;   // only THREAD_EXACT kernels
    bool reference_only; // OT_KERNELS=ref
    bool borrow_block;   // the block of memory is the caller's: ot__plan_set_block
    size_t memory_max; // 0: no ceiling; else a plan that needs more is refused, naming its largest
                       // values
    size_t *excess;    // where it is refused: bytes above the ceiling; NULL: not asked
    const ot_layout *const *input_layouts; // per graph input; NULL: all are row-major
} ot__plan_options;

// `graph` is sorted, checked and specialised (every shape static). Planning puts Reorder nodes into
// it; the plan keeps no pointer into it but to the model's constants, so the model must outlive the
// plan. sequence_lengths[i]: number
// of tensors of graph input i when it is a sequence (their shapes in sequence_shapes[i]), else 0;
// both arrays may be NULL when no input is a sequence.
ot_status ot__plan_create(ot_graph *graph, const ot__plan_options *options,
                          const int *sequence_lengths, const ot_shape *const *sequence_shapes,
                          ot__plan **out);
void ot__plan_destroy(ot__plan *plan);
// Puts the nodes into the order in which a plan of the graph, which is as above, would run them.
ot_status ot__plan_sort(ot_graph *graph, const int *sequence_lengths,
                        const ot_shape *const *sequence_shapes);

// undo_casts.c: nodes that kernels for f32 run read what casts to f16 or bf16 were made of, not
// what they made; not with reference kernels, which compute what the graph says. The graph is as
// for ot__plan_create.
ot_status ot__plan_undo_casts(ot_graph *graph, const ot__plan_options *options,
                              const ot__casts *casts);

// Packed layouts (parameter_layouts.c) of the parameters of a training graph, which is as for
// ot__plan_create and not changed: the layout that all kernels reading a parameter want, when its
// gradient's kernel writes it into the accumulation buffer too; else NULL, which is row-major.
// parameter_of[i]: number of the parameter that graph input i holds, buffer_of[i]: of the one whose
// gradient is accumulated there; -1: none. Forms live as long as the program.
ot_status ot__plan_choose_layouts(ot_graph *graph, const ot__plan_options *options,
                                  const int *parameter_of, const int *buffer_of,
                                  const ot_layout **layouts, int n_parameters);

// Inputs and outputs by position in the graph; a sequence input has several entries. Bound memory
// is row-major or in the layout that the options gave, must hold the value's bytes, and stays bound
// until bound anew. Inputs that are constants of the model are not bound.
int ot__plan_input_entries(const ot__plan *plan, int i_input);
void ot__plan_bind_input(ot__plan *plan, int i_input, int entry,
                         const void *data); // STATE inputs are written
// Output NULL: stays in the plan's own memory, readable by ot__plan_output until the next run.
void ot__plan_bind_output(ot__plan *plan, int i_output, void *data);
const ot_arg *ot__plan_input(const ot__plan *plan, int i_input, int entry); // type, shape, layout
const ot_arg *ot__plan_output(const ot__plan *plan, int i_output);
bool ot__plan_writes_input(const ot__plan *plan, int i_input); // some node changes it in place
// The same on ranks that exchange the same in the same order while the plan runs.
uint64_t ot__plan_exchange_id(const ot__plan *plan);
// Every input that a node reads and every output must have been bound (outputs: or left to the
// plan). Calls no ot__alloc.
ot_status ot__plan_run(ot__plan *plan, const ot_step *step);
// The same in two halves: until behind the node with OT_OP_PAUSE, where all outputs that are bound
// must be there, and the rest, for which all must still be bound and the block as it was. A plan
// without such a node is run by the first.
ot_status ot__plan_begin(ot__plan *plan, const ot_step *step);
ot_status ot__plan_finish(ot__plan *plan);
size_t ot__plan_bytes(const ot__plan *plan);           // activations and scratch, and of these
size_t ot__plan_scratch_bytes(const ot__plan *plan);   // that of the step that takes most, and
size_t ot__plan_gradient_bytes(const ot__plan *plan);  // gradients until they are accumulated
size_t ot__plan_structure_bytes(const ot__plan *plan); // all but the block and what libraries keep
// For plans that borrow: ot__plan_bytes bytes, 64-byte aligned, which plans that never run at the
// same time may share. Outputs that were left to the plan are gone when another plan runs.
void ot__plan_set_block(ot__plan *plan, void *block);
// One line per step: operator, kernel, shapes, layouts, offsets; for `info --plan` and OT_PROFILE
// (with times).
ot_status ot__plan_describe(const ot__plan *plan, ot__buf *out);
ot_status ot__plan_write_json(const ot__plan *plan, ot__buf *out);

#endif
