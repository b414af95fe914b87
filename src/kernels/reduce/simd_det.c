// SPDX-License-Identifier: Apache-2.0
// Determinants and their gradients of several matrices side by side, one in each lane, in f64;
// compiled once per instruction set (OT_ISA). As in ref_det.c the greatest element left is the next
// pivot. All lanes take the same steps: an element's place stands in the last bits of its size, so
// that the greatest of these numbers says where it is.
#include <math.h>

#include "kernels/kernels.h"
#include "kernels/simd.h"

typedef ot__vector_wide wide;
typedef uint64_t places __attribute__((vector_size(4 * OT_VECTOR_LANES), aligned(8), may_alias));

enum {
    LANES = OT_VECTOR_LANES / 2,
    AXIS_BITS = 7, // OT__DET_SIDE_MAX rows and columns
    PLACE_BITS = 2 * AXIS_BITS,
    BLOCK = 64, // elements of each matrix that are brought beside each other at once
};
_Static_assert(OT__DET_SIDE_MAX <= 1 << AXIS_BITS, "places have bits for every row and column");
#define SIZE_BITS (~(UINT64_C(1) << 63 | ((UINT64_C(1) << PLACE_BITS) - 1)))

typedef struct side_by_side {
    int64_t n, stride;
    wide *a;         // (n, n), rows `stride` apart
    wide *row, *col; // of the pivots: (n)
    wide pivot;
    wide sign;        // of the order in which rows and columns were taken
    places *row_left; // (n): all bits of the rows that no pivot was in, else none
    places *col_left; // (n): of their elements, the bits of the size
    int32_t *col_of;  // (n, LANES): of each row, in which column its pivot was
    int32_t *row_of;  // (n, LANES)
} side_by_side;

static side_by_side side_by_side_at(void *scratch, int64_t n)
{
    const int64_t stride = ot__det_stride(n);
    wide *at = (wide *)scratch + n * stride;
    int32_t *order = (int32_t *)(void *)(at + 4 * n);

    return (side_by_side){.n = n,
                          .stride = stride,
                          .a = scratch,
                          .row = at,
                          .col = at + n,
                          .pivot = (wide){0} + 1,
                          .sign = (wide){0} + 1,
                          .row_left = (places *)(void *)(at + 2 * n),
                          .col_left = (places *)(void *)(at + 3 * n),
                          .col_of = order,
                          .row_of = order + n * LANES};
}

// Lanes without a matrix have the last one.
static void load_matrices(const side_by_side *s, const float *x, int64_t count)
{
    const ot__moves *moves = ot__moves_best();
    const int64_t n = s->n * s->n;
    float block[BLOCK * LANES];
    wide *a = s->a;
    int64_t j = 0;

    for (int64_t e = 0; e < n; e += BLOCK) {
        const int64_t n_block = OT_MIN(n - e, (int64_t)BLOCK);

        if (count == LANES)
            ot__transpose_floats(moves, block, LANES, x + e, n, n_block, LANES);
        for (int64_t k = 0; k < n_block && count < LANES; k++)
            for (int64_t l = 0; l < LANES; l++)
                block[k * LANES + l] = x[OT_MIN(l, count - 1) * n + e + k];
        for (int64_t k = 0; k < n_block; k++) {
            a[j++] = ot__vector_widen(block + k * LANES);
            if (j < s->n)
                continue;
            a += s->stride;
            j = 0;
        }
    }
}

OT_SIMD_INLINE places place_bits(int64_t row, int64_t col)
{
    return (places){0} + (uint64_t)(row << AXIS_BITS | col);
}

OT_SIMD_INLINE int64_t row_of_place(uint64_t place)
{
    return (int64_t)(place >> AXIS_BITS);
}

OT_SIMD_INLINE int64_t col_of_place(uint64_t place)
{
    return (int64_t)(place & ((1U << AXIS_BITS) - 1));
}

// The greatest size of an element and its place. What is NaN is passed over.
static wide find_greatest(const side_by_side *s)
{
    const int64_t n = s->n;
    wide greatest = {0};

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            greatest = ot__vector_wide_max(
                (wide)(((places)s->a[i * s->stride + j] & SIZE_BITS) | place_bits(i, j)), greatest);
    return greatest;
}

