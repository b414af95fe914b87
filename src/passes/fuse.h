// SPDX-License-Identifier: Apache-2.0
// The fusions, one pattern per file fuse_<pattern>.c, and what they share (fuse.c).
#ifndef OT_PASSES_FUSE_H
#define OT_PASSES_FUSE_H

#include "passes/passes.h"

// One row: looks for its pattern in the whole main graph and rewrites every place where it holds.
typedef struct ot__fusion {
    const char *name; // of the file: "fuse_gemm"
    ot_status (*run)(ot_model *model);
} ot__fusion;

ot_status ot__fuse_batch_norm(ot_model *model);
ot_status ot__fuse_cast(ot_model *model); // in mixed precision alone
ot_status ot__fuse_clip(ot_model *model);
ot_status ot__fuse_conv(ot_model *model);
ot_status ot__fuse_elementwise(ot_model *model);
ot_status ot__fuse_gates(ot_model *model);
ot_status ot__fuse_gather(ot_model *model);
ot_status ot__fuse_gemm(ot_model *model);
ot_status ot__fuse_parts(ot_model *model);
ot_status ot__fuse_pool(ot_model *model);
ot_status ot__fuse_products(ot_model *model);
ot_status ot__fuse_slope(ot_model *model);
ot_status ot__fuse_table(ot_model *model);
ot_status ot__fuse_transpose(ot_model *model);

// Gemm, MatMul or FusedMatMul of matrices, or batches of them, whose shapes are known
// (fuse_gemm.c).
bool ot__fuse_is_product(const ot_node *node);

// ---- fuse.c ----

// A graph whose nodes are being exchanged. Those that have gone are detached (ot__node_detach).
typedef struct ot__fusing {
    ot_graph *graph;
    ot__uses uses; // as the graph was at first
} ot__fusing;

// Calls `fuse` for every node that was there at first and still is, then sorts the graph.
ot_status ot__fuse_each(ot_model *model, ot_status (*fuse)(ot__fusing *f, ot_node *node));
// The node that alone reads `value`; NULL when there are others or it is gone already.
ot_node *ot__fuse_only_reader(const ot__fusing *f, const ot_value *value);
// Input i where it is the same in every run; NULL: it is not, or there is no such input.
const ot_tensor *ot__fuse_constant(const ot_node *node, int i);
// The same as one integer; false: it is none.
bool ot__fuse_integer(const ot_node *node, int i, int64_t *number);
// The elements first .. end - 1 along an axis of `whole`, whose extents are numbers, that a Slice
// takes or a SliceGrad gives back, by its inputs from `i` on (starts). False: along several axes,
// in steps, none, or it is not known.
bool ot__fuse_range(const ot_node *node, int i, const ot_shape *whole, int *axis, int64_t *first,
                    int64_t *end);
// The node's attribute `axis`, of a value of shape `whole`; -1: it has no such axis.
int ot__fuse_axis(const ot_node *node, const ot_shape *whole);
// A new initializer of int64.
ot_value *ot__fuse_list(ot__builder *b, const char *name, const int64_t *numbers, int n);
// A node of ai.onnxtrain; its attributes and ot__op_infer are left to the caller.
ot_status ot__fuse_add(ot__fusing *f, const char *op_type, const char *name, ot_value **inputs,
                       int n_inputs, ot_value **outputs, int n_outputs, ot_node **out);
// An elementwise node as ot__tile_read reads it: "LeakyRelu[0.1]".
void ot__fuse_write_tile(ot__buf *text, const ot_node *node);

#endif
