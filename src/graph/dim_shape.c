// SPDX-License-Identifier: Apache-2.0
// Symbolic extents put to use: values for symbols, products and broadcasting of whole shapes, their
// text.
#include <string.h>

#include "graph/dim_internal.h"

typedef struct evaluation {
    const ot_model *model;
    int64_t (*lookup)(void *context, const char *name);
    void *context;
} evaluation;

static int64_t evaluate_dim(const evaluation *e, int64_t dim);

static int64_t evaluate_sum(const evaluation *e, const ot__polynomial *p)
{
    int64_t sum = 0;

    for (int i = 0; i < p->n_terms && sum != OT_DIM_UNKNOWN; i++) {
        int64_t product = p->terms[i].coefficient;

        for (int a = 0; a < p->terms[i].n_atoms && product != OT_DIM_UNKNOWN; a++) {
            int64_t atom = evaluate_dim(e, p->terms[i].atoms[a]);

            product = atom == OT_DIM_UNKNOWN ? OT_DIM_UNKNOWN : ot__number_mul(product, atom);
        }
        sum = product == OT_DIM_UNKNOWN ? OT_DIM_UNKNOWN : ot__number_add(sum, product);
    }
    return sum;
}

// Recursion ends: operands are older than the expression, and its text, at least as long as the
// nesting, is bounded.
static int64_t evaluate_dim(const evaluation *e, int64_t dim)
{
    const ot__symbol *s = ot__symbol_of(e->model, dim);
    int64_t a, b;

    if (!s)
        return ot__dim_is_number(dim) ? dim : OT_DIM_UNKNOWN;
    if (s->kind == OT_SYMBOL_NAMED) {
        int64_t value = e->lookup(e->context, s->text);

        return ot__dim_is_number(value) ? value : OT_DIM_UNKNOWN;
    }
    if (s->kind == OT_SYMBOL_POLYNOMIAL)
        return evaluate_sum(e, s->sum);
    a = evaluate_dim(e, s->a);
    b = evaluate_dim(e, s->b);
    if (a == OT_DIM_UNKNOWN || b == OT_DIM_UNKNOWN || b == 0)
        return OT_DIM_UNKNOWN;
    return s->kind == OT_SYMBOL_QUOTIENT ? ot__number_div(a, b) : ot__number_mod(a, b);
}

int64_t ot__dim_evaluate(const ot_model *model, int64_t dim,
                         int64_t (*lookup)(void *context, const char *name), void *context)
{
    evaluation e = {model, lookup, context};

    return evaluate_dim(&e, dim);
}

bool ot__dims_are_numbers(const int64_t *dims, int n)
{
    for (int i = 0; i < n; i++)
        if (!ot__dim_is_number(dims[i]))
            return false;
    return true;
}

bool ot__shape_is_static(const ot_shape *shape)
{
    return ot__dims_are_numbers(shape->dim, shape->ndim);
}

bool ot__value_has_one_element(const ot_value *value)
{
    for (int k = 0; k < value->shape.ndim; k++)
        if (value->shape.dim[k] != 1)
            return false;
    return value->has_shape;
}

bool ot__shape_may_equal(const ot_shape *a, const ot_shape *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (ot__dim_differs(a->dim[i], b->dim[i]))
            return false;
    return true;
}

// False when the extents can not be broadcast.
static bool broadcast_dim(int64_t a, int64_t b, int64_t *y)
{
    bool a_is_number = ot__dim_is_number(a), b_is_number = ot__dim_is_number(b);

    if (ot__dim_same(a, b) || b == 1)
        *y = a;
    else if (a == 1)
        *y = b;
    else if (a_is_number && b_is_number)
        return false;
    else if (a_is_number)
        *y = a;
    else
        *y = b_is_number ? b : OT_DIM_UNKNOWN;
    return true;
}

ot_status ot__dims_broadcast(const ot_shape *a, const ot_shape *b, ot_shape *y)
{
    ot_shape out = {.ndim = OT_MAX(a->ndim, b->ndim)};

    *y = (ot_shape){0};
    for (int i = 0; i < out.ndim; i++) {
        int i_a = i - (out.ndim - a->ndim), i_b = i - (out.ndim - b->ndim);
        int64_t a_dim = i_a < 0 ? 1 : a->dim[i_a], b_dim = i_b < 0 ? 1 : b->dim[i_b];

        if (!broadcast_dim(a_dim, b_dim, &out.dim[i]))
            return ot__error(OT_ERR_INVALID, "shapes %s and %s do not broadcast", OT_SHAPE_TEXT(a),
                             OT_SHAPE_TEXT(b));
    }
    *y = out;
    return OT_OK;
}

char *ot__dims_text(const ot_model *model, const ot_shape *shape, char *text, size_t size)
{
    size_t used = 0;

    if (size == 0)
        return text;
    text[0] = '\0';
    for (int i = 0; i <= shape->ndim && used + 1 < size; i++) {
        char dim[256];

        if (i == shape->ndim)
            snprintf(text + used, size - used, "%s]", i ? "" : "[");
        else
            snprintf(text + used, size - used, "%s%s", i ? "," : "[",
                     ot__dim_text(model, shape->dim[i], dim, sizeof dim));
        used += strlen(text + used);
    }
    return text;
}

int64_t ot__dim_least(const ot_model *model, int64_t dim)
{
    const ot__symbol *s = ot__symbol_of(model, dim);
    int64_t sum = 0;

    if (ot__dim_is_number(dim))
        return dim;
    if (!s || s->kind != OT_SYMBOL_POLYNOMIAL)
        return s && s->kind == OT_SYMBOL_NAMED ? 1 : 0;
    for (int i = 0; i < s->sum->n_terms; i++) {
        const int64_t n = s->sum->terms[i].coefficient;

        // What is divided or taken off may leave nothing.
        for (int a = 0; a < s->sum->terms[i].n_atoms; a++)
            if (ot__dim_least(model, s->sum->terms[i].atoms[a]) < 1)
                return 0;
        if (n < 0 || ot__add_overflows(sum, n, &sum))
            return n < 0 ? 0 : INT64_MAX;
    }
    return sum;
}
