// SPDX-License-Identifier: Apache-2.0
// How far results may be from what is expected.
#include "harness_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

double *values_of(const ot_tensor *t)
{
    const int64_t count = ot_tensor_count(t);
    double *values = calloc((size_t)count + 1, sizeof *values);

    if (!ot__convert(values, OT_F64, t->data, t->dtype, count))
        fail("%s is no type of numbers", ot_dtype_name(t->dtype));
    return values;
}

static double largest(const double *values, int64_t count)
{
    double found = 0.0;

    for (int64_t k = 0; k < count; k++) {
        const double v = fabs(values[k]);

        if (isfinite(v) && v > found)
            found = v;
    }
    return found;
}

double relative_error(const ot_tensor *a, const ot_tensor *b)
{
    const int64_t count = ot_tensor_count(b);
    double *av = values_of(a), *bv = values_of(b), worst = 0.0;
    const double scale = largest(bv, count);

    for (int64_t k = 0; k < count && ot_tensor_count(a) == count; k++)
        if (isfinite(av[k]) && isfinite(bv[k]))
            worst = OT_MAX(worst, fabs(av[k] - bv[k]));
    free(av);
    free(bv);
    return scale > 0.0 ? worst / scale : worst;
}

static bool numbers_agree(double a, double b, double allowed)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= allowed;
}

static bool values_agree(const double *a, const double *b, int64_t count, double relative,
                         const char *what)
{
    const double scale = largest(b, count);

    for (int64_t k = 0; k < count; k++) {
        if (numbers_agree(a[k], b[k], relative * OT_MAX(fabs(b[k]), scale)))
            continue;
        fail("%s: element %" PRId64 " is %.17g, expected %.17g", what, k, a[k], b[k]);
        return false;
    }
    return true;
}

bool tensors_agree(const ot_tensor *a, const ot_tensor *b, ot_dtype precision, double tolerance,
                   const char *what)
{
    const double relative = tolerance_of(precision) * (tolerance == 0.0 ? 1.0 : tolerance);
    const int64_t count = ot_tensor_count(a);
    double *av, *bv;
    bool agree;

    if (!ot__shape_equal(&a->shape, &b->shape)) {
        char a_text[100], b_text[100];

        fail("%s: shape %s, expected %s", what, ot__shape_text(&a->shape, a_text, sizeof(a_text)),
             ot__shape_text(&b->shape, b_text, sizeof(b_text)));
        return false;
    }
    if (a->dtype == b->dtype && !ot__convert(NULL, OT_F64, NULL, a->dtype, 0)) { // complex
        if (memcmp(a->data, b->data, a->n_bytes) == 0)
            return true;
        fail("%s: its bytes are others", what);
        return false;
    }
    av = values_of(a);
    bv = values_of(b);
    agree = values_agree(av, bv, count, relative, what);
    free(av);
    free(bv);
    return agree;
}
