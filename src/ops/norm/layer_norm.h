// SPDX-License-Identifier: Apache-2.0
// What the layer normalisations and their gradients share. Private to `ops`.
#ifndef OT_OPS_LAYER_NORM_H
#define OT_OPS_LAYER_NORM_H

#include "kernels/kernels.h"
#include "op/op.h"

typedef struct ot__layer_norm {
    int64_t rows, columns; // columns are normalised together
    double epsilon;
    bool is_centered; // with a mean
} ot__layer_norm;

// From attribute `axis` on, the axes of input x are normalised, and input `scale` has their shape
// (`bias` too, when given; -1: there is no such input). `stats` is x's shape with those axes of
// extent 1. False with the failure.
bool ot__layer_norm_check(ot_infer *c, int x, int scale, int bias, ot_shape *stats);
// State for input x.
ot__layer_norm *ot__layer_norm_state(ot_prep *p, int x);

// Whether what vector code reads behind input `last_narrow` and writes but for `narrow_output` is
// f32, as mixed precision has it.
bool ot__layer_norm_others_are_f32(const ot_prep *p, int last_narrow, int narrow_output);

extern const ot_attr_spec ot__layer_norm_attrs[]; // axis, epsilon, stash_type

// skip_layer_norm.c: whether input i, if it is given, is a list of `size` elements; and a
// LayerNormalization of the last axis with the node's epsilon.
bool ot__infer_is_row(ot_infer *c, int i, int64_t size);
ot_node *ot__emit_layer_norm(ot_grad *g, ot_value *x, ot_value *scale, ot_value *bias,
                             int n_outputs);

#endif
