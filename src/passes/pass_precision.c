// SPDX-License-Identifier: Apache-2.0
// Mixed precision: which values of a step are f32 and which have a narrower type. Records say what
// needs f32 (OT_PORT_F32); no operator is known by its name. What the pass decides depends on the
// graph and the wish alone, so it is the same on every machine.
//
// f32 stay: ports with OT_PORT_F32; the nodes of precision_f32.c (losses, what is not between
// layers); scalars; gradients of parameters, which are made in f32 of narrower operands;
// parameters, whose readers get a Cast.
#include "passes/precision.h"

enum { ACCUMULATED = 1 }; // input of an operator with OT_OP_ACCUMULATE: what is added

enum { OTHER_TYPE, STAYS_F32, LOWERED };

typedef struct lowering {
    ot_model *model;
    ot_graph *graph;
    ot_dtype narrow;
    ot__arena *arena;
    ot__builder b;
    ot__f32_nodes kept;
    unsigned char *type; // per value: of those that were f32, the one it has now
    ot_value **other;    // per value: the same in the other of the two types
} lowering;

static bool stays_f32(const lowering *l, const ot_value *v)
{
    const ot_node *node = v->producer;

    return node == NULL || ot__value_is_single(v) ||
           l->kept.is_kept[ot__node_number(&l->kept.uses.numbers, node)] ||
           l->kept.is_gradient[ot__value_number(&l->kept.uses.numbers, v)] ||
           ot__port_needs_f32(node->op, ot__op_output_port(node->op, v->i_producer_output));
}

typedef enum wish { WISH_F32, WISH_NARROW, WISH_NONE } wish;

// What a node wants an input to be that was f32 before.
static wish wish_of(const lowering *l, const ot_node *node, int i)
{
    const ot_value *x = node->inputs[i];
    const ot_port *port = ot__op_input_port(node->op, i);

    if ((port->flags & OT_PORT_STATE) != 0 || (i == 0 && (node->op->flags & OT_OP_SHAPE_ONLY) != 0))
        return WISH_NONE;
    if (l->kept.is_kept[ot__node_number(&l->kept.uses.numbers, node)] ||
        ot__port_needs_f32(node->op, port) ||
        ((node->op->flags & OT_OP_ACCUMULATE) != 0 && i == ACCUMULATED))
        return WISH_F32;
    // Of a parameter's rows those that are chosen are converted, not all.
    if (ot__value_is_single(x) || ((port->flags & OT_PORT_TABLE) != 0 && x->producer == NULL))
        return WISH_NONE;
    return WISH_NARROW;
}

static ot_value *cast_constant(lowering *l, const ot_value *x, ot_value *to)
{
    to->constant = ot__model_tensor_new(l->model, l->narrow, &x->constant->shape);
    if (!ot__build_made(&l->b, to->constant != NULL))
        return NULL;
    (void)ot__convert(to->constant->data, l->narrow, x->constant->data, OT_F32,
                      ot_tensor_count(x->constant));
    return to;
}

// `x` in the other of the two types, made once.
static ot_value *cast_value(lowering *l, ot_value *x)
{
    const int v = ot__value_number(&l->kept.uses.numbers, x);
    const ot_dtype to = l->type[v] == STAYS_F32 ? l->narrow : OT_F32;
    ot_value *value = l->other[v];
    const char *name;
    ot_node *node;

    if (value != NULL || l->b.status != OT_OK)
        return value;
    name = ot__build_name(&l->b, "%s.%s", x->name, ot_dtype_name(to));
    value = ot__build_value(&l->b, name);
    if (value == NULL)
        return NULL;
    l->other[v] = value;
    ot__value_set(value, to, x->constant != NULL ? &x->constant->shape : &x->shape);
    if (x->constant != NULL && !x->is_input)
        return cast_constant(l, x, value);
    node = ot__op_build(&l->b, "", "Cast", name, &x, 1, &value, 1);
    ot__build_int(&l->b, node, "to", (int64_t)to);
    ot__op_settle(&l->b, node);
    return value;
}

static void cast_inputs(lowering *l, ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        ot_value *x = node->inputs[i];
        const int type =
            x == NULL ? OTHER_TYPE : l->type[ot__value_number(&l->kept.uses.numbers, x)];
        const wish want = type == OTHER_TYPE ? WISH_NONE : wish_of(l, node, i);

        if ((want == WISH_F32 && type == LOWERED) || (want == WISH_NARROW && type == STAYS_F32))
            node->inputs[i] = cast_value(l, x);
    }
}

static void cast_outputs(lowering *l)
{
    for (int i = 0; i < l->graph->n_outputs; i++) {
        ot_value *y = l->graph->outputs[i], *to;

        if (l->type[ot__value_number(&l->kept.uses.numbers, y)] != LOWERED)
            continue;
        to = cast_value(l, y);
        if (to == NULL)
            return;
        y->is_output = false;
        to->is_output = true;
        l->graph->outputs[i] = to;
    }
}

static ot_status lower(lowering *l)
{
    const size_t n_values = (size_t)l->kept.uses.numbers.n_values + 1;
    const int n_before = l->graph->n_nodes;

    l->type = ot__arena_alloc(l->arena, n_values);
    l->other = ot__arena_alloc(l->arena, n_values * sizeof(ot_value *));
    OT_TRY(ot__made(l->type != NULL && l->other != NULL));
    OT_TRY(ot__f32_nodes_find(&l->kept, l->arena));
    for (int v = 0; v < l->kept.uses.numbers.n_values; v++) {
        const ot_value *value = l->kept.uses.numbers.values[v];

        if (ot__value_is_f32(value))
            l->type[v] = stays_f32(l, value) ? STAYS_F32 : LOWERED;
    }
    for (int v = 0; v < l->kept.uses.numbers.n_values; v++)
        if (l->type[v] == LOWERED)
            l->kept.uses.numbers.values[v]->dtype = l->narrow;
    l->model->narrow = l->narrow;
    for (int n = 0; n < n_before; n++)
        cast_inputs(l, l->graph->nodes[n]);
    cast_outputs(l);
    OT_TRY(l->b.status);
    return ot__graph_sort(l->graph);
}

ot_status ot__pass_precision(ot_model *model, const bool *is_parameter, ot_dtype narrow)
{
    lowering l = {.model = model,
                  .graph = model->graph,
                  .narrow = narrow,
                  .kept = {.graph = model->graph, .is_parameter = is_parameter}};
    ot_status st;

    l.b.graph = model->graph;
    l.arena = ot__arena_create();
    st = l.arena == NULL ? OT_ERR_NO_MEMORY : ot__uses_build(model->graph, &l.kept.uses);
    OT_THEN(st, lower(&l));
    ot__uses_deinit(&l.kept.uses);
    ot__arena_destroy(l.arena);
    return st == OT_OK ? ot__pass_finished(model, "precision") : st;
}
