// SPDX-License-Identifier: Apache-2.0
// Y = alpha * A' * B' + beta * C, with A' = A or its transpose.
#include "ops/product/product.h"

static bool is_transposed(const ot_node *node, const char *attr)
{
    return ot_attr_int(node, attr) != 0;
}

static void gemm_infer(ot_infer *c)
{
    const ot_shape *a = ot_infer_shape(c, 0), *b = ot_infer_shape(c, 1),
                   *bias = ot_infer_shape(c, 2);
    const ot_node *node = ot_infer_node(c);
    ot_shape y, with_bias;

    if (a->ndim != 2 || b->ndim != 2)
        ot_infer_fail(c, "A and B must be matrices, got %d and %d axes", a->ndim, b->ndim);
    if (!ot__product_shape(c, a, b, is_transposed(node, "transA"), is_transposed(node, "transB"),
                           &y))
        return;
    if (ot_infer_has(c, 2)) {
        if (!ot_infer_broadcast(c, &y, bias, &with_bias))
            return;
        for (int i = 0; i < 2; i++)
            if (with_bias.ndim != 2 || (ot_dim_is_number(y.dim[i]) && with_bias.dim[i] != y.dim[i]))
                ot_infer_fail(c, "C is larger than the product along axis %d", i);
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

// One of the two products of the gradient: alpha * first * second.
static ot_value *emit_gemm(ot_grad *g, ot_value *first, ot_value *second, bool transpose_first,
                           bool transpose_second)
{
    ot_value *in[] = {first, second};
    ot_node *node = ot_emit(g, "Gemm", NULL, in, 2, 1);

    ot_emit_int(g, node, "transA", transpose_first);
    ot_emit_int(g, node, "transB", transpose_second);
    ot_emit_float(g, node, "alpha", ot_attr_float(ot_grad_node(g), "alpha"));
    ot_emit_float(g, node, "beta", 0.0f);
    return ot_emit_output(g, node, 0);
}

// dA' = alpha * dY * B'^T and dB' = alpha * A'^T * dY, transposed back where A or B was;
// dC = beta * dY, summed over the axes that were broadcast.
static void gemm_grad(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);
    const bool ta = is_transposed(node, "transA"), tb = is_transposed(node, "transB");
    const float beta = ot_attr_float(node, "beta");
    ot_value *a = ot_grad_x(g, 0), *b = ot_grad_x(g, 1), *dy = ot_grad_dy(g, 0);

    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(g, 0, ta ? emit_gemm(g, b, dy, tb, true) : emit_gemm(g, dy, b, false, !tb));
    if (ot_grad_wants(g, 1))
        ot_grad_set_dx(g, 1, tb ? emit_gemm(g, dy, a, true, ta) : emit_gemm(g, a, dy, !ta, false));
    if (ot_grad_wants(g, 2)) {
        ot_value *dc = ot_emit_sum_to(g, dy, ot_grad_x(g, 2));
        if (beta != 1.0f)
            dc = ot_emit2(g, "Mul", dc, ot_emit_constant(g, (double)beta, dc));
        ot_grad_set_dx(g, 2, dc);
    }
}

static const ot_port gemm_in[] = {
    {"A", "T", 0}, {"B", "T", OT_PORT_WEIGHT}, {"C", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS}, {0}};
static const ot_attr_spec gemm_attrs[] = {
    OT__FLOAT_ATTR("alpha", 1.0f),
    OT__FLOAT_ATTR("beta", 1.0f),
    OT__INT_ATTR("transA", 0),
    OT__INT_ATTR("transB", 0),
    {0},
};
const ot_op_def ot__op_gemm[] = {
    {.name = "Gemm",
     .since = 7,
     .inputs = gemm_in,
     .outputs = ot__unary_out,
     .attrs = gemm_attrs,
     .types = "T: f32 f64",
     .infer = gemm_infer,
     .kernels = ot__product_kernels,
     .grad = gemm_grad},
    {0},
};
