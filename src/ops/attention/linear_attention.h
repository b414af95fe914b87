// SPDX-License-Identifier: Apache-2.0
// What LinearAttention and its gradient share. Private to `ops`.
#ifndef OT_OPS_LINEAR_ATTENTION_H
#define OT_OPS_LINEAR_ATTENTION_H

#include "kernels/kernels.h"
#include "op/op.h"

enum { OT__LIN_Q, OT__LIN_K, OT__LIN_V, OT__LIN_PAST, OT__LIN_DECAY, OT__LIN_BETA, OT__LIN_INPUTS };
enum { OT__LIN_Y, OT__LIN_PRESENT };

enum { OT__LINEAR_HEADS = 1 << 20 }; // at most
#define OT__LINEAR_MEMORY 0x1p46     // bytes that no computer has

extern const ot_attr_spec ot__linear_attention_attrs[];

// Checks the inputs, of which query is number `first`, and gives their sizes; those that are not
// known are no numbers. False: the context has the error.
bool ot__linear_attention_infer(ot_infer *c, int first, ot__linear_attention *a);
// The same when a kernel is prepared, where all are numbers.
void ot__linear_attention_read(const ot_prep *p, int first, ot__linear_attention *a);
// How many threads have scratch of so many bytes each, which is asked for.
ot_status ot__linear_attention_scratch(ot_prep *p, double n_tasks, double bytes, int64_t *n_parts);

#endif
