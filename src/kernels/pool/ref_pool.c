// SPDX-License-Identifier: Apache-2.0
// Pooling, window by window.
#include <math.h>

#include "kernels/kernels.h"

// Input positions of one window that lie in the image: first, first + dilation, ... below last.
typedef struct ot__range {
    int64_t first[OT__WINDOW_AXES], last[OT__WINDOW_AXES];
} ot__range;

static void range_of_window(ot__range *r, int64_t o, const ot__window *w)
{
    for (int a = OT__WINDOW_AXES - 1; a >= 0; a--) {
        const int64_t start = o % w->out[a] * w->stride[a] - w->pad[a];
        const int64_t skipped = start < 0 ? (-start + w->dilation[a] - 1) / w->dilation[a] : 0;

        r->first[a] = start + skipped * w->dilation[a];
        r->last[a] = start + (w->kernel[a] - 1) * w->dilation[a] + 1;
        o /= w->out[a];
    }
}

// Elements that an average divides by: those in the image, or in the padded image.
static double average_count(int64_t o, const ot__pool *p)
{
    const ot__window *w = &p->window;
    double count = 1;

    for (int a = OT__WINDOW_AXES - 1; a >= 0; a--) {
        const int64_t start = o % w->out[a] * w->stride[a] - w->pad[a];
        const int64_t low = p->count_pads ? -w->pad[a] : 0;
        const int64_t high = w->in[a] + (p->count_pads ? p->pad_end[a] : 0);
        int64_t n = 0;

        for (int64_t k = 0; k < w->kernel[a]; k++)
            n += start + k * w->dilation[a] >= low && start + k * w->dilation[a] < high;
        count *= (double)OT_MAX(n, 1);
        o /= w->out[a];
    }
    return count;
}

// storage_order 1 as ONNX Runtime has it: the first spatial axis varies fastest.
static int64_t column_major(int64_t at, const ot__window *w)
{
    const int64_t rest = OT_MAX(at, 0) / w->in[2], last = OT_MAX(at, 0) % w->in[2];

    return rest / w->in[1] + w->in[0] * (rest % w->in[1] + w->in[1] * last);
}

// ---- short indices ----

// Where window o starts along each axis; it may be in the padding.
static void start_of(int64_t start[OT__WINDOW_AXES], int64_t o, const ot__window *w)
{
    for (int a = OT__WINDOW_AXES - 1; a >= 0; a--) {
        start[a] = o % w->out[a] * w->stride[a] - w->pad[a];
        o /= w->out[a];
    }
}

static bool has_nothing(int64_t o, const ot__window *w)
{
    ot__range r;

    range_of_window(&r, o, w);
    for (int a = 0; a < OT__WINDOW_AXES; a++)
        if (r.first[a] >= OT_MIN(r.last[a], w->in[a]))
            return true;
    return false;
}

// The number in window o of a position in the image.
static int64_t cell_of(int64_t position, int64_t o, const ot__window *w)
{
    const int64_t at[] = {position / w->in[2] / w->in[1], position / w->in[2] % w->in[1],
                          position % w->in[2]};
    int64_t start[OT__WINDOW_AXES], cell = 0;

    start_of(start, o, w);
    for (int a = 0; a < OT__WINDOW_AXES; a++)
        cell = cell * w->kernel[a] + (at[a] - start[a]) / w->dilation[a];
    return cell;
}

// The reverse; what is no position in the image is below 0.
static int64_t position_of(int64_t cell, int64_t o, const ot__window *w)
{
    int64_t start[OT__WINDOW_AXES], k[OT__WINDOW_AXES], position = 0;

    start_of(start, o, w);
    for (int a = OT__WINDOW_AXES - 1; a >= 0; a--) {
        k[a] = start[a] + cell % w->kernel[a] * w->dilation[a];
        cell /= w->kernel[a];
    }
    for (int a = 0; a < OT__WINDOW_AXES; a++) {
        if (k[a] < 0 || k[a] >= w->in[a])
            return -1;
        position = position * w->in[a] + k[a];
    }
    return cell > 0 ? -1 : position;
}

void ot__ref_max_pool_shorten(uint8_t *cells, int32_t *positions, const int64_t *indices,
                              const ot__pool *p)
{
    const ot__window *w = &p->window;

    for (int64_t i = 0; i < p->n * w->n_out; i++) {
        const int64_t o = i % w->n_out, position = indices[i] - i / w->n_out * w->n_in;
        const bool none = has_nothing(o, w);

        if (cells != NULL)
            cells[i] = none ? OT__NO_CELL : (uint8_t)cell_of(position, o, w);
        else
            positions[i] = none ? -1 : (int32_t)position;
    }
}

bool ot__ref_max_pool_lengthen(int64_t *indices, const uint8_t *cells, const int32_t *positions,
                               const ot__pool *p)
{
    const ot__window *w = &p->window;

    for (int64_t i = 0; i < p->n * w->n_out; i++) {
        const bool none = cells != NULL ? cells[i] == OT__NO_CELL : positions[i] == -1;
        const int64_t position =
            cells != NULL ? position_of(cells[i], i % w->n_out, w) : positions[i];

        if (!none && (position < 0 || position >= w->n_in))
            return false;
        indices[i] = none ? -1 : i / w->n_out * w->n_in + position;
    }
    return true;
}

bool ot__pool_has_short_rows(const ot__window *w)
{
    return w->stride[2] <= OT__POOL_ROW_STRIDE &&
           (w->kernel[2] - 1) * w->dilation[2] < OT__POOL_ROW_REACH;
}

int64_t ot__pool_check_indices(const int64_t *indices, const ot__window *w, const ot__channels *c)
{
    for (int64_t unit = 0; unit < c->outer * c->blocks; unit++)
        for (int64_t i = 0; i < w->n_out * c->width; i++) {
            const int64_t at = unit * w->n_out * c->width + i;
            const int64_t plane = (unit * c->width + i % c->width) * w->n_in;

            if (indices[at] < plane || indices[at] >= plane + w->n_in)
                return at;
        }
    return -1;
}

#define TEMPLATE "kernels/pool/ref_pool.tmpl.h"
#include "kernels/by_float.tmpl.h"
