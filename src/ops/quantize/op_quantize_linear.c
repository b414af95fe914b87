// SPDX-License-Identifier: Apache-2.0
// Y = X / y_scale, rounded to even, + y_zero_point, in the range of a small integer type.
#include "ops/quantize/quantize.h"

static ot_dtype output_type(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);

    if (ot_infer_has(c, OT__Q_ZERO_POINT))
        return ot_infer_dtype(c, OT__Q_ZERO_POINT);
    return ot_attr_int(node, "output_dtype") != 0 ? (ot_dtype)ot_attr_int(node, "output_dtype")
                                                  : OT_U8;
}

static bool is_output_type(ot_dtype dtype)
{
    return dtype == OT_I8 || dtype == OT_U8 || dtype == OT_I16 || dtype == OT_U16 ||
           (dtype >= OT_F8E4M3FN && dtype <= OT_F8E5M2FNUZ);
}

static void quantize_infer(ot_infer *c)
{
    const ot_dtype dtype = output_type(c);
    const int64_t wanted = ot_attr_int(ot_infer_node(c), "output_dtype");

    if (!is_output_type(dtype))
        ot_infer_fail(c, "cannot quantise to element type %d (%s)", (int)dtype,
                      ot_dtype_name(dtype));
    else if (wanted != 0 && wanted != (int64_t)dtype)
        ot_infer_fail(c, "output_dtype is %" PRId64 ", y_zero_point has type %d (%s)", wanted,
                      (int)dtype, ot_dtype_name(dtype));
    else if (ot__quantize_check(c))
        ot_infer_set(c, 0, dtype, ot_infer_shape(c, OT__Q_X));
}

static ot_status quantize_run(const ot_run *r)
{
    const ot__quantized_data data = ot__quantize_data(r);

    ot__ref_quantize(&data, r->state);
    return OT_OK;
}

static const ot_port quantize_in[] = {
    {"x", "T1", 0}, {"y_scale", "T2", 0}, {"y_zero_point", "T3", OT_PORT_OPTIONAL}, {0}};
static const ot_port quantize_out[] = {{"y", "T3", 0}, {0}};
#define SATURATE                                                                                   \
    {                                                                                              \
        .name = "saturate", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 1         \
    }
static const ot_attr_spec quantize_attrs_10[] = {OT__Q_AXIS, {0}};
static const ot_attr_spec quantize_attrs_19[] = {OT__Q_AXIS, SATURATE, {0}};
static const ot_attr_spec quantize_attrs_21[] = {
    OT__Q_AXIS, OT__Q_ZERO("block_size"), OT__Q_ZERO("output_dtype"), SATURATE, {0}};
static const ot_attr_spec quantize_attrs[] = {OT__Q_AXIS,
                                              OT__Q_ZERO("block_size"),
                                              OT__Q_ZERO("output_dtype"),
                                              OT__Q_ZERO("precision"),
                                              SATURATE,
                                              {0}};
static const ot_kernel quantize_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__quantize_prepare,
     .run = quantize_run},
    {0},
};
#define RECORD(opset, attributes)                                                                  \
    {                                                                                              \
        .name = "QuantizeLinear", .since = opset, .inputs = quantize_in, .outputs = quantize_out,  \
        .attrs = attributes,                                                                       \
        .types = "T1: f32 f64 f16 bf16 i32; T2: f32 f64 f16 bf16; "                                \
                 "T3: u8 i8 u16 i16 f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz",                        \
        .infer = quantize_infer, .kernels = quantize_kernels, .flags = OT_OP_NO_GRAD               \
    }
const ot_op_def ot__op_quantize_linear[] = {
    RECORD(10, quantize_attrs_10),
    RECORD(19, quantize_attrs_19),
    RECORD(21, quantize_attrs_21),
    RECORD(23, quantize_attrs),
    {0},
};
