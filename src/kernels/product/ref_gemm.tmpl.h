// SPDX-License-Identifier: Apache-2.0
// One block of y: at most BLOCK_M by BLOCK_N, all of k.
static void FN(gemm_block)(T *y, const T *a, const T *b, const T *c, const ot__gemm *g,
                           bool accumulates, int64_t i0, int64_t j0)
{
    const int64_t m = OT_MIN(g->m - i0, (int64_t)BLOCK_M), n = OT_MIN(g->n - j0, (int64_t)BLOCK_N);
    double sum[BLOCK_M][BLOCK_N] = {{0}};
    double packed[BLOCK_K][BLOCK_N];

    for (int64_t k0 = 0; k0 < g->k; k0 += BLOCK_K) {
        const int64_t nk = OT_MIN(g->k - k0, (int64_t)BLOCK_K);
        for (int64_t k = 0; k < nk; k++)
            for (int64_t j = 0; j < BLOCK_N; j++)
                packed[k][j] = j < n ? (double)b[(k0 + k) * g->b_row + (j0 + j) * g->b_column] : 0;
        for (int64_t i = 0; i < m; i++)
            for (int64_t k = 0; k < nk; k++) {
                const double x = (double)a[(i0 + i) * g->a_row + (k0 + k) * g->a_column];
                for (int64_t j = 0; j < BLOCK_N; j++)
                    sum[i][j] += x * packed[k][j];
            }
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double value = g->alpha * sum[i][j];
            if (c)
                value += g->beta * (double)c[(i0 + i) * g->c_row + (j0 + j) * g->c_column];
            if (accumulates)
                value += (double)y[(i0 + i) * g->y_row + j0 + j];
            y[(i0 + i) * g->y_row + j0 + j] = (T)value;
        }
}

void FN(ot__ref_gemm)(T *y, const T *a, const T *b, const T *c, const ot__gemm *g, bool accumulates)
{
    const int64_t n_rows = (g->m + BLOCK_M - 1) / BLOCK_M,
                  n_columns = (g->n + BLOCK_N - 1) / BLOCK_N;

#pragma omp parallel for schedule(static) if (n_rows * n_columns > 8)
    for (int64_t block = 0; block < n_rows * n_columns; block++)
        FN(gemm_block)
    (y, a, b, c, g, accumulates, block / n_columns * BLOCK_M, block % n_columns * BLOCK_N);
}
