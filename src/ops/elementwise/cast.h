// SPDX-License-Identifier: Apache-2.0
// Converting element types: what Cast and CastLike share.
#ifndef OT_OPS_CAST_H
#define OT_OPS_CAST_H

#include "op/op.h"

void ot__cast_infer(ot_infer *c,
                    ot_dtype to); // output 0: input 0's shape and, as far as known, elements
extern const ot_kernel ot__cast_kernels[]; // from input 0's type to output 0's

// cast_texts.c: where one of the two types is string.
ot_status ot__cast_texts_prepare(ot_prep *p);
ot_status ot__cast_texts_run(const ot_run *r);

#endif
