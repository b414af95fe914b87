// SPDX-License-Identifier: Apache-2.0
// Includes TEMPLATE for each element type that elements are compared in, but bool: with FN(name) as
// name_f32 and so on, T the type of an element, ACC what it is compared as, LOAD and STORE between
// them. Includable again and again.

#define ACC T
#define LOAD(v) (v)
#define STORE(a) (a)
#define T float
#define SUFFIX f32
#include "kernels/by_one.tmpl.h"
#define T double
#define SUFFIX f64
#include "kernels/by_one.tmpl.h"
#define T int64_t
#define SUFFIX i64
#include "kernels/by_one.tmpl.h"
#define T int32_t
#define SUFFIX i32
#include "kernels/by_one.tmpl.h"
#define T int8_t
#define SUFFIX i8
#include "kernels/by_one.tmpl.h"
#define T uint8_t
#define SUFFIX u8
#include "kernels/by_one.tmpl.h"
#undef ACC
#undef LOAD
#undef STORE
#define ACC float
#define T uint16_t
#define SUFFIX f16
#define LOAD(v) ot__f16_to_f32(v)
#define STORE(a) ot__f32_to_f16(a)
#include "kernels/by_one.tmpl.h"
#undef LOAD
#undef STORE
#define T uint16_t
#define SUFFIX bf16
#define LOAD(v) ot__bf16_to_f32(v)
#define STORE(a) ot__f32_to_bf16(a)
#include "kernels/by_one.tmpl.h"
#undef LOAD
#undef STORE
#undef ACC
#undef TEMPLATE
