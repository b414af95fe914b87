// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLinear: X as u8, with the scale and zero point that its least and largest element
// ask for, 0 included.
#include <math.h>

#include "kernels/kernels.h"
#include "op/op.h"

enum { Y, SCALE, ZERO_POINT };

static void dynamic_quantize_infer(ot_infer *c)
{
    ot_infer_set(c, Y, OT_U8, ot_infer_shape(c, 0));
    ot_infer_set(c, SCALE, OT_F32, &OT_SHAPE_SCALAR);
    ot_infer_set(c, ZERO_POINT, OT_U8, &OT_SHAPE_SCALAR);
}

static ot_status dynamic_quantize_run(const ot_run *r)
{
    const float *x = r->in[0]->data;
    const int64_t count = r->in[0]->count;
    const ot__quantization q = {
        .outer = 1, .axis = count, .inner = 1, .per_tensor = true, .saturates = true};
    float low = 0, high = 0, scale;
    uint8_t zero;

    for (int64_t k = 0; k < count; k++) {
        low = x[k] < low ? x[k] : low;
        high = x[k] > high ? x[k] : high;
    }
    scale = low == high ? 1 : (high - low) / UINT8_MAX;
    zero = (uint8_t)rintf(fmaxf(0, fminf(UINT8_MAX, -low / scale))); // never NaN
    *(float *)r->out[SCALE]->data = scale;
    *(uint8_t *)r->out[ZERO_POINT]->data = zero;
    ot__ref_quantize(&(ot__quantized_data){.y = r->out[Y]->data,
                                           .y_dtype = OT_U8,
                                           .x = x,
                                           .x_dtype = OT_F32,
                                           .scale = &scale,
                                           .scale_dtype = OT_F32,
                                           .zero_point = &zero,
                                           .zero_point_dtype = OT_U8},
                     &q);
    return OT_OK;
}

static const ot_port dynamic_quantize_in[] = {{"x", "T1", 0}, {0}};
static const ot_port dynamic_quantize_out[] = {
    {"y", "T2", 0}, {"y_scale", "f32", 0}, {"y_zero_point", "T2", 0}, {0}};
static const ot_kernel dynamic_quantize_kernels[] = {
    OT__REF_KERNEL(NULL, NULL, dynamic_quantize_run),
    {0},
};
const ot_op_def ot__op_dynamic_quantize_linear[] = {
    {.name = "DynamicQuantizeLinear",
     .since = 11,
     .inputs = dynamic_quantize_in,
     .outputs = dynamic_quantize_out,
     .types = "T1: f32; T2: u8",
     .infer = dynamic_quantize_infer,
     .kernels = dynamic_quantize_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
