// SPDX-License-Identifier: Apache-2.0
// Values, constants and nodes with counted names.
#include "artifacts/block.h"

#include <string.h>

// ---- errors ----

void ot__block_fail(ot_block *block, ot_status status)
{
    if (block->status != OT_OK || status == OT_OK)
        return;
    block->status = status;
    // A message about a node begins with its operator, which most blocks are called after.
    if (block->scope && !ot__starts_with(ot_error_message(), block->scope))
        ot__error_prefix(status, "%s", block->scope);
    snprintf(block->message, sizeof block->message, "%s", ot_error_message());
}

bool ot__block_enter(ot_block *block, const char *scope)
{
    if (!block) {
        ot__error(OT_ERR_INVALID, "%s: the builder is NULL", scope);
        return false;
    }
    if (!OT_IS_LIVE(block)) {
        ot__error_prefix(OT_ERR_INVALID, "%s", scope);
        return false;
    }
    block->scope = scope;
    if (!block->graph)
        ot__block_fail(block, ot__error(OT_ERR_STATE, "the builder is finished"));
    return block->status == OT_OK;
}

bool ot__block_takes(ot_block *block, const ot_value *value)
{
    if (block->status != OT_OK)
        return false;
    if (!value)
        ot__block_fail(block, ot__error(OT_ERR_INVALID, "a value is NULL"));
    else if (ot__graph_find(block->graph, value->name) != value)
        ot__block_fail(
            block, ot__error(OT_ERR_INVALID, "'%s' is a value of another builder", value->name));
    return block->status == OT_OK;
}

// What returns false or NULL has no memory, and has set the message.
static bool made(ot_block *block, bool done)
{
    if (!done)
        ot__block_fail(block, OT_ERR_NO_MEMORY);
    return done && block->status == OT_OK;
}

// ---- values ----

char *ot__block_name(ot_block *block, const char *token)
{
    char *name;

    if (block->status != OT_OK)
        return NULL;
    name = ot__arena_printf(block->graph->model->arena, "onnx::%s::%d", token, ++block->counter);
    return made(block, name != NULL) ? name : NULL;
}

ot_value *ot__block_value(ot_block *block, const char *token)
{
    const char *name = ot__block_name(block, token);
    ot_value *value = block->status == OT_OK ? ot__graph_new_value(block->graph, name) : NULL;

    return made(block, value != NULL) ? value : NULL;
}

ot_value *ot__block_input(ot_block *block, const char *name)
{
    ot_value *value;

    if (block->status != OT_OK)
        return NULL;
    if (ot__graph_find(block->graph, name)) {
        ot__block_fail(block,
                       ot__error(OT_ERR_INVALID, "'%s' is a value of the graph already", name));
        return NULL;
    }
    value = ot__graph_value(block->graph, name);
    return made(block, value && ot__graph_add_input(block->graph, value)) ? value : NULL;
}

ot_value *ot__block_tensor(ot_block *block, const char *name, const ot_tensor *tensor,
                           ot_dtype dtype)
{
    const ot_dtype from = tensor->dtype;
    ot_value *value;
    ot_tensor *copy;

    if (block->status != OT_OK)
        return NULL;
    copy = ot__model_tensor_new(block->graph->model, dtype, &tensor->shape);
    value = copy ? ot__graph_new_value(block->graph, name) : NULL;
    if (!made(block, value && ot__graph_add_initializer(block->graph, value, copy)))
        return NULL;
    if (from == dtype)
        memcpy(copy->data, tensor->data, tensor->n_bytes);
    else if (!ot__convert(copy->data, dtype, tensor->data, from, ot_tensor_count(copy)))
        ot__block_fail(block, ot__error(OT_ERR_INVALID, "weight has element type %s, expected %s",
                                        ot_dtype_name(from), ot_dtype_name(dtype)));
    return block->status == OT_OK ? value : NULL;
}

