// SPDX-License-Identifier: Apache-2.0
// What of a pool's window lies in the image. Private to the pools of vector code.
#ifndef OT_KERNELS_POOL_OVERLAP_H
#define OT_KERNELS_POOL_OVERLAP_H

#include "kernels/kernels.h"

// First and last kernel positions along axis a that meet the input, for output position o.
static inline int64_t first_inside(const ot__window *w, int a, int64_t o)
{
    const int64_t at = o * w->stride[a] - w->pad[a];

    return at >= 0 ? 0 : (-at + w->dilation[a] - 1) / w->dilation[a];
}

static inline int64_t behind_inside(const ot__window *w, int a, int64_t o)
{
    const int64_t room = w->in[a] - (o * w->stride[a] - w->pad[a]);

    return room <= 0 ? 0 : OT_MIN(w->kernel[a], (room + w->dilation[a] - 1) / w->dilation[a]);
}

// The part of one window that lies in the input, as kernel positions.
typedef struct overlap {
    int64_t first[OT__WINDOW_AXES], behind[OT__WINDOW_AXES], origin[OT__WINDOW_AXES];
} overlap;

static inline void find_inside(overlap *w, int a, const ot__window *window, int64_t o)
{
    w->first[a] = first_inside(window, a, o);
    w->behind[a] = behind_inside(window, a, o);
    w->origin[a] = o * window->stride[a] - window->pad[a];
}

static inline bool misses_input(const overlap *part)
{
    for (int a = 0; a < OT__WINDOW_AXES; a++)
        if (part->first[a] >= part->behind[a])
            return true;
    return false;
}

#endif
