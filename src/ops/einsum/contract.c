// SPDX-License-Identifier: Apache-2.0
#include "ops/einsum/contract.h"

#include <string.h>

// ---- one operand ----

static int64_t size_at(const ot__operand *o, int axis)
{
    return ot_value_shape(o->v)->dim[axis];
}

static void drop_label(ot__einsum_term *term, int axis)
{
    memmove(&term->label[axis], &term->label[axis + 1], (size_t)(term->n - axis - 1));
    term->n--;
}

// 0, 1, ... for an axis of v, with so many axes behind it.
static ot_value *emit_contracted_places(ot_grad *g, ot_value *v, int axis, int behind)
{
    int64_t axes[OT_MAX_NDIM];
    ot_value *shape = ot_emit_shape(g, v);
    ot_value *places = ot__emit_count_up(g, ot__emit_at(g, shape, axis));

    for (int k = 0; k < behind; k++)
        axes[k] = k + 1;
    return behind == 0 ? places
                       : ot_emit2(g, "Unsqueeze", places, ot_emit_constant_i64(g, axes, behind));
}

// Of axes p < q the diagonal, which takes the place of p: everything else becomes 0, and q is
// summed over.
static void take_diagonal(ot_grad *g, ot__operand *o, int p, int q)
{
    const int ndim = o->term.n;
    const int64_t axis = q;
    ot_value *rows = emit_contracted_places(g, o->v, p, ndim - 1 - p), *mask;

    mask = ot_emit2(g, "Equal", rows, emit_contracted_places(g, o->v, q, ndim - 1 - q));
    o->v = ot_emit3(g, "Where", mask, o->v, ot_emit_constant(g, 0.0, o->v));
    o->v = ot__emit_sum(g, o->v, &axis, 1, false);
    drop_label(&o->term, q);
}

ot__operand ot__operand_of(ot_grad *g, const ot__einsum *e, int i)
{
    ot__operand o = {ot_grad_x(g, i), e->in[i]};

    for (int q = o.term.n - 1; q > 0 && o.v != NULL; q--) {
        const int p = ot__einsum_find(&o.term, o.term.label[q]);

        if (p < q)
            take_diagonal(g, &o, p, q);
    }
    return o;
}

// Axes whose labels stand in `labels` in that order come first, the others after them.
static void put_first(ot_grad *g, ot__operand *o, const ot__einsum_term *labels)
{
    int64_t perm[OT_MAX_NDIM];
    ot__einsum_term to = {0};
    bool changes = false;

    for (int k = 0; k < labels->n; k++)
        if (ot__einsum_find(&o->term, labels->label[k]) >= 0)
            to.label[to.n++] = labels->label[k];
    for (int k = 0; k < o->term.n; k++)
        if (ot__einsum_find(&to, o->term.label[k]) < 0)
            to.label[to.n++] = o->term.label[k];
    for (int k = 0; k < to.n; k++) {
        perm[k] = ot__einsum_find(&o->term, to.label[k]);
        changes = changes || perm[k] != k;
    }
    if (changes)
        o->v = ot__emit_transpose(g, o->v, perm, to.n);
    o->term = to;
}

static void sum_axes(ot_grad *g, ot__operand *o, const int64_t *axes, int n)
{
    if (n == 0)
        return;
    o->v = ot__emit_sum(g, o->v, axes, n, false);
    for (int k = n - 1; k >= 0; k--)
        drop_label(&o->term, (int)axes[k]);
}

static bool is_needed(const ot__einsum *e, int next, uint8_t label)
{
    bool needed = ot__einsum_find(&e->out, label) >= 0;

    for (int i = next; i < e->n_inputs; i++)
        needed = needed || ot__einsum_find(&e->in[i], label) >= 0;
    return needed;
}

// Over what neither `other`, which may be NULL, nor anything later has.
static void sum_alone(ot_grad *g, const ot__einsum *e, int next, ot__operand *o,
                      const ot__operand *other)
{
    int64_t axes[OT_MAX_NDIM];
    int n = 0;

    for (int k = 0; k < o->term.n; k++)
        if ((other == NULL || ot__einsum_find(&other->term, o->term.label[k]) < 0) &&
            !is_needed(e, next, o->term.label[k]))
            axes[n++] = k;
    sum_axes(g, o, axes, n);
}

ot_value *ot__operand_ordered(ot_grad *g, const ot__einsum *e, ot__operand *a)
{
    sum_alone(g, e, e->n_inputs, a, NULL);
    put_first(g, a, &e->out);
    return a->v;
}

// ---- two ----