static ot_value *number_of_shape(ot_block *block, const char *token, double number, ot_dtype dtype,
                                 ot_shape shape)
{
    const char *name = ot__block_name(block, token);
    const ot_tensor tensor = {
        .dtype = OT_F64, .shape = shape, .n_bytes = sizeof number, .data = &number};

    return block->status == OT_OK ? ot__block_tensor(block, name, &tensor, dtype) : NULL;
}

ot_value *ot__block_constant(ot_block *block, const char *token, double number, ot_dtype dtype)
{
    return number_of_shape(block, token, number, dtype, OT_SHAPE(1));
}

ot_value *ot__block_scalar(ot_block *block, const char *token, double number, ot_dtype dtype)
{
    return number_of_shape(block, token, number, dtype, OT_SHAPE_SCALAR);
}

ot_value *ot__block_train(ot_block *block, ot_value *value)
{
    if (block->status == OT_OK)
        ot__block_fail(block, ot__candidates_add(&block->forward.candidates, value));
    return block->status == OT_OK ? value : NULL;
}

// ---- nodes ----

// Versions of what the domains' records serve; models need not have imported them.
static ot_status import_domain(ot_model *model, const char *domain)
{
    const int64_t version = strcmp(domain, "ai.onnx.ml") == 0 ? 3 : 1;

    if (domain[0] == '\0' || ot__model_opset(model, domain) != 0)
        return OT_OK;
    return ot__model_set_opset(model, domain, version);
}

ot_node *ot__block_node_as(ot_block *block, const char *token, const char *domain, const char *op,
                           ot_value *const *inputs, int n_inputs, ot_value *const *outputs,
                           int n_outputs)
{
    const char *name = ot__block_name(block, token);
    ot_node *node;

    if (block->status != OT_OK)
        return NULL;
    node = ot__graph_add_node(block->graph, domain, op, name, inputs, n_inputs, outputs, n_outputs);
    if (!made(block, node != NULL))
        return NULL;
    ot__block_fail(block, import_domain(block->graph->model, node->domain));
    if (block->status == OT_OK)
        ot__block_fail(block, ot__op_lookup(block->graph->model, node, &node->op));
    return block->status == OT_OK ? node : NULL;
}

ot_node *ot__block_node(ot_block *block, const char *domain, const char *op,
                        ot_value *const *inputs, int n_inputs, ot_value *const *outputs,
                        int n_outputs)
{
    return ot__block_node_as(block, op, domain, op, inputs, n_inputs, outputs, n_outputs);
}

void ot__block_set_int(ot_block *block, ot_node *node, const char *name, int64_t value)
{
    if (block->status == OT_OK)
        made(block, ot__node_set_int(node, name, value));
}

void ot__block_set_float(ot_block *block, ot_node *node, const char *name, double value)
{
    if (block->status == OT_OK)
        made(block, ot__node_set_float(node, name, (float)value));
}

void ot__block_infer(ot_block *block, ot_node *node)
{
    if (block->status == OT_OK)
        ot__block_fail(block, ot__op_check_node(node));
    if (block->status == OT_OK)
        ot__block_fail(block, ot__op_infer(node));
}

ot_value *ot__block_unary(ot_block *block, const char *op, const char *token, ot_value *a)
{
    return ot__block_binary(block, op, token, a, NULL);
}

ot_value *ot__block_binary(ot_block *block, const char *op, const char *token, ot_value *a,
                           ot_value *b)
{
    ot_value *inputs[] = {a, b}, *y = ot__block_value(block, token);
    ot_node *node = ot__block_node(block, "", op, inputs, b ? 2 : 1, &y, 1);

    ot__block_infer(block, node);
    return block->status == OT_OK ? y : NULL;
}

ot_value *ot__block_reduce(ot_block *block, const char *op, const char *token, ot_value *x,
                           ot_keepdims keepdims)
{
    ot_value *y = ot__block_value(block, token);
    ot_node *node = ot__block_node(block, "", op, &x, 1, &y, 1);

    ot__block_set_int(block, node, "keepdims", keepdims == OT_KEEPDIMS);
    ot__block_infer(block, node);
    return block->status == OT_OK ? y : NULL;
}
