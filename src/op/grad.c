// SPDX-License-Identifier: Apache-2.0
// Calling an operator's gradient rule, and what the rule may ask about the forward node.
#include "op/grad.h"

#include <string.h>

void ot_grad_fail(ot_grad *g, const char *format, ...)
{
    char label[160];
    va_list args;

    if (g->build.status != OT_OK)
        return;
    va_start(args, format);
    ot__build_note(&g->build, ot__error_v(OT_ERR_UNSUPPORTED, format, args));
    va_end(args);
    if (g->node != NULL)
        ot__error_prefix(g->build.status, "gradient of %s",
                         ot__node_label(g->node, label, sizeof(label)));
}

// ---- the forward node ----

const ot_node *ot_grad_node(const ot_grad *g)
{
    return g->node;
}

int ot_grad_input_count(const ot_grad *g)
{
    return g->node->n_inputs;
}

int ot_grad_output_count(const ot_grad *g)
{
    return g->node->n_outputs;
}

ot_value *ot_grad_x(ot_grad *g, int input)
{
    return input >= 0 && input < g->node->n_inputs ? g->node->inputs[input] : NULL;
}

// Room for output number `output`, omitted until it is made.
static bool extend_outputs(ot_grad *g, int output)
{
    ot_node *node = g->node;
    ot_value **grown;

    if (output < node->n_outputs)
        return true;
    grown = ot__arena_alloc(g->build.graph->model->arena, (size_t)(output + 1) * sizeof(*grown));
    if (!ot__build_made(&g->build, grown != NULL))
        return false;
    if (node->n_outputs > 0)
        memcpy(grown, node->outputs, (size_t)node->n_outputs * sizeof(*grown));
    node->outputs = grown;
    node->n_outputs = output + 1;
    return true;
}

static ot_value *make_output(ot_grad *g, int output)
{
    const ot_port *port = ot__op_output_port(g->node->op, output);
    ot_node *node = g->node;
    ot_value *y;
    char *name;

    if (port == NULL) {
        ot_grad_fail(g, "there is no output %d", output);
        return NULL;
    }
    name = ot__arena_printf(g->build.graph->model->arena, "%s/%s", g->prefix, port->name);
    y = name == NULL ? NULL : ot__graph_new_value(node->graph, name);
    if (!ot__build_made(&g->build, y != NULL) || !extend_outputs(g, output))
        return NULL;
    node->outputs[output] = y;
    y->producer = node;
    y->i_producer_output = output;
    ot__build_note(&g->build, ot__op_infer(node));
    return y;
}

ot_value *ot_grad_y(ot_grad *g, int output)
{
    if (g->build.status != OT_OK || output < 0)
        return NULL;
    if (output < g->node->n_outputs && g->node->outputs[output] != NULL)
        return g->node->outputs[output];
    return make_output(g, output);
}

ot_value *ot_grad_dy(ot_grad *g, int output)
{
    if (g->build.status != OT_OK || output < 0 || output >= g->node->n_outputs ||
        g->node->outputs[output] == NULL)
        return NULL;
    return g->host->dy(g->host->context, g->node->outputs[output]);
}

ot_value *ot_grad_dy_or_zeros(ot_grad *g, int output)
{
    ot_value *dy = ot_grad_dy(g, output);

    return dy != NULL ? dy : ot_emit_zeros_like(g, ot_grad_y(g, output));
}

bool ot_grad_wants(const ot_grad *g, int input)
{
    return g->build.status == OT_OK && input >= 0 && input < g->node->n_inputs &&
           g->node->inputs[input] != NULL && g->host->wants(g->host->context, g->node, input);
}

bool ot__grad_knows_axes(ot_grad *g, const ot_value *x)
{
    if (ot_value_has_shape(x))
        return true;
    ot_grad_fail(g,
                 "the gradient needs to know how many axes '%s' has: state its shape in the model "
                 "(value_info), or those of the inputs",
                 x == NULL ? "" : x->name);
    g->wants_axes = true;
    return false;
}

bool ot__grad_has_rank(ot_grad *g)
{
    return ot__grad_knows_axes(g, ot_grad_x(g, 0));
}

