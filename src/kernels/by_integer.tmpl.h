// SPDX-License-Identifier: Apache-2.0
// Includes TEMPLATE once for each integer type: with T as the type, U as its unsigned twin, and
// FN(name) as name_i8, name_u8 and so on. Includable again and again.

#define T int8_t
#define U uint8_t
#define FN(name) name##_i8
#include TEMPLATE
#undef T
#undef FN
#define T uint8_t
#define FN(name) name##_u8
#include TEMPLATE
#undef T
#undef U
#undef FN
#define T int16_t
#define U uint16_t
#define FN(name) name##_i16
#include TEMPLATE
#undef T
#undef FN
#define T uint16_t
#define FN(name) name##_u16
#include TEMPLATE
#undef T
#undef U
#undef FN
#define T int32_t
#define U uint32_t
#define FN(name) name##_i32
#include TEMPLATE
#undef T
#undef FN
#define T uint32_t
#define FN(name) name##_u32
#include TEMPLATE
#undef T
#undef U
#undef FN
#define T int64_t
#define U uint64_t
#define FN(name) name##_i64
#include TEMPLATE
#undef T
#undef FN
#define T uint64_t
#define FN(name) name##_u64
#include TEMPLATE
#undef T
#undef U
#undef FN
#undef TEMPLATE
