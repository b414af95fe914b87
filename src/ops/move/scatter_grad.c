// SPDX-License-Identifier: Apache-2.0
// Gradients of ScatterND and ScatterElements under every reduction.
#include "ops/move/move.h"

typedef struct rule {
    ot_grad *g;
    const char *scatter, *gather;
    ot_value *data, *indices, *updates, *y, *dy;
} rule;

static ot_value *emit_with_axis(const rule *r, ot_node *node)
{
    if (ot_attr_given(ot_grad_node(r->g), "axis"))
        ot_emit_int(r->g, node, "axis", ot_attr_int(ot_grad_node(r->g), "axis"));
    return ot_emit_output(r->g, node, 0);
}

static ot_value *emit_scatter(const rule *r, ot_value *data, ot_value *updates,
                              const char *reduction)
{
    ot_value *in[3] = {data, r->indices, updates};
    ot_node *node = ot_emit(r->g, r->scatter, NULL, in, 3, 1);

    if (reduction != NULL)
        ot_emit_string(r->g, node, "reduction", reduction);
    return emit_with_axis(r, node);
}

static ot_value *emit_gather(const rule *r, ot_value *x)
{
    ot_value *in[2] = {x, r->indices};

    return emit_with_axis(r, ot_emit(r->g, r->gather, NULL, in, 2, 1));
}

// Y = data with updates in some places:  d data = dY without those places, d updates = dY there.
static void none_grad(const rule *r)
{
    if (ot_grad_wants(r->g, 0))
        ot_grad_set_dx(r->g, 0, emit_scatter(r, r->dy, ot_emit_zeros_like(r->g, r->updates), NULL));
    if (ot_grad_wants(r->g, 2))
        ot_grad_set_dx(r->g, 2, emit_gather(r, r->dy));
}

// Y = data + updates there:  d data = dY, d updates = dY there.
static void add_grad(const rule *r)
{
    if (ot_grad_wants(r->g, 0))
        ot_grad_set_dx(r->g, 0, ot_emit1(r->g, "Identity", r->dy));
    if (ot_grad_wants(r->g, 2))
        ot_grad_set_dx(r->g, 2, emit_gather(r, r->dy));
}

// Y = data * u1 * u2 ...:  d data = dY * u1 * u2 ..., d u1 = dY * data * u2 .... Without dividing
// by an update that is 0: the product goes over those that are not, and counts where another one is
// 0.
static void mul_grad(const rule *r)
{
    ot_grad *g = r->g;
    ot_value *zero = ot_emit_constant(g, 0.0, r->data), *one = ot_emit_constant(g, 1.0, r->data);
    ot_value *zeros = ot_emit_zeros_like(g, r->data);

    if (ot_grad_wants(g, 0)) {
        ot_value *factors = emit_scatter(r, ot_emit2(g, "Add", zeros, one), r->updates, "mul");

        ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", r->dy, factors));
    }
    if (ot_grad_wants(g, 2)) {
        ot_value *is_zero = ot_emit2(g, "Equal", r->updates, zero);
        ot_value *mask = ot_emit_cast(g, is_zero, ot_value_dtype(r->data));
        ot_value *nonzero = ot_emit3(g, "Where", is_zero, one, r->updates);
        ot_value *n_zero = emit_gather(r, emit_scatter(r, zeros, mask, "add"));
        ot_value *product = emit_scatter(r, r->data, nonzero, "mul");
        ot_value *each = emit_gather(r, ot_emit2(g, "Mul", r->dy, product));
        ot_value *others_fine = ot_emit2(g, "Equal", n_zero, mask);

        ot_grad_set_dx(g, 2,
                       ot_emit3(g, "Where", others_fine, ot_emit2(g, "Div", each, nonzero), zero));
    }
}

// Y = min or max of data and updates: dY goes to those equal to Y, in equal shares.
static void extreme_grad(const rule *r)
{
    ot_grad *g = r->g;
    const ot_dtype dtype = ot_value_dtype(r->data);
    ot_value *data_mask = ot_emit_cast(g, ot_emit2(g, "Equal", r->data, r->y), dtype);
    ot_value *update_mask =
        ot_emit_cast(g, ot_emit2(g, "Equal", r->updates, emit_gather(r, r->y)), dtype);
    ot_value *count = emit_scatter(r, data_mask, update_mask, "add");
    ot_value *share = ot_emit2(g, "Div", r->dy, count);

    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", share, data_mask));
    if (ot_grad_wants(g, 2))
        ot_grad_set_dx(g, 2, ot_emit2(g, "Mul", emit_gather(r, share), update_mask));
}

void ot__scatter_grad(ot_grad *g, const char *scatter, const char *gather)
{
    rule r = {.g = g,
              .scatter = scatter,
              .gather = gather,
              .data = ot_grad_x(g, 0),
              .indices = ot_grad_x(g, 1),
              .updates = ot_grad_x(g, 2),
              .dy = ot_grad_dy(g, 0)};
    ot__scatter_op op;

    if (!ot__scatter_op_read(ot_grad_node(g), &op)) {
        ot_grad_fail(g, "reduction is '%s', known: none add mul min max",
                     ot_attr_string(ot_grad_node(g), "reduction"));
    } else if (op == OT__SCATTER_NONE) {
        none_grad(&r);
    } else if (op == OT__SCATTER_ADD) {
        add_grad(&r);
    } else if (op == OT__SCATTER_MUL) {
        mul_grad(&r);
    } else {
        r.y = ot_grad_y(g, 0);
        extreme_grad(&r);
    }
}
