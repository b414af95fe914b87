// SPDX-License-Identifier: Apache-2.0
static ot_status FN(fused_attention_grad_run)(const ot_run *r)
{
    const fused_attention_grad *f = r->state;
    const ot__attention_data data = gradient_data(r);

    if (!ot__attention_is_empty(&f->a))
        FN(ot__ref_attention_grad)(&f->a, &data, r->scratch);
    return OT_OK;
}
