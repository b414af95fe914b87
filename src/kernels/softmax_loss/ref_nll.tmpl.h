// SPDX-License-Identifier: Apache-2.0
// One element type of ref_nll.c.

// Sum of the weights of the labels that count.
static double FN(total_weight)(const void *labels, const T *weight, const ot__nll *p)
{
    double total = 0;

    for (int64_t i = 0; i < p->n * p->inner; i++) {
        const int64_t label = ot__ref_nll_label(labels, p, i);
        if (!ot__ref_nll_ignores(p, label))
            total += weight ? (double)weight[label] : 1;
    }
    return total;
}

void FN(ot__ref_nll)(T *loss, const T *log_prob, const void *labels, const T *weight,
                     const ot__nll *p)
{
    double sum = 0, total = 0;

    for (int64_t image = 0; image < p->n; image++)
        for (int64_t pixel = 0; pixel < p->inner; pixel++) {
            const int64_t i = image * p->inner + pixel, label = ot__ref_nll_label(labels, p, i);
            double value = 0;

            if (!ot__ref_nll_ignores(p, label)) {
                const double share = weight ? (double)weight[label] : 1;

                value = -(double)log_prob[(image * p->classes + label) * p->inner + pixel] * share;
                total += share;
            }
            if (p->reduction == OT__LOSS_NONE)
                loss[i] = (T)value;
            sum += value;
        }
    if (p->reduction == OT__LOSS_SUM)
        loss[0] = (T)sum;
    if (p->reduction == OT__LOSS_MEAN)
        loss[0] = (T)(total != 0 ? sum / total : 0); // all ignored: 0
}

double FN(ot__ref_nll_share)(const T *dy, const void *labels, const T *weight, const ot__nll *p)
{
    double total;

    if (p->reduction != OT__LOSS_MEAN)
        return p->reduction == OT__LOSS_NONE ? 0 : (double)dy[0];
    total = FN(total_weight)(labels, weight, p);
    return total != 0 ? (double)dy[0] / total : 0;
}

void FN(ot__ref_nll_grad)(T *dx, const T *dy, const T *log_prob, const void *labels,
                          const T *weight, bool softmax, const ot__nll *p)
{
    const double share = FN(ot__ref_nll_share)(dy, labels, weight, p);

#pragma omp parallel for schedule(static) if (p->n * p->classes * p->inner > OT_PAR_MIN)
    for (int64_t i = 0; i < p->n * p->inner; i++) {
        const int64_t label = ot__ref_nll_label(labels, p, i);
        const int64_t at = i / p->inner * p->classes * p->inner + i % p->inner;
        double g = p->reduction == OT__LOSS_NONE ? (double)dy[i] : share;

        if (ot__ref_nll_ignores(p, label))
            g = 0;
        else if (weight)
            g *= (double)weight[label];
        for (int64_t c = 0; c < p->classes; c++) {
            const int64_t k = at + c * p->inner;
            const double probability = softmax && g != 0 ? exp((double)log_prob[k]) : 0;
            dx[k] = (T)((probability - (c == label)) * g);
        }
    }
}
