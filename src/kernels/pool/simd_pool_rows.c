// SPDX-License-Identifier: Apache-2.0
// Pools in f32 on row-major planes, compiled once per instruction set (OT_ISA): a lane is one of
// the windows of a row.
#include <math.h>
#include <string.h>

#include "kernels/pool/row_pieces.h"

typedef struct row_job {
    const ot__pool *p;
    const float *from;
    float *to;
    ot__maxima at;
} row_job;

// The piece of each row of windows of a plane.
OT_SIMD_INLINE void for_rows(const row_job *j, const row_piece *c, int64_t plane,
                             void (*run)(const row_job *j, const row_piece *c, const row_set *s,
                                         int64_t plane, int64_t row, void *work),
                             void *work)
{
    const ot__window *w = &j->p->window;
    row_set s;

    for (int64_t d = 0; d < w->out[0]; d++)
        for (int64_t h = 0; h < w->out[1]; h++) {
            find_rows(&s, w, d, h);
            run(j, c, &s, plane, d * w->out[1] + h, work);
        }
}

// ---- maxima ----

typedef struct max_work {
    float row[ROOM], phases[ROOM], value[PIECE];
    // The cell of the window, or how far behind the window's start it is in the plane, modulo 2^32.
    uint32_t at[PIECE];
} max_work;

static uint32_t cell_tag(const row_job *j, const row_set *s, int64_t d, int64_t h, int64_t v)
{
    const ot__window *w = &j->p->window;

    return (uint32_t)(j->at.cells != NULL ? (d * w->kernel[1] + h) * w->kernel[2] + v
                                          : d * s->depth + h * s->height + v * w->dilation[2]);
}

// Where window i of the piece starts in the plane, modulo 2^32.
static uint32_t start_in_plane(const row_job *j, const row_piece *c, const row_set *s, int64_t i)
{
    return (uint32_t)(s->start + c->start + i * j->p->window.stride[2]);
}

static const float *row_for_max(float *to, const float *x, const row_piece *c, const ot__window *w)
{
    const int64_t n = c->pitch * w->stride[2];
    int64_t first, behind;

    find_image_part(c, w, &first, &behind);
    if (first == 0 && behind == n)
        return x + c->start;
    for (int64_t i = 0; i < first; i++)
        to[i] = -INFINITY;
    if (first < behind)
        memcpy(to + first, x + c->start + first, (size_t)(behind - first) * sizeof *to);
    for (int64_t i = behind; i < n; i++)
        to[i] = -INFINITY;
    return to;
}

// One row of the windows, whose first kernel position has tag `tag`, the next one tag + step.
OT_SIMD_INLINE void take_window_row(max_work *m, const float *phases, const row_piece *c,
                                    int64_t kernel, uint32_t tag, uint32_t step, bool has_tags)
{
    for (int64_t i = 0; i < c->n; i += LANES) {
        ot__vector_bits best = *(ot__vector_bits *)(void *)(m->value + i), at = {0};

        if (has_tags)
            at = *(ot__vector_bits *)(void *)(m->at + i);
        for (int64_t k = 0; k < kernel; k++) {
            const ot__vector x = ot__vector_load(phases + c->tap[k] + i);
            const ot__vector_bits taken =
                (ot__vector_bits)(x > (ot__vector)best) | (ot__vector_bits)(x != x);

            best = ((ot__vector_bits)x & taken) | (best & ~taken);
            if (has_tags)
                at = (((ot__vector_bits){0} + tag + (uint32_t)k * step) & taken) | (at & ~taken);
        }
        ot__vector_store(m->value + i, (ot__vector)best);
        if (has_tags)
            *(ot__vector_bits *)(void *)(m->at + i) = at;
    }
}

// Where nothing is greater than -inf: the first element of the window, or what stands for none.
static void mend_maxima(const row_job *j, const row_piece *c, row_set *s, max_work *m)
{
    const uint32_t none = j->at.positions != NULL ? UINT32_MAX : 0;

    for (int64_t i = 0; i < c->n; i++) {
        if (m->value[i] != -INFINITY)
            continue;
        find_inside(&s->part, 2, &j->p->window, c->first + i);
        if (misses_input(&s->part)) {
            m->value[i] = 0;
            m->at[i] = j->at.cells != NULL ? OT__NO_CELL : none - start_in_plane(j, c, s, i);
        } else {
            m->at[i] = cell_tag(j, s, s->part.first[0], s->part.first[1], s->part.first[2]);
        }
    }
}

