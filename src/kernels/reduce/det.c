// SPDX-License-Identifier: Apache-2.0
// Determinants and their gradients by vector code, as many matrices at a time as it has lanes.
// Threads take parts of the batch, each with scratch of its own.
#include "kernels/kernels.h"

enum { MOST_LANES = 8, ALIGNMENT = 64 };

typedef struct side_job {
    float *y;
    const float *x, *dy; // dy: NULL for determinants
    int64_t batch, n, n_parts;
    uint8_t *scratch; // of each part
} side_job;

static size_t side_bytes(int64_t n)
{
    return (size_t)(n * ot__det_stride(n) + 5 * n) * MOST_LANES * sizeof(double);
}

static size_t det_part_bytes(int64_t n)
{
    const size_t n_bytes = side_bytes(n) + ot__ref_det_bytes(n, 1);

    return (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t ot__simd_det_bytes(int64_t n, int n_parts)
{
    return (size_t)n_parts * det_part_bytes(n);
}

// Matrices without an inverse, or with elements that are not finite, are left to the reference.
static void run_unusual(const side_job *j, int64_t first, unsigned unusual, void *scratch)
{
    const int64_t n_each = j->n * j->n;

    for (int64_t m = first; unusual != 0; m++, unusual >>= 1) {
        if (!(unusual & 1))
            continue;
        if (j->dy == NULL)
            ot__ref_det_f32(j->y + m, j->x + m * n_each, 1, j->n, 1, scratch);
        else
            ot__ref_det_grad_f32(j->y + m * n_each, j->dy + m, j->x + m * n_each, 1, j->n, 1,
                                 scratch);
    }
}

static void run_det_parts(void *context, int64_t first, int64_t last)
{
    const side_job *j = context;
    const ot__dets *dets = ot__dets_best();
    const int64_t n_each = j->n * j->n, groups = (j->batch + dets->lanes - 1) / dets->lanes;

    for (int64_t part = first; part < last; part++) {
        uint8_t *scratch = j->scratch + (size_t)part * det_part_bytes(j->n);

        for (int64_t k = groups * part / j->n_parts; k < groups * (part + 1) / j->n_parts; k++) {
            const int64_t m = k * dets->lanes, count = OT_MIN(j->batch - m, dets->lanes);
            const unsigned unusual =
                j->dy == NULL ? dets->det(j->y + m, j->x + m * n_each, count, j->n, scratch)
                              : dets->det_grad(j->y + m * n_each, j->dy + m, j->x + m * n_each,
                                               count, j->n, scratch);

            run_unusual(j, m, unusual & ((1U << count) - 1), scratch + side_bytes(j->n));
        }
    }
}

void ot__simd_det(float *y, const float *x, int64_t batch, int64_t n, int n_parts, void *scratch)
{
    side_job j = {y, x, NULL, batch, n, n_parts, scratch};

    ot__parallel_for(n_parts, 1, run_det_parts, &j);
}

void ot__simd_det_grad(float *dx, const float *dy, const float *x, int64_t batch, int64_t n,
                       int n_parts, void *scratch)
{
    side_job j = {dx, x, dy, batch, n, n_parts, scratch};

    ot__parallel_for(n_parts, 1, run_det_parts, &j);
}
