// SPDX-License-Identifier: Apache-2.0
// Includes TEMPLATE once for each integer type: with T as the type, U as its unsigned twin, and
// FN(name) as name_i8, name_u8 and so on. Includable again and again.

#define T int8_t
#define U uint8_t
#define SUFFIX i8
#include "kernels/by_one.tmpl.h"
#define T uint8_t
#define SUFFIX u8
#include "kernels/by_one.tmpl.h"
#undef U
#define T int16_t
#define U uint16_t
#define SUFFIX i16
#include "kernels/by_one.tmpl.h"
#define T uint16_t
#define SUFFIX u16
#include "kernels/by_one.tmpl.h"
#undef U
#define T int32_t
#define U uint32_t
#define SUFFIX i32
#include "kernels/by_one.tmpl.h"
#define T uint32_t
#define SUFFIX u32
#include "kernels/by_one.tmpl.h"
#undef U
#define T int64_t
#define U uint64_t
#define SUFFIX i64
#include "kernels/by_one.tmpl.h"
#define T uint64_t
#define SUFFIX u64
#include "kernels/by_one.tmpl.h"
#undef U
#undef TEMPLATE
