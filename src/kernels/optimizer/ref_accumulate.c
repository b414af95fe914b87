// SPDX-License-Identifier: Apache-2.0
// Adding gradients up, and the sum of squares for their norm.
#include "kernels/kernels.h"

enum { LANES = 8 };

#define TEMPLATE "kernels/optimizer/ref_accumulate.tmpl.h"
#include "kernels/by_float.tmpl.h"
