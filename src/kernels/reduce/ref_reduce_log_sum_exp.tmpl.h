// SPDX-License-Identifier: Apache-2.0
// Logarithms of sums of exponentials of one element type, for ref_reduce.c.

#define OP(name) FN(log_sum_exp_##name)
#define ACC exponentials
#define START ((exponentials){.largest = -INFINITY})
#define LOAD(v) ((exponentials){.largest = (double)(v), .sum = 1})
#define STEP(a, v) join_exponentials(a, v)
#define JOIN(a, b) join_exponentials(a, b)
#define FINISH(a) ((a).largest + log((a).sum))
#include "ref_reduce.tmpl.h"
#undef ACC
#undef LOAD

static void FN(log_sum_exp)(void *y, const void *x, const ot__reduction *r, ot__reduce_op op)
{
    job j = make_job(y, x, r, op);

    FN(log_sum_exp_reduce)(&j);
}
