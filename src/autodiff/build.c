// SPDX-License-Identifier: Apache-2.0
// The gradient graph: from the target backwards, one rule per node.
#include <string.h>

#include "autodiff/accumulate.h"

static const char backward_doc[] = "Backward pass";

// ---- what a rule asks of the graph being built ----

static ot_value *host_dy(void *context, const ot_value *y)
{
    const ot__gradients *g = context;

    return ot__reach_knows(g->reach, y) ? g->of[ot__reach_number(g->reach, y)] : NULL;
}

static bool host_wants(void *context, const ot_node *node, int i)
{
    const ot__gradients *g = context;

    return ot__reach_wants(g->reach, node, i);
}

static ot_status host_set_dx(void *context, const ot_node *node, int i, ot_value *dx)
{
    return ot__gradients_add(context, node, i, dx);
}

// ---- seed ----

// The gradient of a loss that is not a scalar starts from ones of its shape.
static ot_status emit_ones(ot_graph *graph, ot_value *target, ot_value *seed)
{
    ot__builder b = {.graph = graph};
    const char *name = ot__build_name(&b, "%s_shape", seed->name);
    ot_value *shape = ot__build_value(&b, name);
    ot_node *ones;

    ot__op_settle(&b, ot__op_build(&b, "", "Shape", name, &target, 1, &shape, 1));
    ones = ot__op_build(&b, "", "ConstantOfShape", seed->name, &shape, 1, &seed, 1);
    ot__build_number(&b, ones, "value", target->dtype, 1.0);
    ot__op_settle(&b, ones);
    return b.status;
}

static ot_status seed_gradient(ot_graph *graph, ot_value *target, ot_value **out)
{
    ot_model *model = graph->model;
    char *name = ot__arena_printf(model->arena, "%s_grad", target->name);
    ot_value *seed = name ? ot__graph_new_value(graph, name) : NULL;
    const double number = 1.0;
    ot_tensor *one;

    *out = seed;
    OT_TRY(ot__made(seed));
    ot__value_set(seed, target->dtype, target->has_shape ? &target->shape : NULL);
    if (!target->has_shape || target->shape.ndim > 0)
        return emit_ones(graph, target, seed);
    one = ot__model_tensor_new(model, target->dtype, &OT_SHAPE_SCALAR);
    OT_TRY(ot__made(one && ot__convert(one->data, target->dtype, &number, OT_F64, 1) &&
                    ot__graph_add_initializer(graph, seed, one)));
    return OT_OK;
}

// ---- nodes ----

// Gradient nodes take their names from the forward node's.
static ot_status name_nodes(const ot__reach *reach)
{
    ot_graph *graph = reach->graph;
    ot__map taken = {0};
    int counter = 0;
    ot_status st = OT_OK;

    for (int n = 0; n < reach->n_nodes && st == OT_OK; n++)
        if (!ot__map_put(&taken, graph->nodes[n]->name, graph->nodes[n]))
            st = OT_ERR_NO_MEMORY;
    for (int n = 0; n < reach->n_nodes && st == OT_OK; n++) {
        ot_node *node = graph->nodes[n];

        if (!reach->is_active[n] || node->name[0] != '\0')
            continue;
        do
            node->name = ot__arena_printf(graph->model->arena, "%s_%d", node->op_type, counter++);
        while (node->name && ot__map_get(&taken, node->name));
        if (!node->name) {
            node->name = "";
            st = OT_ERR_NO_MEMORY;
        }
    }
    ot__map_deinit(&taken);
    return st;
}

// Rules refuse what they cannot differentiate; the others still get their say, so that all of it is
// known at once.
static ot_status note_refusal(ot__gradients *g, const ot_node *node, ot__buf *refusals)
{
    ot__buf_printf(refusals, "%s%s", refusals->length ? "; " : "", ot_error_message());
    return ot__gradients_pretend(g, node);
}

