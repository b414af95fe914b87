// SPDX-License-Identifier: Apache-2.0
// A Transpose of the last two axes before or after a product is a flag of the product: kernels read
// either operand in either order, and (A * B)^T = B^T * A^T. So exporters write a linear layer,
// x * Transpose(W), and its gradient is Transpose(x^T * dY).
#include "passes/fuse.h"

enum { A, B, C, MAX_INPUTS }; // inputs
// Readers of a Transpose that are looked at: each of them looks at all.
enum { MAX_READERS = 64 };

static bool swaps_last_axes(const ot_node *node)
{
    const int64_t *perm;
    int n, ndim;

    if (!ot__node_is(node, "", "Transpose") || !node->inputs[0]->has_shape)
        return false;
    ndim = node->inputs[0]->shape.ndim;
    if (ndim < 2)
        return false;
    if (!ot_attr_given(node, "perm"))
        return ndim == 2;
    perm = ot_attr_ints(node, "perm", &n);
    for (int k = 0; k < ndim - 2; k++)
        if (perm[k] != k)
            return false;
    return perm[ndim - 2] == ndim - 1;
}

// Rows of A are shared out over the batches where these share B, unless A is transposed.
static bool may_transpose(const ot_node *product, int i)
{
    return i == B ||
           (i == A && (product->inputs[A]->shape.ndim == 2 || product->inputs[B]->shape.ndim > 2));
}

// What is transposed to make operand `i`, by a Transpose that then has no readers left; NULL:
// nothing.
static ot_value *transposed_operand(const ot__fusing *f, const ot_node *product, int i)
{
    const ot_value *x = product->inputs[i];
    const int n_readers = ot__uses_count(&f->uses, x);

    if (x->producer == NULL || x->is_output || !swaps_last_axes(x->producer) ||
        n_readers > MAX_READERS)
        return NULL;
    for (int k = 0; k < n_readers; k++) {
        const ot__use *use = &f->uses.use[ot__uses_first(&f->uses, x) + k];

        if (use->i_input < 0 || !ot__fuse_is_product(use->node) ||
            !may_transpose(use->node, use->i_input))
            return NULL;
    }
    return x->producer->inputs[0];
}

// The Transpose that alone reads the product; NULL: none, or one that batches of it share.
static ot_node *transpose_of(const ot__fusing *f, const ot_node *product)
{
    ot_node *reader = ot__fuse_only_reader(f, product->outputs[0]);

    return product->n_inputs <= C && reader != NULL && swaps_last_axes(reader) &&
                   product->inputs[A]->shape.ndim == product->inputs[B]->shape.ndim
               ? reader
               : NULL;
}

static ot_status replace_product(ot__fusing *f, ot_node *product, ot_value *const *operands,
                                 ot_node *last)
{
    const bool is_gemm = ot__node_is(product, "", "Gemm");
    const bool is_plain = ot__node_is(product, "", "MatMul");
    const int swap = last != NULL;
    ot__builder b = {.graph = f->graph};
    ot_value *inputs[MAX_INPUTS] = {NULL}, *y = (swap ? last : product)->outputs[0];
    bool transposed[C];
    ot_node *node;

    for (int i = 0; i < product->n_inputs; i++)
        inputs[i] = product->inputs[i];
    for (int i = A; i <= B; i++) {
        const bool before = !is_plain && ot_attr_int(product, i == A ? "transA" : "transB") != 0;
        const int to = swap ? B - i : i;

        inputs[to] = operands[i] != NULL ? operands[i] : product->inputs[i];
        transposed[to] = before != ((operands[i] != NULL) != swap);
    }
    ot__node_detach(product);
    if (swap)
        ot__node_detach(last);
    node = ot__op_build(&b, is_gemm ? "" : "com.microsoft", is_gemm ? "Gemm" : "FusedMatMul",
                        product->name, inputs, product->n_inputs, &y, 1);
    ot__build_int(&b, node, "transA", transposed[A]);
    ot__build_int(&b, node, "transB", transposed[B]);
    if (!is_plain)
        ot__build_float(&b, node, "alpha", (double)ot_attr_float(product, "alpha"));
    if (is_gemm)
        ot__build_float(&b, node, "beta", (double)ot_attr_float(product, "beta"));
    ot__op_settle(&b, node);
    return b.status;
}

static ot_status fuse_transpose(ot__fusing *f, ot_node *node)
{
    ot_value *operands[C];
    ot_node *last;

    if (!ot__fuse_is_product(node))
        return OT_OK;
    last = transpose_of(f, node);
    operands[A] = transposed_operand(f, node, A);
    operands[B] = transposed_operand(f, node, B);
    return last == NULL && operands[A] == NULL && operands[B] == NULL
               ? OT_OK
               : replace_product(f, node, operands, last);
}

ot_status ot__fuse_transpose(ot_model *model)
{
    OT_TRY(ot__fuse_each(model, fuse_transpose));
    return ot__pass_prune(model); // the Transposes of operands
}
