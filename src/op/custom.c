// SPDX-License-Identifier: Apache-2.0
// Operators without a record: of custom libraries and of other runtimes. Where a graph is only
// handed on they are carried along; nothing here can run or differentiate them.
#include "op/check.h"

static void infer_nothing(ot_infer *c)
{
    (void)c; // outputs are what the file declares
}

static const ot_port any_ports[] = {
    {"value", "T", OT_PORT_OPTIONAL | OT_PORT_VARIADIC | OT_PORT_HETEROGENEOUS}, {0}};
const ot_op_def ot__op_foreign[] = {
    {.name = "an operator that is not known",
     .since = 1,
     .inputs = any_ports,
     .outputs = any_ports,
     .types = "T: any string",
     .infer = infer_nothing,
     .flags = OT_OP_RANDOM}, // whether it is the same twice is not known
    {0},
};

static void infer_control(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const ot_attr *body = ot__node_attr(node, "body");
    const bool is_loop = ot__node_is(node, "", "Loop");

    if (body == NULL || body->kind != OT_ATTR_GRAPH)
        return;
    for (int i = 0; i < node->n_outputs && i + is_loop < body->g->n_outputs; i++) {
        const ot_value *y = body->g->outputs[i + is_loop];

        if (y->kind == OT_VALUE_TENSOR && y->dtype != OT_DTYPE_UNDEFINED)
            ot_infer_set_unknown(c, i, y->dtype);
    }
    for (int i = 0; is_loop && i < 2; i++)
        (void)ot_infer_constant(c, i);
}

const ot_op_def ot__op_control[] = {
    {.name = "a loop",
     .since = 1,
     .inputs = any_ports,
     .outputs = any_ports,
     .types = "T: any string",
     .infer = infer_control,
     .flags = OT_OP_RANDOM | OT_OP_NO_GRAD},
    {0},
};

// Y = gradient of the input two places behind it.
static void infer_backward(ot_infer *c)
{
    for (int i = 0; i < ot_infer_output_count(c); i++) {
        if (!ot_infer_wants(c, i))
            continue;
        if (!ot_infer_has(c, OT_BACKWARD_FROM + i))
            ot_infer_fail(c, "output %d is the gradient of an input that is not given", i);
        else
            ot_infer_set(c, i, ot_infer_dtype(c, OT_BACKWARD_FROM + i),
                         ot_infer_shape(c, OT_BACKWARD_FROM + i));
    }
}

const ot_op_def ot__op_backward[] = {
    {.name = "a gradient that waits for a step",
     .since = 1,
     .inputs = any_ports,
     .outputs = any_ports,
     .types = "T: any string",
     .infer = infer_backward,
     .flags = OT_OP_RANDOM | OT_OP_NO_GRAD},
    {0},
};

bool ot__is_backward(const ot_node *node)
{
    return ot__node_is(node, "ai.onnxtrain", "Backward");
}

bool ot__op_is_foreign(const ot_node *node)
{
    return node->op == ot__op_foreign;
}

const char *ot__op_type_text(const ot_node *node, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s", node->domain, node->domain[0] != '\0' ? "." : "", node->op_type);
    return text;
}

// Of ONNX's own operators nothing is missing in the file: it is this library that lacks them.
static ot_status refuse_untyped(const ot_node *node, const ot_value *x)
{
    const bool is_onnx = x->producer->domain[0] == '\0';
    char label[160], op[160];

    return ot__error(is_onnx ? OT_ERR_UNSUPPORTED : OT_ERR_INVALID,
                     "operator %s is not supported: it makes '%s', which %s takes%s",
                     ot__op_type_text(x->producer, op, sizeof op), x->name,
                     ot__node_label(node, label, sizeof label),
                     is_onnx ? ""
                             : "; to carry it along, state its type in the model's value_info");
}

static bool has_no_type(const ot_value *value)
{
    return value->kind == OT_VALUE_UNTYPED ||
           (value->kind == OT_VALUE_TENSOR && value->dtype == OT_DTYPE_UNDEFINED);
}

ot_status ot__op_settle_foreign(const ot_node *node, const ot__op_types *types)
{
    for (int i = 0; i < node->n_inputs; i++) {
        ot_value *x = node->inputs[i];
        const ot_port *port = ot__op_input_port(node->op, i);
        ot_dtype dtype;

        if (!x || !x->producer || !ot__op_is_foreign(x->producer) || !has_no_type(x))
            continue;
        dtype = port ? ot__op_bound_type(node->op, types, port) : OT_DTYPE_UNDEFINED;
        if (dtype == OT_DTYPE_UNDEFINED)
            return refuse_untyped(node, x);
        ot__value_set(x, dtype, x->has_shape ? &x->shape : NULL);
    }
    return OT_OK;
}
