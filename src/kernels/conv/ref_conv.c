// SPDX-License-Identifier: Apache-2.0
// Convolution and its gradients as products of the weights with the windows laid out as columns.
#include "kernels/kernels.h"

static void kernel_position(int64_t k[OT__WINDOW_AXES], int64_t at, const ot__window *w)
{
    for (int a = OT__WINDOW_AXES - 1; a >= 0; a--) {
        k[a] = at % w->kernel[a];
        at /= w->kernel[a];
    }
}

// Offset in the image that output position o sees at kernel position k; -1 in the padding.
static inline int64_t input_offset(int64_t o, const int64_t k[OT__WINDOW_AXES], const ot__window *w)
{
    int64_t offset = 0, stride = 1;

    for (int a = OT__WINDOW_AXES - 1; a >= 0; a--) {
        const int64_t i = o % w->out[a] * w->stride[a] - w->pad[a] + k[a] * w->dilation[a];
        if (i < 0 || i >= w->in[a])
            return -1;
        offset += i * stride;
        stride *= w->in[a];
        o /= w->out[a];
    }
    return offset;
}

#define TEMPLATE "kernels/conv/ref_conv.tmpl.h"
#include "kernels/by_float.tmpl.h"
