// SPDX-License-Identifier: Apache-2.0
static ot_status FN(layer_norm_grad_run)(const ot_run *r)
{
    const ot__layer_norm *p = r->state;

    FN(ot__ref_layer_norm_grad)
    (ot__run_out(r, DX), ot__run_out(r, DSCALE), ot__run_out(r, DB), r->in[DY]->data,
     r->in[X]->data, r->in[SCALE]->data, given_mean(r), given_inv_std(r), p->rows, p->columns);
    return OT_OK;
}

static ot_status FN(invertible_run)(const ot_run *r)
{
    const ot__layer_norm *p = r->state;
    const T *y = r->in[X]->data, *scale = r->in[SCALE]->data, *bias = r->in[MEAN]->data;
    const T *inv = given_inv_std(r);
    T *x = r->scratch, *mean = x + p->rows * p->columns;

    for (int64_t row = 0; row < p->rows; row++) {
        mean[row] = 0;
        for (int64_t k = 0; k < p->columns; k++)
            x[row * p->columns + k] = (y[row * p->columns + k] - bias[k]) / scale[k] / inv[row];
    }
    FN(ot__ref_layer_norm_grad)
    (ot__run_out(r, DX), ot__run_out(r, DSCALE), ot__run_out(r, DB), r->in[DY]->data, x, scale,
     mean, inv, p->rows, p->columns);
    return OT_OK;
}
