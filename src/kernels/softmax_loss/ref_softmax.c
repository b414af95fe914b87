// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm along the middle axis of (outer, n, inner), one line a step; sums in
// f64.
#include <math.h>

#include "kernels/kernels.h"

#define T float
#define FN(name) ot__ref_##name##_f32
#include "ref_softmax.tmpl.h"
#undef T
#undef FN

#define T double
#define FN(name) ot__ref_##name##_f64
#include "ref_softmax.tmpl.h"
#undef T
#undef FN
