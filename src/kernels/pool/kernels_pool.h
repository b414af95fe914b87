// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: pools. Only kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_POOL_H
#define OT_KERNELS_KERNELS_POOL_H

#include "kernels/conv/kernels_conv.h"
#include "kernels/norm/kernels_norm.h"

// ---- ref_pool.c: images (n, in...), one per batch and channel ----

typedef struct ot__pool {
    int64_t n; // images
    ot__window window;
    bool count_pads; // average: padding counts
    int64_t pad_end[OT__WINDOW_AXES];
    bool column_major; // indices count the first axis fastest
    double p;          // of a norm, 1 at least
} ot__pool;
#define OT_DECLARE(suffix, T)                                                                      \
    /* indices (may be NULL): position in the whole tensor; the first of equal                     \
     * ones wins */                                                                                \
    void ot__ref_max_pool_##suffix(T *y, int64_t *indices, const T *x, const ot__pool *p);         \
    void ot__ref_average_pool_##suffix(T *y, const T *x, const ot__pool *p);                       \
    void ot__ref_average_pool_grad_##suffix(T *dx, const T *dy, const ot__pool *p);                \
    /* dx[indices[i]] += dy[i] within each image; indices lie in it, or are                        \
     * below 0 for none */                                                                         \
    void ot__ref_max_pool_grad_##suffix(T *dx, const T *dy, const int64_t *indices,                \
                                        const ot__pool *p);                                        \
    /* ref_lp_pool.c: norms, and their gradient, which is 0 where y is */                          \
    void ot__ref_lp_pool_##suffix(T *y, const T *x, const ot__pool *p);                            \
    void ot__ref_lp_pool_grad_##suffix(T *dx, const T *dy, const T *x, const T *y,                 \
                                       const ot__pool *p);                                         \
    /* one number an image of `inner` elements */                                                  \
    void ot__ref_plane_max_##suffix(T *y, const T *x, int64_t n, int64_t inner);                   \
    /* dy to the first element of x that is y, or NaN as it */                                     \
    void ot__ref_plane_max_grad_##suffix(T *dx, const T *dy, const T *x, const T *y, int64_t n,    \
                                         int64_t inner);                                           \
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

// ---- ref_unpool.c: y (planes, n_out) = zeros, with x (planes, n_in) at indices, which count
// through all of y; of several at one place the last one counts. The position of the first index
// that is outside of y, or -1 ----

int64_t ot__ref_unpool(void *y, const void *x, const int64_t *indices, int64_t planes, int64_t n_in,
                       int64_t n_out, size_t size);

// ---- simd_pool.c: maximum pools in f32 on any layout ----

// Where the maxima are that the first of equal ones wins, by the one that is not NULL.
typedef struct ot__maxima {
    int64_t *indices;   // row-major positions in the whole tensor
    int32_t *positions; // in the plane; -1: none
    uint8_t *cells;     // in the window, of at most 255; OT__NO_CELL: none
} ot__maxima;

// One table per instruction set; `c` is the pool's input, whose layout y and the maxima have too.
// Planes have at most INT32_MAX elements.
typedef struct ot__pools {
    void (*max_pool)(float *y, const ot__maxima *at, const float *x, const ot__window *w,
                     const ot__channels *c);
    // dx += dy there within each plane; false when one lies outside of its plane
    bool (*max_pool_grad)(float *dx, const float *dy, const ot__maxima *at, const ot__window *w,
                          const ot__channels *c);
    int64_t channels; // worked on at once
} ot__pools;

// ---- simd_pool_rows.c: pools in f32 on row-major planes of at most INT32_MAX elements, with
// windows that ot__pool_has_short_rows() ----

enum { OT__POOL_ROW_REACH = 64, OT__POOL_ROW_STRIDE = 16 };
bool ot__pool_has_short_rows(const ot__window *w);
// One table per instruction set.
typedef struct ot__row_pools {
    void (*max_pool)(float *y, const ot__maxima *at, const float *x, const ot__pool *p);
    void (*average_pool)(float *y, const float *x, const ot__pool *p);
    void (*average_pool_grad)(float *dx, const float *dy, const ot__pool *p);
    // of windows that are planes: as ot__ref_plane_max_grad_f32()
    void (*plane_max_grad)(float *dx, const float *dy, const float *x, const float *y,
                           int64_t planes, int64_t inner);
    int64_t lanes, piece; // windows of a row: at once, and before the next piece of it
} ot__row_pools;
// Position of the first index outside its plane, or -1.
int64_t ot__pool_check_indices(const int64_t *indices, const ot__window *w, const ot__channels *c);

#endif
