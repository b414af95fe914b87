// SPDX-License-Identifier: Apache-2.0
static ot_status FN(fake_quant_run)(const ot_run *r)
{
    const fake_quant_range *state = r->state;
    const ot_arg *x = r->in[IN_X];
    const T scale = *(const T *)r->in[IN_SCALE]->data;
    const T zero = *(const T *)r->in[IN_ZERO_POINT]->data;

    if (scale == 0)
        return ot__error(OT_ERR_INVALID, "the scale is 0");
    FN(ot__ref_fake_quant)
    (r->out[0]->data, ot__run_out(r, 1), x->data, x->count, scale, zero, (T)state->low,
     (T)state->high);
    return OT_OK;
}

static ot_status FN(fake_quant_grad_run)(const ot_run *r)
{
    FN(ot__ref_mask_scale)
    (r->out[0]->data, r->in[0]->data, r->in[1]->data, 1, r->in[0]->count);
    return OT_OK;
}