static bool has_infinities(const float *value, int64_t n)
{
    int32_t n_found = 0;

    for (int64_t i = 0; i < n; i++)
        n_found += value[i] == -INFINITY;
    return n_found > 0;
}

static void write_tags(const row_job *j, const row_piece *c, const row_set *s, int64_t plane,
                       int64_t to, const uint32_t *at)
{
    const uint32_t start = start_in_plane(j, c, s, 0), step = (uint32_t)j->p->window.stride[2];
    const int64_t before = plane * j->p->window.n_in;

    for (int64_t i = 0; j->at.cells != NULL && i < c->n; i++)
        j->at.cells[to + i] = (uint8_t)at[i];
    for (int64_t i = 0; j->at.positions != NULL && i < c->n; i++)
        j->at.positions[to + i] = (int32_t)(at[i] + start + (uint32_t)i * step);
    for (int64_t i = 0; j->at.indices != NULL && i < c->n; i++)
        j->at.indices[to + i] = before + (int32_t)(at[i] + start + (uint32_t)i * step);
}

static void max_of_row(const row_job *j, const row_piece *c, const row_set *s, int64_t plane,
                       int64_t row, void *work)
{
    const ot__window *w = &j->p->window;
    const bool has_tags = j->at.cells != NULL || j->at.positions != NULL || j->at.indices != NULL;
    const uint32_t step = j->at.cells != NULL ? 1 : (uint32_t)w->dilation[2];
    const float *x = j->from + plane * w->n_in;
    const int64_t to = (plane * w->out[0] * w->out[1] + row) * w->out[2] + c->first;
    max_work *m = work;
    row_set mended = *s;

    for (int64_t i = 0; i < round_to_lanes(c->n); i++) {
        m->value[i] = -INFINITY;
        m->at[i] = 0;
    }
    for (int64_t d = s->part.first[0]; d < s->part.behind[0]; d++)
        for (int64_t h = s->part.first[1]; h < s->part.behind[1]; h++) {
            const float *from = x + s->start + d * s->depth + h * s->height;
            const float *phases =
                split_row(m->phases, row_for_max(m->row, from, c, w), c->pitch, w->stride[2]);
            const uint32_t tag = cell_tag(j, s, d, h, 0);

            if (has_tags)
                take_window_row(m, phases, c, w->kernel[2], tag, step, true);
            else
                take_window_row(m, phases, c, w->kernel[2], tag, step, false);
        }
    if (has_infinities(m->value, c->n))
        mend_maxima(j, c, &mended, m);
    memcpy(j->to + to, m->value, (size_t)c->n * sizeof *j->to);
    write_tags(j, c, s, plane, to, m->at);
}

static void max_of_planes(void *context, int64_t first, int64_t last)
{
    const row_job *j = context;
    row_piece c;
    max_work m;

    for (int64_t at = 0; at < j->p->window.out[2]; at += c.n) {
        cut_piece(&c, &j->p->window, at);
        for (int64_t plane = first; plane < last; plane++)
            for_rows(j, &c, plane, max_of_row, &m);
    }
}

// ---- averages ----

typedef struct average_work {
    float row[ROOM], phases[ROOM];
} average_work;

// Elements along axis a of window o that an average is over, 1 at least.
static int64_t axis_count(const ot__pool *p, int a, int64_t o)
{
    const ot__window *w = &p->window;
    const int64_t start = o * w->stride[a] - w->pad[a], behind = w->kernel[a] * w->dilation[a];
    const int64_t low = (p->count_pads ? -w->pad[a] : 0) - start;
    const int64_t high = w->in[a] + (p->count_pads ? p->pad_end[a] : 0) - start;
    const int64_t first = low <= 0 ? 0 : (low + w->dilation[a] - 1) / w->dilation[a];
    const int64_t end = OT_MIN(OT_MAX(high, 0) + w->dilation[a] - 1, behind) / w->dilation[a];

    return OT_MAX(end - first, 1);
}

static void find_divisors(row_piece *c, const ot__pool *p)
{
    for (int64_t i = 0; i < round_to_lanes(c->n); i++)
        c->divisors[i] = i < c->n ? (float)axis_count(p, 2, c->first + i) : 1;
}

static float row_divisor(const ot__pool *p, int64_t row)
{
    return (float)(axis_count(p, 0, row / p->window.out[1]) *
                   axis_count(p, 1, row % p->window.out[1]));
}

