// SPDX-License-Identifier: Apache-2.0
// What the records that move elements or reduce axes share: lists of axes, integers that kernels
// read, known elements that travel with the elements.
#ifndef OT_OPS_MOVE_H
#define OT_OPS_MOVE_H

#include "kernels/kernels.h"
#include "op/op.h"

// ---- axes (axes.c) ----

typedef struct ot__axes {
    int n;
    int axis[OT_MAX_NDIM]; // 0..ndim-1, in the order given
    bool has[OT_MAX_NDIM];
} ot__axes;

typedef enum ot__given {
    OT__ABSENT,
    OT__GIVEN,
    OT__UNKNOWN, // by an input whose elements are not known yet
    OT__FAILED,  // the context has the error
} ot__given;

// False when an axis is out of range or given twice: *bad.
bool ot__axes_init(ot__axes *axes, const int64_t *list, int64_t n, int ndim, int64_t *bad);
// From the attribute (when the node has it) or else the input. attr may be NULL, input -1.
ot__given ot__infer_axes(ot_infer *c, const char *attr, int input, int ndim, ot__axes *axes);
ot__given ot__grad_axes(ot_grad *g, const char *attr, int input, int ndim, ot__axes *axes);
ot__given ot__prep_axes(ot_prep *p, const char *attr, int input, int ndim, ot__axes *axes);
ot_status ot__run_axes(const ot_arg *list, int ndim, ot__axes *axes); // i32 or i64 elements

// ---- elements (move.c) ----

bool ot__all_numbers(const int64_t *values, int n);
// Product of concrete extents; INT64_MAX above that.
int64_t ot__dims_count(const int64_t *dims, int n);
int64_t ot__arg_int(const ot_arg *arg, int64_t i); // an element of an i32 or i64 tensor
// Bytes of an element, where a text is its ot__string; fails for types below a byte.
ot_status ot__prep_element_size(ot_prep *p, const ot_arg *x, size_t *size);
// The outputs' known elements when they are input 0's, moved as `s` says (its size is ignored).
void ot__infer_moved(ot_infer *c, int output, const ot__strided *s);
ot_status ot__run_strided(const ot_run *r); // out 0 = in 0, moved; the state is an ot__strided
ot_status ot__run_view(const ot_run *r);    // out 0 = in 0, byte for byte
extern const ot_kernel ot__view_kernels[];  // of records with OT_OP_VIEW
// Fails, naming position and bound, for the first index out of range that a kernel found at
// `position`.
ot_status ot__index_error(const ot_arg *indices, int64_t position, int64_t extent);

// For rules that need to know how many axes a value, or input 0, has: false, with the error, when
// that is not known.
bool ot__grad_knows_axes(ot_grad *g, const ot_value *x);
bool ot__grad_has_rank(ot_grad *g);

// ---- parts side by side along one axis (parts.c): Concat and Split ----

// Copies between one part and the whole; `from` is the part's first index along `axis`.
typedef enum ot__parts_way { OT__PART_TO_WHOLE, OT__WHOLE_TO_PART } ot__parts_way;
void ot__part_strides(ot__strided *s, const ot_shape *part, const ot_shape *whole, int axis,
                      int64_t from, ot__parts_way way);
// Concat: y is the inputs side by side; false when they do not fit or the axis is unknown (the
// context has the error).
bool ot__infer_concat(ot_infer *c, int axis, ot_shape *y);
ot_status ot__prep_concat(ot_prep *p);
ot_status ot__run_concat(const ot_run *r); // out 1, when there: the parts' extents along the axis
// Split: parts of the given extents along the axis.
void ot__infer_split(ot_infer *c, int axis, const int64_t *sizes);
ot_status ot__prep_split(ot_prep *p);
ot_status ot__run_split(const ot_run *r);

// ---- slices (slice.c) ----

