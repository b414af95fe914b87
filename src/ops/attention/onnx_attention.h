// SPDX-License-Identifier: Apache-2.0
// ONNX's Attention. Private to `ops`.
#ifndef OT_OPS_ONNX_ATTENTION_H
#define OT_OPS_ONNX_ATTENTION_H

#include "op/expand.h"

enum {
    OT__ATT_Q,
    OT__ATT_K,
    OT__ATT_V,
    OT__ATT_MASK,
    OT__ATT_PAST_KEY,
    OT__ATT_PAST_VALUE,
    OT__ATT_LENGTHS, // of the keys and values of each batch; from opset 24 on
};
enum { OT__ATT_Y, OT__ATT_PRESENT_KEY, OT__ATT_PRESENT_VALUE, OT__ATT_SCORES };
// What output OT__ATT_SCORES is: the products, then after which step.
enum { OT__ATT_PRODUCTS, OT__ATT_CAPPED, OT__ATT_MASKED, OT__ATT_PROBABILITIES, OT__ATT_MODES };
enum { OT__ATT_PADS_MASK_SINCE = 24, OT__ATT_HAS_WINDOW_SINCE = 25 }; // opsets

// Products, a softmax and what orders their operands, as match_attention.c finds them.
void ot__attention_compose(ot_grad *g);
// Heads of a node's queries, or of its keys and values; not a number where that is not known.
int64_t ot__attention_heads(const ot_node *node, const ot_shape *x, const char *attr);

#endif
