// SPDX-License-Identifier: Apache-2.0
// One element type of col2im.c.

static ot_status FN(col2im_run)(const ot_run *r)
{
    const ot_arg *x = r->in[INPUT], *y = r->out[0];
    const uint64_t zero = 0;
    ot__window window;

    OT_TRY(run_block_window(r, y, x, r->in[BLOCK], &window));
    for (int a = 0; a < (int)r->in[IMAGE]->count && a < y->shape.ndim - 2; a++)
        OT_TRY(ot__check_planned(ot__arg_int(r->in[IMAGE], a),
                                 "elements along an axis of the image", y->shape.dim[2 + a]));
    ot__ref_fill(y->data, &zero, y->count, sizeof(T));
    if (y->count > 0)
        FN(ot__ref_from_columns)(y->data, x->data, y->shape.dim[0] * y->shape.dim[1], &window);
    return OT_OK;
}

static ot_status FN(im2col_run)(const ot_run *r)
{
    const ot_arg *x = r->in[0], *y = r->out[0];
    ot__window window;

    OT_TRY(run_block_window(r, x, y, r->in[1], &window));
    if (y->count > 0)
        FN(ot__ref_to_columns)(y->data, x->data, x->shape.dim[0] * x->shape.dim[1], &window);
    return OT_OK;
}
