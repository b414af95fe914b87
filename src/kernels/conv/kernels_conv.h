// SPDX-License-Identifier: Apache-2.0
// Part of the face of `kernels`: sliding windows (convolution, pooling). Only kernels.h includes
// this.
#ifndef OT_KERNELS_KERNELS_CONV_H
#define OT_KERNELS_KERNELS_CONV_H

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
    /* adds: to what is in dw or db */                                                             \
    void ot__ref_conv_dw_##suffix(T *dw, const T *dy, const T *x, const ot__conv *p, T *columns,   \
                                  bool adds);                                                      \
    void ot__ref_conv_db_##suffix(T *db, const T *dy, const ot__conv *p, bool adds);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_pool.c: images (n, in...), one per batch and channel ----

typedef struct ot__pool {
    int64_t n; // images
    ot__window window;
    bool count_pads; // average: padding counts
    int64_t pad_end[OT__WINDOW_AXES];
    bool column_major; // indices count the first axis fastest
} ot__pool;
#define OT_DECLARE(suffix, T)                                                                      \
    /* indices (may be NULL): position in the whole tensor; the first of equal ones wins */        \
    void ot__ref_max_pool_##suffix(T *y, int64_t *indices, const T *x, const ot__pool *p);         \
    void ot__ref_average_pool_##suffix(T *y, const T *x, const ot__pool *p);                       \
    void ot__ref_average_pool_grad_##suffix(T *dx, const T *dy, const ot__pool *p);                \
    /* dx[indices[i]] += dy[i] within each image of n_in elements; indices lie in it, or are       \
     * below 0 for none */                                                                         \
    void ot__ref_max_pool_grad_##suffix(T *dx, const T *dy, const int64_t *indices, int64_t n,     \
                                        int64_t n_in, int64_t n_out);                              \
    /* one number an image of `inner` elements */                                                  \
    void ot__ref_plane_max_##suffix(T *y, const T *x, int64_t n, int64_t inner);                   \
    void ot__ref_plane_mean_##suffix(T *y, const T *x, int64_t n, int64_t inner);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE
// Where the maximum of a window is, in one byte: its number in the window, where those suffice.
enum { OT__NO_CELL = 255 }; // nothing of the window lies in the image
// From indices to cells, or to positions in the image (-1 for none) and back, which is false when
// one lies outside of its image.
void ot__ref_max_pool_shorten(uint8_t *cells, int32_t *positions, const int64_t *indices,
                              const ot__pool *p);
bool ot__ref_max_pool_lengthen(int64_t *indices, const uint8_t *cells, const int32_t *positions,
                               const ot__pool *p);
// Position of the first index outside its image, or -1.
int64_t ot__ref_max_pool_check(const int64_t *indices, int64_t n, int64_t n_in, int64_t n_out);

// ---- ref_norm.c ----

#define OT_DECLARE(suffix, T)                                                                      \
    /* x (n, c, inner) by given mean and variance of each channel */                               \
    void ot__ref_batch_norm_##suffix(T *y, const T *x, const T *scale, const T *b, const T *mean,  \
                                     const T *var, double epsilon, int64_t n, int64_t c,           \
                                     int64_t inner);                                               \
    /* mean and biased variance of each channel */                                                 \
    void ot__ref_channel_moments_##suffix(T *mean, T *var, const T *x, int64_t n, int64_t c,       \
                                          int64_t inner);                                          \
    void ot__ref_batch_norm_grad_##suffix(T *dx, T *dscale, T *db, const T *dy, const T *x,        \
                                          const T *scale, const T *mean, const T *inv, int64_t n,  \
                                          int64_t c, int64_t inner);                               \
    /* inv = 1 / sqrt(var + epsilon) */                                                            \
    void ot__ref_inv_std_##suffix(T *inv, const T *var, double epsilon, int64_t n);                \
    /* running = running * momentum + batch * (1 - momentum) */                                    \
    void ot__ref_running_##suffix(T *running, const T *batch, double momentum, int64_t n);         \
    /* rows of `columns` elements; mean and inv (rows) may be NULL; centered false: without mean   \
     */                                                                                            \
    void ot__ref_layer_norm_##suffix(T *y, T *mean, T *inv, const T *x, const T *scale,            \
                                     const T *b, double epsilon, bool centered, int64_t rows,      \
                                     int64_t columns);                                             \
    /* mean NULL: not centered; dscale and db (columns) may be NULL */                             \
    void ot__ref_layer_norm_grad_##suffix(T *dx, T *dscale, T *db, const T *dy, const T *x,        \
                                          const T *scale, const T *mean, const T *inv,             \
                                          int64_t rows, int64_t columns);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

#endif
