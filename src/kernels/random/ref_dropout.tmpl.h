// SPDX-License-Identifier: Apache-2.0
void FN(ot__ref_mask_scale)(T *y, const T *x, const uint8_t *mask, double scale, int64_t count)
{
    const T factor = (T)scale;

#pragma omp parallel for schedule(static) if (count > OT_PAR_MIN)
    for (int64_t i = 0; i < count; i++)
        y[i] = mask[i] ? x[i] * factor : 0;
}
