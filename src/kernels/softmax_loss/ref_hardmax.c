// SPDX-License-Identifier: Apache-2.0
// 1 at the first of the greatest elements along the middle axis of (outer, n, inner), else 0.
#include "kernels/kernels.h"

#define TEMPLATE "kernels/softmax_loss/ref_hardmax.tmpl.h"
#include "kernels/by_float.tmpl.h"
