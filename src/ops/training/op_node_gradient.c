// SPDX-License-Identifier: Apache-2.0
// NodeGradient: the gradients of the inputs of another node, which is named by the attributes, as
// the rule of that node's operator writes them once it is known how many axes all values have.
// Written where a rule needs that and the model does not tell (op/defer.c).
//
// Inputs: the gradient of one output, for its type; the node's inputs; the gradients of its
// outputs. Outputs: the gradient of each input that wants one.
#include <string.h>

#include "op/expand.h"

enum { VALUES = 1 }; // input of the first value that the node reads

typedef struct late {
    ot_grad *g;
    ot_node *forward;
    ot_value **dx;
} late;

static bool late_counts_fit(ot_infer *c, int64_t n_x, int n_y)
{
    const int n_in = ot_infer_input_count(c);

    return (n_in == VALUES + n_x + n_y && ot_infer_output_count(c) <= n_x) ||
           ot__refuse(c, "%d inputs and %d outputs for a node of %" PRId64 " inputs and %d outputs",
                      n_in, ot_infer_output_count(c), n_x, n_y);
}

static void node_gradient_infer(ot_infer *c)
{
    int n_y;

    (void)ot_attr_ints(ot_infer_node(c), "outputs", &n_y);
    if (!late_counts_fit(c, ot_attr_int(ot_infer_node(c), "n_inputs"), n_y))
        return;
    for (int i = 0; i < ot_infer_output_count(c); i++) {
        if (!ot_infer_wants(c, i))
            continue;
        if (!ot_infer_has(c, VALUES + i))
            ot_infer_fail(c, "output %d is the gradient of an input that is not given", i);
        else
            ot_infer_set(c, i, ot_infer_dtype(c, VALUES + i), ot_infer_shape(c, VALUES + i));
    }
}

// ---- the node again ----

static ot_node *emit_again(ot_grad *g, const ot_node *node)
{
    const char *domain = ot_attr_string(node, "domain"), *type = ot_attr_string(node, "op_type");
    const int n_x = (int)ot_attr_int(node, "n_inputs");
    const char *name = domain[0] == '\0' ? type : ot__build_name(&g->build, "%s.%s", domain, type);
    int n_y;
    const int64_t *given = ot_attr_ints(node, "outputs", &n_y);
    ot_node *forward =
        name == NULL ? NULL : ot_emit(g, name, NULL, node->inputs + VALUES, n_x, n_y);

    for (int i = 0; forward != NULL && i < node->n_attrs; i++) {
        const ot_attr *from = node->attrs[i];
        const char *attr_name = from->name + strlen(OT__FORWARD_ATTR);
        ot_attr *attr;

        if (!ot__starts_with(from->name, OT__FORWARD_ATTR))
            continue;
        attr = ot__node_add_attr(forward, attr_name, from->kind);
        if (!ot__build_made(&g->build, attr != NULL))
            return NULL;
        *attr = *from;
        attr->name = attr_name;
    }
    for (int k = 0; forward != NULL && k < n_y; k++)
        if (given[k] == 0)
            ot_emit_omit_output(g, forward, k);
    ot__op_settle(&g->build, forward);
    return forward;
}

// ---- what its rule asks ----

static ot_value *late_dy(void *context, const ot_value *y)
{
    const late *l = context;
    const ot_node *node = ot_grad_node(l->g);

    for (int k = 0; k < l->forward->n_outputs; k++)
        if (l->forward->outputs[k] == y)
            return node->inputs[VALUES + l->forward->n_inputs + k];
    return NULL;
}

static bool late_wants(void *context, const ot_node *forward, int i)
{
    const late *l = context;

    (void)forward;
    return ot_expand_wants(l->g, i);
}

static ot_status late_set_dx(void *context, const ot_node *forward, int i, ot_value *dx)
{
    const late *l = context;

    (void)forward;
    l->dx[i] = dx;
    return OT_OK;
}

static void node_gradient_train(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);
    late l = {.g = g, .forward = emit_again(g, node)};
    const ot__grad_host host = {&l, late_dy, late_wants, late_set_dx};

    if (l.forward == NULL || g->build.status != OT_OK)
        return;
    l.dx = ot__arena_alloc(g->build.graph->model->arena,
                           ((size_t)l.forward->n_inputs + 1) * sizeof *l.dx);
    if (!ot__build_made(&g->build, l.dx != NULL) ||
        !ot__build_note(&g->build, ot__op_grad(l.forward, &host)))
        return;
    for (int i = 0; i < l.forward->n_inputs; i++)
        if (ot_expand_wants(g, i)) // one value may be the gradient of several inputs
            ot_expand_set(g, i, ot_emit1(g, "Identity", l.dx[i]));
}

static const ot_port node_gradient_in[] = {
    {"dY", "T", OT_PORT_TYPE_ONLY | OT_PORT_NO_GRAD},
    {"values", "V", OT_PORT_OPTIONAL | OT_PORT_VARIADIC | OT_PORT_HETEROGENEOUS},
    {0}};
static const ot_port node_gradient_out[] = {{"dX", "T", OT_PORT_OPTIONAL | OT_PORT_VARIADIC}, {0}};
static const ot_attr_spec node_gradient_attrs[] = {
    {.name = "domain", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_REQUIRED},
    {.name = "op_type", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_REQUIRED},
    {.name = "n_inputs",
     .kind = OT_ATTRIBUTE_INT,
     .flags = OT_ATTR_REQUIRED,
     .low = 1,
     .high = INT32_MAX},
    {.name = "outputs", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    {0},
};
const ot_op_def ot__op_node_gradient[] = {
    {.domain = "ai.onnxtrain",
     .name = "NodeGradient",
     .since = 1,
     .inputs = node_gradient_in,
     .outputs = node_gradient_out,
     .attrs = node_gradient_attrs,
     .types = "T: any; V: any string",
     .infer = node_gradient_infer,
     .train = node_gradient_train},
    {0},
};
