// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear, with scales and zero points for a whole tensor, along an
// axis, or for blocks along it.
#include "ops/quantize/quantize.h"

static int64_t block_size(const ot_node *node)
{
    return ot_attr_int(node, "block_size");
}

// One scale for all: a scalar, or what old exporters write for one.
bool ot__quantize_is_single(const ot_shape *scale)
{
    return scale->ndim == 0 || (scale->ndim == 1 && scale->dim[0] == 1);
}

static bool check_blocks(ot_infer *c, const ot_shape *x, const ot_shape *scale, int axis)
{
    const int64_t block = block_size(ot_infer_node(c));

    if (scale->ndim != x->ndim)
        return ot__refuse(c, "the scales of blocks have %d axes, expected %d", scale->ndim,
                          x->ndim);
    for (int k = 0; k < x->ndim; k++) {
        int64_t expected = x->dim[k];

        if (!ot_dim_is_number(scale->dim[k]) || !ot_dim_is_number(expected))
            continue;
        if (k == axis)
            expected = expected / block + (expected % block != 0);
        if (scale->dim[k] != expected)
            return ot__refuse(c, "there are %" PRId64 " scales along axis %d, expected %" PRId64,
                              scale->dim[k], k, expected);
    }
    return true;
}

static bool check_axis(ot_infer *c, const ot_shape *x, const ot_shape *scale, int axis)
{
    if (scale->ndim != 1)
        return ot__refuse(c, "the scale has %d axes, expected 0 or 1", scale->ndim);
    if (ot__dim_differs(scale->dim[0], x->dim[axis]))
        return ot__refuse(c, "there are %" PRId64 " scales for %" PRId64 " elements of axis %d",
                          scale->dim[0], x->dim[axis], axis);
    return true;
}

static bool scales_fit(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, OT__Q_X), *scale = ot_infer_shape(c, OT__Q_SCALE);
    const int64_t block = block_size(ot_infer_node(c));
    int axis;

    if (block < 0)
        return ot__refuse(c, "block_size is %" PRId64 ", expected 0 or more", block);
    if (ot_infer_has(c, OT__Q_ZERO_POINT)) {
        const ot_shape *zero = ot_infer_shape(c, OT__Q_ZERO_POINT);

        if ((!ot__quantize_is_single(zero) || !ot__quantize_is_single(scale)) &&
            !ot__infer_matches(c, OT__Q_SCALE, OT__Q_ZERO_POINT))
            return false;
    }
    if (ot__quantize_is_single(scale) && block == 0)
        return true;
    if (!ot_infer_axis(c, ot_attr_int(ot_infer_node(c), "axis"), x->ndim, &axis))
        return false;
    return block > 0 ? check_blocks(c, x, scale, axis) : check_axis(c, x, scale, axis);
}

// ---- QuantizeLinear: Y = X / y_scale, rounded to even, + y_zero_point, in the range of a small
// integer type ----

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
           (dtype >= OT_F8E4M3FN && dtype <= OT_F8E5M2FNUZ) || ot__dtype_is_packed(dtype);
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
    else if (scales_fit(c))
        ot_infer_set(c, 0, dtype, ot_infer_shape(c, OT__Q_X));
}

// ---- DequantizeLinear: Y = (X - x_zero_point) * x_scale ----

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
    else if (scales_fit(c))
        ot_infer_set(c, 0, dtype, ot_infer_shape(c, OT__Q_X));
}

// ---- kernels ----

static ot_status quantize_prepare(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    const ot_arg *x = ot_prep_in(p, OT__Q_X), *scale = ot_prep_in(p, OT__Q_SCALE);
    ot__quantization *q = ot_prep_state(p, sizeof *q);
    int axis = 0;

    OT_TRY(ot__made(q));
    *q = (ot__quantization){
        .outer = 1,
        .axis = x->count,
        .inner = 1,
        .per_tensor = ot__quantize_is_single(&scale->shape) && block_size(node) == 0,
        .saturates = !ot_attr_given(node, "saturate") || ot_attr_int(node, "saturate") != 0};
    if (q->per_tensor)
        return OT_OK;
    (void)ot__axis_normalize(ot_attr_int(node, "axis"), x->shape.ndim, &axis);
    for (int k = 0; k < axis; k++)
        q->outer *= x->shape.dim[k];
    for (int k = axis + 1; k < x->shape.ndim; k++)
        q->inner *= x->shape.dim[k];
    q->axis = x->shape.dim[axis];
    q->block = block_size(node);
    q->blocks = q->block > 0 ? scale->shape.dim[axis] : 0;
    return OT_OK;
}

