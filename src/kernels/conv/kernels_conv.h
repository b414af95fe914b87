// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: sliding windows, and convolution over them. Only kernels.h
// includes this.
#ifndef OT_KERNELS_KERNELS_CONV_H
#define OT_KERNELS_KERNELS_CONV_H

#include "kernels/kernels_dnnl.h"
#include "kernels/kernels_nn.h"

// A window over one to three spatial axes, always written as three (missing ones have extent 1 in
// front). Output position o and kernel position k meet input position o * stride - pad + k *
// dilation.
enum { OT__WINDOW_AXES = 3 };
typedef struct ot__window {
    int64_t in[OT__WINDOW_AXES], out[OT__WINDOW_AXES], kernel[OT__WINDOW_AXES];
    int64_t stride[OT__WINDOW_AXES], dilation[OT__WINDOW_AXES], pad[OT__WINDOW_AXES];
    int64_t n_in, n_out, n_kernel; // products
} ot__window;

// ---- ref_columns.c ----

#define OT_DECLARE(suffix, T)                                                                      \
    /* columns (c, n_kernel, n_out): what each kernel position sees of images x (c, in...) at each \
     * output position */                                                                          \
    void ot__ref_to_columns_##suffix(T *columns, const T *x, int64_t c, const ot__window *w);      \
    /* The reverse: each element of x gets the sum of what the columns say of it added */          \
    void ot__ref_from_columns_##suffix(T *x, const T *columns, int64_t c, const ot__window *w);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE
void ot__ref_to_columns_i16(int16_t *columns, const int16_t *x, int64_t c, const ot__window *w);

// x (batch, groups, c_in, in...), w (groups, c_out, c_in, kernel...), y (batch, groups, c_out,
// out...), b (groups * c_out).
typedef struct ot__conv {
    int64_t batch, groups, c_in, c_out; // channels of one group
    ot__window window;
} ot__conv;

// ---- ref_conv.c: products over windows laid out as columns; `columns` has room for c_in *
// n_kernel * n_out elements ----

#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_conv_##suffix(T *y, const T *x, const T *w, const T *b, const ot__conv *p,        \
                               T *columns);                                                        \
    /* gradient of x; also the transposed convolution: dy is its input, dx its output, b (groups * \
     * c_in) or NULL */                                                                            \
    void ot__ref_conv_dx_##suffix(T *dx, const T *dy, const T *w, const T *b, const ot__conv *p,   \
                                  T *columns);                                                     \
    /* accumulates: to what is in dw or db */                                                      \
    void ot__ref_conv_dw_##suffix(T *dw, const T *dy, const T *x, const ot__conv *p, T *columns,   \
                                  bool accumulates);                                               \
    void ot__ref_conv_db_##suffix(T *db, const T *dy, const ot__conv *p, bool accumulates);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- depthwise.c, simd_depthwise.c: gradients of the weights where each channel is convolved by
// itself, over two axes, f32 ----
//
// Channels of a position lie side by side: all of them, or blocks of `lanes`. Images are summed in
// chunks whose number does not depend on that of threads.

typedef struct ot__depthwise_images {
    int64_t image, block, row, position; // floats from one to the next; block: of `lanes` channels
} ot__depthwise_images;

typedef struct ot__depthwise {
    int64_t batch, channels;
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2];
    ot__depthwise_images x, dy;
    // Set by the plan.
    int64_t lanes, n_blocks, n_chunks, outputs, item_floats;
    size_t scratch_bytes;
} ot__depthwise;

// One table per instruction set.
typedef struct ot__depthwise_kernel {
    // Sums (kernel, lanes), and behind them, where wanted, of dy alone (lanes), over n images of a
    // block of channels, of which x and dy are the first elements; in `scratch`, of item_floats.
    void (*sum)(const ot__depthwise *d, const float *x, const float *dy, int64_t n, bool sums_dy,
                float *scratch);
    int64_t lanes;
} ot__depthwise_kernel;

// Of the convolution c; false where it is another one, lies otherwise, has fewer channels than a
// vector has lanes, or a row of windows reaches too far.
bool ot__depthwise_make(ot__depthwise *d, const ot__dnnl_conv *c,
                        const ot__depthwise_kernel *kernel);
// dw (channels, kernel) and db (channels), either of which may be NULL.
void ot__depthwise_run(const ot__depthwise *d, const ot__depthwise_kernel *kernel, const float *x,
                       const float *dy, float *dw, float *db, float *scratch);

// ---- ref_deform.c: windows whose points are moved ----

// Images x (groups, channels, in...), of all batch elements and of the groups that share offsets
// (groups, n_kernel, n_axes, out...) and weights mask (groups, n_kernel, out...), which may be
// NULL; columns (groups, channels, n_kernel, out...).
typedef struct ot__deform {
    int64_t groups, channels;
    int n_axes;
    ot__window window;
} ot__deform;

#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_deform_columns_##suffix(T *columns, const T *x, const T *offset, const T *mask,   \
                                         const ot__deform *d);                                     \
    void ot__ref_deform_dx_##suffix(T *dx, const T *dcolumns, const T *offset, const T *mask,      \
                                    const ot__deform *d);                                          \
    /* either may be NULL */                                                                       \
    void ot__ref_deform_doffset_##suffix(T *doffset, T *dmask, const T *dcolumns, const T *x,      \
                                         const T *offset, const T *mask, const ot__deform *d);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

#endif
