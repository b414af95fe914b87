// SPDX-License-Identifier: Apache-2.0
// The oracle of all products: blocks of y, each summed in f64 over the whole of k in order.
#include "kernels/kernels.h"

enum { BLOCK_M = 8, BLOCK_N = 32, BLOCK_K = 16 }; // 6 KiB on a thread's stack

#define TEMPLATE "kernels/product/ref_gemm.tmpl.h"
#include "kernels/by_float.tmpl.h"
