// SPDX-License-Identifier: Apache-2.0
// Y = alpha * A' * B' with the last two axes of A or B transposed. With transBatchA the rows of A
// lie along axis 0, before the batches; likewise B.
#include "op/expand.h"
#include "ops/product/product.h"

static bool is_across(const ot_node *node, int i)
{
    static const char *const across[] = {"transBatchA", "transBatchB"};

    return ot_attr_int(node, across[i]) != 0;
}

static void fused_matmul_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const ot__product_operand a = ot__product_operand_of(node, 0, ot_infer_shape(c, 0)),
                              b = ot__product_operand_of(node, 1, ot_infer_shape(c, 1));
    ot_shape y;

    if (ot__product_shape(c, &a, &b, &y))
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

// With the axis of the rows behind the batches, and the last two axes exchanged where both ask for
// that.
static ot_value *transpose_operand(ot_grad *g, ot_value *v, bool is_across, bool is_transposed)
{
    const int n = ot_value_shape(v)->ndim;
    int64_t perm[OT_MAX_NDIM];

    if (n < 2 || (!is_across && !is_transposed))
        return v;
    for (int k = 0; k < n; k++)
        perm[k] = is_across && k < n - 2 ? k + 1 : k;
    if (is_across)
        perm[n - 2] = 0;
    if (is_transposed) {
        perm[n - 1] = perm[n - 2];
        perm[n - 2] = n - 1;
    }
    return ot__emit_transpose(g, v, perm, n);
}

// A matrix for each batch, as the operand is without transBatchA or B.
static ot_value *inner_operand(ot_grad *g, int i)
{
    return transpose_operand(g, ot_grad_x(g, i), is_across(ot_grad_node(g), i), false);
}

// From the gradient of inner_operand() to that of the operand.
static void set_operand_dx(ot_grad *g, int i, ot_value *inner, ot_value *d)
{
    int64_t perm[OT_MAX_NDIM];
    int n;

    d = ot_emit_sum_to(g, d, inner);
    n = ot_value_shape(inner)->ndim;
    for (int k = 0; k < n; k++)
        perm[k] = k == 0 ? n - 2 : k == n - 1 ? k : k - 1;
    ot_grad_set_dx(g, i, is_across(ot_grad_node(g), i) ? ot__emit_transpose(g, d, perm, n) : d);
}

// As Gemm's, per batch: dA' = alpha * dY * B'^T, dB' = alpha * A'^T * dY.
static void fused_matmul_grad(ot_grad *g)
{
    const bool ta = ot_attr_int(ot_grad_node(g), "transA") != 0;
    const bool tb = ot_attr_int(ot_grad_node(g), "transB") != 0;
    ot_value *a = inner_operand(g, 0), *dy = ot_grad_dy(g, 0), *b;

    b = inner_operand(g, 1);
    if (a == NULL || b == NULL)
        return;
    if (ot_value_shape(a)->ndim < 2 || ot_value_shape(b)->ndim < 2)
        ot_grad_fail(g, "A and B must have at least two axes");
    if (ot_grad_wants(g, 0))
        set_operand_dx(g, 0, a,
                       ta ? emit_fused_matmul(g, b, dy, tb, true)
                          : emit_fused_matmul(g, dy, b, false, !tb));
    if (ot_grad_wants(g, 1))
        set_operand_dx(g, 1, b,
                       tb ? emit_fused_matmul(g, dy, a, true, ta)
                          : emit_fused_matmul(g, a, dy, !ta, false));
}

static void fused_matmul_expand(ot_grad *g)
{
    static const char *const transposed[] = {"transA", "transB"};
    const ot_node *node = ot_grad_node(g);
    ot_value *in[2];

    for (int i = 0; i < 2; i++) {
        const bool is_transposed = ot_attr_int(node, transposed[i]) != 0;

        in[i] = ot_grad_x(g, i);
        if (is_transposed && ot_value_shape(in[i])->ndim < 2)
            return;
        in[i] = transpose_operand(g, in[i], is_across(node, i), is_transposed);
    }
    ot_expand_set(g, 0,
                  ot__emit_times(g, ot_emit2(g, "MatMul", in[0], in[1]),
                                 (double)ot_attr_float(node, "alpha")));
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