// ---- determinants: the last row and column of m take the place of the pivot's ----

OT_SIMD_INLINE void take_pivots(side_by_side *s, wide greatest, int64_t m)
{
    double *a = (double *)(void *)s->a;
    double *row = (double *)(void *)s->row, *col = (double *)(void *)s->col;
    const int64_t stride = s->stride, last = m - 1;

    for (int l = 0; l < LANES; l++) {
        const uint64_t place = ((places)greatest)[l] & ((1U << PLACE_BITS) - 1);
        const int64_t r = row_of_place(place), c = col_of_place(place);

        s->pivot[l] = a[(r * stride + c) * LANES + l];
        if ((r == last) != (c == last))
            s->sign[l] = -s->sign[l];
        for (int64_t i = 0; i < m; i++) {
            col[i * LANES + l] = a[(i * stride + c) * LANES + l];
            a[(i * stride + c) * LANES + l] = a[(i * stride + last) * LANES + l];
        }
        for (int64_t j = 0; j < last; j++) {
            row[j * LANES + l] = a[(r * stride + j) * LANES + l];
            a[(r * stride + j) * LANES + l] = a[(last * stride + j) * LANES + l];
        }
        col[r * LANES + l] = col[last * LANES + l];
    }
}

// What is left of rows and columns 0 .. m - 1; gives its greatest elements.
OT_SIMD_INLINE wide eliminate_pivots(side_by_side *s, int64_t m)
{
    wide greatest = {0};

    for (int64_t i = 0; i < m; i++) {
        const wide factor = s->col[i] / s->pivot;
        wide *a = s->a + i * s->stride, of_row = {0};

        for (int64_t j = 0; j < m; j++) {
            const wide v = a[j] - factor * s->row[j];

            a[j] = v;
            of_row =
                ot__vector_wide_max((wide)(((places)v & SIZE_BITS) | place_bits(i, j)), of_row);
        }
        greatest = ot__vector_wide_max(of_row, greatest);
    }
    return greatest;
}

static unsigned find_dets(float *y, const float *x, int64_t count, int64_t n, void *scratch)
{
    side_by_side s = side_by_side_at(scratch, n);
    wide det = {0}, greatest;
    unsigned unusual = 0;

    det += 1;
    load_matrices(&s, x, count);
    greatest = find_greatest(&s);
    for (int64_t m = n; m > 1; m--) {
        take_pivots(&s, greatest, m);
        det *= s.pivot;
        greatest = eliminate_pivots(&s, m - 1);
    }
    det *= s.sign * s.a[0];
    for (int64_t l = 0; l < count; l++) {
        unusual |= (unsigned)(det[l] == 0 || !isfinite(det[l])) << l;
        y[l] = (float)det[l];
    }
    return unusual;
}

// ---- gradients: the inverse in the place of the matrix, times all pivots ----

// Rows and columns stay where they are; those of a pivot are cleared for what comes there.
OT_SIMD_INLINE void clear_pivot(const side_by_side *s, wide *pivot, int l, int64_t r, int64_t c)
{
    double *a = (double *)(void *)s->a;
    double *row = (double *)(void *)s->row, *col = (double *)(void *)s->col;
    const int64_t n = s->n, stride = s->stride;

    (*pivot)[l] = a[(r * stride + c) * LANES + l];
    for (int64_t i = 0; i < n; i++) {
        col[i * LANES + l] = a[(i * stride + c) * LANES + l];
        a[(i * stride + c) * LANES + l] = 0;
    }
    for (int64_t j = 0; j < n; j++) {
        row[j * LANES + l] = a[(r * stride + j) * LANES + l];
        a[(r * stride + j) * LANES + l] = 0;
    }
    row[c * LANES + l] = 1;
    col[r * LANES + l] = -1;
    ((uint64_t *)(void *)s->row_left)[r * LANES + l] = 0;
    ((uint64_t *)(void *)s->col_left)[c * LANES + l] = 0;
    s->col_of[r * LANES + l] = (int32_t)c;
    s->row_of[c * LANES + l] = (int32_t)r;
}

