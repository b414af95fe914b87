// SPDX-License-Identifier: Apache-2.0
// Rewriting nodes of opsets below 13 into the next contract of their operator.
#include "op/op.h"

#include <math.h>
#include <string.h>

struct ot_upgrade {
    ot_node *node;
    ot_status status; // the first error
};

void ot__upgrade_made(ot_upgrade *u, bool made)
{
    if (u->status == OT_OK && !made)
        u->status = OT_ERR_NO_MEMORY;
}

ot_node *ot_upgrade_node(ot_upgrade *u)
{
    return u->node;
}

void ot_upgrade_fail(ot_upgrade *u, const char *format, ...)
{
    char label[160];
    va_list args;

    if (u->status != OT_OK)
        return;
    va_start(args, format);
    u->status = ot__error_v(OT_ERR_INVALID, format, args);
    va_end(args);
    ot__error_prefix(u->status, "%s", ot__node_label(u->node, label, sizeof(label)));
}

// Make `value` input number `input`; inputs between are omitted.
static void set_upgraded_input(ot_upgrade *u, int input, ot_value *value)
{
    ot_node *node = u->node;

    if (input >= node->n_inputs) {
        ot_value **grown =
            ot__arena_alloc(node->graph->model->arena, (size_t)(input + 1) * sizeof(*grown));

        ot__upgrade_made(u, grown != NULL);
        if (grown == NULL)
            return;
        if (node->n_inputs > 0)
            memcpy(grown, node->inputs, (size_t)node->n_inputs * sizeof(*grown));
        node->inputs = grown;
        node->n_inputs = input + 1;
    }
    node->inputs[input] = value;
}

// A new initializer named after the node's first output and `suffix`.
static ot_tensor *new_constant_input(ot_upgrade *u, const char *suffix, ot_dtype dtype,
                                     const ot_shape *shape, int input)
{
    ot_graph *graph = u->node->graph;
    const char *of = u->node->n_outputs > 0 && u->node->outputs[0] != NULL
                         ? u->node->outputs[0]->name
                         : u->node->op_type;
    char *base = ot__arena_printf(graph->model->arena, "%s_%s", of, suffix);
    ot_tensor *tensor = ot__model_tensor_new(graph->model, dtype, shape);
    ot_value *value = base == NULL ? NULL : ot__graph_new_value(graph, base);

    ot__upgrade_made(u, tensor != NULL && value != NULL &&
                            ot__graph_add_initializer(graph, value, tensor));
    if (u->status != OT_OK)
        return NULL;
    set_upgraded_input(u, input, value);
    return tensor;
}

void ot_upgrade_ints_to_input(ot_upgrade *u, const char *attr, int input)
{
    const ot_attr *a = ot__node_attr(u->node, attr);
    const int64_t *ints;
    ot_tensor *tensor;
    int n;

    if (u->status != OT_OK || a == NULL)
        return;
    if (a->kind != OT_ATTR_INT && a->kind != OT_ATTR_INTS) {
        ot_upgrade_fail(u, "attribute '%s' holds no integers", attr);
        return;
    }
    ints = a->kind == OT_ATTR_INT ? &a->i : a->ints;
    n = a->kind == OT_ATTR_INT ? 1 : a->n;
    tensor = new_constant_input(u, attr, OT_I64, &OT_SHAPE(n), input);
    if (tensor != NULL && n > 0)
        memcpy(tensor->data, ints, (size_t)n * sizeof(*ints));
    ot__node_remove_attr(u->node, attr);
}

void ot_upgrade_float_to_input(ot_upgrade *u, const char *attr, float otherwise, int input)
{
    const ot_attr *a = ot__node_attr(u->node, attr);
    const float value = a != NULL && a->kind == OT_ATTR_FLOAT ? a->f : otherwise;
    const ot_dtype known = u->node->n_inputs > 0 && u->node->inputs[0] != NULL
                               ? u->node->inputs[0]->dtype
                               : OT_DTYPE_UNDEFINED;
    const ot_dtype dtype = known == OT_DTYPE_UNDEFINED ? OT_F32 : known;
    ot_tensor *tensor;

    if (u->status != OT_OK)
        return;
    ot__node_remove_attr(u->node, attr);
    if (isnan(value))
        return;
    tensor = new_constant_input(u, attr, dtype, &OT_SHAPE_SCALAR, input);
    if (tensor != NULL && !ot__convert(tensor->data, dtype, &value, OT_F32, 1))
        ot_upgrade_fail(u, "attribute '%s' cannot become %s", attr, ot_dtype_name(dtype));
}

void ot_upgrade_set_int(ot_upgrade *u, const char *attr, int64_t value)
{
    if (u->status == OT_OK)
        ot__upgrade_made(u, ot__node_set_int(u->node, attr, value));
}

void ot_upgrade_set_float(ot_upgrade *u, const char *attr, float value)
{
    if (u->status == OT_OK)
        ot__upgrade_made(u, ot__node_set_float(u->node, attr, value));
}

void ot_upgrade_set_string(ot_upgrade *u, const char *attr, const char *value)
{
    if (u->status == OT_OK)
        ot__upgrade_made(u, ot__node_set_string(u->node, attr, value));
}

void ot_upgrade_remove_attr(ot_upgrade *u, const char *attr)
{
    if (u->status == OT_OK)
        ot__node_remove_attr(u->node, attr);
}

void ot_upgrade_keep_outputs(ot_upgrade *u, int n_outputs)
{
    if (u->status == OT_OK && u->node->n_outputs > n_outputs)
        u->node->n_outputs = n_outputs;
}

void ot_upgrade_rename(ot_upgrade *u, const char *op)
{
    char *name = ot__arena_strdup(u->node->graph->model->arena, op);

    ot__upgrade_made(u, name != NULL);
    if (u->status == OT_OK)
        u->node->op_type = name;
}

ot_status ot__op_upgrade_node(ot_node *node)
{
    ot_upgrade u = {.node = node};
    char label[160];

    while (node->op != NULL && node->op->upgrade != NULL) {
        // The contract after this one is the operator's next record; the last old one leads to the
        // base opset.
        const int next = node->op[1].name != NULL ? node->op[1].since : OT_OP_BASE_OPSET;

        node->op->upgrade(&u);
        OT_TRY(u.status);
        node->op = ot__op_find(node->domain, node->op_type, next);
        if (node->op == NULL)
            return ot__error(OT_ERR_INTERNAL, "%s: raised to opset %d, where it is unknown",
                             ot__node_label(node, label, sizeof(label)), next);
    }
    return OT_OK;
}

ot_status ot__op_raise_node(ot_node *node, const ot_op_def *op)
{
    ot_upgrade u = {.node = node};

    for (const ot_op_def *form = node->op; form != op && form->name != NULL; form++)
        if (form->raise != NULL)
            form->raise(&u);
    OT_TRY(u.status);
    node->op = op;
    OT_TRY(ot__op_check_node(node));
    return ot__op_infer(node);
}
