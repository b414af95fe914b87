// SPDX-License-Identifier: Apache-2.0
// One element type of deform_columns.c.

static ot_status FN(deform_columns_run)(const ot_run *r)
{
    if (r->out[0]->count > 0)
        FN(ot__ref_deform_columns)
    (r->out[0]->data, r->in[X]->data, r->in[OFFSET]->data, ot__run_in(r, MASK), r->state);
    return OT_OK;
}

static ot_status FN(deform_columns_grad_run)(const ot_run *r)
{
    const T *dcolumns = r->in[DCOLUMNS]->data, *x = r->in[GRAD_X]->data;
    const T *offset = r->in[GRAD_OFFSET]->data, *mask = ot__run_in(r, GRAD_MASK);
    T *dx = ot__run_out(r, DX), *doffset = ot__run_out(r, DOFFSET), *dmask = ot__run_out(r, DMASK);

    if (dx != NULL)
        FN(ot__ref_deform_dx)(dx, dcolumns, offset, mask, r->state);
    if (doffset != NULL || dmask != NULL)
        FN(ot__ref_deform_doffset)(doffset, dmask, dcolumns, x, offset, mask, r->state);
    return OT_OK;
}
