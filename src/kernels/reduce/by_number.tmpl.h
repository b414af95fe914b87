// SPDX-License-Identifier: Apache-2.0
// Includes ref_cumulative.tmpl.h for each type of OT_REDUCE_NUMBERS, for what CUMULATE, LINES,
// START and COMBINE say.

#define ACC double
#define TEMPLATE "kernels/reduce/ref_cumulative.tmpl.h"
#include "kernels/by_float.tmpl.h"
#undef ACC

#define ACC uint64_t // integers wrap around
#define TEMPLATE "kernels/reduce/ref_cumulative.tmpl.h"
#define T int32_t
#define SUFFIX i32
#include "kernels/by_one.tmpl.h"
#define T int64_t
#define SUFFIX i64
#include "kernels/by_one.tmpl.h"
#undef ACC
#undef TEMPLATE
#undef CUMULATE
#undef LINES
#undef START
#undef COMBINE
