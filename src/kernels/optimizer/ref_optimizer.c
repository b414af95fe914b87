// SPDX-License-Identifier: Apache-2.0
// Optimizer updates, element by element. Formulas: Loshchilov and Hutter, "Decoupled weight decay
// regularization" (mode 0 as PyTorch applies it, mode 1 as Hugging Face's AdamW); momentum as
// PyTorch's SGD.
#include <math.h>

#include "kernels/kernels.h"

static inline float root_f32(float x)
{
    return sqrtf(x);
}

static inline double root_f64(double x)
{
    return sqrt(x);
}

#define TEMPLATE "kernels/optimizer/ref_optimizer.tmpl.h"
#include "kernels/by_float.tmpl.h"
