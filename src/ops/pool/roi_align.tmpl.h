// SPDX-License-Identifier: Apache-2.0
// One element type of op_roi_align.c.

static ot_status FN(roi_align_run)(const ot_run *r)
{
    const ot__roi_align *p = r->state;

    OT_TRY(check_images(r->in[BATCH_INDICES], p->batch));
    FN(ot__ref_roi_align)
    (r->out[0]->data, r->in[X]->data, r->in[ROIS]->data, r->in[BATCH_INDICES]->data, p, r->scratch);
    return OT_OK;
}

static ot_status FN(roi_align_grad_run)(const ot_run *r)
{
    const ot__roi_align *p = r->state;

    OT_TRY(check_images(r->in[GRAD_BATCH_INDICES], p->batch));
    FN(ot__ref_roi_align_grad)
    (r->out[0]->data, r->in[DY]->data, ot__run_in(r, GRAD_X), r->in[GRAD_ROIS]->data,
     r->in[GRAD_BATCH_INDICES]->data, p, r->scratch);
    return OT_OK;
}
