// SPDX-License-Identifier: Apache-2.0
// Logarithms of sums of one element type, for ref_reduce.c.

#define OP(name) FN(name##_log_sum)
#define FINISH(a) log(a)
#include "ref_reduce.tmpl.h"

#undef ACC
#define ACC exponentials
#define OP(name) FN(name##_log_sum_exp)
#define START ((exponentials){.largest = -INFINITY})
#define TERM(v) ((exponentials){.largest = (v), .sum = 1})
#define JOIN(a, b) join_exponentials(a, b)
#define FINISH(a) ((a).largest + log((a).sum))
#include "ref_reduce.tmpl.h"
#undef ACC
#define ACC double
