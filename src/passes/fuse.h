// The fusions, one pattern per file fuse_<pattern>.c.
#ifndef OT_PASSES_FUSE_H
#define OT_PASSES_FUSE_H

#include "passes/passes.h"

// One row: looks for its pattern in the whole main graph and rewrites every place where it holds.
typedef struct ot__fusion {
    const char *name; // of the file: "fuse_gemm_relu"
    ot_status (*run)(ot_model *model);
} ot__fusion;

ot_status ot__fuse_batch_norm(ot_model *model);
ot_status ot__fuse_elementwise(ot_model *model);
ot_status ot__fuse_gemm_accumulate(ot_model *model);

#endif
