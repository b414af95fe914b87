// SPDX-License-Identifier: Apache-2.0
// Sums and products of one element type, for ref_reduce.c.

#define OP(name) FN(name##_sum)
#include "ref_reduce.tmpl.h"

#define OP(name) FN(name##_mean)
#define FINISH(a) MEAN(a, r->n_each)
#include "ref_reduce.tmpl.h"

#define OP(name) FN(name##_l1)
#define TERM(v) MAGNITUDE(v)
#include "ref_reduce.tmpl.h"

#define OP(name) FN(name##_sum_square)
#define TERM(v) ((v) * (v))
#include "ref_reduce.tmpl.h"

#define OP(name) FN(name##_l2)
#define TERM(v) ((v) * (v))
#define FINISH(a) ROOT(a)
#include "ref_reduce.tmpl.h"

#define OP(name) FN(name##_prod)
#define START 1
#define JOIN(a, b) ((a) * (b))
#include "ref_reduce.tmpl.h"
