// SPDX-License-Identifier: Apache-2.0
// Batch and layer normalisation with their gradients; sums in f64, in one order for any number of
// threads.
#include <math.h>

#include "kernels/kernels.h"

enum { COLUMNS = 64 };

#define T float
#define FN(name) ot__ref_##name##_f32
#include "ref_norm.tmpl.h"
#undef T
#undef FN

#define T double
#define FN(name) ot__ref_##name##_f64
#include "ref_norm.tmpl.h"
#undef T
#undef FN
