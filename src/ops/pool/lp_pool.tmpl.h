// SPDX-License-Identifier: Apache-2.0
static ot_status FN(lp_pool_run)(const ot_run *r)
{
    const ot__pool_state *s = r->state;

    FN(ot__ref_lp_pool)(r->out[0]->data, r->in[0]->data, &s->pool);
    return OT_OK;
}

static ot_status FN(lp_pool_grad_run)(const ot_run *r)
{
    const ot__pool_state *s = r->state;

    FN(ot__ref_lp_pool_grad)
    (r->out[0]->data, r->in[DY]->data, r->in[X]->data, r->in[Y]->data, &s->pool);
    return OT_OK;
}
