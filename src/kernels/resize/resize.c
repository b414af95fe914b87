// SPDX-License-Identifier: Apache-2.0
// Where the elements of a resized line lie in the line, and what they are made of there.
#include <math.h>

#include "kernels/kernels.h"

// ---- places ----

static double place_along(const ot__resize_line *l, int64_t o)
{
    const double in = (double)l->in, width = l->scale * in; // as the scale has it, before rounding
    double x;

    switch (l->place) {
    case OT__PLACE_ALIGN_CORNERS:
        return width == 1 ? 0 : (double)o * (in - 1) / (width - 1);
    case OT__PLACE_ASYMMETRIC:
        return (double)o / l->scale;
    case OT__PLACE_CROP:
        x = (l->end - l->start) * (in - 1);
        x = width == 1 ? x / 2 : (double)o * x / (width - 1);
        return x + l->start * (in - 1);
    case OT__PLACE_PYTORCH_HALF_PIXEL:
        return l->out > 1 ? ((double)o + 0.5) / l->scale - 0.5 : 0;
    case OT__PLACE_HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (double)l->out / width) + ((double)o + 0.5) / l->scale - 0.5;
    default:
        return ((double)o + 0.5) / l->scale - 0.5;
    }
}

// ---- weights ----

static double round_weight(const ot__resize_line *l, int64_t k, double ratio)
{
    bool is_second;

    switch (l->rounding) {
    case OT__ROUND_PREFER_CEIL:
        is_second = ratio >= 0.5;
        break;
    case OT__ROUND_FLOOR:
        is_second = ratio == 1;
        break;
    case OT__ROUND_CEIL:
        is_second = true;
        break;
    case OT__ROUND_BY_SCALE:
        is_second = ratio == 1 || l->scale < 1;
        break;
    default:
        is_second = ratio > 0.5;
        break;
    }
    return (k == 1) == is_second ? 1 : 0;
}

static double cubic_weight(double x, double a)
{
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// What a place is made of: `n` neighbours from `first` on, at distances of `step` from it.
typedef struct neighbours {
    int64_t first, n;
    double ratio; // of the place between the middle two, above 0 and at most 1
    double step;
} neighbours;

static double raw_weight(const ot__resize_line *l, const neighbours *s, int64_t k)
{
    const double x = ((double)(k + 1 - s->n / 2) - s->ratio) * s->step;

    if (l->mode == OT__RESIZE_NEAREST)
        return round_weight(l, k, s->ratio);
    return l->mode == OT__RESIZE_LINEAR ? OT_MAX(1 - fabs(x), 0.0) : cubic_weight(x, l->cubic_a);
}

static neighbours find_neighbours(const ot__resize_line *l, double x)
{
    const int64_t reach = l->mode == OT__RESIZE_CUBIC ? 2 : 1;
    neighbours s = {.n = 2 * reach, .step = 1};
    double floor_x;

    if (l->antialias && l->scale < 1) {
        s.step = l->scale;
        s.n = 2 - 2 * ((int64_t)floor((double)-reach / l->scale) + 1);
    }
    // Beyond the ends there is nothing but the last elements.
    x = OT_MIN(OT_MAX(x, -(double)(s.n + 1)), (double)(l->in + s.n));
    floor_x = floor(x);
    s.ratio = x == floor_x ? 1 : x - floor_x;
    s.first = (int64_t)floor_x - s.n / 2 + (x == floor_x ? 0 : 1);
    return s;
}

static double weight_at(const ot__resize_line *l, const neighbours *s, int64_t k)
{
    const int64_t at = s->first + k;

    return l->exclude_outside && (at < 0 || at >= l->in) ? 0 : raw_weight(l, s, k);
}

// ---- the map ----

static bool is_outside(const ot__resize_line *l, double x)
{
    return l->place == OT__PLACE_CROP && !(x >= 0 && x <= (double)(l->in - 1));
}

// Adds the pairs of element o behind n others; gives their number.
static int64_t add_pairs(const ot__resize_line *l, int64_t o, ot__line_map *map, int64_t n)
{
    const double x = place_along(l, o);
    int64_t last = -1; // position of the pair before
    double sum = 0;
    neighbours s;

    if (is_outside(l, x) || isnan(x))
        return n;
    s = find_neighbours(l, x);
    for (int64_t k = 0; k < s.n; k++)
        sum += weight_at(l, &s, k);
    if (!(l->antialias || l->exclude_outside) || sum == 0)
        sum = 1;
    for (int64_t k = 0; k < s.n; k++) {
        const double weight = weight_at(l, &s, k) / sum;
        const int64_t at = OT_MIN(OT_MAX(s.first + k, 0), l->in - 1);

        if (weight == 0)
            continue;
        n += at != last;
        if (map && at != last) {
            map->index[n - 1] = at;
            map->weight[n - 1] = 0;
        }
        if (map)
            map->weight[n - 1] += weight;
        last = at;
    }
    return n;
}

int64_t ot__resize_map(const ot__resize_line *line, ot__line_map *map)
{
    int64_t n = 0;

    for (int64_t o = 0; o < line->out; o++) {
        if (map)
            map->start[o] = n;
        n = add_pairs(line, o, map, n);
    }
    if (map) {
        map->start[line->out] = n;
        map->from = line->in;
        map->to = line->out;
    }
    return n;
}

void ot__line_map_transpose(const ot__line_map *map, ot__line_map *back)
{
    back->from = map->to;
    back->to = map->from;
    back->fill = 0;
    for (int64_t i = 0; i <= back->to; i++)
        back->start[i] = 0;
    for (int64_t k = 0; k < map->start[map->to]; k++)
        back->start[map->index[k] + 1]++;
    for (int64_t i = 0; i < back->to; i++)
        back->start[i + 1] += back->start[i];
    // Each start moves on while its pairs are put, and ends where the next one began.
    for (int64_t o = 0; o < map->to; o++)
        for (int64_t k = map->start[o]; k < map->start[o + 1]; k++) {
            const int64_t to = back->start[map->index[k]]++;

            back->index[to] = o;
            back->weight[to] = map->weight[k];
        }
    for (int64_t i = back->to; i > 0; i--)
        back->start[i] = back->start[i - 1];
    back->start[0] = 0;
}

bool ot__line_map_is_identity(const ot__line_map *map)
{
    if (map->from != map->to)
        return false;
    for (int64_t i = 0; i < map->to; i++)
        if (map->start[i + 1] != map->start[i] + 1 || map->index[map->start[i]] != i ||
            map->weight[map->start[i]] != 1)
            return false;
    return true;
}
