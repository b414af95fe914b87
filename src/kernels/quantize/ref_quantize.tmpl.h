// SPDX-License-Identifier: Apache-2.0
void FN(ot__ref_fake_quant)(T *y, uint8_t *mask, const T *x, int64_t n, T scale, T zero_point,
                            T low, T high)
{
#pragma omp parallel for schedule(static) if (n > OT_PAR_MIN)
    for (int64_t i = 0; i < n; i++) {
        const T q = RINT(x[i] / scale) + zero_point;
        const bool is_inside = q >= low && q <= high;
        const T kept = is_inside ? q : q < low ? low : high;

        y[i] = (kept - zero_point) * scale;
        if (mask != NULL)
            mask[i] = is_inside;
    }
}
