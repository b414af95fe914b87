// SPDX-License-Identifier: Apache-2.0
static ot_status FN(max_pool_run)(const ot_run *r)
{
    const ot__pool_state *p = r->state;

    FN(ot__ref_max_pool)
    (r->out[0]->data, ot__run_out(r, 1), r->in[0]->data, &p->pool);
    return OT_OK;
}

static ot_status FN(max_pool_short_run)(const ot_run *r)
{
    const ot__pool_state *p = r->state;
    const ot__maxima at = maxima_in(r->out[1]);

    FN(ot__ref_max_pool)(r->out[0]->data, r->scratch, r->in[0]->data, &p->pool);
    ot__ref_max_pool_shorten(at.cells, at.positions, r->scratch, &p->pool);
    return OT_OK;
}

static ot_status FN(max_pool_grad_run)(const ot_run *r)
{
    const ot__pool_state *p = r->state;

    OT_TRY(check_indices(r));
    FN(ot__ref_max_pool_grad)
    (r->out[0]->data, r->in[0]->data, r->in[1]->data, &p->pool);
    return OT_OK;
}

static ot_status FN(max_pool_short_grad_run)(const ot_run *r)
{
    const ot__pool_state *p = r->state;
    const ot__maxima at = maxima_in(r->in[1]);

    if (!ot__ref_max_pool_lengthen(r->scratch, at.cells, at.positions, &p->pool))
        return maximum_outside();
    FN(ot__ref_max_pool_grad)
    (r->out[0]->data, r->in[0]->data, r->scratch, &p->pool);
    return OT_OK;
}
