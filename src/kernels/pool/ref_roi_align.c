// SPDX-License-Identifier: Apache-2.0
// Means and maxima over points of regions. A point lies between two elements along each axis, so
// that the mean of the points of a bin, which are a grid, is a product of weights along each axis:
// those of all points are added up first.
#include <math.h>

#include "kernels/kernels.h"

// A point along an axis: the elements on its two sides, and their weights.
typedef struct roi_sample {
    int64_t low, high;
    double low_weight, high_weight;
} roi_sample;

// What makes an element of the result, along an axis: its points inside the image, and what they
// weigh together, from element `first` of the image on.
typedef struct roi_bin {
    const roi_sample *samples;
    int64_t n_samples;
    const double *weights;
    int64_t first, n;
    bool has_outside; // some points are outside, where everything is 0
} roi_bin;

typedef struct roi_line {
    double n_samples; // of a bin, also outside
    roi_bin *bins;
    roi_sample *samples;
    double *weights;
} roi_line;

// ---- memory ----

// A region of any size has two points at most an element of the image, unless the node says how
// many a bin has. Bins do not overlap, but for the elements on both sides of their points.
static int64_t most_samples(const ot__roi_align *p, int a)
{
    int64_t n;

    if (p->n_samples == 0)
        return 2 * p->in[a] + 4 * p->out[a] + 16;
    return ot__mul_overflows(p->out[a], p->n_samples, &n) ? INT64_MAX : n;
}

static int64_t most_weights(const ot__roi_align *p, int a)
{
    return p->in[a] + 4 * p->out[a] + 16;
}

static bool part_bytes(const ot__roi_align *p, size_t *n_bytes)
{
    const int64_t most = INT64_MAX / 256;
    size_t sum = 0;

    for (int a = 0; a < OT__ROI_AXES; a++) {
        if (p->in[a] > most / 8 || p->out[a] > most / 8 || most_samples(p, a) > most)
            return false;
        sum += (size_t)most_samples(p, a) * sizeof(roi_sample) +
               (size_t)most_weights(p, a) * sizeof(double) + (size_t)p->out[a] * sizeof(roi_bin);
    }
    *n_bytes = sum;
    return true;
}

bool ot__ref_roi_align_bytes(const ot__roi_align *p, size_t *n_bytes)
{
    if (!part_bytes(p, n_bytes) || *n_bytes > (size_t)INT64_MAX / (size_t)p->n_parts)
        return false;
    *n_bytes *= (size_t)p->n_parts;
    return true;
}

static void place_lines(roi_line *lines, const ot__roi_align *p, char *memory)
{
    for (int a = 0; a < OT__ROI_AXES; a++) {
        lines[a].samples = (roi_sample *)(void *)memory;
        memory = (char *)(lines[a].samples + most_samples(p, a));
        lines[a].bins = (roi_bin *)(void *)memory;
        memory = (char *)(lines[a].bins + p->out[a]);
        lines[a].weights = (double *)(void *)memory;
        memory = (char *)(lines[a].weights + most_weights(p, a));
    }
}

// ---- points ----

// Points first .. last of a bin that starts at `start` may be inside; of a bin with as many points
// as it is wide, however wide that is, these are few.
static void find_inside_samples(double start, double step, double n, int64_t extent, int64_t *first,
                                int64_t *last)
{
    const double from = floor((-1 - start) / step - 0.5) - 1;
    const double to = ceil(((double)extent - start) / step - 0.5) + 1;

    *first = from > 0 ? (int64_t)OT_MIN(from, n) : 0;
    *last = (int64_t)OT_MIN(OT_MAX(to, -1.0), n - 1);
}

static bool find_sample(double x, int64_t extent, roi_sample *s)
{
    if (!(x >= -1 && x <= (double)extent))
        return false;
    x = OT_MAX(x, 0.0);
    s->low = (int64_t)x;
    if (s->low >= extent - 1)
        *s = (roi_sample){extent - 1, extent - 1, 1, 0};
    else
        *s = (roi_sample){s->low, s->low + 1, 1 - (x - (double)s->low), x - (double)s->low};
    return true;
}

// The bin's samples into `to`.
static void fill_bin(roi_bin *bin, roi_sample *to, double start, double width, double n,
                     int64_t extent, bool is_adaptive)
{
    int64_t first = 0, last = (int64_t)n - 1;

    *bin = (roi_bin){.samples = to};
    if (is_adaptive)
        find_inside_samples(start, width / n, n, extent, &first, &last);
    for (int64_t i = first; i <= last; i++)
        if (find_sample(start + ((double)i + 0.5) * width / n, extent, &to[bin->n_samples]))
            bin->n_samples++;
    bin->has_outside = (double)bin->n_samples < n;
}

// Weights of the bin's elements into `to`.
static void weigh_bin(roi_bin *bin, double *to)
{
    int64_t last = -1;

    bin->weights = to;
    for (int64_t i = 0; i < bin->n_samples; i++) {
        bin->first = i == 0 ? bin->samples[0].low : OT_MIN(bin->first, bin->samples[i].low);
        last = OT_MAX(last, bin->samples[i].high);
    }
    bin->n = bin->n_samples == 0 ? 0 : last - bin->first + 1;
    for (int64_t k = 0; k < bin->n; k++)
        to[k] = 0;
    for (int64_t i = 0; i < bin->n_samples; i++) {
        to[bin->samples[i].low - bin->first] += bin->samples[i].low_weight;
        to[bin->samples[i].high - bin->first] += bin->samples[i].high_weight;
    }
}

static void fill_line(roi_line *line, const ot__roi_align *p, int a, double start, double width)
{
    const double most = 1e15; // beyond that elements are not told apart, and none is inside
    const bool is_adaptive = p->n_samples == 0, is_near = fabs(start) < most && fabs(width) < most;
    roi_sample *samples = line->samples;
    double *weights = line->weights;

    line->n_samples = is_adaptive ? (width > 0 ? ceil(width) : 0) : (double)p->n_samples;
    for (int64_t i = 0; i < p->out[a]; i++) {
        roi_bin *bin = &line->bins[i];

        if (is_near && line->n_samples > 0)
            fill_bin(bin, samples, start + (double)i * width, width, line->n_samples, p->in[a],
                     is_adaptive);
        else
            *bin = (roi_bin){.samples = samples, .has_outside = line->n_samples > 0};
        weigh_bin(bin, weights);
        samples += bin->n_samples;
        weights += bin->n;
    }
}

// ---- the loops ----

typedef struct job {
    const ot__roi_align *p;
    void *to;
    const void *dy, *x, *rois;
    const int64_t *image;
    char *scratch;
    size_t part_bytes;
} job;

static int64_t part_start(int64_t n, int64_t part, int64_t n_parts)
{
    return n / n_parts * part + OT_MIN(part, n % n_parts);
}

static job make_roi_job(const ot__roi_align *p, void *to, const void *x, const void *rois,
                        const int64_t *image, void *scratch)
{
    job j = {.p = p, .to = to, .x = x, .rois = rois, .image = image, .scratch = scratch};

    (void)part_bytes(p, &j.part_bytes);
    return j;
}

#define TEMPLATE "kernels/pool/ref_roi_align.tmpl.h"
#include "kernels/by_float.tmpl.h"
