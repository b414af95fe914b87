// Values, constants and nodes with counted names.
#include "artifacts/block.h"

void ot__block_fail(ot__block *block, ot_status status)
{
    if (block->status == OT_OK)
        block->status = status;
}

char *ot__block_name(ot__block *block, const char *token)
{
    char *name =
        ot__arena_printf(block->graph->model->arena, "onnx::%s::%d", token, ++block->counter);

    if (!name)
        ot__block_fail(block, OT_ERR_NO_MEMORY);
    return name;
}

ot_value *ot__block_value(ot__block *block, const char *token)
{
    const char *name = ot__block_name(block, token);
    ot_value *value = block->status == OT_OK ? ot__graph_new_value(block->graph, name) : NULL;

    if (!value)
        ot__block_fail(block, OT_ERR_NO_MEMORY);
    return value;
}

ot_value *ot__block_tensor(ot__block *block, const char *name, const ot_tensor *tensor,
                           ot_dtype dtype)
{
    ot_value *value;
    ot_tensor *copy;

    if (block->status != OT_OK)
        return NULL;
    copy = ot__model_tensor_new(block->graph->model, dtype, ot_tensor_shape(tensor));
    value = copy ? ot__graph_new_value(block->graph, name) : NULL;
    if (!value || !ot__graph_add_initializer(block->graph, value, copy)) {
        ot__block_fail(block, OT_ERR_NO_MEMORY);
        return NULL;
    }
    if (!ot__convert(copy->data, dtype, ot_tensor_data_const(tensor), ot_tensor_dtype(tensor),
                     ot_tensor_count(tensor)))
        ot__block_fail(block,
                       ot__error(OT_ERR_INVALID, "weight has element type %s, expected %s",
                                 ot_dtype_name(ot_tensor_dtype(tensor)), ot_dtype_name(dtype)));
    return block->status == OT_OK ? value : NULL;
}

ot_value *ot__block_constant(ot__block *block, const char *token, double number, ot_dtype dtype)
{
    const char *name = ot__block_name(block, token);
    const ot_tensor tensor = {
        .dtype = OT_F64, .shape = OT_SHAPE(1), .n_bytes = sizeof number, .data = &number};

    return block->status == OT_OK ? ot__block_tensor(block, name, &tensor, dtype) : NULL;
}

void ot__block_infer(ot__block *block, ot_node *node)
{
    if (block->status != OT_OK)
        return;
    ot__block_fail(block, ot__op_lookup(block->graph->model, node, &node->op));
    if (block->status == OT_OK)
        ot__block_fail(block, ot__op_infer(node));
}

ot_node *ot__block_node(ot__block *block, const char *domain, const char *op,
                        ot_value *const *inputs, int n_inputs, ot_value *const *outputs,
                        int n_outputs)
{
    const char *name = ot__block_name(block, op);
    ot_node *node;

    if (block->status != OT_OK)
        return NULL;
    node = ot__graph_add_node(block->graph, domain, op, name, inputs, n_inputs, outputs, n_outputs);
    if (!node)
        ot__block_fail(block, OT_ERR_NO_MEMORY);
    return node;
}

ot_value *ot__block_unary(ot__block *block, const char *op, const char *token, ot_value *a)
{
    return ot__block_binary(block, op, token, a, NULL);
}

ot_value *ot__block_binary(ot__block *block, const char *op, const char *token, ot_value *a,
                           ot_value *b)
{
    ot_value *inputs[] = {a, b}, *y = ot__block_value(block, token);
    ot_node *node = ot__block_node(block, "", op, inputs, b ? 2 : 1, &y, 1);

    ot__block_infer(block, node);
    return block->status == OT_OK ? y : NULL;
}
