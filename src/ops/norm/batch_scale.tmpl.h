// SPDX-License-Identifier: Apache-2.0
static ot_status FN(batch_scale_run)(const ot_run *r)
{
    const scales *state = r->state;
    const T *x = r->in[0]->data;

    for (int i = 0; i < r->n_out; i++) {
        T *y = ot__run_out(r, i);

        for (int64_t k = 0; y && k < r->in[0]->count; k++)
            y[k] = x[k] * (T)state->of[i];
    }
    return OT_OK;
}
