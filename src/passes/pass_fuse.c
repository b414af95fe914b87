// SPDX-License-Identifier: Apache-2.0
// All fusions, in the order of their table.
#include "passes/fuse.h"

static const ot__fusion fusions[] = {
    {"fuse_gather", ot__fuse_gather},
    {"fuse_batch_norm", ot__fuse_batch_norm},
    {"fuse_pool", ot__fuse_pool},
    {"fuse_conv", ot__fuse_conv},
    {"fuse_transpose", ot__fuse_transpose}, // before the product has another form
    {"fuse_slope", ot__fuse_slope},         // before the product takes the gradient along
    {"fuse_products", ot__fuse_products},   // before the product has another form
    {"fuse_gemm", ot__fuse_gemm},
    {"fuse_gates", ot__fuse_gates},
    {"fuse_parts", ot__fuse_parts}, // after the gates, which look for the same gradients
    {"fuse_table", ot__fuse_table},
    {"fuse_clip", ot__fuse_clip},
    {"fuse_cast", ot__fuse_cast},
    {"fuse_elementwise", ot__fuse_elementwise}, // last: it takes what the others leave
    {0},
};

ot_status ot__pass_fuse(ot_model *model)
{
    OT_TRY(ot__pass_simplify(model)); // a node that only renames would hide a pattern
    for (const ot__fusion *fusion = fusions; fusion->name; fusion++) {
        OT_TRY(fusion->run(model));
        OT_TRY(ot__pass_finished(model, fusion->name));
    }
    return OT_OK;
}
