// SPDX-License-Identifier: Apache-2.0
static void RUN(const ot_run *r, const ot__layer_norm *p)
{
    const T *y = r->in[Y]->data, *scale = r->in[SCALE]->data, *bias = r->in[BIAS]->data;
    const T *inv = r->in[INV]->data;
    T *x = r->scratch, *mean = x + p->rows * p->columns;

    for (int64_t row = 0; row < p->rows; row++) {
        mean[row] = 0;
        for (int64_t k = 0; k < p->columns; k++)
            x[row * p->columns + k] = (y[row * p->columns + k] - bias[k]) / scale[k] / inv[row];
    }
    GRAD(output_of(r, 0), output_of(r, 1), output_of(r, 2), r->in[DY]->data, x, scale, mean, inv,
         p->rows, p->columns);
}
