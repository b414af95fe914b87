// SPDX-License-Identifier: Apache-2.0
// What fused attention and its gradient share: the attributes that say where heads lie. Private to
// `ops`.
#ifndef OT_OPS_ATTENTION_H
#define OT_OPS_ATTENTION_H

#include <math.h>

#include "kernels/kernels.h"
#include "op/op.h"

// Elements of each tensor, -1 where they are not known yet; inputs that are absent have 0.
typedef struct ot__attention_counts {
    int64_t q, k, v, y, mask;
} ot__attention_counts;

enum { OT__ATTENTION_TEXT = 160 };

// Reads the attributes. False, and in `why` what is wrong with them, unless all that they address
// lies inside the tensors. mask_type: OT_DTYPE_UNDEFINED without a mask.
bool ot__attention_read(ot__attention *a, const ot_node *node, const ot__attention_counts *counts,
                        ot_dtype mask_type, char *why);
// `positions` of `size` elements each, for every head.
typedef struct ot__attention_view {
    const ot__heads *lies;
    int64_t positions, size;
} ot__attention_view;
// Whether n views of one tensor have no element twice, as far as their strides tell.
bool ot__attention_views_are_apart(const ot__attention *a, const ot__attention_view *views, int n);
// Elements that a view addresses which has none of them twice.
int64_t ot__attention_view_count(const ot__attention *a, const ot__attention_view *view);
bool ot__attention_is_empty(const ot__attention *a); // some size is 0
bool ot__attention_has_rows(const ot_prep *p);       // none is; can_run of vector code

// As shape inference knows the inputs: q, k and v from number `first` on, and `mask`. False with
// the failure.
bool ot__attention_infer(ot_infer *c, int first, int mask, ot__attention *a, ot_shape *y);
// The same of concrete tensors, while preparing.
ot_status ot__attention_prepare(ot_prep *p, int first, int mask, const ot_arg *y, ot__attention *a);

// What the attributes say of dropout.
typedef struct ot__attention_draws {
    double ratio;
    bool has_seed;
    uint64_t seed;
    const char *name; // what the draws belong to
} ot__attention_draws;
// The state of a kernel, and behind its n_bytes the name, to which `draws` in the state points.
void *ot__attention_state(ot_prep *p, size_t n_bytes, size_t draws_at);
// What is drawn in a step.
ot__attention_dropout ot__attention_dropout_of(const ot__attention_draws *draws,
                                               const ot_step *step);

// Attributes but `gradients`.
#define OT__ATTENTION_ATTRS                                                                        \
    {.name = "sizes", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},                       \
        {.name = "q_view", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},                  \
        {.name = "k_view", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},                  \
        {.name = "v_view", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},                  \
        {.name = "y_view", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},                  \
        {.name = "mask_view", .kind = OT_ATTRIBUTE_INTS},                                          \
        {.name = "y_shape", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},                 \
        OT__FLOAT_ATTR("scale", 1.0f), OT__FLAG_ATTR("causal", 0),                                 \
        OT__INT_ATTR("causal_offset", 0), OT__FLOAT_ATTR("fill", -INFINITY),                       \
        OT__FLAG_ATTR("zero_rows", 0), OT__FLOAT_ATTR("dropout", 0),                               \
        OT__STRING_ATTR("dropout_name", ""),                                                       \
    {                                                                                              \
        .name = "dropout_seed", .kind = OT_ATTRIBUTE_INT                                           \
    }

#endif
