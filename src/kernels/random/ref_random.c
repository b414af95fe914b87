// SPDX-License-Identifier: Apache-2.0
// Numbers of a distribution, each drawn by its index, so that threads may share them out.
#include <math.h>

#include "kernels/kernels.h"

enum { DRAWS = 256 }; // before they are converted

typedef struct random_job {
    char *y;
    ot__distribution distribution;
    ot__rng_key key;
    ot_dtype dtype;
} random_job;

static void random_part(void *context, int64_t first, int64_t last)
{
    const random_job *j = context;
    const ot__distribution d = j->distribution;
    const size_t size = ot_dtype_size(j->dtype);
    double drawn[DRAWS];

    for (int64_t i = first; i < last; i += DRAWS) {
        const int64_t n = OT_MIN(last - i, (int64_t)DRAWS);

        for (int64_t k = 0; k < n; k++)
            drawn[k] = d.is_normal ? d.a + d.b * ot__rng_normal(j->key, (uint64_t)(i + k))
                                   : d.a + (d.b - d.a) * ot__rng_uniform(j->key, (uint64_t)(i + k));
        ot__convert(j->y + (size_t)i * size, j->dtype, drawn, OT_F64, n);
    }
}

void ot__ref_random(void *y, ot_dtype dtype, ot__distribution distribution, int64_t count,
                    ot__rng_key key)
{
    random_job j = {y, distribution, key, dtype};

    ot__parallel_for(count, OT_PAR_MIN / 16, random_part, &j);
}

// ---- true and false ----

typedef struct bernoulli_job {
    void *y;
    const void *x, *one;
    ot__rng_key key;
    ot_dtype dtype; // of x
} bernoulli_job;

// What is true with the probability of element i of x.
static bool is_drawn(const bernoulli_job *j, int64_t i)
{
    const double p =
        j->dtype == OT_F64 ? ((const double *)j->x)[i] : (double)((const float *)j->x)[i];

    return ot__rng_uniform(j->key, (uint64_t)i) < p;
}

#define TEMPLATE "kernels/random/ref_bernoulli.tmpl.h"
#include "kernels/by_size.tmpl.h"

void ot__ref_bernoulli(void *y, const void *x, ot_dtype dtype, const void *one, size_t size,
                       int64_t count, ot__rng_key key)
{
    bernoulli_job j = {y, x, one, key, dtype};

    ot__parallel_for(count, OT_PAR_MIN / 16, OT__BY_SIZE(bernoulli_part, size), &j);
}

// ---- classes with given weights ----

typedef struct multinomial_job {
    void *y;
    const double *sums;
    int64_t n_classes, n_samples;
    ot__rng_key key;
    bool is_i64;
} multinomial_job;

// The first class at which the sum of the weights is above `at`; the last one that has a weight
// where rounding has brought `at` up to the sum of all.
static int64_t find_class(const double *sums, int64_t n, double at)
{
    int64_t first = 0, last = n - 1;

    at = at < sums[n - 1] ? at : nextafter(sums[n - 1], 0.0);
    while (first < last) {
        const int64_t middle = first + (last - first) / 2;

        if (sums[middle] > at)
            last = middle;
        else
            first = middle + 1;
    }
    return first;
}

static void multinomial_rows(void *context, int64_t first, int64_t last)
{
    const multinomial_job *j = context;

    for (int64_t i = first; i < last; i++) {
        const double *sums = j->sums + i / j->n_samples * j->n_classes;
        const double u = ot__rng_uniform(j->key, (uint64_t)i);
        const int64_t found = find_class(sums, j->n_classes, u * sums[j->n_classes - 1]);

        if (j->is_i64)
            ((int64_t *)j->y)[i] = found;
        else
            ((int32_t *)j->y)[i] = (int32_t)found;
    }
}

void ot__ref_multinomial(void *y, ot_dtype dtype, const double *sums, int64_t batch,
                         int64_t n_classes, int64_t n_samples, ot__rng_key key)
{
    multinomial_job j = {y, sums, n_classes, n_samples, key, dtype == OT_I64};

    ot__parallel_for(batch * n_samples, OT_PAR_MIN / 16, multinomial_rows, &j);
}

#define TEMPLATE "kernels/random/ref_random.tmpl.h"
#include "kernels/by_float.tmpl.h"
