// SPDX-License-Identifier: Apache-2.0
// Includes the sums of ref_reduce.c for f16 and bf16, kept in f64 and stored in the same type (FN
// as name_bf16) or in f32 (name_bf16_f32), both rounded to f32 first.

#define TEMPLATE "kernels/reduce/ref_reduce_sums.tmpl.h"
#define LOAD(v) ((double)(v))
#define WIDEN OT_F16
#define OUT uint16_t
#define STORE(a) ot__vnarrow_f16((float)(a))
#define T uint16_t
#define SUFFIX f16
#include "kernels/by_one.tmpl.h"
#undef OUT
#undef STORE
#define OUT float
#define STORE(a) ((float)(a))
#define T uint16_t
#define SUFFIX f16_f32
#include "kernels/by_one.tmpl.h"
#undef WIDEN
#define WIDEN OT_BF16
#define T uint16_t
#define SUFFIX bf16_f32
#include "kernels/by_one.tmpl.h"
#undef OUT
#undef STORE
#define OUT uint16_t
#define STORE(a) ot__vnarrow_bf16((float)(a))
#define T uint16_t
#define SUFFIX bf16
#include "kernels/by_one.tmpl.h"
#undef OUT
#undef STORE
#undef WIDEN
#undef LOAD
#undef TEMPLATE
