// SPDX-License-Identifier: Apache-2.0
static void FN(n_bits_row)(T *y, const ot__n_bits_data *d, const T *scales, const ot__n_bits *m,
                           int64_t row)
{
    const T *zeros = d->zeros;
    const int64_t row_bytes = m->block / 8 * m->bits * m->blocks;
    const int64_t zero_bytes = (m->blocks * m->bits + 7) / 8;

    for (int64_t b = 0; b < m->blocks; b++) {
        const int64_t first = b * m->block, n = OT_MIN(m->block, m->columns - first);
        const uint8_t *packed = d->packed + row * row_bytes + first / 8 * m->bits;
        const T scale = scales[row * m->blocks + b];
        T zero = (T)(1 << (m->bits - 1));

        if (d->packed_zeros != NULL)
            zero = (T)bits_at(d->packed_zeros + row * zero_bytes, m->bits, b);
        else if (zeros != NULL)
            zero = zeros[row * m->blocks + b];
        for (int64_t k = 0; k < n; k++)
            y[row * m->columns + first + k] = ((T)bits_at(packed, m->bits, k) - zero) * scale;
    }
}

void FN(ot__ref_n_bits)(T *y, const ot__n_bits_data *d, const T *scales, const ot__n_bits *m)
{
#pragma omp parallel for schedule(static) if (m->rows * m->columns > OT_PAR_MIN)
    for (int64_t row = 0; row < m->rows; row++)
        FN(n_bits_row)(y, d, scales, m, row);
}
