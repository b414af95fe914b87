// SPDX-License-Identifier: Apache-2.0
static ot_status FN(group_norm_training_run)(const ot_run *r)
{
    FN(ot__ref_group_norm)
    (r->out[Y]->data, ot__run_out(r, MEAN), ot__run_out(r, INV_STD), r->in[X]->data,
     ot__run_in(r, SCALE), ot__run_in(r, BIAS), &((const group_norm *)r->state)->sizes);
    return OT_OK;
}

static ot_status FN(group_norm_grad_run)(const ot_run *r)
{
    FN(ot__ref_group_norm_grad)
    (ot__run_out(r, DX), ot__run_out(r, DSCALE), ot__run_out(r, DB), r->in[DY]->data,
     r->in[GRAD_X]->data, ot__run_in(r, GRAD_SCALE), r->in[GRAD_MEAN]->data,
     r->in[GRAD_INV_STD]->data, &((const group_norm *)r->state)->sizes);
    return OT_OK;
}
