// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm along the middle axis of (outer, n, inner), one line a step; sums in
// f64.
#include <math.h>

#include "kernels/kernels.h"

#define TEMPLATE "kernels/softmax_loss/ref_softmax.tmpl.h"
#include "kernels/by_float.tmpl.h"
