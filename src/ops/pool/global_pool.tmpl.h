// SPDX-License-Identifier: Apache-2.0
static ot_status FN(global_average_run)(const ot_run *r)
{
    const ot_shape *x = &r->in[0]->shape;

    FN(ot__ref_plane_mean)
    (r->out[0]->data, r->in[0]->data, x->dim[0] * x->dim[1], ot__plane_elements(x));
    return OT_OK;
}

static ot_status FN(global_max_run)(const ot_run *r)
{
    const ot_shape *x = &r->in[0]->shape;

    FN(ot__ref_plane_max)
    (r->out[0]->data, r->in[0]->data, x->dim[0] * x->dim[1], ot__plane_elements(x));
    return OT_OK;
}

static ot_status FN(global_max_grad_run)(const ot_run *r)
{
    const ot_shape *x = &r->in[X]->shape;

    FN(ot__ref_plane_max_grad)
    (r->out[0]->data, r->in[DY]->data, r->in[X]->data, r->in[Y]->data, x->dim[0] * x->dim[1],
     ot__plane_elements(x));
    return OT_OK;
}
