// SPDX-License-Identifier: Apache-2.0
// What windows whose points are moved by offsets see of images, as columns, and the gradients.
#include <string.h>

#include "kernels/sample/grid_taps.h"

enum { PIECE = 16, TAPS = 8 };

// For each of PIECE output positions: the elements of a plane around the point that one kernel
// position is moved to.
typedef struct taps {
    int n;
    int64_t offset[TAPS][PIECE];
    double weight[TAPS][PIECE], slope[OT__WINDOW_AXES][TAPS][PIECE];
} taps;

// Kernel position k of an offset group of an image, and positions of the output from `from` on.
typedef struct place {
    int64_t group, k, from; // groups count through all images
    int n;
} place;

typedef struct job {
    void *to, *dmask; // dmask may be NULL
    const void *dcolumns, *x, *offset, *mask;
    const ot__deform *d;
    void (*at)(const struct job *j, const place *p, const taps *t); // what is made of each place
    int64_t first, last; // of planes, of which there are more than one in a group
} job;

static void split_window_position(int64_t at[OT__WINDOW_AXES], int64_t i,
                                  const int64_t dim[OT__WINDOW_AXES])
{
    at[2] = i % dim[2];
    at[1] = i / dim[2] % dim[1];
    at[0] = i / dim[2] / dim[1];
}

static void add_axis(taps *t, const grid_tap tap[2], int i, int axis, int64_t extent)
{
    for (int k = t->n - 1; k >= 0; k--)
        for (int m = 1; m >= 0; m--) {
            const int to = 2 * k + m;

            for (int a = 0; a < axis; a++)
                t->slope[a][to][i] = t->slope[a][k][i] * tap[m].weight;
            t->slope[axis][to][i] = t->weight[k][i] * tap[m].slope;
            t->weight[to][i] = t->weight[k][i] * tap[m].weight;
            t->offset[to][i] = t->offset[k][i] * extent + tap[m].index;
        }
}

#define TEMPLATE "kernels/conv/ref_deform.tmpl.h"
#include "kernels/by_float.tmpl.h"
