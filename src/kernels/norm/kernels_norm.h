// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: normalisation. Only kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_NORM_H
#define OT_KERNELS_KERNELS_NORM_H

#include "kernels/kernels_nn.h"

// ---- channels.c, simd_norm.c: batch normalisation on any layout, in f32 ----
//
// Images (x, z, y, dy, dx and g) are f32, f16 or bf16, all of one `type`.

// x[outer][blocks][inner][width] with channel = block * width + its place in the last axis: what
// row-major, channels-last and blocked images have in common.
typedef struct ot__channels {
    int64_t outer, blocks, inner, width;
} ot__channels;
// False for any other layout.
bool ot__channels_of(const ot_shape *shape, const ot_layout *layout, ot__channels *c);

// y = (x - mean) * factor + offset (+ z), then max(., 0) when relu. z NULL: none. y may be x or z.
typedef struct ot__norm_apply {
    const float *mean, *factor, *offset; // per channel
    ot_dtype type;
    const void *x, *z;
    void *y;
    bool relu;
} ot__norm_apply;

// g = dy where y > 0, else 0. y NULL: with `offset`, y is (x - mean) * factor + offset as
// ot__norm_apply made it; without, g = dy. sum_g and sum_gx receive, per channel, the sums of g
// and g * (x - mean). g_out receives g; NULL: nowhere; it may be dy.
typedef struct ot__norm_sums {
    const float *mean, *factor, *offset; // per channel; the latter two may be NULL
    ot_dtype type;
    const void *dy, *y, *x;
    void *g_out;
    double *sum_g, *sum_gx;
} ot__norm_sums;

// dx = g * a + (x - mean) * b + d, with g as above where a is the factor. dx may be dy or x.
typedef struct ot__norm_dx {
    const float *mean, *a, *b, *d, *offset; // per channel; offset may be NULL
    ot_dtype type;
    const void *dy, *y, *x;
    void *dx;
} ot__norm_dx;

// One table per instruction set. `scratch` has ot__norm_scratch_bytes(c). Same bits for any
// number of threads.
typedef struct ot__norms {
    void (*moments)(float *mean, float *var, ot_dtype type, const void *x, const ot__channels *c,
                    void *scratch);
    void (*apply)(const ot__norm_apply *p, const ot__channels *c);
    void (*sums)(const ot__norm_sums *p, const ot__channels *c, void *scratch);
    void (*dx)(const ot__norm_dx *p, const ot__channels *c);
    int64_t inner, channels, chunk; // worked on at once: neighbours of one channel; channels, and
                                    // so many rows of them
} ot__norms;
size_t ot__norm_scratch_bytes(const ot__channels *c);

// ---- ref_norm.c ----

#define OT_DECLARE(suffix, T)                                                                      \
    /* x (n, c, inner) by given mean and variance of each channel */                               \
    void ot__ref_batch_norm_##suffix(T *y, const T *x, const T *scale, const T *b, const T *mean,  \
                                     const T *var, double epsilon, int64_t n, int64_t c,           \
                                     int64_t inner);                                               \
    /* by a given 1 / sqrt(variance + epsilon), plus z unless that is NULL, then max(., 0) */      \
    void ot__ref_batch_norm_relu_##suffix(T *y, const T *x, const T *z, const T *scale,            \
                                          const T *b, const T *mean, const T *inv, int64_t n,      \
                                          int64_t c, int64_t inner);                               \
    /* mean and biased variance of each channel */                                                 \
    void ot__ref_channel_moments_##suffix(T *mean, T *var, const T *x, int64_t n, int64_t c,       \
                                          int64_t inner);                                          \
    /* of each channel the sums of dy and of dy * xh, xh = (x - mean) * inv */                     \
    void ot__ref_channel_sums_##suffix(double *sum, double *sum_xh, const T *dy, const T *x,       \
                                       const T *mean, const T *inv, int64_t n, int64_t c,          \
                                       int64_t inner);                                             \
    /* dx by such sums over `count` elements; dx may be dy or x */                                 \
    void ot__ref_batch_norm_dx_##suffix(T *dx, const T *dy, const T *x, const T *scale,            \
                                        const T *mean, const T *inv, const double *sum,            \
                                        const double *sum_xh, double count, int64_t n, int64_t c,  \
                                        int64_t inner);                                            \
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

// ---- ref_group_norm.c: images (n, groups, channels of a group, inner) ----

typedef struct ot__group_norm {
    int64_t n, groups, channels, inner;
    double epsilon;
} ot__group_norm;
#define OT_DECLARE(suffix, T)                                                                      \
    /* mean and inv (n, groups), scale and b (groups, channels) may be NULL; y may be x */         \
    void ot__ref_group_norm_##suffix(T *y, T *mean, T *inv, const T *x, const T *scale,            \
                                     const T *b, const ot__group_norm *p);                         \
    /* dx, dscale, db and scale may be NULL; dx may be dy or x */                                  \
    void ot__ref_group_norm_grad_##suffix(T *dx, T *dscale, T *db, const T *dy, const T *x,        \
                                          const T *scale, const T *mean, const T *inv,             \
                                          const ot__group_norm *p);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_lrn.c: local response normalisation of images (n, channels, inner) ----

// Y = X * (bias + alpha * the sum of squares over `before` channels before and `after`
// behind)^-beta
typedef struct ot__lrn {
    int64_t n, channels, inner, before, after;
    double alpha, beta, bias;
} ot__lrn;
// Places that are worked on at once, and doubles of scratch for each of them and each channel.
enum { OT__LRN_PIECE = 32, OT__LRN_ROWS = 2 };
#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_lrn_##suffix(T *y, const T *x, const ot__lrn *p);                                 \
    /* the work is cut into n_parts, each of which has its part of the scratch */                  \
    void ot__ref_lrn_grad_##suffix(T *dx, const T *dy, const T *x, const ot__lrn *p, int n_parts,  \
                                   double *scratch);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

#endif