static ot_status build_nodes(ot__gradients *g, ot__buf *refusals)
{
    const ot__reach *reach = g->reach;
    const ot__grad_host host = {g, host_dy, host_wants, host_set_dx};

    for (int n = reach->n_nodes - 1; n >= 0; n--) {
        ot_node *node = g->graph->nodes[n];
        ot_status st;

        if (!reach->is_active[n])
            continue;
        st = ot__op_grad(node, &host);
        if (st == OT_ERR_UNSUPPORTED)
            st = note_refusal(g, node, refusals);
        OT_TRY(st);
        OT_TRY(ot__gradients_check(g, node));
    }
    return ot__buf_status(refusals);
}

static ot_status build_all(ot__gradients *g)
{
    ot__buf refusals = {0};
    ot_status st = build_nodes(g, &refusals);

    if (st == OT_OK && refusals.length > 0)
        st = ot__error(OT_ERR_UNSUPPORTED, "%s", refusals.data);
    ot__buf_deinit(&refusals);
    return st;
}

// ---- what waits ----

static bool must_wait(const ot__reach *reach)
{
    for (int n = 0; n < reach->n_nodes; n++)
        if (reach->is_active[n] && ot__reach_waits(reach->graph->nodes[n]))
            return true;
    return false;
}

// A Backward stands for all gradients.
static ot_status build_late(ot_graph *graph, ot_value *target, ot_value *seed,
                            ot_value *const *from, int n_from, ot_value **grads)
{
    ot__builder b = {.graph = graph};
    ot_value **inputs =
        ot__arena_alloc(graph->model->arena, (size_t)(OT_BACKWARD_FROM + n_from) * sizeof *inputs);
    ot_node *node;

    OT_TRY(ot__made(inputs));
    inputs[OT_BACKWARD_OF] = target;
    inputs[OT_BACKWARD_SEED] = seed;
    for (int i = 0; i < n_from; i++) {
        inputs[OT_BACKWARD_FROM + i] = from[i];
        grads[i] = ot__build_value(&b, ot__build_name(&b, "%s_grad", from[i]->name));
    }
    node = ot__build_node(&b, "ai.onnxtrain", "Backward", "Backward", inputs,
                          OT_BACKWARD_FROM + n_from, grads, n_from);
    OT_TRY(b.status);
    node->op = ot__op_backward;
    node->doc = backward_doc;
    return ot__op_infer(node);
}

static ot_status build_gradients(ot__gradients *g, ot_value *target, ot_value *seed,
                                 ot_value *const *from, int n_from, ot_value **grads)
{
    ot_graph *graph = g->graph;

    OT_TRY(ot__reach_check_operators(g->reach, from, n_from));
    OT_TRY(ot__reach_check_values(g->reach, from, n_from));
    if (must_wait(g->reach))
        return build_late(graph, target, seed, from, n_from, grads);
    OT_TRY(name_nodes(g->reach));
    if (!seed)
        OT_TRY(seed_gradient(graph, target, &seed));
    g->of[ot__reach_number(g->reach, target)] = seed;
    OT_TRY(build_all(g));
    for (int i = 0; i < n_from; i++) {
        grads[i] = g->of[ot__reach_number(g->reach, from[i])];
        if (!grads[i])
            return ot__error(OT_ERR_INTERNAL, "no gradient of '%s' was built", from[i]->name);
    }
    for (int n = g->reach->n_nodes; n < graph->n_nodes; n++)
        if (graph->nodes[n]->doc[0] == '\0')
            graph->nodes[n]->doc = backward_doc;
    return OT_OK;
}

ot_status ot__autodiff_build(ot_graph *graph, ot_value *target, ot_value *seed,
                             ot_value *const *from, int n_from, ot_value **grads)
{
    ot__reach reach;
    ot__gradients g = {0};
    ot_status st;

    for (int i = 0; i < n_from; i++)
        grads[i] = NULL;
    st = ot__reach_build(graph, target, from, n_from, ot__edge_passes, &reach);
    OT_THEN(st, ot__gradients_create(&g, &reach));
    OT_THEN(st, build_gradients(&g, target, seed, from, n_from, grads));
    ot__gradients_deinit(&g);
    ot__reach_deinit(&reach);
    return st == OT_OK ? ot__pass_finished(graph->model, "autodiff") : st;
}
