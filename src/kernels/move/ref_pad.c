// SPDX-License-Identifier: Apache-2.0
// Padding: each axis has a table from y's index to x's, so every mode is the same copy.
#include <string.h>

#include "kernels/kernels.h"

enum { PAR_BYTES = 65536 };

static int64_t floor_mod(int64_t a, int64_t n)
{
    const int64_t m = a % n;

    return m < 0 ? m + n : m;
}

// Index in 0..n-1 of the element that stands at position `at`, which may lie outside; -1: the
// constant.
static int64_t pad_source(int64_t at, int64_t n, ot__pad_mode mode)
{
    if (at >= 0 && at < n)
        return at;
    if (mode == OT__PAD_CONSTANT || n == 0)
        return -1;
    if (mode == OT__PAD_EDGE)
        return at < 0 ? 0 : n - 1;
    if (mode == OT__PAD_WRAP)
        return floor_mod(at, n);
    if (n == 1)
        return 0;
    at = floor_mod(at, 2 * (n - 1)); // there and back again, the border once
    return at < n ? at : 2 * (n - 1) - at;
}

void ot__ref_pad_map(int64_t *map, int64_t extent, int64_t begin, int64_t end, ot__pad_mode mode)
{
    const int64_t first = begin < 0 ? -begin : 0, last = extent - (end < 0 ? -end : 0);
    const int64_t kept = OT_MAX(last - first, 0), n = extent + begin + end;

    for (int64_t i = 0; i < n; i++) {
        const int64_t source = pad_source(i - OT_MAX(begin, 0), kept, mode);

        map[i] = source < 0 ? -1 : first + source;
    }
}

typedef struct job {
    char *y;
    const char *x, *value;
    const ot__pad *pad;
    int64_t run_from, run_to; // where the last axis copies neighbours
} job;

static void pad_row(const job *j, char *y, const char *x)
{
    const ot__pad *p = j->pad;
    const int64_t *map = p->map[p->ndim - 1], n = p->dim[p->ndim - 1];
    const size_t size = p->size;

    for (int64_t i = 0; i < n; i++) {
        const bool is_run = i == j->run_from && x != NULL && j->run_to > i;
        const int64_t count = is_run ? j->run_to - i : 1;
        const char *from = x != NULL && map[i] >= 0 ? x + (size_t)map[i] * size : j->value;

        memcpy(y + (size_t)i * size, from, (size_t)count * size);
        i += count - 1;
    }
}

static void pad_rows(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__pad *p = j->pad;
    const size_t row_bytes = (size_t)p->dim[p->ndim - 1] * p->size;

    for (int64_t row = first; row < last; row++) {
        int64_t rest = row, x_at = 0;
        bool inside = true;

        for (int k = p->ndim - 2; k >= 0; k--) {
            const int64_t source = p->map[k][rest % p->dim[k]];

            rest /= p->dim[k];
            inside = inside && source >= 0;
            x_at += source * p->x_stride[k];
        }
        pad_row(j, j->y + (size_t)row * row_bytes, inside ? j->x + (size_t)x_at * p->size : NULL);
    }
}

void ot__ref_pad(void *y, const void *x, const void *value, const ot__pad *pad)
{
    const int last = pad->ndim - 1;
    const int64_t *map = pad->map[last], n = pad->dim[last];
    job j = {.y = y, .x = x, .value = value, .pad = pad};
    int64_t rows = 1;

    for (int k = 0; k < last; k++)
        rows *= pad->dim[k];
    if (rows == 0 || n == 0)
        return;
    for (int64_t i = 0; i<n; i += j.run_to> i ? j.run_to - i : 1) { // the longest run of neighbours
        int64_t to = i + 1;

        while (map[i] >= 0 && to < n && map[to] == map[to - 1] + 1)
            to++;
        if (to - i > j.run_to - j.run_from) {
            j.run_from = i;
            j.run_to = to;
        }
    }
    ot__parallel_for(rows, PAR_BYTES / (n * (int64_t)pad->size) + 1, pad_rows, &j);
}
