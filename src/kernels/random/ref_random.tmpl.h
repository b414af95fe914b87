// SPDX-License-Identifier: Apache-2.0
// One element type of ref_random.c.

// sums (batch, n): of e^x of the classes so far, each row over its greatest.
void FN(ot__ref_weight_sums)(double *sums, const void *x, int64_t batch, int64_t n)
{
    for (int64_t b = 0; b < batch; b++) {
        const T *row = (const T *)x + b * n;
        T most = row[0];
        double sum = 0;

        for (int64_t i = 1; i < n; i++)
            most = row[i] > most ? row[i] : most;
        for (int64_t i = 0; i < n; i++)
            sums[b * n + i] = sum += exp((double)row[i] - (double)most);
    }
}
