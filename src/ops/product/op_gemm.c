// SPDX-License-Identifier: Apache-2.0
// Gemm: Y = alpha * A' * B' + beta * C, with A' = A or its transpose. FusedGemm of ONNX Runtime:
// the same through an elementwise operator that `activation` names, with its attributes.
#include <string.h>

#include "op/expand.h"
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
    const ot__product_operand operands[] = {ot__product_operand_of(node, 0, a),
                                            ot__product_operand_of(node, 1, b)};

    if (!ot__product_shape(c, &operands[0], &operands[1], &y))
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

// ---- FusedGemm ----

static const char *const activations[] = {
    "Relu", "Sigmoid",         "Tanh",        "Softplus", "Softsign", "LeakyRelu",
    "Elu",  "ThresholdedRelu", "HardSigmoid", "Selu",
};

static const char *const activation_attrs[] = {"activation_alpha", "activation_beta",
                                               "activation_gamma"};

// The operator's name for attribute number i; NULL: it has none of this name.
static const char *attr_of_activation(const char *activation, size_t i)
{
    const char *name = activation_attrs[i] + strlen("activation_");
    const ot_op_def *op = ot__op_find("", activation, OT_OP_BASE_OPSET);

    for (const ot_attr_spec *a = op != NULL ? op->attrs : NULL; a != NULL && a->name != NULL; a++)
        if (strcmp(a->name, name) == 0)
            return name;
    return NULL;
}

static void gemm_activation_infer(ot_infer *c)
{
    const char *name = ot_attr_string(ot_infer_node(c), "activation");
    size_t i = 0;

    while (i < OT_COUNT(activations) && strcmp(activations[i], name) != 0)
        i++;
    if (i == OT_COUNT(activations)) {
        ot_infer_fail(c,
                      "activation '%.40s' is not one of Relu, Sigmoid, Tanh, Softplus, Softsign, "
                      "LeakyRelu, Elu, ThresholdedRelu, HardSigmoid and Selu",
                      name);
        return;
    }
    for (i = 0; i < OT_COUNT(activation_attrs); i++)
        if (ot_attr_given(ot_infer_node(c), activation_attrs[i]) &&
            attr_of_activation(name, i) == NULL)
            ot_infer_fail(c, "%s is given, which %s does not have", activation_attrs[i], name);
    gemm_infer(c);
}

static void gemm_activation_compose(ot_grad *g)
{
    static const char *const floats[] = {"alpha", "beta"}, *const ints[] = {"transA", "transB"};
    const ot_node *of = ot_grad_node(g);
    const char *activation = ot_attr_string(of, "activation");
    ot_value *const in[] = {ot_grad_x(g, 0), ot_grad_x(g, 1), ot_grad_x(g, 2)};
    ot_node *node = ot_emit(g, "Gemm", NULL, in, in[2] == NULL ? 2 : 3, 1);
    ot_value *y;

    for (int i = 0; i < 2; i++) {
        ot_emit_float(g, node, floats[i], ot_attr_float(of, floats[i]));
        ot_emit_int(g, node, ints[i], ot_attr_int(of, ints[i]));
    }
    y = ot_emit_output(g, node, 0);
    if (y == NULL)
        return;
    node = ot_emit(g, activation, NULL, &y, 1, 1);
    for (size_t i = 0; i < OT_COUNT(activation_attrs); i++)
        if (ot_attr_given(of, activation_attrs[i]))
            ot_emit_float(g, node, attr_of_activation(activation, i),
                          ot_attr_float(of, activation_attrs[i]));
    ot_expand_set(g, 0, ot_emit_output(g, node, 0));
}

// ---- records ----

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
static const ot_attr_spec gemm_activation_attrs[] = {
    OT__STRING_ATTR("activation", ""),
    {.name = "activation_alpha", .kind = OT_ATTRIBUTE_FLOAT},
    {.name = "activation_beta", .kind = OT_ATTRIBUTE_FLOAT},
    {.name = "activation_gamma", .kind = OT_ATTRIBUTE_FLOAT},
    OT__FLOAT_ATTR("alpha", 1.0f),
    OT__FLOAT_ATTR("beta", 1.0f),
    OT__INT_ATTR("transA", 0),
    OT__INT_ATTR("transB", 0),
    {0},
};
const ot_op_def ot__op_ms_fused_gemm[] = {
    {.domain = OT__MS,
     .name = "FusedGemm",
     .since = 1,
     .inputs = gemm_in,
     .outputs = ot__unary_out,
     .attrs = gemm_activation_attrs,
     .types = "T: f32 f64",
     .infer = gemm_activation_infer,
     .train = gemm_activation_compose},
    {0},
};
