// SPDX-License-Identifier: Apache-2.0
// Batch and layer normalisation with their gradients; sums in f64, in one order for any number of
// threads.
#include <math.h>

#include "kernels/kernels.h"

enum { COLUMNS = 64 };

#define TEMPLATE "kernels/norm/ref_norm.tmpl.h"
#include "kernels/by_float.tmpl.h"
