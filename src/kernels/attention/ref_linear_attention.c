// SPDX-License-Identifier: Apache-2.0
// Linear attention step by step, with states and sums in f64.
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

#define A double
#define EXP exp
#define TABLE FN(ot__ref_linear_attentions)
#define TEMPLATE "kernels/attention/linear_attention.tmpl.h"
#include "kernels/by_float.tmpl.h"
