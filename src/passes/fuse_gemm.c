// SPDX-License-Identifier: Apache-2.0
// Gemm, MatMul or FusedMatMul with what follows it become FusedGemm: the bias that is added to
// every row, then one elementwise operator, which in the forward half is an activation or the sum
// of a residual block, and in the backward half, where the product is the gradient of an
// activation's result, the gradient of the activation.
#include "passes/fuse.h"

enum { MAX_INPUTS = 4 };
enum { A, B, C, Z }; // inputs

// A product and what is taken along; NULL: nothing.
typedef struct pattern {
    ot_node *product, *add, *activation;
    ot_value *c, *z;
} pattern;

bool ot__has_batches_inside(const ot_node *product)
{
    return ot_attr_int(product, "transBatchA") != 0 || ot_attr_int(product, "transBatchB") != 0;
}

bool ot__fuse_is_product(const ot_node *node)
{
    return (ot__node_is(node, "", "Gemm") || ot__node_is(node, "", "MatMul") ||
            ot__node_is(node, "com.microsoft", "FusedMatMul")) &&
           !ot__has_batches_inside(node) && node->inputs[A]->has_shape &&
           node->inputs[A]->shape.ndim >= 2 && node->inputs[B]->has_shape &&
           node->inputs[B]->shape.ndim >= 2 && node->outputs[0]->has_shape &&
           ot__shape_is_static(&node->outputs[0]->shape);
}

static bool same_shape(const ot_value *a, const ot_value *b)
{
    return a->has_shape && b->has_shape && ot__shape_equal(&a->shape, &b->shape);
}

// One row that is added to every row of y.
static bool is_row(const ot_value *value, const ot_value *y)
{
    const int ndim = value->shape.ndim;

    if (!value->has_shape || ndim < 1 || ndim > y->shape.ndim ||
        value->shape.dim[ndim - 1] != y->shape.dim[y->shape.ndim - 1])
        return false;
    for (int k = 0; k + 1 < ndim; k++)
        if (value->shape.dim[k] != 1)
            return false;
    return true;
}

static bool is_sum(const ot_node *node)
{
    return (ot__node_is(node, "", "Add") || ot__node_is(node, "", "Sum")) && node->n_inputs == 2;
}

static ot_value *other_input(const ot_node *node, const ot_value *value)
{
    return node->inputs[node->inputs[0] == value];
}

// The value that leaves the pattern so far.
static ot_value *result(const pattern *p)
{
    return p->activation != NULL ? p->activation->outputs[0]
           : p->add != NULL      ? p->add->outputs[0]
                                 : p->product->outputs[0];
}

static void take_bias(const ot__fusing *f, pattern *p)
{
    ot_value *y = p->product->outputs[0];
    ot_node *add = ot__fuse_only_reader(f, y);

    if (p->c != NULL || add == NULL || !is_sum(add) || !is_row(other_input(add, y), y) ||
        !same_shape(add->outputs[0], y))
        return;
    p->add = add;
    p->c = other_input(add, y);
}

static void take_activation(const ot__fusing *f, pattern *p)
{
    ot_value *y = result(p), *z = NULL;
    ot_node *node = ot__fuse_only_reader(f, y);

    if (node == NULL || node->op->tile == NULL || !node->op->tile->rounds_once ||
        node->n_outputs != 1 || node->n_inputs > 2 || !same_shape(node->outputs[0], y))
        return;
    if (node->n_inputs == 2)
        z = other_input(node, y);
    // The product is the first operand, or either of a sum.
    if (node->n_inputs == 2 && ((node->inputs[0] != y && !is_sum(node)) || !same_shape(z, y)))
        return;
    p->activation = node;
    p->z = z;
}

// ---- replacing ----

static bool set_attributes(ot_node *fused, const pattern *p)
{
    const ot_node *product = p->product;
    const bool is_gemm = ot__node_is(product, "", "Gemm");
    const bool is_plain = ot__node_is(product, "", "MatMul");
    ot__buf activation = {0};
    bool ok;

    if (p->activation != NULL)
        ot__fuse_write_tile(&activation, p->activation);
    ok = ot__buf_status(&activation) == OT_OK &&
         (p->activation == NULL || ot__node_set_string(fused, "activation", activation.data));
    ot__buf_deinit(&activation);
    if (ok && is_gemm && p->add == NULL)
        ok = ot__node_set_float(fused, "beta", ot_attr_float(product, "beta"));
    return ok &&
           (is_plain || (ot__node_set_float(fused, "alpha", ot_attr_float(product, "alpha")) &&
                         ot__node_set_int(fused, "transA", ot_attr_int(product, "transA")) &&
                         ot__node_set_int(fused, "transB", ot_attr_int(product, "transB"))));
}

static ot_status replace_gemm(ot__fusing *f, const pattern *p)
{
    ot_value *inputs[MAX_INPUTS] = {p->product->inputs[A], p->product->inputs[B], p->c, p->z};
    ot_value *y = result(p);
    ot_node *fused;

    ot__node_detach(p->product);
    if (p->add != NULL)
        ot__node_detach(p->add);
    if (p->activation != NULL)
        ot__node_detach(p->activation);
    OT_TRY(ot__fuse_add(f, "FusedGemm", p->product->name, inputs,
                        p->z != NULL ? Z + 1 : (p->c != NULL ? C + 1 : B + 1), &y, 1, &fused));
    OT_TRY(ot__made(set_attributes(fused, p)));
    return ot__op_infer(fused);
}

static ot_status fuse_gemm(ot__fusing *f, ot_node *node)
{
    pattern p = {.product = node};

    if (!ot__fuse_is_product(node))
        return OT_OK;
    if (node->n_inputs > C)
        p.c = node->inputs[C];
    take_bias(f, &p);
    take_activation(f, &p);
    return p.add == NULL && p.activation == NULL ? OT_OK : replace_gemm(f, &p);
}

ot_status ot__fuse_gemm(ot_model *model)
{
    return ot__fuse_each(model, fuse_gemm);
}
