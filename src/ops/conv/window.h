// SPDX-License-Identifier: Apache-2.0
// The geometry of sliding windows from a node's attributes. Private to `ops`.
#ifndef OT_OPS_WINDOW_H
#define OT_OPS_WINDOW_H

#include "kernels/kernels.h"
#include "op/op.h"

// Of kernels, strides, dilations and pads: products cannot overflow.
enum { OT__WINDOW_EXTENT_MAX = 1 << 24 };

// strides, dilations, pads, auto_pad, kernel_shape and group as a Conv has them; entries for all
// spatial axes.
typedef struct ot__geometry {
    int n_axes;
    int64_t kernel[OT__WINDOW_AXES], stride[OT__WINDOW_AXES], dilation[OT__WINDOW_AXES];
    int64_t pad[OT__WINDOW_AXES], pad_end[OT__WINDOW_AXES];
    enum { OT__PAD_GIVEN, OT__PAD_SAME_UPPER, OT__PAD_SAME_LOWER } padding;
    bool ceil_mode;
} ot__geometry;

// Reads and checks the attributes for an input of shape x; kernel NULL: from kernel_shape. Returns
// NULL, or what is wrong (static text).
const char *ot__geometry_read(ot__geometry *g, const ot_node *node, const ot_shape *x,
                              const int64_t *kernel);
// Output extent along spatial axis a for input extent n (a number); also settles SAME padding for
// that axis.
int64_t ot__geometry_out(ot__geometry *g, int a, int64_t n);
// Settles SAME padding for an input of shape x, whose spatial extents are numbers.
void ot__geometry_settle(ot__geometry *g, const ot_shape *x);
// Spatial extents of y from those of x, symbolic where x's are; false after a failure.
bool ot__geometry_infer(ot_infer *c, ot__geometry *g, const ot_shape *x, ot_shape *y);
// The window for concrete shapes x and y (batch, channels, spatial...).
ot__window ot__window_make(const ot__geometry *g, const ot_shape *x, const ot_shape *y);
// Sets explicit strides, dilations, pads, kernel_shape (and group) on a node that a rule emits, for
// input shape x; false (and a failure of g) when SAME padding needs extents that are symbolic.
bool ot__geometry_emit(ot_grad *g, ot_node *node, ot__geometry *geometry, const ot_shape *x,
                       bool with_kernel);

// Sets attribute pads alone.
void ot__geometry_emit_pads(ot_grad *g, ot_node *node, const ot__geometry *geometry);

extern const ot_attr_spec
    ot__conv_attrs[]; // auto_pad, dilations, group, kernel_shape, pads, strides

// The problem of a convolution of x by w; y's spatial extents are taken from `y`.
ot__conv ot__conv_make(const ot__geometry *g, const ot_shape *x, const ot_shape *w,
                       const ot_shape *y, int64_t groups);
size_t ot__conv_scratch_bytes(const ot__conv *p, ot_dtype dtype); // of the columns

#endif
