// SPDX-License-Identifier: Apache-2.0
// How far results may be from what is expected.
#include "harness_internal.h"

#include <math.h>

// Relative error allowed by element type.
double tolerance_of(ot_dtype dtype)
{
    switch (dtype) {
    case OT_F64:
        return 1e-12;
    case OT_F32:
        return 3e-6;
    case OT_F16:
        return 2e-3;
    case OT_BF16:
        return 1.6e-2;
    default:
        return 0.0;
    }
}

static double largest(const ot_tensor *t)
{
    double found = 0.0;

    for (int64_t k = 0; k < ot_tensor_count(t); k++) {
        const double v = fabs(ot__tensor_get_f64(t, k));

        if (isfinite(v) && v > found)
            found = v;
    }
    return found;
}

static bool numbers_agree(double a, double b, double allowed)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= allowed;
}

bool tensors_agree(const ot_tensor *a, const ot_tensor *b, ot_dtype precision, double tolerance,
                   const char *what)
{
    const double relative = tolerance_of(precision) * (tolerance == 0.0 ? 1.0 : tolerance);
    const double scale = largest(b);

    if (!ot__shape_equal(&a->shape, &b->shape)) {
        char a_text[100], b_text[100];

        fail("%s: shape %s, expected %s", what, ot__shape_text(&a->shape, a_text, sizeof(a_text)),
             ot__shape_text(&b->shape, b_text, sizeof(b_text)));
        return false;
    }
    for (int64_t k = 0; k < ot_tensor_count(a); k++) {
        const double av = ot__tensor_get_f64(a, k), bv = ot__tensor_get_f64(b, k);

        if (numbers_agree(av, bv, relative * OT_MAX(fabs(bv), scale)))
            continue;
        fail("%s: element %" PRId64 " is %.17g, expected %.17g", what, k, av, bv);
        return false;
    }
    return true;
}
