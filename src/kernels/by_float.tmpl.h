// SPDX-License-Identifier: Apache-2.0
// Includes TEMPLATE for f32 and for f64: with FN(name) as name_f32 and name_f64, and T the type of
// an element. Includable again and again.

#define T float
#define SUFFIX f32
#include "kernels/by_one.tmpl.h"
#define T double
#define SUFFIX f64
#include "kernels/by_one.tmpl.h"
#undef TEMPLATE
