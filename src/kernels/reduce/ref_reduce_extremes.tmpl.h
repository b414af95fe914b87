// SPDX-License-Identifier: Apache-2.0
// Greatest and least of one element type, for ref_reduce.c.

#define OP(name) FN(name##_max)
#define START LOWEST
#define JOIN(a, b) LARGER(a, b)
#include "ref_reduce.tmpl.h"

#define OP(name) FN(name##_min)
#define START HIGHEST
#define JOIN(a, b) SMALLER(a, b)
#include "ref_reduce.tmpl.h"