// Axes of size 1 that are stretched to b's, and summed, are only in the way.
static void drop_stretched(ot_grad *g, const ot__einsum *e, int next, ot__operand *a,
                           const ot__operand *b)
{
    int64_t axes[OT_MAX_NDIM];
    int n = 0;

    for (int k = 0; k < a->term.n; k++) {
        const int other = ot__einsum_find(&b->term, a->term.label[k]);

        if (other >= 0 && !is_needed(e, next, a->term.label[k]) && size_at(a, k) == 1 &&
            size_at(b, other) != 1)
            axes[n++] = k;
    }
    if (n == 0)
        return;
    a->v = ot_emit2(g, "Squeeze", a->v, ot_emit_constant_i64(g, axes, n));
    for (int k = n - 1; k >= 0; k--)
        drop_label(&a->term, (int)axes[k]);
}

// The axes of a product: what both have and needs to stay, what one of them has, what is summed.
typedef struct product_axes {
    ot__einsum_term both, of_a, of_b, summed;
    ot__einsum_term all; // but those that are summed, in the order that suits what comes next
} product_axes;

static void add_label(ot__einsum_term *term, uint8_t label)
{
    if (ot__einsum_find(term, label) < 0)
        term->label[term->n++] = label;
}

static void sort_axes(const ot__einsum *e, int next, const ot__operand *a, const ot__operand *b,
                      product_axes *axes)
{
    const ot__einsum_term *orders[] = {&e->out, &a->term, &b->term};

    *axes = (product_axes){0};
    for (int i = next < e->n_inputs ? 1 : 0; i < 3; i++)
        for (int k = 0; k < orders[i]->n; k++) {
            const uint8_t label = orders[i]->label[k];
            const bool in_a = ot__einsum_find(&a->term, label) >= 0;
            const bool in_b = ot__einsum_find(&b->term, label) >= 0;

            if (!in_a && !in_b)
                continue;
            if (!is_needed(e, next, label)) {
                add_label(&axes->summed, label);
                continue;
            }
            add_label(&axes->all, label);
            add_label(in_a && in_b ? &axes->both : in_a ? &axes->of_a : &axes->of_b, label);
        }
}

static ot__einsum_term joined(const ot__einsum_term *a, const ot__einsum_term *b,
                              const ot__einsum_term *c)
{
    const ot__einsum_term *const parts[] = {a, b, c};
    ot__einsum_term all = {0};

    for (int i = 0; i < 3; i++)
        for (int k = 0; k < parts[i]->n; k++)
            all.label[all.n++] = parts[i]->label[k];
    return all;
}

// ---- products element by element ----

// With all axes of `to`, of size 1 where it has none.
static ot_value *emit_aligned(ot_grad *g, ot__operand *o, const ot__einsum_term *to)
{
    int64_t axes[OT_MAX_NDIM];
    int n = 0;

    put_first(g, o, to);
    for (int k = 0; k < to->n; k++)
        if (ot__einsum_find(&o->term, to->label[k]) < 0)
            axes[n++] = k;
    return n == 0 ? o->v : ot_emit2(g, "Unsqueeze", o->v, ot_emit_constant_i64(g, axes, n));
}

static ot__operand multiply_elements(ot_grad *g, ot__operand *a, ot__operand *b,
                                     const product_axes *axes)
{
    const ot__einsum_term none = {0}, to = joined(&axes->all, &axes->summed, &none);
    ot__operand y = {.term = to};
    ot_value *left = emit_aligned(g, a, &to);
    int64_t summed[OT_MAX_NDIM];

    y.v = ot_emit2(g, "Mul", left, emit_aligned(g, b, &to));
    for (int k = 0; k < axes->summed.n; k++)
        summed[k] = axes->all.n + k;
    sum_axes(g, &y, summed, axes->summed.n);
    return y;
}

// ---- products of matrices ----

// The number of elements of n axes from `first` on; below 0: not known.
static int64_t known_product(const ot_value *v, int first, int n)
{
    int64_t product = 1;

    for (int k = first; k < first + n && product >= 0; k++) {
        const int64_t size = ot_value_shape(v)->dim[k];

        if (!ot_dim_is_number(size) || ot__mul_overflows(product, size, &product))
            product = -1;
    }
    return product;
}

static ot_value *emit_product(ot_grad *g, ot_value *v, int first, int n)
{
    static const int64_t axis = 0;
    const int64_t known = known_product(v, first, n);

    if (known >= 0)
        return ot_emit_constant_i64(g, &known, 1);
    return ot__emit_reduce(g, "ReduceProd", ot__emit_extents(g, v, first, first + n), &axis, 1);
}

