// SPDX-License-Identifier: Apache-2.0
// One element type of op_grid_sample.c.

static ot_status FN(grid_sample_run)(const ot_run *r)
{
    FN(ot__ref_grid_sample)(r->out[0]->data, r->in[X]->data, r->in[GRID]->data, r->state);
    return OT_OK;
}

static ot_status FN(grid_sample_grad_run)(const ot_run *r)
{
    FN(ot__ref_grid_sample_dx)(r->out[0]->data, r->in[DY]->data, r->in[DY_GRID]->data, r->state);
    return OT_OK;
}

static ot_status FN(grid_sample_grid_grad_run)(const ot_run *r)
{
    FN(ot__ref_grid_sample_dgrid)
    (r->out[0]->data, r->in[DY]->data, r->in[SLOPE_X]->data, r->in[SLOPE_GRID]->data, r->state);
    return OT_OK;
}
