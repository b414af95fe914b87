// SPDX-License-Identifier: Apache-2.0
// Optimizer updates, element by element. Formulas: Loshchilov and Hutter, "Decoupled weight decay
// regularization" (mode 0 as PyTorch applies it, mode 1 as Hugging Face's AdamW); momentum as
// PyTorch's SGD.
#include <math.h>

#include "kernels/kernels.h"

static inline float ot__ref_root_f32(float x)
{
    return sqrtf(x);
}

static inline double ot__ref_root_f64(double x)
{
    return sqrt(x);
}

#define T float
#define FN(name) ot__ref_##name##_f32
#include "ref_optimizer.tmpl.h"
#undef T
#undef FN

#define T double
#define FN(name) ot__ref_##name##_f64
#include "ref_optimizer.tmpl.h"
#undef T
#undef FN
