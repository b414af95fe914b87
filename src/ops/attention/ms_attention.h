// SPDX-License-Identifier: Apache-2.0
// What ONNX Runtime's operators of attention share: masks of integers, biases, and what they are
// composed of. Private to `ops`.
#ifndef OT_OPS_MS_ATTENTION_H
#define OT_OPS_MS_ATTENTION_H

#include "ops/attention/heads.h"

typedef struct ot__ms_sizes {
    int64_t batch, heads, queries, keys; // keys: with past ones
    int64_t head, value;                 // elements of a head of queries and keys, and of values
} ot__ms_sizes;

// ---- checks of inputs; false with the failure. Absent inputs pass. ----

// Size `found` of input i along an axis.
bool ot__ms_check_size(ot_infer *c, int i, int axis, int64_t found, int64_t expected);
// (batch), (2 * batch) where ends and starts are taken, (batch, keys) or (batch, queries, keys).
bool ot__ms_check_mask(ot_infer *c, int i, const ot__ms_sizes *s, bool has_starts);
// (batch or 1, heads or 1, queries, keys)
bool ot__ms_check_bias(ot_infer *c, int i, const ot__ms_sizes *s);
// Attribute num_heads, which must divide `hidden`, size of input i along axis 2; *size is what is
// left for a head.
bool ot__ms_check_heads(ot_infer *c, int i, int64_t hidden, int64_t *size);
bool ot__ms_refuse_given(ot_infer *c, int i, const char *name); // an input that is not supported

// ---- what they are composed of ----

typedef struct ot__ms_attention {
    ot_value *q, *k, *v; // heads are an axis of their own; keys and values with past ones
    ot_value *mask;      // integers, or NULL
    bool has_starts;    // a mask of one axis may have those of the keys that stay behind their ends
    ot_value *bias;     // added to the scores, or NULL
    ot_value *past_key; // as far as its axis 2 goes queries begin later; or NULL
    bool is_causal;     // a query reads no keys behind its own
    int64_t window;     // how many keys a causal query reads at most; 0 or less: all
    double softcap;     // of scores, before they are masked; 0: none
} ot__ms_attention;

// What is made on the way.
typedef struct ot__ms_scores {
    ot_value *masked, *probabilities;
} ot__ms_scores;

// Y with heads side by side. The node has attributes scale and, with a mask, mask_filter_value.
ot_value *ot__ms_attention_emit(ot_grad *g, const ot__ms_attention *a, ot__ms_scores *scores);

#define OT__MS_ATTENTION_ATTRS                                                                     \
    OT__FLOAT_ATTR("mask_filter_value", -10000.0F),                                                \
        {.name = "num_heads", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},                \
        OT__FLOAT_ATTR("scale", 0.0F), OT__FLAG_ATTR("unidirectional", 0)

#endif
