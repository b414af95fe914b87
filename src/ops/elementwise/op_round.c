// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

#include <math.h>

// Halves go to the even neighbour.
static void round_f64(double *y, const double *const *x, int64_t n, const float *attrs)
{
    (void)attrs;
    for (int64_t k = 0; k < n; k++)
        y[k] = nearbyint(x[0][k]);
}

static const ot_tile round_tile = {.f64 = round_f64};
const ot_op_def ot__op_round[] = {
    {.name = "Round",
     .since = 11,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = ot__infer_same_shape,
     .kernels = ot__tile_kernels,
     .tile = &round_tile,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
