// SPDX-License-Identifier: Apache-2.0
// One element type of ref_div_grad.c.

static void FN(div_grad)(T *da, T *db, const T *dy, const T *a, const T *b, const ot__div_grad *p)
{
    int64_t index[OT_MAX_NDIM] = {0}, ia = 0, ib = 0;

    for (int64_t k = 0; k < p->count; k++) {
        const double g = (double)dy[k], divisor = (double)b[ib];

        if (p->da_sum != NULL)
            p->da_sum[ia] += g / divisor;
        if (p->db_sum != NULL)
            p->db_sum[ib] -= g * (double)a[ia] / (divisor * divisor);
        for (int d = p->ndim - 1; d >= 0; d--) {
            ia += p->a_stride[d];
            ib += p->b_stride[d];
            if (++index[d] < p->dim[d])
                break;
            ia -= p->a_stride[d] * p->dim[d];
            ib -= p->b_stride[d] * p->dim[d];
            index[d] = 0;
        }
    }
    for (int64_t k = 0; p->da_sum != NULL && k < p->a_count; k++)
        da[k] = (T)p->da_sum[k];
    for (int64_t k = 0; p->db_sum != NULL && k < p->b_count; k++)
        db[k] = (T)p->db_sum[k];
}
