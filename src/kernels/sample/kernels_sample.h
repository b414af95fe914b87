// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: images sampled at the positions of a grid. Only kernels.h
// includes this.
#ifndef OT_KERNELS_KERNELS_SAMPLE_H
#define OT_KERNELS_KERNELS_SAMPLE_H

#include "kernels/conv/kernels_conv.h"

typedef enum ot__grid_mode {
    OT__GRID_NEAREST,
    OT__GRID_LINEAR,
    OT__GRID_CUBIC,
} ot__grid_mode;
typedef enum ot__grid_padding {
    OT__GRID_ZEROS,
    OT__GRID_BORDER,
    OT__GRID_REFLECTION,
} ot__grid_padding;

// Sizes of axes are at most this, so that positions are counted in 32 bits.
enum { OT__GRID_AXIS_MAX = 1 << 30 };

// Images x (batch, channels, in...) at the positions of a grid (batch, out..., n_axes), which are y
// (batch, channels, out...). The axes of images are always written as three; missing ones have
// extent 1 in front. Coordinates count the last axis first.
typedef struct ot__grid_sample {
    int64_t batch, channels;
    int n_axes;
    int64_t in[OT__WINDOW_AXES];
    int64_t n_in, n_out; // products
    ot__grid_mode mode;
    ot__grid_padding padding;
    bool is_aligned;   // -1 and 1 are the middles of the first and the last element
    bool is_grid_wide; // the grid is f64, otherwise f32
} ot__grid_sample;

// ---- ref_grid_sample.c ----

#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_grid_sample_##suffix(T *y, const T *x, const void *grid,                          \
                                      const ot__grid_sample *s);                                   \
    void ot__ref_grid_sample_dx_##suffix(T *dx, const T *dy, const void *grid,                     \
                                         const ot__grid_sample *s);                                \
    void ot__ref_grid_sample_dgrid_##suffix(void *dgrid, const T *dy, const T *x,                  \
                                            const void *grid, const ot__grid_sample *s);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- simd_grid_sample.c: f32, of images and grids with at most OT__GRID_TAPS elements of x in an
// element of y, and planes of at most INT32_MAX elements ----

enum { OT__GRID_TAPS = 16 };
typedef struct ot__samplers {
    void (*sample)(float *y, const float *x, const float *grid, const ot__grid_sample *s);
    void (*sample_dx)(float *dx, const float *dy, const float *grid, const ot__grid_sample *s);
    void (*sample_dgrid)(float *dgrid, const float *dy, const float *x, const float *grid,
                         const ot__grid_sample *s);
    int64_t positions; // worked on at once
} ot__samplers;

#endif
