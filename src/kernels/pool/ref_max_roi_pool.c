// SPDX-License-Identifier: Apache-2.0
// Maxima over parts of regions, as Caffe has them: regions are rounded to whole elements, both ends
// included, and parts to the elements that they touch. What holds none is 0.
#include <math.h>

#include "kernels/kernels.h"

typedef struct job {
    const ot__roi_pool *p;
    void *to;
    const void *dy, *x, *rois;
} job;

// Elements of an axis of size `extent` in part `i` of `n` of a region from `from` on, of so many
// elements.
typedef struct part {
    int64_t first, behind;
} part;

static part find_region_part(double from, double size, int64_t i, int64_t n, int64_t extent)
{
    const double first = floor((double)i * size / (double)n) + from;
    const double behind = ceil((double)(i + 1) * size / (double)n) + from;

    return (part){(int64_t)OT_MIN(OT_MAX(first, 0.0), (double)extent),
                  (int64_t)OT_MIN(OT_MAX(behind, 0.0), (double)extent)};
}

#define TEMPLATE "kernels/pool/ref_max_roi_pool.tmpl.h"
#include "kernels/by_float.tmpl.h"