// A rule whose result cannot be the gradient is a mistake in the rule, best caught here.
static bool is_gradient_of(const ot_value *dx, const ot_value *x)
{
    if (dx->dtype != x->dtype)
        return false;
    if (!dx->has_shape || !x->has_shape)
        return true;
    if (dx->shape.ndim != x->shape.ndim)
        return false;
    for (int k = 0; k < x->shape.ndim; k++)
        if (ot__dim_is_number(dx->shape.dim[k]) && ot__dim_is_number(x->shape.dim[k]) &&
            dx->shape.dim[k] != x->shape.dim[k])
            return false;
    return true;
}

void ot_grad_set_dx(ot_grad *g, int input, ot_value *dx)
{
    const ot_value *x = ot_grad_x(g, input);
    char label[160], x_text[120], dx_text[120];

    if (g->build.status != OT_OK || dx == NULL || x == NULL)
        return;
    if (is_gradient_of(dx, x)) {
        g->n_given++;
        ot__build_note(&g->build, g->host->set_dx(g->host->context, g->node, input, dx));
        return;
    }
    ot__build_note(
        &g->build,
        ot__error(OT_ERR_INTERNAL, "%s: gradient of input %d is %s %s, the input %s %s",
                  ot__node_label(g->node, label, sizeof(label)), input, ot_dtype_name(dx->dtype),
                  ot__dims_text(g->build.graph->model, &dx->shape, dx_text, sizeof(dx_text)),
                  ot_dtype_name(x->dtype),
                  ot__dims_text(g->build.graph->model, &x->shape, x_text, sizeof(x_text))));
}

// ---- values ----

ot_dtype ot_value_dtype(const ot_value *value)
{
    return value ? value->dtype : OT_DTYPE_UNDEFINED;
}

const ot_shape *ot_value_shape(const ot_value *value)
{
    return value ? &value->shape : NULL;
}

bool ot_value_has_shape(const ot_value *value)
{
    return value && value->has_shape;
}

const ot_tensor *ot_value_constant(const ot_value *value)
{
    return value ? value->constant : NULL;
}

// ---- contexts ----

// What the rule cannot write yet, or its refusal.
static ot_status defer_or_refuse(const ot_grad *refused)
{
    ot_grad late = {.build = {.graph = refused->build.graph},
                    .prefix = refused->prefix,
                    .n_emitted = refused->n_emitted,
                    .node = refused->node,
                    .host = refused->host};
    bool is_deferred;

    OT_TRY(ot__grad_defer(&late, &is_deferred));
    return is_deferred ? OT_OK : refused->build.status;
}

ot_status ot__op_grad(ot_node *node, const ot__grad_host *host)
{
    ot_grad g = {.build = {.graph = node->graph}, .node = node, .host = host};
    const char *prefix;
    char label[160];

    if (node->op == NULL || node->op->grad == NULL)
        return ot__error(OT_ERR_UNSUPPORTED, "%s has no gradient",
                         ot__node_label(node, label, sizeof(label)));
    prefix = ot__node_prefix(node);
    if (ot__build_made(&g.build, prefix != NULL))
        g.prefix = ot__arena_printf(node->graph->model->arena, "%s_Grad", prefix);
    if (ot__build_made(&g.build, g.prefix != NULL))
        node->op->grad(&g);
    return g.build.status == OT_ERR_UNSUPPORTED && g.wants_axes && g.n_given == 0
               ? defer_or_refuse(&g)
               : g.build.status;
}

ot_grad *ot__emitter_create(ot_graph *graph, const char *prefix)
{
    ot_grad *g = ot__alloc_zero(1, sizeof(*g));

    if (g == NULL)
        return NULL;
    g->build.graph = graph;
    g->prefix = ot__arena_strdup(graph->model->arena, prefix);
    ot__build_made(&g->build, g->prefix != NULL);
    return g;
}

ot_status ot__emitter_destroy(ot_grad *emitter)
{
    const ot_status st = emitter == NULL ? OT_ERR_NO_MEMORY : emitter->build.status;

    ot__free(emitter);
    return st;
}
