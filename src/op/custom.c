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

// The type of what a sequence holds, or a tensor for it.
static ot_dtype held_type(const ot_node *node)
{
    const ot_attr *dtype = ot__node_attr(node, "dtype");

    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL && node->inputs[i]->dtype != OT_DTYPE_UNDEFINED)
            return node->inputs[i]->dtype;
    return node->n_inputs > 0                            ? OT_DTYPE_UNDEFINED
           : dtype != NULL && dtype->kind == OT_ATTR_INT ? (ot_dtype)dtype->i
                                                         : OT_F32;
}

static void set_sequence(ot_value *y, ot_dtype dtype)
{
    y->kind = OT_VALUE_SEQUENCE;
    y->dtype = dtype;
}

static void infer_sequence(ot_infer *c, const ot_node *node)
{
    ot_value *y = node->n_outputs > 0 ? node->outputs[0] : NULL;

    if (y == NULL)
        return;
    if (ot__node_is(node, "", "SequenceLength"))
        ot_infer_set(c, 0, OT_I64, &OT_SHAPE_SCALAR);
    else if (!ot__node_is(node, "", "SequenceAt") && !ot__node_is(node, "", "ConcatFromSequence"))
        set_sequence(y, held_type(node));
    else if (held_type(node) != OT_DTYPE_UNDEFINED)
        ot_infer_set_unknown(c, 0, held_type(node));
}

// What is carried from turn to turn, where the body does not say it.
static void infer_turn_output(ot_infer *c, int i, const ot_value *made, const ot_value *carried)
{
    const ot_value *like = made->kind == OT_VALUE_UNTYPED && carried != NULL ? carried : made;
    ot_value *y = ot_infer_node(c)->outputs[i];

    if (y == NULL || like->dtype == OT_DTYPE_UNDEFINED)
        return;
    if (like->kind == OT_VALUE_SEQUENCE)
        set_sequence(y, like->dtype);
    else if (like->kind == OT_VALUE_TENSOR)
        ot_infer_set_unknown(c, i, like->dtype);
}

static void infer_control(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const bool is_loop = ot__node_is(node, "", "Loop"), is_branch = ot__node_is(node, "", "If");
    const ot_attr *body = ot__node_attr(node, is_branch ? "then_branch" : "body");
    const int n_asked = is_loop ? 2 : is_branch;

    if (body == NULL || body->kind != OT_ATTR_GRAPH) {
        infer_sequence(c, node);
        return;
    }
    for (int i = 0; i < node->n_outputs && i + is_loop < body->g->n_outputs; i++)
        infer_turn_output(c, i, body->g->outputs[i + is_loop],
                          is_loop && i + 2 < body->g->n_inputs && i + 2 < node->n_inputs
                              ? node->inputs[i + 2]
                              : NULL);
    for (int i = 0; i < n_asked; i++)
        (void)ot_infer_constant(c, i);
}

const ot_op_def ot__op_control[] = {
    {.name = "a loop or a sequence",
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
