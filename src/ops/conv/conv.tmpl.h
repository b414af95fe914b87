// SPDX-License-Identifier: Apache-2.0
static ot_status FN(conv_run)(const ot_run *r)
{
    const conv_state *p = r->state;
    const T *x = r->in[0]->data, *w = r->in[1]->data, *b = ot__run_in(r, 2);
    T *y = r->out[0]->data;

    FN(ot__ref_conv)(y, x, w, b, &p->conv, r->scratch);
    for (int64_t i = 0; p->relu && i < r->out[0]->count; i++)
        y[i] = y[i] < 0 ? 0 : y[i];
    return OT_OK;
}

static ot_status FN(conv_grad_run)(const ot_run *r)
{
    const conv_state *p = r->state;
    const T *dy = r->in[0]->data, *x = r->in[1]->data, *w = r->in[2]->data;
    T *dx = ot__run_out(r, 0), *dw = ot__run_out(r, 1), *db = ot__run_out(r, 2);

    if (dw)
        FN(ot__ref_conv_dw)(dw, dy, x, &p->conv, r->scratch, (r->accumulates & ADDS_DW) != 0);
    if (db)
        FN(ot__ref_conv_db)(db, dy, &p->conv, (r->accumulates & ADDS_DB) != 0);
    if (dx) // last: it may be in the place of x
        FN(ot__ref_conv_dx)(dx, dy, w, NULL, &p->conv, r->scratch);
    return OT_OK;
}
