// SPDX-License-Identifier: Apache-2.0
static ot_status FN(layer_norm_run)(const ot_run *r)
{
    const ot__layer_norm *p = r->state;

    FN(ot__ref_layer_norm)
    (r->out[Y]->data, mean_of(r), inv_std_of(r), r->in[X]->data, r->in[SCALE]->data,
     ot__run_in(r, BIAS), p->epsilon, p->is_centered, p->rows, p->columns);
    return OT_OK;
}
