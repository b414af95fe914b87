// SPDX-License-Identifier: Apache-2.0
// Convolution and its gradients as products of the weights with the windows laid out as columns.
#include "kernels/kernels.h"

#define TEMPLATE "kernels/conv/ref_conv.tmpl.h"
#include "kernels/by_float.tmpl.h"
