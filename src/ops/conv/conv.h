// SPDX-License-Identifier: Apache-2.0
// What Conv, ConvTranspose and their gradients share. Private to `ops`.
#ifndef OT_OPS_CONV_H
#define OT_OPS_CONV_H

#include "ops/conv/window.h"

// Entries of oneDNN: as fast as may be, and `prepare`_exact with the same bits for any number of
// threads.
#define OT__CONV_DNNL_KERNELS(can_run_, layouts_, prepare_, run_, release_)                        \
    {.name = "dnnl",                                                                               \
     .types = "T: f32 bf16",                                                                       \
     .flags = OT_KERNEL_LIBRARY | OT_KERNEL_MIXED,                                                 \
     .can_run = can_run_,                                                                          \
     .layouts = layouts_,                                                                          \
     .prepare = prepare_,                                                                          \
     .run = run_,                                                                                  \
     .release = release_},                                                                         \
    {                                                                                              \
        .name = "dnnl_exact", .types = "T: f32 bf16",                                              \
        .flags = OT_KERNEL_LIBRARY | OT_KERNEL_THREAD_EXACT | OT_KERNEL_MIXED,                     \
        .can_run = can_run_, .layouts = layouts_, .prepare = prepare_##_exact, .run = run_,        \
        .release = release_                                                                        \
    }

// conv.c: the shape of Y from inputs X, W and B, whose numbers these are; false after a failure.
bool ot__conv_shape(ot_infer *c, int x_port, int w_port, int b_port, ot_shape *y);
// Whether these entries take the element types.
bool ot__conv_takes(const ot_arg *x, const ot_arg *w, const ot_arg *y);

// ---- expansions (expand_conv.c) ----

// The gradient of X through a convolution by W, from dY: a transposed convolution. `extents` are
// X's spatial ones, for where shape `x` has no numbers.
ot_value *ot__emit_spread(ot_grad *g, const ot__geometry *window, int64_t groups, ot_value *dy,
                          ot_value *w, const ot_shape *x, ot_value *extents);
void ot__conv_grad_expand(ot_grad *g);

#endif
