// SPDX-License-Identifier: Apache-2.0
static ot_status FN(average_pool_run)(const ot_run *r)
{
    const ot__pool_state *p = r->state;

    FN(ot__ref_average_pool)(r->out[0]->data, r->in[0]->data, &p->pool);
    return OT_OK;
}

static ot_status FN(average_pool_grad_run)(const ot_run *r)
{
    const ot__pool_state *p = r->state;

    FN(ot__ref_average_pool_grad)(r->out[0]->data, r->in[0]->data, &p->pool);
    return OT_OK;
}
