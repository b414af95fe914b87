// SPDX-License-Identifier: Apache-2.0
// Sums and products of one element type, for ref_reduce.c.

#define OP(name) FN(sum_##name)
#define START 0
#define STEP(a, v) ((a) + (v))
#define JOIN(a, b) ((a) + (b))
#define FINISH(a)                                                                                  \
    (j->op == OT__REDUCE_MEAN      ? MEAN(a, j->r->n_each)                                         \
     : j->op == OT__REDUCE_LOG_SUM ? LOGARITHM(a)                                                  \
                                   : (a))
#include "ref_reduce.tmpl.h"

#define OP(name) FN(magnitude_##name)
#define START 0
#define STEP(a, v) ((a) + MAGNITUDE(v))
#define JOIN(a, b) ((a) + (b))
#define FINISH(a) (a)
#include "ref_reduce.tmpl.h"

#define OP(name) FN(square_##name)
#define START 0
#define STEP(a, v) ((a) + (v) * (v))
#define JOIN(a, b) ((a) + (b))
#define FINISH(a) (j->op == OT__REDUCE_L2 ? ROOT(a) : (a))
#include "ref_reduce.tmpl.h"

#define OP(name) FN(prod_##name)
#define START 1
#define STEP(a, v) ((a) * (v))
#define JOIN(a, b) ((a) * (b))
#define FINISH(a) (a)
#include "ref_reduce.tmpl.h"

static void FN(sums)(void *y, const void *x, const ot__reduction *r, ot__reduce_op op)
{
    job j = make_job(y, x, r, op);

    if (op == OT__REDUCE_PROD)
        FN(prod_reduce)(&j);
    else if (op == OT__REDUCE_L1)
        FN(magnitude_reduce)(&j);
    else if (op == OT__REDUCE_SUM_SQUARE || op == OT__REDUCE_L2)
        FN(square_reduce)(&j);
    else
        FN(sum_reduce)(&j);
}
