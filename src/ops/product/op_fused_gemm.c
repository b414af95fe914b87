// SPDX-License-Identifier: Apache-2.0
// Y = f(alpha * A' * B' + beta * C, Z): a product whose elements get the addend and go through an
// elementwise operator f, named by `activation`, while they are in the cache. A' and B' are A and B
// or their last two axes transposed, multiplied as by MatMul. Made by passes/fuse_gemm.c.
#include "ops/elementwise/elementwise.h"
#include "ops/product/product.h"

enum { A, B, C, Z }; // inputs

bool ot__product_activation(const ot_node *node, const ot_tile **tile, float *attrs)
{
    const char *text = ot_attr_string(node, "activation");

    *tile = NULL;
    return *text == '\0' ||
           (ot__tile_read(&text, tile, attrs) && *text == '\0' && (*tile)->rounds_once);
}

// Batches share C, which is one row then.
static bool addend_fits(ot_infer *c, const ot_shape *y, const ot_shape *addend)
{
    ot_shape with_addend;

    if (!ot_infer_broadcast(c, y, addend, &with_addend))
        return false;
    for (int k = 0; k < with_addend.ndim; k++)
        if (with_addend.ndim != y->ndim ||
            (ot_dim_is_number(y->dim[k]) && with_addend.dim[k] != y->dim[k]))
            return ot__refuse(c, "C is larger than the product along axis %d", k);
    for (int k = 0; y->ndim > 2 && k + 1 < addend->ndim; k++)
        if (addend->dim[k] != 1)
            return ot__refuse(c, "C must be a row, has %" PRId64 " along axis %d", addend->dim[k],
                              k);
    return true;
}

static void fused_gemm_infer(ot_infer *c)
{
    const ot_shape *a = ot_infer_shape(c, A), *b = ot_infer_shape(c, B);
    const ot_node *node = ot_infer_node(c);
    float attrs[OT_TILE_MAX_ATTRS];
    const ot__product_operand operands[] = {ot__product_operand_of(node, 0, a),
                                            ot__product_operand_of(node, 1, b)};
    const ot_tile *tile;
    ot_shape y;

    if (a->ndim < 2 || b->ndim < 2)
        ot_infer_fail(c, "A and B must have at least two axes, got %d and %d", a->ndim, b->ndim);
    if (!ot__product_activation(node, &tile, attrs))
        ot_infer_fail(c, "activation '%.40s' is not supported", ot_attr_string(node, "activation"));
    if (ot__product_shape(c, &operands[0], &operands[1], &y) &&
        (!ot_infer_has(c, C) || addend_fits(c, &y, ot_infer_shape(c, C))) &&
        (!ot_infer_has(c, Z) || ot__shape_may_equal(&y, ot_infer_shape(c, Z)) ||
         ot__refuse(c, "Z must have the product's shape")))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static const ot_port fused_gemm_in[] = {{"A", "T", 0},
                                        {"B", "T", OT_PORT_WEIGHT},
                                        {"C", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS},
                                        {"Z", "T", OT_PORT_OPTIONAL},
                                        {0}};
static const ot_attr_spec fused_gemm_attrs[] = {
    OT__STRING_ATTR("activation", ""), OT__FLOAT_ATTR("alpha", 1.0f), OT__FLOAT_ATTR("beta", 1.0f),
    OT__INT_ATTR("transA", 0),         OT__INT_ATTR("transB", 0),     {0},
};
const ot_op_def ot__op_fused_gemm[] = {
    {.domain = "ai.onnxtrain",
     .name = "FusedGemm",
     .since = 1,
     .inputs = fused_gemm_in,
     .outputs = ot__unary_out,
     .attrs = fused_gemm_attrs,
     .types = "T: f32 f64",
     .infer = fused_gemm_infer,
     .kernels = ot__product_activation_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL},
    {0},
};
