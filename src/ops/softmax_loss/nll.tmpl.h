// SPDX-License-Identifier: Apache-2.0
// One element type of nll.c: the reference kernels.

static ot_status FN(nll_run)(const ot_run *r)
{
    const void *x = r->in[SCORES]->data, *labels = r->in[LABELS]->data;
    ot__nll p;

    OT_TRY(ot__loss_begin(r, LABELS, IGNORE, &p));
    FN(ot__ref_nll)(r->out[0]->data, x, labels, ot__run_in(r, WEIGHT), &p);
    return OT_OK;
}

static ot_status FN(sce_run)(const ot_run *r)
{
    const void *x = r->in[SCORES]->data, *labels = r->in[LABELS]->data;
    T *log_prob = ot__sce_log_prob(r);
    ot__nll p;

    OT_TRY(ot__loss_begin(r, LABELS, IGNORE, &p));
    FN(ot__ref_log_softmax)(log_prob, x, &(ot__lines){p.n, p.classes, p.inner});
    if (r->out[0])
        FN(ot__ref_nll)(r->out[0]->data, log_prob, labels, ot__run_in(r, WEIGHT), &p);
    return OT_OK;
}

static ot_status FN(loss_grad_run)(const ot_run *r, const T *log_prob, bool softmax)
{
    const void *dy = r->in[G_DY]->data, *labels = r->in[G_LABELS]->data;
    const void *weight = ot__run_in(r, G_WEIGHT);
    ot__nll p;

    OT_TRY(ot__loss_begin(r, G_LABELS, G_IGNORE, &p));
    FN(ot__ref_nll_grad)(r->out[0]->data, dy, log_prob, labels, weight, softmax, &p);
    return OT_OK;
}

static ot_status FN(nll_grad_run)(const ot_run *r)
{
    return FN(loss_grad_run)(r, NULL, false);
}

static ot_status FN(sce_grad_run)(const ot_run *r)
{
    return FN(loss_grad_run)(r, r->in[G_SCORES]->data, true);
}
