// SPDX-License-Identifier: Apache-2.0
static ot_status FN(fused_attention_run)(const ot_run *r)
{
    const ot__attention_data data = forward_data(r);

    if (r->out[Y]->count > 0)
        FN(ot__ref_attention)(&((const fused_attention *)r->state)->a, &data, r->scratch);
    return OT_OK;
}
