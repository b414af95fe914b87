// SPDX-License-Identifier: Apache-2.0
// What Resize and its gradient share. Private to `ops`.
#ifndef OT_OPS_RESIZE_H
#define OT_OPS_RESIZE_H

#include "kernels/kernels.h"
#include "op/op.h"

enum { OT__RESIZE_X, OT__RESIZE_ROI, OT__RESIZE_SCALES, OT__RESIZE_SIZES }; // inputs
// Nearest neighbours as ONNX Runtime finds them before opset 11, where ONNX says nothing: an
// attribute that is left to tools.
#define OT__RESIZE_OLD "__before_11"

typedef enum ot__resize_aspect {
    OT__ASPECT_STRETCH,
    OT__ASPECT_NOT_LARGER,
    OT__ASPECT_NOT_SMALLER,
} ot__resize_aspect;

// The attributes, and which axes the inputs are about: position[k] of the lists is axis k's, or -1.
typedef struct ot__resize {
    ot__resize_line line; // without what axes have of their own
    int n_listed, position[OT_MAX_NDIM];
    ot__resize_aspect aspect;
    double fill;
} ot__resize;

// What the node says of an input of so many axes; false with the failure in `c`, which is NULL
// where inference has seen it.
bool ot__resize_read(ot_infer *c, const ot_node *node, int ndim, ot__resize *r);
// The shape of the result for x, as far as known; the inputs behind X are there from `first` on.
bool ot__resize_infer(ot_infer *c, const ot_shape *x, int first, ot_shape *y);

// Lines of x (n axes) as they become those of y: the region of interest and the scale of each axis,
// by the elements of the inputs that are given; sizes or scales are.
void ot__resize_lines(const ot__resize *r, const ot_shape *x, const ot_shape *y, const double *roi,
                      const double *scales, const double *sizes, ot__resize_line *lines);

// ---- resize_passes.c ----

enum { OT__RESIZE_LIST = 2 * OT_MAX_NDIM }; // elements of roi, scales and sizes, at most

typedef struct ot__resize_pass {
    ot__line_map map;
    int64_t outer, inner;
} ot__resize_pass;

// From x to y or, of a gradient, from y to x; axes that stay as they are have no pass.
typedef struct ot__resize_passes {
    int n;
    ot__resize_pass pass[OT_MAX_NDIM];
    int64_t most; // elements between passes; 0 where there is one pass at most
} ot__resize_passes;

// OT_ERR_INVALID where scales or regions cannot be.
ot_status ot__resize_check(const ot__resize_line *lines, int n);
// Pairs of an index and a weight that each line's sums have, and at most may have by its sizes.
void ot__resize_count(const ot__resize_line *lines, int n, int64_t *n_pairs);
void ot__resize_bound(const ot__resize *r, const ot_shape *x, const ot_shape *y, int64_t *n_pairs);
// Bytes of the memory that ot__resize_make() takes; false: too many.
bool ot__resize_bytes(const ot_shape *x, const ot_shape *y, const int64_t *n_pairs,
                      bool is_gradient, size_t *n_bytes);
int64_t ot__resize_most(const ot_shape *x, const ot_shape *y, bool is_gradient);
void ot__resize_make(ot__resize_passes *passes, const ot__resize_line *lines, const ot_shape *x,
                     const ot_shape *y, const int64_t *n_pairs, double fill, bool is_gradient,
                     char *memory);

#endif
