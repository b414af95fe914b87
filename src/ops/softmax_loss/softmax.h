// SPDX-License-Identifier: Apache-2.0
// What Softmax, LogSoftmax and their gradients share: lines along one axis. Private to `ops`.
#ifndef OT_OPS_SOFTMAX_H
#define OT_OPS_SOFTMAX_H

#include "kernels/kernels.h"
#include "op/op.h"

// The tensor as (outer, n, inner). Written by prepare.
typedef struct ot__lines {
    int64_t outer, n, inner;
} ot__lines;

void ot__lines_infer(ot_infer *c);       // checks `axis`; output 0 like input 0
void ot__lines_grad_infer(ot_infer *c);  // inputs dY and Y
ot_status ot__lines_prepare(ot_prep *p); // lines along `axis`
// Old contracts: everything from `axis` on is one line.
ot_status ot__lines_prepare_flat(ot_prep *p);
// Vector code, for contiguous lines in f32; state: that of ot__lines_prepare. Input 1 is z.
bool ot__lines_can_simd(const ot_prep *p);
ot_status ot__lines_run_simd(const ot_run *r,
                             void (*rows)(void *context, int64_t first, int64_t last));
// Opset below 13: the node between a Flatten and a Reshape.
void ot__lines_upgrade(ot_upgrade *u);

extern const ot_attr_spec ot__axis_last[];  // axis = -1
extern const ot_attr_spec ot__axis_first[]; // axis = 1

#endif
