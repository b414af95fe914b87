// SPDX-License-Identifier: Apache-2.0
// The equation of an Einsum. Private to `ops`.
#ifndef OT_OPS_EINSUM_H
#define OT_OPS_EINSUM_H

#include "op/op.h"

// Labels of axes: letters in the order of ASCII, then the axes of the ellipsis.
enum { OT__EINSUM_LETTERS = 52, OT__EINSUM_LABELS = OT__EINSUM_LETTERS + OT_MAX_NDIM };
enum { OT__EINSUM_INPUTS = 32 }; // at most

typedef struct ot__einsum_term {
    int n;
    uint8_t label[OT_MAX_NDIM];
} ot__einsum_term;

typedef struct ot__einsum {
    int n_inputs;
    ot__einsum_term in[OT__EINSUM_INPUTS], out;
} ot__einsum;

// Reads attribute `equation` of a node whose inputs have known ranks. Then at most OT_MAX_NDIM
// labels are in use, those of the output stand in some input, and there once. False with the
// failure in `c` (NULL where inference has seen it).
bool ot__einsum_read(ot_infer *c, const ot_node *node, ot__einsum *e);
int ot__einsum_find(const ot__einsum_term *term, uint8_t label); // the first axis, or -1

#endif