OT_SIMD_INLINE ot__vector sum_at(const float *x, const row_set *s)
{
    ot__vector sum = {0};

    for (int64_t d = s->part.first[0]; d < s->part.behind[0]; d++)
        for (int64_t h = s->part.first[1]; h < s->part.behind[1]; h++)
            sum += ot__vector_load(x + d * s->depth + h * s->height);
    return sum;
}

// sum[i] = the sum of element i of all rows, the first of which would be at x.
static void sum_window_rows(float *sum, const float *x, const row_set *s, int64_t n)
{
    for (int64_t i = 0; i + LANES <= n; i += LANES)
        ot__vector_store(sum + i, sum_at(x + i, s));
    if (n >= LANES) {
        ot__vector_store(sum + n - LANES, sum_at(x + n - LANES, s));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        sum[i] = 0;
        for (int64_t d = s->part.first[0]; d < s->part.behind[0]; d++)
            for (int64_t h = s->part.first[1]; h < s->part.behind[1]; h++)
                sum[i] += x[d * s->depth + h * s->height + i];
    }
}

static void fill_sums(float *row, const float *x, const row_piece *c, const row_set *s,
                      const ot__window *w)
{
    int64_t first, behind;

    find_image_part(c, w, &first, &behind);
    for (int64_t i = 0; i < first; i++)
        row[i] = 0;
    if (first < behind)
        sum_window_rows(row + first, x + s->start + c->start + first, s, behind - first);
    for (int64_t i = behind; i < c->pitch * w->stride[2]; i++)
        row[i] = 0;
}

static void average_of_row(const row_job *j, const row_piece *c, const row_set *s, int64_t plane,
                           int64_t row, void *work)
{
    const ot__window *w = &j->p->window;
    const ot__vector divisor = ot__vector_of(row_divisor(j->p, row));
    float *y = j->to + (plane * w->out[0] * w->out[1] + row) * w->out[2] + c->first;
    average_work *a = work;
    const float *phases;

    fill_sums(a->row, j->from + plane * w->n_in, c, s, w);
    phases = split_row(a->phases, a->row, c->pitch, w->stride[2]);
    for (int64_t i = 0; i < c->n; i += LANES) {
        ot__vector sum = {0};

        for (int64_t k = 0; k < w->kernel[2]; k++)
            sum += ot__vector_load(phases + c->tap[k] + i);
        sum /= divisor * ot__vector_load(c->divisors + i);
        if (i + LANES <= c->n)
            ot__vector_store(y + i, sum);
        else
            memcpy(y + i, &sum, (size_t)(c->n - i) * sizeof *y);
    }
}

static void average_of_planes(void *context, int64_t first, int64_t last)
{
    const row_job *j = context;
    row_piece c;
    average_work a;

    for (int64_t at = 0; at < j->p->window.out[2]; at += c.n) {
        cut_piece(&c, &j->p->window, at);
        find_divisors(&c, j->p);
        for (int64_t plane = first; plane < last; plane++)
            for_rows(j, &c, plane, average_of_row, &a);
    }
}

// ---- gradient of averages ----

typedef struct share_work {
    float phases[ROOM], row[ROOM];
    float shares[PIECE + 2 * REACH + 2 * LANES]; // REACH zeros, the windows', zeros
    // Kernel positions of phase r are numbers begin[r] to begin[r + 1] of `late`: how many windows
    // later than the first one an element of the phase is theirs.
    int64_t begin[STRIDE + 1], late[REACH];
} share_work;

static void sort_taps(share_work *a, const ot__window *w)
{
    const int64_t stride = w->stride[2], dilation = w->dilation[2];
    int64_t n = 0;

    for (int64_t r = 0; r < stride; r++) {
        a->begin[r] = n;
        for (int64_t k = 0; k < w->kernel[2]; k++)
            if (k * dilation % stride == r)
                a->late[n++] = k * dilation / stride;
    }
    a->begin[stride] = n;
}

static void fill_shares(share_work *a, const float *dy, const row_piece *c, float divisor)
{
    float *shares = a->shares + REACH;

    for (int64_t i = 0; i < c->n; i++)
        shares[i] = dy[i] / (divisor * c->divisors[i]);
    for (int64_t i = c->n; i < c->pitch; i++)
        shares[i] = 0;
}

// To each element what the windows of the row give it.
static void spread_shares(share_work *a, const row_piece *c, int64_t stride)
{
    for (int64_t r = 0; r < stride; r++)
        for (int64_t i = 0; i < c->pitch; i += LANES) {
            ot__vector sum = {0};

            for (int64_t k = a->begin[r]; k < a->begin[r + 1]; k++)
                sum += ot__vector_load(a->shares + REACH + i - a->late[k]);
            ot__vector_store(a->phases + r * c->pitch + i, sum);
        }
}

