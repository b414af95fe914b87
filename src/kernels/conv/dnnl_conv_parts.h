// SPDX-License-Identifier: Apache-2.0
// Descriptions of a convolution for oneDNN (dnnl_conv_parts.c).
#ifndef OT_KERNELS_DNNL_CONV_PARTS_H
#define OT_KERNELS_DNNL_CONV_PARTS_H

#include "kernels/dnnl_primitives.h"

enum { SPATIAL = 2 }; // the first axis of a window

// Everything that the primitives of one problem are made from.
typedef struct ot__conv_parts {
    dnnl_memory_desc_t x, y, b, w_any, w; // w: in the layout it comes in
    dnnl_memory_desc_t x_given, y_given;  // as they come; x and y: as the primitive has them
    dnnl_memory_desc_t db, dw_any, dw;    // f32
    dnnl_dims_t strides, dilations, pads, pads_end;
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr, plain_attr;
    dnnl_primitive_desc_t forward, backward; // backward: NULL for the forward direction
    int64_t n_chunks; // of whole images, x and y being those of one; 0: all at once
    bool has_bias, wants_dw, wants_db;
} ot__conv_parts;

// Layouts in which a primitive has the images.
typedef struct ot__conv_way {
    const ot_layout *x, *y;
} ot__conv_way;

// A problem over two axes that has the same elements at the same places.
typedef struct ot__conv_raised {
    ot__dnnl_conv c;
    ot_shape x, w, y;
    int64_t strides[2], dilations[2], pads[2];
} ot__conv_raised;
// Of one channel a group oneDNN has fast code over two axes only.
bool ot__conv_is_raised(const ot__dnnl_conv *c);
// `c`, or where that is faster the same over two axes, kept by `r`.
const ot__dnnl_conv *ot__conv_raise(const ot__dnnl_conv *c, ot__conv_raised *r);

// The problem of a direction, and its description with the number of threads that the primitive
// will run with.
ot__dnnl_convolution ot__conv_problem(const ot__conv_parts *p, ot__dnnl_direction direction,
                                      bool has_bias);
dnnl_status_t ot__conv_describe_primitive(const ot__conv_parts *p,
                                          const ot__dnnl_convolution *problem,
                                          const_dnnl_primitive_attr_t attr,
                                          dnnl_primitive_desc_t *pd);
// All parts with the forward direction, and with another one. p->n_chunks 0: the whole problem at
// once. Also after a failure they are to be forgotten.
dnnl_status_t ot__conv_describe(const ot__dnnl_conv *c, const ot__conv_way *images,
                                ot__conv_parts *p);
dnnl_status_t ot__conv_describe_direction(const ot__dnnl_conv *c, const ot__conv_way *images,
                                          ot__dnnl_direction direction, ot__conv_parts *p);
// Whether oneDNN's name for the implementation begins so.
bool ot__conv_is_called(const ot__conv_parts *p, const char *start);
// What oneDNN calls "ref:any" computes element by element, hundreds of times slower.
bool ot__conv_is_reference(const ot__conv_parts *p);
void ot__conv_forget(ot__conv_parts *p);

#endif
