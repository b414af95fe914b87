// SPDX-License-Identifier: Apache-2.0
// Adding gradients up, and the sum of squares for their norm.
#include "kernels/kernels.h"

enum { LANES = 8 };

#define T float
#define FN(name) name##_f32
#include "ref_accumulate.tmpl.h"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "ref_accumulate.tmpl.h"
#undef T
#undef FN
