// SPDX-License-Identifier: Apache-2.0
// One element type of dropout.c.

static ot_status FN(dropout_run)(const ot_run *r)
{
    const ot_arg *x = r->in[0];
    uint8_t *mask;
    double scale;

    OT_TRY(dropout_draw(r, &mask, &scale));
    if (r->out[0])
        FN(ot__ref_mask_scale)(r->out[0]->data, x->data, mask, scale, x->count);
    return OT_OK;
}

static ot_status FN(dropout_grad_run)(const ot_run *r)
{
    const ot_arg *dy = r->in[0], *mask = r->in[1];
    double scale;

    OT_TRY(dropout_grad_scale(r, &scale));
    FN(ot__ref_mask_scale)(r->out[0]->data, dy->data, mask->data, scale, dy->count);
    return OT_OK;
}
