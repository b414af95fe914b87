// SPDX-License-Identifier: Apache-2.0
static ot_status FN(lrn_run)(const ot_run *r)
{
    const lrn_state *s = r->state;

    FN(ot__ref_lrn)(r->out[0]->data, r->in[0]->data, &s->lrn);
    return OT_OK;
}

static ot_status FN(lrn_grad_run)(const ot_run *r)
{
    const lrn_state *s = r->state;

    FN(ot__ref_lrn_grad)
    (r->out[0]->data, r->in[DY]->data, r->in[X]->data, &s->lrn, s->n_parts, r->scratch);
    return OT_OK;
}
