// SPDX-License-Identifier: Apache-2.0
// Quantising and back, as it trains: the gradient passes straight through where X was in the range.
#include <string.h>

#include "op/expand.h"
#include "ops/move/move.h"
#include "ops/quantize/quantize.h"

static const ot_value *input_or_none(const ot_node *node, int i)
{
    return i < node->n_inputs ? node->inputs[i] : NULL;
}

// ---- pairs ----

static bool equals_zero(const ot_value *v)
{
    if (v == NULL)
        return true;
    for (int64_t k = 0; v->constant != NULL && k < ot_tensor_count(v->constant); k++)
        if (ot__tensor_get_f64(v->constant, k) != 0)
            return false;
    return v->constant != NULL;
}

// Exporters may write the same constant twice.
static bool are_equal(const ot_value *a, const ot_value *b)
{
    if (a == b)
        return true;
    if (a == NULL || b == NULL || a->constant == NULL || b->constant == NULL)
        return equals_zero(a) && equals_zero(b);
    if (a->dtype != b->dtype || !ot__shape_equal(&a->constant->shape, &b->constant->shape))
        return false;
    for (int64_t k = 0; k < ot_tensor_count(a->constant); k++)
        if (ot__tensor_get_f64(a->constant, k) != ot__tensor_get_f64(b->constant, k))
            return false;
    return true;
}

typedef struct range {
    double low, high; // integers
} range;

typedef struct pair {
    ot_value *x, *scale, *zero; // zero may be NULL
    range range;
    int axis; // of the scales; -1: one for all
} pair;

static bool is_tensor_of(const ot_value *v, ot_dtype dtype)
{
    return v->kind == OT_VALUE_TENSOR && v->dtype == dtype && v->has_shape;
}

static bool read_axis(const ot_node *q, const ot_node *dq, pair *p)
{
    int other;

    p->axis = -1;
    if (ot__quantize_is_single(&p->scale->shape))
        return true;
    return p->scale->shape.ndim == 1 && ot_dim_is_number(p->scale->shape.dim[0]) &&
           ot__axis_normalize(ot_attr_int(q, "axis"), p->x->shape.ndim, &p->axis) &&
           ot__axis_normalize(ot_attr_int(dq, "axis"), p->x->shape.ndim, &other) &&
           other == p->axis;
}

// False: not a pair, or one in blocks, to floats of 8 bits, or of types that do not train.
static bool find_pair(const ot_node *dq, pair *p)
{
    const ot_node *q = dq->inputs[OT__Q_X]->producer;
    const ot_dtype dtype = dq->outputs[0]->dtype;

    if (q == NULL || q->domain[0] != '\0' || strcmp(q->op_type, "QuantizeLinear") != 0)
        return false;
    *p = (pair){.x = q->inputs[OT__Q_X],
                .scale = q->inputs[OT__Q_SCALE],
                .zero = q->n_inputs > OT__Q_ZERO_POINT ? q->inputs[OT__Q_ZERO_POINT] : NULL};
    return (dtype == OT_F32 || dtype == OT_F64) && is_tensor_of(p->x, dtype) &&
           is_tensor_of(p->scale, dtype) && are_equal(p->scale, input_or_none(dq, OT__Q_SCALE)) &&
           are_equal(p->zero, input_or_none(dq, OT__Q_ZERO_POINT)) &&
           ot_attr_int(q, "block_size") == 0 && ot_attr_int(dq, "block_size") == 0 &&
           ot_attr_int(q, "precision") == 0 &&
           ot__ref_quantized_range(q->outputs[0]->dtype, &p->range.low, &p->range.high) &&
           read_axis(q, dq, p);
}

// ---- their form ----

// ONNX Runtime wants the mask even where no gradient does.
static ot_value *emit_fake_quant(ot_grad *g, ot_value *x, ot_value *scale, ot_value *zero, range r)
{
    ot_value *const in[] = {x, scale, zero};
    ot_node *node = x == NULL || scale == NULL || zero == NULL
                        ? NULL
                        : ot_emit(g, "com.microsoft.FakeQuant", NULL, in, 3, 2);

    ot_emit_int(g, node, "quant_min", (int64_t)r.low);
    ot_emit_int(g, node, "quant_max", (int64_t)r.high);
    return ot_emit_output(g, node, 0);
}

// A list of an element for each index of the axis, to be combined with x.
static ot_value *along_axis(ot_grad *g, const pair *p, ot_value *list)
{
    int64_t dims[OT_MAX_NDIM] = {p->scale->shape.dim[0]};
    const int n = p->x->shape.ndim - p->axis;

    for (int k = 1; k < n; k++)
        dims[k] = 1;
    return n == 1 ? list : ot__emit_reshape(g, list, dims, n);
}

// Times 1, dequantised: no gradient reaches the scale, as none does in FakeQuant.
static ot_value *emit_scales(ot_grad *g, const pair *p)
{
    ot_value *const in[] = {ot__emit_tensor(g, OT_I8, &p->scale->shape), p->scale};
    ot_value *scales;

    if (in[0] == NULL)
        return NULL;
    memset(in[0]->constant->data, 1, (size_t)p->scale->shape.dim[0]);
    scales = ot_emit_output(g, ot_emit(g, "DequantizeLinear", "axis = 0", in, 2, 1), 0);
    return along_axis(g, p, scales);
}

// Scales of their own for each index of an axis: FakeQuant has one, so X is divided by them before.
// Where zero points differ, too, it only rounds, and the range that is left of theirs is cut here.
static ot_value *emit_by_axis(ot_grad *g, const pair *p)
{
    static const range all = {-8388608.0, 8388608.0}; // 2^23: integers in f32
    ot_value *scales = emit_scales(g, p), *x = ot_emit2(g, "Div", p->x, scales);
    ot_value *one = ot_emit_constant(g, 1, p->x), *zero = ot_emit_constant(g, 0, p->x);
    ot_value *y, *low, *high, *points, *lowered;

    if (equals_zero(p->zero))
        return ot_emit2(g, "Mul", emit_fake_quant(g, x, one, zero, p->range), scales);
    points = along_axis(g, p, ot_emit_cast(g, p->zero, p->x->dtype));
    low = ot_emit2(g, "Sub", ot_emit_constant(g, p->range.low, p->x), points);
    high = ot_emit2(g, "Sub", ot_emit_constant(g, p->range.high, p->x), points);
    y = emit_fake_quant(g, x, one, zero, all);
    lowered = ot_emit3(g, "Where", ot_emit2(g, "Greater", y, high), high, y);
    y = ot_emit3(g, "Where", ot_emit2(g, "Less", y, low), low, lowered);
    return ot_emit2(g, "Mul", y, scales);
}

void ot__dequantize_train(ot_grad *g)
{
    pair p;

    if (!find_pair(ot_grad_node(g), &p))
        return;
    if (p.axis >= 0)
        ot_expand_set(g, 0, emit_by_axis(g, &p));
    else
        ot_expand_set(g, 0,
                      emit_fake_quant(g, p.x, p.scale,
                                      p.zero != NULL ? ot_emit_cast(g, p.zero, p.x->dtype)
                                                     : ot_emit_constant(g, 0, p.x),
                                      p.range));
}
