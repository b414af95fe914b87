// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: resizing along an axis. Only kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_RESIZE_H
#define OT_KERNELS_KERNELS_RESIZE_H

#include "kernels/kernels_nn.h"

// ---- resize.c: which elements of a line make one of another line, and with which weights ----

typedef enum ot__resize_mode {
    OT__RESIZE_NEAREST,
    OT__RESIZE_LINEAR,
    OT__RESIZE_CUBIC
} ot__resize_mode;
typedef enum ot__resize_place {
    OT__PLACE_HALF_PIXEL,
    OT__PLACE_HALF_PIXEL_SYMMETRIC,
    OT__PLACE_PYTORCH_HALF_PIXEL,
    OT__PLACE_ALIGN_CORNERS,
    OT__PLACE_ASYMMETRIC,
    OT__PLACE_CROP,
} ot__resize_place;
typedef enum ot__resize_rounding {
    OT__ROUND_PREFER_FLOOR,
    OT__ROUND_PREFER_CEIL,
    OT__ROUND_FLOOR,
    OT__ROUND_CEIL,
    OT__ROUND_BY_SCALE, // down where the line grows, else up
} ot__resize_rounding;

typedef struct ot__resize_line {
    int64_t in, out;   // elements
    double scale;      // above 0
    double start, end; // of OT__PLACE_CROP: of the line, in lines
    double cubic_a;
    ot__resize_mode mode;
    ot__resize_place place;
    ot__resize_rounding rounding;
    bool antialias, exclude_outside;
} ot__resize_line;

// Element i of `to` is the sum of weight[k] * from[index[k]] for k in start[i] .. start[i + 1] - 1,
// or `fill` where there is none.
typedef struct ot__line_map {
    int64_t from, to;
    int64_t *start, *index;
    double *weight;
    double fill;
} ot__line_map;
// Number of all index-weight pairs of the line; with `map`, whose arrays have room for them, these.
int64_t ot__resize_map(const ot__resize_line *line, ot__line_map *map);
// The map from the result back, by which gradients go; its arrays have room.
void ot__line_map_transpose(const ot__line_map *map, ot__line_map *back);
// Each element is the one at its own place.
bool ot__line_map_is_identity(const ot__line_map *map);

// ---- ref_line_map.c ----

#define OT_DECLARE(suffix, T)                                                                      \
    /* along the middle one of three axes (outer, from or to, inner) */                            \
    void ot__ref_map_lines_##suffix(T *y, const T *x, const ot__line_map *map, int64_t outer,      \
                                    int64_t inner);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

#endif
