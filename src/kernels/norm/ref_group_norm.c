// SPDX-License-Identifier: Apache-2.0
// Group normalisation with its gradient; sums in f64.
#include <math.h>

#include "kernels/kernels.h"

#define TEMPLATE "kernels/norm/ref_group_norm.tmpl.h"
#include "kernels/by_float.tmpl.h"
