// SPDX-License-Identifier: Apache-2.0
// Linear attention in f32, compiled once per instruction set (OT_ISA).
#include "kernels/kernels.h"

#include "kernels/simd.h"

#define A float
#define EXP ot__vexp
#define TABLE OT_ISA_NAME(ot__linear_attentions)
#define TEMPLATE "kernels/attention/linear_attention.tmpl.h"
#define T float
#define SUFFIX simd
#include "kernels/by_one.tmpl.h"
