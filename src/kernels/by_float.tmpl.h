// SPDX-License-Identifier: Apache-2.0
// Includes TEMPLATE for f32 and for f64: with FN(name) as name_f32 and name_f64, and T the type of
// an element. Includable again and again.

#define T float
#define FN(name) name##_f32
#include TEMPLATE
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include TEMPLATE
#undef T
#undef FN
#undef TEMPLATE
