// SPDX-License-Identifier: Apache-2.0
// Determinants of square matrices and their gradients, by elimination with the greatest element
// left as the next pivot, in f64. Threads take parts of the batch, each with scratch of its own.
#include <math.h>

#include "kernels/kernels.h"

typedef struct det_job {
    void *y;
    const void *x, *dy;
    int64_t batch, n, n_parts;
    double *scratch; // of each part
} det_job;

// P X Q = L U, in the place of X: L below the diagonal, which is 1, U from there on.
typedef struct elimination {
    double *lu, *adjoint; // (n, n)
    int64_t *row, *col;   // where rows and columns of P X Q stand in X
    int64_t n;
    double sign; // of the permutations
} elimination;

// Also of matrices without elements.
static size_t part_doubles(int64_t n)
{
    return (size_t)(2 * n * n + 2 * n + 1);
}

size_t ot__ref_det_bytes(int64_t n, int n_parts)
{
    return (size_t)n_parts * part_doubles(n) * sizeof(double);
}

static elimination elimination_at(const det_job *j, int64_t part)
{
    double *at = j->scratch + (size_t)part * part_doubles(j->n);
    int64_t *order = (int64_t *)(void *)(at + 2 * j->n * j->n);

    return (elimination){at, at + j->n * j->n, order, order + j->n, j->n, 1.0};
}

static void swap_numbers(double *a, double *b)
{
    const double kept = *a;

    *a = *b;
    *b = kept;
}

static void swap_indices(int64_t *a, int64_t *b)
{
    const int64_t kept = *a;

    *a = *b;
    *b = kept;
}

// The greatest element left becomes pivot k. NaN does not compare: then it stays where it is.
static void choose_pivot(elimination *e, int64_t k)
{
    const int64_t n = e->n;
    int64_t row = k, col = k;

    for (int64_t i = k; i < n; i++)
        for (int64_t c = k; c < n; c++)
            if (fabs(e->lu[i * n + c]) > fabs(e->lu[row * n + col])) {
                row = i;
                col = c;
            }
    if ((row != k) != (col != k))
        e->sign = -e->sign;
    for (int64_t c = 0; c < n && row != k; c++)
        swap_numbers(&e->lu[row * n + c], &e->lu[k * n + c]);
    for (int64_t i = 0; i < n && col != k; i++)
        swap_numbers(&e->lu[i * n + col], &e->lu[i * n + k]);
    swap_indices(&e->row[row], &e->row[k]);
    swap_indices(&e->col[col], &e->col[k]);
}

static void eliminate(elimination *e)
{
    const int64_t n = e->n;

    for (int64_t k = 0; k < n; k++)
        e->row[k] = e->col[k] = k;
    for (int64_t k = 0; k < n; k++) {
        const double *pivot_row = e->lu + k * n;

        choose_pivot(e, k);
        for (int64_t i = k + 1; i < n && pivot_row[k] != 0; i++) {
            const double factor = e->lu[i * n + k] / pivot_row[k];

            e->lu[i * n + k] = factor;
            for (int64_t c = k + 1; c < n; c++)
                e->lu[i * n + c] -= factor * pivot_row[c];
        }
    }
}

// The adjoint of U: U * adjoint = det(U). It does not divide by the last pivot, so that it is right
// where that is 0. False where another one is, and with it all that is left of the matrix: the
// adjoint is 0.
static bool find_adjoint(const elimination *e)
{
    const int64_t n = e->n;
    double others = 1.0; // product of all pivots but the last one

    for (int64_t k = 0; k < n - 1; k++) {
        if (e->lu[k * n + k] == 0)
            return false;
        others *= e->lu[k * n + k];
    }
    for (int64_t c = 0; c < n; c++) {
        for (int64_t i = n - 1; i > c; i--)
            e->adjoint[i * n + c] = 0;
        e->adjoint[c * n + c] = c == n - 1 ? others : others / e->lu[c * n + c] * e->lu[n * n - 1];
        for (int64_t i = c - 1; i >= 0; i--) {
            double sum = 0;

            for (int64_t k = i + 1; k <= c; k++)
                sum += e->lu[i * n + k] * e->adjoint[k * n + c];
            e->adjoint[i * n + c] = -sum / e->lu[i * n + i];
        }
    }
    return true;
}

// adjoint(U) becomes adjoint(U) * L^-1.
static void divide_by_lower(const elimination *e)
{
    const int64_t n = e->n;

    for (int64_t i = 0; i < n; i++)
        for (int64_t c = n - 2; c >= 0; c--)
            for (int64_t k = c + 1; k < n; k++)
                e->adjoint[i * n + c] -= e->adjoint[i * n + k] * e->lu[k * n + c];
}

#define TEMPLATE "kernels/reduce/ref_det.tmpl.h"
#include "kernels/by_float.tmpl.h"
