// SPDX-License-Identifier: Apache-2.0
// Y = (X - x_zero_point) * x_scale
#include "ops/quantize/quantize.h"

static void dequantize_infer(ot_infer *c)
{
    const int64_t wanted = ot_attr_int(ot_infer_node(c), "output_dtype");
    const ot_dtype dtype = wanted != 0 ? (ot_dtype)wanted : ot_infer_dtype(c, OT__Q_SCALE);

    if (!ot__dtype_is_float(dtype))
        ot_infer_fail(c, "output_dtype is %" PRId64 " (%s), expected a floating-point type", wanted,
                      ot_dtype_name(dtype));
    else if (ot_infer_has(c, OT__Q_ZERO_POINT) &&
             ot_infer_dtype(c, OT__Q_ZERO_POINT) != ot_infer_dtype(c, OT__Q_X))
        ot_infer_fail(c, "x has type %s, x_zero_point %s", ot_dtype_name(ot_infer_dtype(c, 0)),
                      ot_dtype_name(ot_infer_dtype(c, OT__Q_ZERO_POINT)));
    else if (ot__quantize_check(c))
        ot_infer_set(c, 0, dtype, ot_infer_shape(c, OT__Q_X));
}

static ot_status dequantize_run(const ot_run *r)
{
    const ot__quantized_data data = ot__quantize_data(r);

    ot__ref_dequantize(&data, r->state);
    return OT_OK;
}

static const ot_port dequantize_in[] = {
    {"x", "T1", 0}, {"x_scale", "T2", 0}, {"x_zero_point", "T1", OT_PORT_OPTIONAL}, {0}};
static const ot_port dequantize_out[] = {{"y", "T3", 0}, {0}};
static const ot_attr_spec dequantize_attrs_10[] = {OT__Q_AXIS, {0}};
static const ot_attr_spec dequantize_attrs_21[] = {OT__Q_AXIS, OT__Q_ZERO("block_size"), {0}};
static const ot_attr_spec dequantize_attrs[] = {
    OT__Q_AXIS, OT__Q_ZERO("block_size"), OT__Q_ZERO("output_dtype"), {0}};
static const ot_kernel dequantize_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__quantize_prepare,
     .run = dequantize_run},
    {0},
};
#define RECORD(opset, attributes)                                                                  \
    {                                                                                              \
        .name = "DequantizeLinear", .since = opset, .inputs = dequantize_in,                       \
        .outputs = dequantize_out, .attrs = attributes,                                            \
        .types = "T1: u8 i8 u16 i16 i32 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz; "                   \
                 "T2: f32 f64 f16 bf16; T3: f32 f64 f16 bf16",                                     \
        .infer = dequantize_infer, .kernels = dequantize_kernels, .flags = OT_OP_NO_GRAD,          \
        .train = ot__dequantize_train                                                              \
    }
const ot_op_def ot__op_dequantize_linear[] = {
    RECORD(10, dequantize_attrs_10),
    RECORD(21, dequantize_attrs_21),
    RECORD(23, dequantize_attrs),
    {0},
};