// Gives the lanes where nothing but 0 and NaN is left: the place may be one that was taken.
OT_SIMD_INLINE unsigned clear_pivots(side_by_side *s, wide greatest)
{
    unsigned unusual = 0;

    for (int l = 0; l < LANES; l++) {
        const uint64_t found = ((places)greatest)[l], place = found & ((1U << PLACE_BITS) - 1);

        unusual |= (unsigned)(found == place) << l;
        clear_pivot(s, &s->pivot, l, row_of_place(place), col_of_place(place));
    }
    return unusual;
}

OT_SIMD_INLINE wide invert_pivots(side_by_side *s)
{
    wide greatest = {0};

    for (int64_t i = 0; i < s->n; i++) {
        const wide factor = s->col[i] / s->pivot;
        wide *a = s->a + i * s->stride, of_row = {0};

        for (int64_t j = 0; j < s->n; j++) {
            const wide v = a[j] - factor * s->row[j];

            a[j] = v;
            of_row = ot__vector_wide_max((wide)(((places)v & s->col_left[j]) | place_bits(i, j)),
                                         of_row);
        }
        greatest = ot__vector_wide_max((wide)((places)of_row & s->row_left[i]), greatest);
    }
    return greatest;
}

// The rows and columns that are left, one each.
static void clear_last_pivots(side_by_side *s)
{
    for (int l = 0; l < LANES; l++) {
        int64_t r = 0, c = 0;

        for (int64_t k = 0; k < s->n; k++) {
            r = s->row_left[k][l] != 0 ? k : r;
            c = s->col_left[k][l] != 0 ? k : c;
        }
        clear_pivot(s, &s->pivot, l, r, c);
    }
}

// The adjoint from what is left of the inverse before the last pivot: by that it is multiplied, not
// divided, so that it is right where that is 0.
OT_SIMD_INLINE void find_adjoints(side_by_side *s)
{
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t j = 0; j < s->n; j++) {
            wide *a = &s->a[i * s->stride + j];

            *a = *a * s->pivot - s->col[i] * s->row[j];
        }
}

static double sign_of_order(const side_by_side *s, int64_t lane)
{
    bool is_seen[OT__DET_SIDE_MAX] = {false};
    double sign = 1;

    for (int64_t k = 0; k < s->n; k++)
        for (int64_t at = s->col_of[k * LANES + lane]; at != k && !is_seen[k];
             at = s->col_of[at * LANES + lane]) {
            is_seen[at] = true;
            sign = -sign;
        }
    return sign;
}

// dx = factor * adjoint', rows and columns where they belong.
static void store_adjoints(float *dx, const side_by_side *s, wide factor, int64_t count)
{
    const int64_t n = s->n;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const wide d = s->a[i * s->stride + j] * factor;
            const int32_t *row = s->row_of + j * LANES, *col = s->col_of + i * LANES;

            for (int64_t l = 0; l < count; l++)
                dx[(l * n + row[l]) * n + col[l]] = (float)d[l];
        }
}

static unsigned find_det_gradients(float *dx, const float *dy, const float *x, int64_t count,
                                   int64_t n, void *scratch)
{
    side_by_side s = side_by_side_at(scratch, n);
    wide others = {0}, factor = {0}, greatest; // all pivots but the last one
    unsigned unusual = 0;

    others += 1;
    load_matrices(&s, x, count);
    for (int64_t k = 0; k < n; k++) {
        s.row_left[k] = (places){0} - 1;
        s.col_left[k] = (places){0} + SIZE_BITS;
        for (int l = 0; l < LANES; l++) // which an unusual lane may keep
            s.col_of[k * LANES + l] = s.row_of[k * LANES + l] = (int32_t)k;
    }
    greatest = find_greatest(&s);
    for (int64_t k = 0; k < n - 1; k++) {
        unusual |= clear_pivots(&s, greatest);
        others *= s.pivot;
        greatest = invert_pivots(&s);
    }
    clear_last_pivots(&s);
    find_adjoints(&s);
    for (int64_t l = 0; l < count; l++) {
        if (others[l] == 0 || !isfinite(others[l]) || !isfinite(s.pivot[l]))
            unusual |= 1U << l;
        if ((unusual >> l & 1) == 0)
            factor[l] = (double)dy[l] * others[l] * sign_of_order(&s, l);
    }
    store_adjoints(dx, &s, factor, count);
    return unusual;
}

const ot__dets OT_ISA_NAME(ot__dets) = {LANES, find_dets, find_det_gradients};
