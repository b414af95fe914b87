// SPDX-License-Identifier: Apache-2.0
// One element type of op_max_roi_pool.c.

static ot_status FN(max_roi_pool_run)(const ot_run *r)
{
    const ot__roi_pool *p = r->state;
    const T *rois = r->in[ROIS]->data;

    OT_TRY(no_such_image(FN(ot__ref_max_roi_check)(rois, p), p));
    FN(ot__ref_max_roi_pool)(r->out[0]->data, r->in[X]->data, rois, p);
    return OT_OK;
}

static ot_status FN(max_roi_pool_grad_run)(const ot_run *r)
{
    const ot__roi_pool *p = r->state;
    const T *rois = r->in[GRAD_ROIS]->data;

    OT_TRY(no_such_image(FN(ot__ref_max_roi_check)(rois, p), p));
    FN(ot__ref_max_roi_pool_grad)
    (r->out[0]->data, r->in[DY]->data, r->in[GRAD_X]->data, rois, p);
    return OT_OK;
}
