// SPDX-License-Identifier: Apache-2.0
// Y = alpha * A' * B' with the last two axes of A or B transposed.
#include "op/expand.h"
#include "ops/product/product.h"

// transBatchA and transBatchB move the first axis behind the others; no gradient or exporter writes
// them.
static bool fused_matmul_check(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);

    if (ot_attr_int(node, "transBatchA") != 0 || ot_attr_int(node, "transBatchB") != 0)
        return ot__refuse(c, "transBatchA and transBatchB must be 0");
    return true;
}

static void fused_matmul_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    ot_shape y;

    if (fused_matmul_check(c) &&
        ot__product_shape(c, ot_infer_shape(c, 0), ot_infer_shape(c, 1),
                          ot_attr_int(node, "transA") != 0, ot_attr_int(node, "transB") != 0, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static ot_value *emit_fused_matmul(ot_grad *g, ot_value *a, ot_value *b, bool transpose_a,
                                   bool transpose_b)
{
    ot_value *in[] = {a, b};
    ot_node *node = ot_emit(g, "com.microsoft.FusedMatMul", NULL, in, 2, 1);

    ot_emit_int(g, node, "transA", transpose_a);
    ot_emit_int(g, node, "transB", transpose_b);
    ot_emit_float(g, node, "alpha", ot_attr_float(ot_grad_node(g), "alpha"));
    return ot_emit_output(g, node, 0);
}

// As Gemm's, per batch: dA' = alpha * dY * B'^T, dB' = alpha * A'^T * dY.
static void fused_matmul_grad(ot_grad *g)
{
    const bool ta = ot_attr_int(ot_grad_node(g), "transA") != 0;
    const bool tb = ot_attr_int(ot_grad_node(g), "transB") != 0;
    ot_value *a = ot_grad_x(g, 0), *b = ot_grad_x(g, 1), *dy = ot_grad_dy(g, 0);

    if (ot_value_shape(a)->ndim < 2 || ot_value_shape(b)->ndim < 2)
        ot_grad_fail(g, "A and B must have at least two axes");
    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(g, 0,
                       ot_emit_sum_to(g,
                                      ta ? emit_fused_matmul(g, b, dy, tb, true)
                                         : emit_fused_matmul(g, dy, b, false, !tb),
                                      a));
    if (ot_grad_wants(g, 1))
        ot_grad_set_dx(g, 1,
                       ot_emit_sum_to(g,
                                      tb ? emit_fused_matmul(g, dy, a, true, ta)
                                         : emit_fused_matmul(g, a, dy, !ta, false),
                                      b));
}

static ot_value *transpose_last(ot_grad *g, ot_value *v)
{
    const int n = ot_value_shape(v)->ndim;
    int64_t perm[OT_MAX_NDIM];

    for (int k = 0; k < n; k++)
        perm[k] = k < n - 2 ? k : 2 * n - 3 - k;
    return ot__emit_transpose(g, v, perm, n);
}

static void fused_matmul_expand(ot_grad *g)
{
    static const char *const transposed[] = {"transA", "transB"};
    ot_value *in[2];

    for (int i = 0; i < 2; i++) {
        in[i] = ot_grad_x(g, i);
        if (ot_attr_int(ot_grad_node(g), transposed[i]) == 0)
            continue;
        if (ot_value_shape(in[i])->ndim < 2)
            return;
        in[i] = transpose_last(g, in[i]);
    }
    ot_expand_set(g, 0,
                  ot__emit_times(g, ot_emit2(g, "MatMul", in[0], in[1]),
                                 (double)ot_attr_float(ot_grad_node(g), "alpha")));
}

static const ot_port fused_matmul_in[] = {{"A", "T", 0}, {"B", "T", OT_PORT_WEIGHT}, {0}};
static const ot_attr_spec fused_matmul_attrs[] = {
    OT__FLOAT_ATTR("alpha", 1.0f),  OT__INT_ATTR("transA", 0),      OT__INT_ATTR("transB", 0),
    OT__INT_ATTR("transBatchA", 0), OT__INT_ATTR("transBatchB", 0), {0},
};
const ot_op_def ot__op_fused_matmul[] = {
    {.domain = "com.microsoft",
     .name = "FusedMatMul",
     .since = 1,
     .inputs = fused_matmul_in,
     .outputs = ot__unary_out,
     .attrs = fused_matmul_attrs,
     .types = "T: f32 f64",
     .infer = fused_matmul_infer,
     .kernels = ot__product_kernels,
     .grad = fused_matmul_grad,
     .expand = fused_matmul_expand},
    {0},
};