static void spread_row(const row_job *j, const row_piece *c, const row_set *s, int64_t plane,
                       int64_t row, void *work)
{
    const ot__window *w = &j->p->window;
    const float *dy = j->from + (plane * w->out[0] * w->out[1] + row) * w->out[2] + c->first;
    share_work *a = work;
    const float *given;
    int64_t first, behind;

    fill_shares(a, dy, c, row_divisor(j->p, row));
    spread_shares(a, c, w->stride[2]);
    given = join_row(a->row, a->phases, c->pitch, w->stride[2]);
    find_image_part(c, w, &first, &behind);
    for (int64_t d = s->part.first[0]; d < s->part.behind[0]; d++)
        for (int64_t h = s->part.first[1]; h < s->part.behind[1]; h++) {
            float *dx = j->to + plane * w->n_in + s->start + d * s->depth + h * s->height;

            OT_SIMD_LOOP
            for (int64_t i = first; i < behind; i++)
                dx[c->start + i] += given[i];
        }
}

static void spread_averages(void *context, int64_t first, int64_t last)
{
    const row_job *j = context;
    const ot__window *w = &j->p->window;
    row_piece c;
    share_work a;

    memset(a.shares, 0, sizeof a.shares);
    sort_taps(&a, w);
    for (int64_t at = 0; at < w->out[2]; at += c.n) {
        cut_piece(&c, w, at);
        find_divisors(&c, j->p);
        for (int64_t plane = first; plane < last; plane++) {
            if (at == 0)
                memset(j->to + plane * w->n_in, 0, (size_t)w->n_in * sizeof *j->to);
            for_rows(j, &c, plane, spread_row, &a);
        }
    }
}

// ---- gradient of the maximum of a plane ----

typedef struct plane_job {
    float *dx;
    const float *dy, *x, *y;
    int64_t inner;
} plane_job;

enum { SEARCHED = 64 }; // elements in which the maximum is looked for at once

// The first element that is y, or NaN as it; `inner`: none.
static int64_t find_maximum(const float *x, float y, int64_t inner)
{
    int64_t i = 0;

    if (isnan(y)) {
        while (i < inner && !isnan(x[i]))
            i++;
        return i;
    }
    for (; i + SEARCHED <= inner; i += SEARCHED) {
        int32_t n_equal = 0;

        for (int k = 0; k < SEARCHED; k++)
            n_equal += x[i + k] == y;
        if (n_equal > 0)
            break;
    }
    while (i < inner && x[i] != y)
        i++;
    return i;
}

static void put_at_maxima(void *context, int64_t first, int64_t last)
{
    const plane_job *j = context;

    for (int64_t plane = first; plane < last; plane++) {
        float *dx = j->dx + plane * j->inner;
        const int64_t at = find_maximum(j->x + plane * j->inner, j->y[plane], j->inner);

        memset(dx, 0, (size_t)j->inner * sizeof *dx);
        if (at < j->inner)
            dx[at] = j->dy[plane];
    }
}

static void plane_max_grad(float *dx, const float *dy, const float *x, const float *y,
                           int64_t planes, int64_t inner)
{
    plane_job j = {dx, dy, x, y, inner};

    ot__parallel_for(planes, OT_PAR_MIN / (inner + 1) + 1, put_at_maxima, &j);
}

// ---- the table ----

static void for_planes(row_job *j, void (*run)(void *context, int64_t first, int64_t last))
{
    const ot__window *w = &j->p->window;
    const int64_t work = OT_MAX(w->n_in, w->n_out);

    ot__parallel_for(j->p->n, OT_PAR_MIN / (work + 1) + 1, run, j);
}

static void max_by_rows(float *y, const ot__maxima *at, const float *x, const ot__pool *p)
{
    row_job j = {.p = p, .from = x, .to = y, .at = *at};

    for_planes(&j, max_of_planes);
}

static void average_by_rows(float *y, const float *x, const ot__pool *p)
{
    row_job j = {.p = p, .from = x, .to = y};

    for_planes(&j, average_of_planes);
}

static void average_grad_by_rows(float *dx, const float *dy, const ot__pool *p)
{
    row_job j = {.p = p, .from = dy, .to = dx};

    for_planes(&j, spread_averages);
}

const ot__row_pools OT_ISA_NAME(ot__row_pools) = {
    max_by_rows, average_by_rows, average_grad_by_rows, plane_max_grad, LANES, PIECE};
