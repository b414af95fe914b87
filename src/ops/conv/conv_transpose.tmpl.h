// SPDX-License-Identifier: Apache-2.0
static ot_status FN(conv_transpose_run)(const ot_run *r)
{
    const T *x = r->in[0]->data, *w = r->in[1]->data, *b = ot__run_in(r, 2);

    FN(ot__ref_conv_dx)(r->out[0]->data, x, w, b, r->state, r->scratch);
    return OT_OK;
}
