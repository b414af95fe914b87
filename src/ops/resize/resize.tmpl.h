// SPDX-License-Identifier: Apache-2.0
// One axis after the other; between them the result so far lies in either half of the scratch.
static ot_status FN(resize_passes)(const ot_run *r, bool is_gradient)
{
    const resize_state *s = r->state;
    const size_t half_bytes = (size_t)s->passes.most * sizeof(T);
    T *half[] = {r->scratch, behind(r->scratch, half_bytes)};
    const T *x = r->in[0]->data;
    ot__resize_passes passes;

    OT_TRY(passes_of_run(r, is_gradient, behind(r->scratch, 2 * half_bytes), &passes));
    if (passes.n == 0 && r->in[0]->count > 0)
        memcpy(r->out[0]->data, x, (size_t)r->in[0]->count * sizeof(T));
    for (int i = 0; i < passes.n; i++) {
        const ot__resize_pass *pass = &passes.pass[i];
        T *y = i == passes.n - 1 ? r->out[0]->data : half[i % 2];

        FN(ot__ref_map_lines)(y, x, &pass->map, pass->outer, pass->inner);
        x = y;
    }
    return OT_OK;
}

static ot_status FN(resize_run)(const ot_run *r)
{
    return FN(resize_passes)(r, false);
}

static ot_status FN(resize_grad_run)(const ot_run *r)
{
    return FN(resize_passes)(r, true);
}
