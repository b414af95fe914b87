// SPDX-License-Identifier: Apache-2.0
// What fuse_attention.c writes and match_attention.c finds.
#ifndef OT_PASSES_ATTENTION_H
#define OT_PASSES_ATTENTION_H

#include "passes/region.h"
#include "passes/view.h"

// Where heads lie in a source, or scores in a mask (query for position, key for element): an offset
// and strides in elements.
typedef struct ot__heads {
    int64_t offset, batch, head, position, element;
} ot__heads;

typedef struct ot__attention {
    int64_t batch, n_heads, queries, keys, head_size, value_size;
    ot_value *q_source, *k_source, *v_source, *mask; // the last may be NULL
    ot__heads q, k, v, y, mask_at;
    double scale, fill;
    bool is_inverted; // the mask is bool, and true where a score is replaced by `fill`
    bool is_causal, has_zero_rows;
    double dropout_ratio;
    const ot_node *dropout; // of the probabilities; or NULL
} ot__attention;

// What has a view: heads by the axes of their product, rows of keys and values by position.
enum {
    OT_ATTENTION_Q,
    OT_ATTENTION_K,
    OT_ATTENTION_V,
    OT_ATTENTION_Y,
    OT_ATTENTION_MASK,
    OT_ATTENTION_VIEWS
};

typedef struct ot__attention_match {
    const ot__uses *uses;
    ot__region *region;
    ot__attention *a;
    bool is_short; // heads are read as the products have them
    ot__view views[OT_ATTENTION_VIEWS];
    bool has_view[OT_ATTENTION_VIEWS];
    int n_scores; // nodes between product and softmax, so far
} ot__attention_match;

// attention_place.c: sizes and places of all views. That of Y says so far where the result lies in
// what the product with the values makes, of shape `made`. False: there are more than batches and
// heads.
bool ot__attention_place(ot__attention_match *m, const ot_shape *made);

// Whether no element is read as two of queries, keys and values.
bool ot__attention_sources_differ(const ot__attention *a);

ot_status ot__write_attention(ot__fusing *f, const ot__region *region);

#endif
