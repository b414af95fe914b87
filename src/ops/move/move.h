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
ot_status ot__prep_strided(ot_prep *p, const ot__strided *s); // its size is input 0's
// out 0 = in 0, moved by that
ot_status ot__run_strided_simd(const ot_run *r);
ot_status ot__run_strided_ref(const ot_run *r);
// The entries of a record whose run_simd and run_ref differ in how they copy; the first may take
// layouts.
#define OT__STRIDED_LAYOUTS_KERNELS(layouts, prepare, run)                                         \
    OT__LAYOUTS_KERNEL(NULL, NULL, layouts, prepare, run##_simd),                                  \
        OT__REF_KERNEL(NULL, prepare, run##_ref)
#define OT__STRIDED_KERNELS(prepare, run) OT__STRIDED_LAYOUTS_KERNELS(NULL, prepare, run)
// Of records with OT_OP_VIEW: output 0 is input 0, byte for byte, with its known elements.
extern const ot_kernel ot__view_kernels[];
void ot__infer_view(ot_infer *c, const ot_shape *y);
// Fails, naming position and bound, for the first index out of range that a kernel found at
// `position`.
ot_status ot__index_error(const ot_arg *indices, int64_t position, int64_t extent);

// Copies between one part and the whole, which lie in one layout and fit into it; `from` is the
// part's first index along `axis`.
typedef enum ot__parts_way { OT__PART_TO_WHOLE, OT__WHOLE_TO_PART } ot__parts_way;
void ot__part_strides(ot__strided *s, const ot_layout *layout, const ot_shape *part,
                      const ot_shape *whole, int axis, int64_t from, ot__parts_way way);

// ---- indexed slices (indexed.c): Gather*, Scatter* and their gradients ----

// How a node's indices name slices of the array `data`; offsets of all slices go into scratch.
typedef struct ot__indexed {
    enum ot__index_way { OT__INDEX_AXIS, OT__INDEX_ELEMENTS, OT__INDEX_ND } way;
    ot_shape data;         // of the indexed array
    ot_shape indices;      // of the indices
    int axis;              // AXIS, ELEMENTS: indexed axis; ND: batch_dims
    int64_t n, slice;      // slices, and elements of each
    size_t size;           // bytes of an element
    ot__index_lines lines; // of kernels for single elements
    ot__put_function put;
    ot__scatter_function scatter;
    ot__scatter_op op;
} ot__indexed;

const char *ot__indexed_attr(enum ot__index_way way); // that states the axis
// The shape of what input 1, the indices, name in input 0; false when they do not fit (the context
// has the error) or an extent that decides the rank is unknown.
bool ot__infer_indexed(ot_infer *c, enum ot__index_way way, ot_shape *slices);
// Offsets of known indices, of slices with n_elements together; x->way is given, the rest filled
// in. False: nothing is known. *bad: -1, or the position of an index out of range of *extent.
bool ot__infer_offsets(ot_infer *c, ot__indexed *x, int64_t n_elements, int64_t *offset,
                       int64_t *bad, int64_t *extent);
// Set the state up; then scratch for the offsets.
ot__indexed *ot__prep_indexed(ot_prep *p, enum ot__index_way way, const ot_arg *data,
                              const ot_arg *indices);
ot_status ot__prep_offsets(ot_prep *p, ot__indexed *x, int64_t n_elements);
ot_status ot__run_offsets(const ot_run *r, const ot_arg *indices); // into scratch
// The state of kernels for single elements: NULL when it failed. x->put is NULL for types that `op`
// is not for.
ot__indexed *ot__prep_lines(ot_prep *p, const ot_arg *data, const ot_arg *indices,
                            ot__scatter_op op);
// Fails when there is an index out of range at position `bad`, not -1.
ot_status ot__index_lines_status(const ot__indexed *x, const ot_arg *indices, int64_t bad);

// ---- shapes and types given by inputs and attributes (shape_input.c) ----

// The shape that the elements of integer input `input` state; extents may be symbols or unknown.
// False: rank unknown, or failed.
bool ot__infer_shape_input(ot_infer *c, int input, ot_shape *shape);
// Output 0 has it, if it is known, and type `dtype`.
void ot__infer_stated(ot_infer *c, int input, ot_dtype dtype);
// The element type that integer attribute `attr` states, one of the record's type variable
// `variable`; `otherwise` where it is not given. False: the context has the error.
bool ot__infer_dtype_attr(ot_infer *c, const char *attr, const char *variable, ot_dtype otherwise,
                          ot_dtype *dtype);
// The size of an axis that the model states for an output, where only elements decide on it;
// `otherwise` where it states none.
int64_t ot__infer_stated_dim(const ot_infer *c, int output, int axis, int64_t otherwise);
// Whether the plan has as many as there are, where a shape follows from elements that it did not
// see.
ot_status ot__check_planned(int64_t found, const char *what, int64_t planned);

// ---- expansions (expand_scatter.c) ----

void ot__gather_grad_expand(ot_grad *g);
void ot__gather_elements_grad_expand(ot_grad *g);
void ot__gather_nd_grad_expand(ot_grad *g);
void ot__slice_grad_expand(ot_grad *g);

#endif
