// SPDX-License-Identifier: Apache-2.0
// Negative log likelihood and its gradient, alone or through softmax.
#include <math.h>

#include "kernels/kernels.h"

int64_t ot__ref_nll_check(const void *labels, const ot__nll *p)
{
    for (int64_t i = 0; i < p->n * p->inner; i++) {
        const int64_t label = ot__ref_nll_label(labels, p, i);
        if (!ot__ref_nll_ignores(p, label) && (label < 0 || label >= p->classes))
            return i;
    }
    return -1;
}

#define TEMPLATE "kernels/softmax_loss/ref_nll.tmpl.h"
#include "kernels/by_float.tmpl.h"
