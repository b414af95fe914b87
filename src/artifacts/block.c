// SPDX-License-Identifier: Apache-2.0
// Values, constants and nodes with counted names.
#include "artifacts/block.h"

#include <string.h>

// ---- errors ----

void ot__block_failed(ot__builder *build)
{
    ot_block *block = (ot_block *)build; // its first field

    // A message about a node begins with its operator, which most blocks are called after.
    if (block->scope && !ot__starts_with(ot_error_message(), block->scope))
        ot__error_prefix(build->status, "%s", block->scope);
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
    if (!block->build.graph)
        ot__build_note(&block->build, ot__error(OT_ERR_STATE, "the builder is finished"));
    return block->build.status == OT_OK;
}

bool ot__block_takes(ot_block *block, const ot_value *value)
{
    if (block->build.status != OT_OK)
        return false;
    if (!value)
        ot__build_note(&block->build, ot__error(OT_ERR_INVALID, "a value is NULL"));
    else if (ot__graph_find(block->build.graph, value->name) != value)
        ot__build_note(&block->build, ot__error(OT_ERR_INVALID,
                                                "'%s' is a value of another builder", value->name));
    return block->build.status == OT_OK;
}

// ---- values ----

char *ot__block_name(ot_block *block, const char *token)
{
    char *name;

    if (block->build.status != OT_OK)
        return NULL;
    name =
        ot__arena_printf(block->build.graph->model->arena, "onnx::%s::%d", token, ++block->counter);
    return ot__build_made(&block->build, name != NULL) ? name : NULL;
}

ot_value *ot__block_value(ot_block *block, const char *token)
{
    return ot__build_value(&block->build, ot__block_name(block, token));
}

ot_value *ot__block_input(ot_block *block, const char *name)
{
    ot_value *value;

    if (block->build.status != OT_OK)
        return NULL;
    if (ot__graph_find(block->build.graph, name)) {
        ot__build_note(&block->build,
                       ot__error(OT_ERR_INVALID, "'%s' is a value of the graph already", name));
        return NULL;
    }
    value = ot__graph_value(block->build.graph, name);
    if (ot__build_made(&block->build, value != NULL))
        ot__build_input(&block->build, value);
    return block->build.status == OT_OK ? value : NULL;
}

ot_value *ot__block_tensor(ot_block *block, const char *name, const ot_tensor *tensor,
                           ot_dtype dtype)
{
    const ot_dtype from = tensor->dtype;
    ot_value *value = ot__build_initializer(&block->build, name, dtype, &tensor->shape);

    if (!value)
        return NULL;
    if (from == dtype)
        memcpy(value->constant->data, tensor->data, tensor->n_bytes);
    else if (!ot__convert(value->constant->data, dtype, tensor->data, from,
                          ot_tensor_count(value->constant)))
        ot__build_note(&block->build,
                       ot__error(OT_ERR_INVALID, "weight has element type %s, expected %s",
                                 ot_dtype_name(from), ot_dtype_name(dtype)));
    return block->build.status == OT_OK ? value : NULL;
}

static ot_value *number_of_shape(ot_block *block, const char *token, double number, ot_dtype dtype,
                                 ot_shape shape)
{
    const char *name = ot__block_name(block, token);
    const ot_tensor tensor = {
        .dtype = OT_F64, .shape = shape, .n_bytes = sizeof number, .data = &number};

    return block->build.status == OT_OK ? ot__block_tensor(block, name, &tensor, dtype) : NULL;
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
    if (block->build.status == OT_OK)
        ot__build_note(&block->build, ot__candidates_add(&block->forward.candidates, value));
    return block->build.status == OT_OK ? value : NULL;
}

// ---- nodes ----

ot_node *ot__block_node_as(ot_block *block, const char *token, const char *domain, const char *op,
                           ot_value *const *inputs, int n_inputs, ot_value *const *outputs,
                           int n_outputs)
{
    return ot__op_build(&block->build, domain, op, ot__block_name(block, token), inputs, n_inputs,
                        outputs, n_outputs);
}

ot_node *ot__block_node(ot_block *block, const char *domain, const char *op,
                        ot_value *const *inputs, int n_inputs, ot_value *const *outputs,
                        int n_outputs)
{
    return ot__block_node_as(block, op, domain, op, inputs, n_inputs, outputs, n_outputs);
}

ot_node *ot__block_maker(ot_block *block, const char *domain, const char *op, const char *token,
                         ot_value *const *inputs, int n_inputs)
{
    ot_value *y = ot__block_value(block, token);

    return ot__block_node(block, domain, op, inputs, n_inputs, &y, 1);
}

ot_value *ot__block_settle(ot_block *block, ot_node *node)
{
    ot__op_settle(&block->build, node);
    return block->build.status == OT_OK ? node->outputs[0] : NULL;
}

ot_value *ot__block_unary(ot_block *block, const char *op, const char *token, ot_value *a)
{
    return ot__block_binary(block, op, token, a, NULL);
}

ot_value *ot__block_binary(ot_block *block, const char *op, const char *token, ot_value *a,
                           ot_value *b)
{
    ot_value *inputs[] = {a, b};

    return ot__block_settle(block, ot__block_maker(block, "", op, token, inputs, b ? 2 : 1));
}

ot_value *ot__block_reduce(ot_block *block, const char *op, const char *token, ot_value *x,
                           ot_keepdims keepdims)
{
    ot_node *node = ot__block_maker(block, "", op, token, &x, 1);

    ot__build_int(&block->build, node, "keepdims", keepdims == OT_KEEPDIMS);
    return ot__block_settle(block, node);
}
