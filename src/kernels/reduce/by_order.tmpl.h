// SPDX-License-Identifier: Apache-2.0
// Includes TEMPLATE for each element type that elements are compared in, but bool: with FN(name) as
// name_f32 and so on, T the type of an element, ACC what it is compared as, LOAD and STORE between
// them. Includable again and again.

#define ACC T
#define LOAD(v) (v)
#define STORE(a) (a)
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
#define T int64_t
#define FN(name) name##_i64
#include TEMPLATE
#undef T
#undef FN
#define T int32_t
#define FN(name) name##_i32
#include TEMPLATE
#undef T
#undef FN
#define T int8_t
#define FN(name) name##_i8
#include TEMPLATE
#undef T
#undef FN
#define T uint8_t
#define FN(name) name##_u8
#include TEMPLATE
#undef T
#undef FN
#undef ACC
#undef LOAD
#undef STORE
#define ACC float
#define T uint16_t
#define LOAD(v) ot__f16_to_f32(v)
#define STORE(a) ot__f32_to_f16(a)
#define FN(name) name##_f16
#include TEMPLATE
#undef LOAD
#undef STORE
#undef FN
#define LOAD(v) ot__bf16_to_f32(v)
#define STORE(a) ot__f32_to_bf16(a)
#define FN(name) name##_bf16
#include TEMPLATE
#undef LOAD
#undef STORE
#undef FN
#undef T
#undef ACC
#undef TEMPLATE
