// SPDX-License-Identifier: Apache-2.0
// The gradient of weights that several products of few rows read, as the turns of a loop do that
// was written out. Each gives a matrix as large as the weights, and all of them are added up. The
// rows of all products together give it at once: Sum(A1' B1, A2' B2, ...) becomes Concat(A1, A2,
// ...)' Concat(B1, B2, ...).
#include "passes/fuse.h"

// The inputs of a Sum: those that are products of `a` and `b`, and the others.
typedef struct addends {
    ot_node **product;
    ot_value **a, **b, **other;
    int n, n_others;
    int64_t rows; // of all products
} addends;

static bool is_known_matrix(const ot_value *value)
{
    return value->has_shape && value->shape.ndim == 2 && ot__shape_is_static(&value->shape);
}

// A' B.
static bool is_gradient_of_weights(const ot_node *node)
{
    return ot__node_is(node, "", "Gemm") && node->n_inputs == 2 &&
           is_known_matrix(node->inputs[0]) && is_known_matrix(node->inputs[1]) &&
           ot_attr_int(node, "transA") != 0 && ot_attr_int(node, "transB") == 0 &&
           ot_attr_float(node, "alpha") == 1.0F;
}

static bool new_addends(ot__arena *arena, int n, addends *s)
{
    *s = (addends){.product = ot__arena_alloc(arena, (size_t)n * sizeof *s->product),
                   .a = ot__arena_alloc(arena, (size_t)n * sizeof *s->a),
                   .b = ot__arena_alloc(arena, (size_t)n * sizeof *s->b),
                   .other = ot__arena_alloc(arena, (size_t)n * sizeof *s->other)};
    return s->product != NULL && s->a != NULL && s->b != NULL && s->other != NULL;
}

static void read_addends(const ot__fusing *f, const ot_node *sum, addends *s)
{
    for (int i = 0; i < sum->n_inputs; i++) {
        ot_node *node = sum->inputs[i]->producer;

        if (ot__fuse_only_reader(f, sum->inputs[i]) != sum || !is_gradient_of_weights(node)) {
            s->other[s->n_others++] = sum->inputs[i];
            continue;
        }
        s->product[s->n] = node;
        s->a[s->n] = node->inputs[0];
        s->b[s->n++] = node->inputs[1];
        s->rows += node->inputs[0]->shape.dim[0];
    }
}

// Whether fewer elements are copied of the operands than are added of the results.
static bool are_worth_joining(const addends *s)
{
    double n, k;

    if (s->n < 2)
        return false;
    n = (double)s->a[0]->shape.dim[1];
    k = (double)s->b[0]->shape.dim[1];
    return (double)s->rows * (n + k) < (double)s->n * n * k;
}

static ot_value *build_rows(ot__builder *b, const ot_node *sum, const char *what,
                            ot_value *const *parts, int n)
{
    const char *name = ot__build_name(b, "%s/%s", sum->name, what);
    ot_value *rows = ot__build_value(b, name);
    ot_node *concat = ot__op_build(b, "", "Concat", name, parts, n, &rows, 1);

    ot__build_int(b, concat, "axis", 0);
    ot__op_settle(b, concat);
    return rows;
}

static ot_status join_products(ot__fusing *f, ot_node *sum, addends *s)
{
    ot__builder b = {.graph = f->graph};
    ot_value *in[2], *product = sum->outputs[0];
    ot_node *gemm;

    for (int i = 0; i < s->n; i++)
        ot__node_detach(s->product[i]);
    ot__node_detach(sum);
    in[0] = build_rows(&b, sum, "a", s->a, s->n);
    in[1] = build_rows(&b, sum, "b", s->b, s->n);
    if (s->n_others > 0)
        product = ot__build_value(&b, ot__build_name(&b, "%s/product", sum->name));
    gemm = ot__op_build(&b, "", "Gemm", sum->name, in, 2, &product, 1);
    ot__build_int(&b, gemm, "transA", 1);
    ot__op_settle(&b, gemm);
    if (s->n_others == 0)
        return b.status;
    s->other[s->n_others++] = product; // there were two products at least
    ot__op_settle(&b,
                  ot__op_build(&b, "", "Sum", sum->name, s->other, s->n_others, sum->outputs, 1));
    return b.status;
}

static ot_status fuse_sum_of_products(ot__fusing *f, ot_node *sum)
{
    addends s;

    if (!ot__node_is(sum, "", "Sum") || sum->n_inputs < 2)
        return OT_OK;
    OT_TRY(ot__made(new_addends(f->graph->model->arena, sum->n_inputs, &s)));
    read_addends(f, sum, &s);
    return are_worth_joining(&s) ? join_products(f, sum, &s) : OT_OK;
}

ot_status ot__fuse_products(ot_model *model)
{
    return ot__fuse_each(model, fuse_sum_of_products);
}
