// SPDX-License-Identifier: Apache-2.0
// Greatest and least of one element type, for ref_reduce.c.

#define OP(name) FN(max_##name)
#define START LOWEST
#define STEP(a, v) LARGER(a, v)
#define JOIN(a, b) LARGER(a, b)
#define FINISH(a) (a)
#include "ref_reduce.tmpl.h"

#define OP(name) FN(min_##name)
#define START HIGHEST
#define STEP(a, v) SMALLER(a, v)
#define JOIN(a, b) SMALLER(a, b)
#define FINISH(a) (a)
#include "ref_reduce.tmpl.h"

static void FN(extremes)(void *y, const void *x, const ot__reduction *r, ot__reduce_op op)
{
    job j = make_job(y, x, r, op);

    if (op == OT__REDUCE_MAX)
        FN(max_reduce)(&j);
    else
        FN(min_reduce)(&j);
}
