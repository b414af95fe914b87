// SPDX-License-Identifier: Apache-2.0
// Adding gradients up, and scaling them.
#include "kernels/kernels.h"

#define TEMPLATE "kernels/optimizer/ref_accumulate.tmpl.h"
#include "kernels/by_float.tmpl.h"