static ot__quantized_data data_of_run(const ot_run *r)
{
    const ot_arg *zero = r->n_in > OT__Q_ZERO_POINT ? r->in[OT__Q_ZERO_POINT] : NULL;

    return (ot__quantized_data){.y = r->out[0]->data,
                                .y_dtype = r->out[0]->dtype,
                                .x = r->in[OT__Q_X]->data,
                                .x_dtype = r->in[OT__Q_X]->dtype,
                                .scale = r->in[OT__Q_SCALE]->data,
                                .scale_dtype = r->in[OT__Q_SCALE]->dtype,
                                .zero_point = zero != NULL ? zero->data : NULL,
                                .zero_point_dtype =
                                    zero != NULL ? zero->dtype : OT_DTYPE_UNDEFINED};
}

static ot_status quantize_run(const ot_run *r)
{
    const ot__quantized_data data = data_of_run(r);

    ot__ref_quantize(&data, r->state);
    return OT_OK;
}

static ot_status dequantize_run(const ot_run *r)
{
    const ot__quantized_data data = data_of_run(r);

    ot__ref_dequantize(&data, r->state);
    return OT_OK;
}

// ---- records ----

#define FLOATS "f32 f64 f16 bf16"
#define FLOATS_8 "f8e4m3fn f8e4m3fnuz f8e5m2 f8e5m2fnuz"
#define QUANTIZED "u8 i8 u16 i16 " FLOATS_8 " " OT__PACKED_TYPES
static const ot_port quantize_in[] = {
    {"x", "T1", 0}, {"y_scale", "T2", 0}, {"y_zero_point", "T3", OT_PORT_OPTIONAL}, {0}};
static const ot_port dequantize_in[] = {
    {"x", "T1", 0}, {"x_scale", "T2", 0}, {"x_zero_point", "T1", OT_PORT_OPTIONAL}, {0}};
static const ot_port quantize_out[] = {{"y", "T3", 0}, {0}};
#define AXIS OT__INT_ATTR("axis", 1)
#define BLOCK OT__INT_ATTR("block_size", 0)
#define TYPE OT__INT_ATTR("output_dtype", 0)
#define PRECISION OT__INT_ATTR("precision", 0)
#define SATURATE OT__INT_ATTR("saturate", 1)
static const ot_attr_spec attrs_10[] = {AXIS, {0}};
static const ot_attr_spec quantize_attrs_19[] = {AXIS, SATURATE, {0}};
static const ot_attr_spec quantize_attrs_21[] = {AXIS, BLOCK, TYPE, SATURATE, {0}};
static const ot_attr_spec quantize_attrs_23[] = {AXIS, BLOCK, TYPE, PRECISION, SATURATE, {0}};
static const ot_attr_spec dequantize_attrs_21[] = {AXIS, BLOCK, {0}};
static const ot_attr_spec dequantize_attrs_23[] = {AXIS, BLOCK, TYPE, {0}};
static const ot_kernel quantize_kernels[] = {OT__REF_KERNEL(NULL, quantize_prepare, quantize_run),
                                             {0}};
static const ot_kernel dequantize_kernels[] = {
    OT__REF_KERNEL(NULL, quantize_prepare, dequantize_run), {0}};
#define QUANTIZE(since_, attrs_)                                                                   \
    {                                                                                              \
        .name = "QuantizeLinear", .since = since_, .inputs = quantize_in, .outputs = quantize_out, \
        .attrs = attrs_, .types = "T1: " FLOATS " i32; T2: " FLOATS " f8e8m0; T3: " QUANTIZED,     \
        .infer = quantize_infer, .kernels = quantize_kernels, .flags = OT_OP_NO_GRAD               \
    }
const ot_op_def ot__op_quantize_linear[] = {
    QUANTIZE(10, attrs_10),
    QUANTIZE(19, quantize_attrs_19),
    QUANTIZE(21, quantize_attrs_21),
    QUANTIZE(23, quantize_attrs_23),
    {0},
};
#define DEQUANTIZE(since_, attrs_)                                                                 \
    {                                                                                              \
        .name = "DequantizeLinear", .since = since_, .inputs = dequantize_in,                      \
        .outputs = quantize_out, .attrs = attrs_,                                                  \
        .types = "T1: " QUANTIZED " i32; T2: " FLOATS " f8e8m0; T3: " FLOATS,                      \
        .infer = dequantize_infer, .kernels = dequantize_kernels, .flags = OT_OP_NO_GRAD,          \
        .train = ot__dequantize_train                                                              \
    }
const ot_op_def ot__op_dequantize_linear[] = {
    DEQUANTIZE(10, attrs_10),
    DEQUANTIZE(21, dequantize_attrs_21),
    DEQUANTIZE(23, dequantize_attrs_23),
    {0},
};
