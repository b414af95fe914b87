// SPDX-License-Identifier: Apache-2.0
// oneDNN's kernels of convolutions, shared by Conv, its fused forms and ConvGrad; those prepared as
// _exact give the same bits for any number of threads. Private to `ops`.
#ifndef OT_OPS_CONV_H
#define OT_OPS_CONV_H

#include "ops/conv/window.h"

// Inputs X, W, B and output Y.
bool ot__conv_can_dnnl(const ot_prep *p);
void ot__conv_forms_dnnl(ot_prep *p);
ot_status ot__conv_prepare_dnnl(ot_prep *p);
ot_status ot__conv_prepare_dnnl_exact(ot_prep *p);
ot_status ot__conv_relu_prepare_dnnl(ot_prep *p); // Y = max(convolution, 0)
ot_status ot__conv_relu_prepare_dnnl_exact(ot_prep *p);
ot_status ot__conv_run_dnnl(const ot_run *r);
void ot__conv_release_dnnl(void *state);

// Inputs dY, X, W and outputs dX, dW, dB.
bool ot__conv_grad_can_dnnl(const ot_prep *p);
void ot__conv_grad_forms_dnnl(ot_prep *p);
ot_status ot__conv_grad_prepare_dnnl(ot_prep *p);
ot_status ot__conv_grad_prepare_dnnl_exact(ot_prep *p);
ot_status ot__conv_grad_run_dnnl(const ot_run *r);

// Inference and the reference of Conv, for its fused forms.
void ot__conv_infer(ot_infer *c);
ot_status ot__conv_prepare_ref(ot_prep *p);
ot_status ot__conv_run_ref(const ot_run *r);

// ---- expansions (expand_conv.c) ----

// The gradient of X through a convolution by W, from dY: a transposed convolution (expand_conv.c).
// The lists hold an entry a spatial axis; `extents` are X's spatial ones, for where shape `x` has
// no numbers.
typedef struct ot__spread {
    int n_axes;
    const int64_t *kernel, *stride, *dilation, *pad, *pad_end;
    int64_t groups;
} ot__spread;
ot_value *ot__emit_spread(ot_grad *g, const ot__spread *s, ot_value *dy, ot_value *w,
                          const ot_shape *x, ot_value *extents);
void ot__conv_grad_expand(ot_grad *g);

#endif
