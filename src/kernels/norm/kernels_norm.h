// SPDX-License-Identifier: Apache-2.0
// Part of the face of `kernels`: batch normalisation and maximum pools in f32 on any form. Only
// kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_NORM_H
#define OT_KERNELS_KERNELS_NORM_H

#include "kernels/conv/kernels_conv.h"

// x[outer][blocks][inner][width] with channel = block * width + its place in the last axis: what
// row-major, channels-last and blocked images have in common.
typedef struct ot__channels {
    int64_t outer, blocks, inner, width;
} ot__channels;
// False for a form that is none of the three.
bool ot__channels_of(const ot_shape *shape, const ot_form *form, ot__channels *c);

// y = (x - mean) * factor + offset (+ z), then max(., 0) when relu. z NULL: none. y may be x or z.
typedef struct ot__norm_apply {
    const float *mean, *factor, *offset; // per channel
    const float *x, *z;
    float *y;
    bool relu;
} ot__norm_apply;

// g = dy where y > 0, else 0. y NULL: with `offset`, y is (x - mean) * factor + offset as
// ot__norm_apply made it; without, g = dy. sum_g and sum_gx receive, per channel, the sums of g
// and g * (x - mean). g_out receives g; NULL: nowhere; it may be dy.
typedef struct ot__norm_sums {
    const float *mean, *factor, *offset; // per channel; the latter two may be NULL
    const float *dy, *y, *x;
    float *g_out;
    double *sum_g, *sum_gx;
} ot__norm_sums;

// dx = g * a + (x - mean) * b + d, with g as above where a is the factor. dx may be dy or x.
typedef struct ot__norm_dx {
    const float *mean, *a, *b, *d, *offset; // per channel; offset may be NULL
    const float *dy, *y, *x;
    float *dx;
} ot__norm_dx;

// simd_norm.c, once per instruction set. `scratch` has ot__norm_scratch_bytes(c). Same bits for any
// number of threads.
typedef struct ot__norms {
    void (*moments)(float *mean, float *var, const float *x, const ot__channels *c, void *scratch);
    void (*apply)(const ot__norm_apply *p, const ot__channels *c);
    void (*sums)(const ot__norm_sums *p, const ot__channels *c, void *scratch);
    void (*dx)(const ot__norm_dx *p, const ot__channels *c);
    int64_t inner, channels, chunk; // worked on at once: neighbours of one channel; channels, and
                                    // so many rows of them
} ot__norms;
const ot__norms *ot__norms_best(void);
size_t ot__norm_scratch_bytes(const ot__channels *c);

// Where the maxima are that the first of equal ones wins, by the one that is not NULL.
typedef struct ot__maxima {
    int64_t *indices;   // row-major positions in the whole tensor
    int32_t *positions; // in the plane; -1: none
    uint8_t *cells;     // in the window, of at most 255; OT__NO_CELL: none
} ot__maxima;

// simd_pool.c, once per instruction set; `c` is the pool's input, whose form y and the maxima have
// too. Planes have at most INT32_MAX elements.
typedef struct ot__pools {
    void (*max_pool)(float *y, const ot__maxima *at, const float *x, const ot__window *w,
                     const ot__channels *c);
    // dx += dy there within each plane; false when one lies outside of its plane
    bool (*max_pool_grad)(float *dx, const float *dy, const ot__maxima *at, const ot__window *w,
                          const ot__channels *c);
    int64_t channels; // worked on at once
} ot__pools;
const ot__pools *ot__pools_best(void);
// Position of the first index outside its plane, or -1.
int64_t ot__pool_check_indices(const int64_t *indices, const ot__window *w, const ot__channels *c);

#endif