// One axis of Slice: `count` elements from `first` on, `step` apart.
typedef struct ot__slice {
    int64_t first, count, step;
} ot__slice;
ot__slice ot__slice_clamp(int64_t extent, int64_t start, int64_t end, int64_t step);
// The slices of all axes of `shape`, from a kernel's inputs; axes and steps may be NULL.
ot_status ot__run_slices(const ot_shape *shape, const ot_arg *starts, const ot_arg *ends,
                         const ot_arg *axes, const ot_arg *steps, ot__slice slices[OT_MAX_NDIM]);
void ot__slices_strides(const ot_shape *shape, const ot__slice *slices, int64_t *offset,
                        int64_t *strides);

// ---- indexed slices (indexed.c): Gather*, Scatter* and their gradients ----

// How a node's indices name slices of the array `data`; offsets of all slices go into scratch.
typedef struct ot__indexed {
    enum ot__index_way { OT__INDEX_AXIS, OT__INDEX_ELEMENTS, OT__INDEX_ND } way;
    ot_shape data;    // of the indexed array
    ot_shape indices; // of the indices
    int axis;         // AXIS, ELEMENTS: indexed axis; ND: batch_dims
    int64_t n, slice; // slices, and elements of each
    size_t size;      // bytes of an element
    ot__scatter_function scatter;
    ot__scatter_op op;
} ot__indexed;

// The shape of what the indices name; false when they do not fit (the context has the error) or an
// extent that decides the rank is unknown. `axis` as in ot__indexed.
bool ot__infer_indexed(ot_infer *c, enum ot__index_way way, const ot_shape *data,
                       const ot_shape *indices, int64_t axis, ot_shape *slices);
// The same from the node's attribute, once the context is known to be sound: 0..ndim-1.
int64_t ot__indexed_attr(const ot_node *node, enum ot__index_way way);
// Output 0's known elements: those that known indices (input 1) name in known data (input 0).
void ot__infer_gathered(ot_infer *c, enum ot__index_way way, int axis);
// Set the state up, and scratch for the offsets, from port numbers.
ot__indexed *ot__prep_indexed(ot_prep *p, enum ot__index_way way, const ot_arg *data,
                              const ot_arg *indices);
ot_status ot__prep_gather(ot_prep *p, enum ot__index_way way); // in: data, indices
ot_status ot__run_gather(const ot_run *r);
// Gradient of a gather: dX (out 0) = zeros, dY's slices added where they came from.
void ot__infer_gather_grad(ot_infer *c, int shape_input, int dy_input);
ot_status ot__prep_gather_grad(ot_prep *p, enum ot__index_way way, int indices_input, int dy_input);
ot_status ot__run_gather_grad(const ot_run *r, int indices_input, int dy_input);
// Row i of one is row indices[i] of the other, whose first two axes count as one: from `from` to
// `to`; no index may be negative.
ot_status ot__run_rows(const ot_arg *to, const ot_arg *from, const ot_arg *indices,
                       ot__parts_way way);
// out 0 = in 0 with in 2's slices combined into it at in 1.
ot_status ot__prep_scatter(ot_prep *p, enum ot__index_way way);
ot_status ot__run_scatter(const ot_run *r);
// False for a reduction that ONNX does not have.
bool ot__scatter_op_read(const ot_node *node, ot__scatter_op *op);
void ot__infer_scatter(ot_infer *c, enum ot__index_way way);
// Gradients of data and updates (scatter_grad.c), by the operator itself and the one that reads
// what it writes.
void ot__scatter_grad(ot_grad *g, const char *scatter, const char *gather);

// ---- shapes given by inputs (shape_input.c) ----

// The shape that the elements of integer input `input` state; extents may be symbols or unknown.
// False: rank unknown, or failed.
bool ot__infer_shape_input(ot_infer *c, int input, ot_shape *shape);

// ---- expansions (expand_scatter.c) ----

void ot__gather_grad_expand(ot_grad *g);
void ot__gather_elements_grad_expand(ot_grad *g);
void ot__gather_nd_grad_expand(ot_grad *g);
void ot__slice_grad_expand(ot_grad *g);

#endif
