// SPDX-License-Identifier: Apache-2.0
// Which elements along one axis of an image a coordinate of a grid means, and with which weights.
// Without branches or calls, so that loops over them become vector code. Positions and weights are
// PyTorch's.
#ifndef OT_KERNELS_SAMPLE_GRID_TAPS_H
#define OT_KERNELS_SAMPLE_GRID_TAPS_H

#include "kernels/kernels.h"
#include "kernels/simd.h"

typedef struct grid_axis {
    double in;
    double low, span, per_span; // where positions are reflected, and 1 / span or 0
    double scale;               // elements that one unit of the grid is
} grid_axis;

static inline grid_axis make_grid_axis(const ot__grid_sample *s, int axis)
{
    const double in = (double)s->in[axis], span = s->is_aligned ? in - 1 : in;

    return (grid_axis){.in = in,
                       .low = s->is_aligned ? 0 : -0.5,
                       .span = span,
                       .per_span = span > 0 ? 1 / span : 0,
                       .scale = span / 2};
}

// Elements along an axis that make one of the result.
static inline int count_axis_taps(ot__grid_mode mode)
{
    return mode == OT__GRID_NEAREST ? 1 : mode == OT__GRID_LINEAR ? 2 : 4;
}

OT_SIMD_INLINE double floor_in_range(double x) // of at most 31 bits
{
    const double whole = (double)(int32_t)x;

    return whole - (whole > x ? 1.0 : 0.0);
}

OT_SIMD_INLINE double round_in_range(double x) // to even
{
    const double magic = 6755399441055744.0; // 1.5 * 2^52

    return (x + magic) - magic;
}

OT_SIMD_INLINE double clamp_between(double x, double low, double high) // NaN is low
{
    x = x > low ? x : low;
    return x < high ? x : high;
}

// Position x as often reflected at both ends as it takes; *slope becomes 1 or -1.
OT_SIMD_INLINE double reflect_position(const grid_axis *a, double x, double *slope)
{
    const double far = x - a->low, size = far < 0 ? -far : far;
    const double turns = floor_in_range(size * a->per_span), rest = size - turns * a->span;
    const bool is_odd = turns - 2 * floor_in_range(turns * 0.5) != 0;

    *slope = is_odd == (far < 0) ? 1.0 : -1.0;
    return a->low + (is_odd ? a->span - rest : rest);
}

// A position along the axis and how it moves with the coordinate: not at all beyond the ends where
// these are repeated, as in PyTorch also at the ends themselves.
typedef struct grid_place {
    double x, slope;
} grid_place;

OT_SIMD_INLINE grid_place find_grid_place(const grid_axis *a, ot__grid_mode mode,
                                          ot__grid_padding padding, double coordinate)
{
    const double most = OT__GRID_AXIS_MAX + 8.0, last = a->in - 1;
    double slope = 1, x = clamp_between((coordinate + 1) * a->scale + a->low, -most, most);

    if (mode != OT__GRID_CUBIC && padding != OT__GRID_ZEROS) {
        if (padding == OT__GRID_REFLECTION)
            x = reflect_position(a, x, &slope);
        slope = x > 0 && x < last ? slope : 0;
        x = clamp_between(x, 0, last);
    }
    return (grid_place){x, slope * a->scale};
}

// Where element `at` of an endless axis is in the image; false: nowhere.
OT_SIMD_INLINE bool find_element(const grid_axis *a, ot__grid_mode mode, ot__grid_padding padding,
                                 int32_t at, int32_t *index)
{
    const int32_t last = (int32_t)a->in - 1;
    const bool is_inside = at >= 0 && at <= last;
    double slope;

    if (mode == OT__GRID_CUBIC && padding == OT__GRID_REFLECTION)
        at = (int32_t)round_in_range(reflect_position(a, at, &slope));
    at = at > 0 ? at : 0;
    *index = at < last ? at : last;
    return is_inside || (mode == OT__GRID_CUBIC && padding != OT__GRID_ZEROS);
}

// Keys' kernel with a = -0.75 at distance t - k + 1 from tap k, and its slope along t.
OT_SIMD_INLINE void weigh_cubic(double t, int k, double *weight, double *slope)
{
    const double a = -0.75, from = t - (k - 1), x = from < 0 ? -from : from;
    const double sign = from < 0 ? -1.0 : 1.0;

    if (k == 1 || k == 2) {
        *weight = ((a + 2) * x - (a + 3)) * x * x + 1;
        *slope = sign * (3 * (a + 2) * x - 2 * (a + 3)) * x;
    } else {
        *weight = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
        *slope = sign * ((3 * a * x - 10 * a) * x + 8 * a);
    }
}

// Tap k of a place: an element, 0 where it is outside, its weight, and how that grows with the
// coordinate. Outside both are 0.
typedef struct grid_tap {
    int32_t index;
    double weight, slope;
} grid_tap;

OT_SIMD_INLINE grid_tap find_tap(const grid_axis *a, ot__grid_mode mode, ot__grid_padding padding,
                                 grid_place place, int k)
{
    const double below =
        mode == OT__GRID_NEAREST ? round_in_range(place.x) : floor_in_range(place.x);
    const double t = place.x - below;
    double weight = 1, slope = 0;
    grid_tap tap;
    bool is_there;

    if (mode == OT__GRID_LINEAR) {
        weight = k == 0 ? 1 - t : t;
        slope = k == 0 ? -1 : 1;
    } else if (mode == OT__GRID_CUBIC) {
        weigh_cubic(t, k, &weight, &slope);
    }
    is_there = find_element(a, mode, padding, (int32_t)below + k - (mode == OT__GRID_CUBIC ? 1 : 0),
                            &tap.index);
    tap.weight = is_there ? weight : 0;
    tap.slope = is_there ? slope * place.slope : 0;
    return tap;
}

#endif
