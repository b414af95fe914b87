// SPDX-License-Identifier: Apache-2.0
// Local response normalisation: each element by those of the neighbouring channels.
#include <math.h>

#include "kernels/kernels.h"

static const double usual_beta = 0.75;

// d^-beta, in place of d.
static void lrn_powers(double *d, int64_t n, double beta)
{
    if (beta == usual_beta) {
        for (int64_t k = 0; k < n; k++)
            d[k] = 1 / (sqrt(d[k]) * sqrt(sqrt(d[k])));
        return;
    }
    for (int64_t k = 0; k < n; k++)
        d[k] = pow(d[k], -beta);
}

#define TEMPLATE "kernels/norm/ref_lrn.tmpl.h"
#include "kernels/by_float.tmpl.h"