// A list of n sizes: copies of the first ones, and parts of which at most one may be left to
// Reshape.
typedef struct target {
    int64_t dims[OT_MAX_NDIM];
    int n, n_open;
} target;

static void add_size(target *t, int64_t size)
{
    t->dims[t->n++] = size < 0 ? -1 : size;
    t->n_open += size < 0;
}

static target start_target(int n_batch)
{
    target t = {.n = n_batch}; // 0: the size that is there

    return t;
}

// Axes of (batch, n1, n2) as matrices.
static ot_value *emit_matrices(ot_grad *g, ot_value *v, int n_batch, int n1, int n2)
{
    static const int64_t copies[OT_MAX_NDIM] = {0};
    target t = start_target(n_batch);
    ot_value *parts[3];
    int n = 0;

    if (v == NULL || (n1 == 1 && n2 == 1))
        return v;
    add_size(&t, known_product(v, n_batch, n1));
    add_size(&t, known_product(v, n_batch + n1, n2));
    if (t.n_open < 2)
        return ot__emit_reshape(g, v, t.dims, t.n);
    if (n_batch > 0)
        parts[n++] = ot_emit_constant_i64(g, copies, n_batch);
    parts[n++] = emit_product(g, v, n_batch, n1);
    parts[n++] = emit_product(g, v, n_batch + n1, n2);
    return ot_emit2(g, "Reshape", v, ot__emit_concat(g, parts, n, 0));
}

// Matrices as the axes that they stand for: n1 of a, n2 of b.
static ot_value *emit_axes(ot_grad *g, ot_value *y, int n_batch, ot_value *a, int a_first, int n1,
                           ot_value *b, int b_first, int n2)
{
    static const int64_t copies[OT_MAX_NDIM] = {0};
    target t = start_target(n_batch);
    ot_value *parts[3];
    int n = 0;

    if (y == NULL || (n1 == 1 && n2 == 1))
        return y;
    for (int k = 0; k < n1; k++)
        add_size(&t, ot_value_shape(a)->dim[a_first + k]);
    for (int k = 0; k < n2; k++)
        add_size(&t, ot_value_shape(b)->dim[b_first + k]);
    if (t.n_open < 2)
        return ot__emit_reshape(g, y, t.dims, t.n);
    if (n_batch > 0)
        parts[n++] = ot_emit_constant_i64(g, copies, n_batch);
    if (n1 > 0)
        parts[n++] = ot__emit_extents(g, a, a_first, a_first + n1);
    if (n2 > 0)
        parts[n++] = ot__emit_extents(g, b, b_first, b_first + n2);
    return ot_emit2(g, "Reshape", y, ot__emit_concat(g, parts, n, 0));
}

static ot__operand multiply_matrices(ot_grad *g, ot__operand *a, ot__operand *b,
                                     const product_axes *axes)
{
    const int n_batch = axes->both.n, n_sum = axes->summed.n;
    const ot__einsum_term rows = joined(&axes->both, &axes->of_a, &axes->summed);
    const ot__einsum_term columns = joined(&axes->both, &axes->summed, &axes->of_b);
    ot__operand y = {.term = joined(&axes->both, &axes->of_a, &axes->of_b)};
    ot_value *left;

    put_first(g, a, &rows);
    put_first(g, b, &columns);
    left = emit_matrices(g, a->v, n_batch, axes->of_a.n, n_sum);
    y.v = ot_emit2(g, "MatMul", left, emit_matrices(g, b->v, n_batch, n_sum, axes->of_b.n));
    y.v = emit_axes(g, y.v, n_batch, a->v, n_batch, axes->of_a.n, b->v, n_batch + n_sum,
                    axes->of_b.n);
    return y;
}

ot__operand ot__contract(ot_grad *g, const ot__einsum *e, int next, ot__operand *a, ot__operand *b)
{
    product_axes axes;

    if (a->v == NULL || b->v == NULL)
        return (ot__operand){0};
    drop_stretched(g, e, next, a, b);
    if (a->v != NULL)
        drop_stretched(g, e, next, b, a);
    sum_alone(g, e, next, a, b);
    sum_alone(g, e, next, b, a);
    if (a->v == NULL || b->v == NULL)
        return (ot__operand){0};
    sort_axes(e, next, a, b, &axes);
    // A MatMul of single rows and columns computes little at once.
    if (axes.summed.n == 0 || (axes.of_a.n == 0 && axes.of_b.n == 0) ||
        !ot__dtype_is_float(ot_value_dtype(a->v)))
        return multiply_elements(g, a, b, &axes);
    return multiply_matrices(g, a, b, &axes);
}
