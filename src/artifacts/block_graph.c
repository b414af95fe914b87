// SPDX-License-Identifier: Apache-2.0
// What a user adds to a graph piece by piece: inputs, initializers, constants, nodes.
#include <string.h>

#include "artifacts/block.h"

// ---- values there are ----

ot_value *ot_block_value(ot_block *block, const char *name)
{
    ot_value *value;

    if (!ot__block_enter(block, "value"))
        return NULL;
    value = name ? ot__graph_find(block->build.graph, name) : NULL;
    if (!value)
        ot__build_note(&block->build,
                       name ? ot__error(OT_ERR_NOT_FOUND, "'%s' is not a value of the graph", name)
                            : ot__error(OT_ERR_INVALID, "a name is NULL"));
    return value;
}

ot_value *ot_block_output(ot_block *block, int index)
{
    if (!ot__block_enter(block, "output"))
        return NULL;
    if (index >= 0 && index < block->build.graph->n_outputs)
        return block->build.graph->outputs[index];
    ot__build_note(&block->build, ot__error(OT_ERR_NOT_FOUND, "number %d of %d", index,
                                            block->build.graph->n_outputs));
    return NULL;
}

const char *ot_block_value_name(const ot_value *value)
{
    return value ? value->name : NULL;
}

// ---- inputs ----

// The user's name, or one made.
static const char *name_or_token(ot_block *block, const char *name, const char *token)
{
    if (!name)
        return ot__block_name(block, token);
    if (!name[0])
        ot__build_note(&block->build, ot__error(OT_ERR_INVALID, "a name is empty"));
    return name;
}

static bool can_hold(ot_block *block, ot_dtype dtype)
{
    // Strings and elements below a byte: no kernel takes them.
    if (ot_dtype_size(dtype) == 0)
        ot__build_note(&block->build,
                       ot__error(OT_ERR_UNSUPPORTED, "element type %s", ot_dtype_name(dtype)));
    return block->build.status == OT_OK;
}

// Extents that may vary become symbols, so that what is computed of this input is known to fit it.
static bool shape_of_input(ot_block *block, const char *name, const ot_shape *given, ot_shape *out)
{
    ot_model *model = block->build.graph->model;

    *out = given ? *given : (ot_shape){0};
    if (out->ndim < 0 || out->ndim > OT_MAX_NDIM) {
        ot__build_note(&block->build, ot__error(OT_ERR_INVALID, "%d axes, expected 0 to %d",
                                                out->ndim, (int)OT_MAX_NDIM));
        return false;
    }
    for (int k = 0; k < out->ndim; k++) {
        char *symbol;

        if (out->dim[k] >= 0)
            continue;
        symbol = ot__arena_printf(model->arena, "%s_%d", name, k);
        if (!ot__build_made(&block->build, symbol))
            return false;
        out->dim[k] = ot__dim_symbol(model, symbol);
    }
    return true;
}

ot_value *ot_block_input(ot_block *block, const char *name, ot_dtype dtype, const ot_shape *shape)
{
    ot_shape symbolic;
    ot_value *value;

    if (!ot__block_enter(block, "input") || !can_hold(block, dtype))
        return NULL;
    name = name_or_token(block, name, "input");
    if (block->build.status != OT_OK || !shape_of_input(block, name, shape, &symbolic))
        return NULL;
    value = ot__block_input(block, name);
    if (value)
        ot__value_set(value, dtype, shape ? &symbolic : NULL);
    return value;
}

ot_value *ot_block_input_like(ot_block *block, const ot_value *like, const char *name)
{
    ot_value *value;

    if (!ot__block_enter(block, "input like") || !ot__block_takes(block, like))
        return NULL;
    if (like->kind != OT_VALUE_TENSOR && like->kind != OT_VALUE_SEQUENCE)
        ot__build_note(&block->build, ot__error(OT_ERR_INVALID, "'%s' has no type", like->name));
    name = name_or_token(block, name, "input");
    value = ot__block_input(block, name);
    if (!value)
        return NULL;
    ot__value_set(value, like->dtype, like->has_shape ? &like->shape : NULL);
    value->kind = like->kind;
    return value;
}

ot_value *ot_block_input_sequence(ot_block *block, const char *name, ot_dtype dtype)
{
    ot_value *value;

    if (!ot__block_enter(block, "input sequence") || !can_hold(block, dtype))
        return NULL;
    name = name_or_token(block, name, "input");
    value = ot__block_input(block, name);
    if (!value)
        return NULL;
    ot__value_set(value, dtype, NULL);
    value->kind = OT_VALUE_SEQUENCE;
    return value;
}

// ---- initializers ----

static ot_value *block_hold(ot_block *block, const char *name, const ot_tensor *tensor)
{
    if (!tensor) {
        ot__build_note(&block->build, ot__error(OT_ERR_INVALID, "the tensor is NULL"));
        return NULL;
    }
    ot__build_note(&block->build, OT_OPTIONAL(tensor, "tensor"));
    if (block->build.status != OT_OK || !can_hold(block, ot_tensor_dtype(tensor)))
        return NULL;
    name = name_or_token(block, name, "initializer");
    if (block->build.status == OT_OK && ot__graph_find(block->build.graph, name))
        ot__build_note(&block->build,
                       ot__error(OT_ERR_INVALID, "'%s' is a value of the graph already", name));
    return ot__block_tensor(block, name, tensor, ot_tensor_dtype(tensor));
}

ot_value *ot_block_initializer(ot_block *block, const char *name, const ot_tensor *tensor)
{
    return ot__block_enter(block, "initializer")
               ? ot__block_train(block, block_hold(block, name, tensor))
               : NULL;
}

ot_value *ot_block_constant(ot_block *block, double number, ot_dtype dtype)
{
    if (!ot__block_enter(block, "constant") || !can_hold(block, dtype))
        return NULL;
    return ot__block_constant(block, "initializer", number, dtype);
}

ot_value *ot_block_constant_tensor(ot_block *block, const ot_tensor *tensor)
{
    return ot__block_enter(block, "constant") ? block_hold(block, NULL, tensor) : NULL;
}

// ---- nodes ----

// "reducemean_output", as onnxblock calls what ReduceMean makes.
static const char *output_token(ot_block *block, const char *op)
{
    char *token = ot__arena_printf(block->build.graph->model->arena, "%s_output", op);

    ot__build_made(&block->build, token);
    for (char *c = token; c && *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    return token;
}

static bool check_lists(ot_block *block, const char *op, ot_value *const *inputs, int n_inputs,
                        ot_value *const *outputs, int n_outputs)
{
    if (!op || n_inputs < 0 || (n_inputs > 0 && !inputs) || n_outputs < 1 || !outputs)
        ot__build_note(&block->build, ot__error(OT_ERR_INVALID, "%d inputs and %d outputs of %s",
                                                n_inputs, n_outputs, op ? op : "no operator"));
    for (int i = 0; i < n_inputs && block->build.status == OT_OK; i++)
        if (inputs[i])
            ot__block_takes(block, inputs[i]);
    return block->build.status == OT_OK;
}

static void block_append(ot_block *block, const char *op, const char *attrs,
                         ot_value *const *inputs, int n_inputs, ot_value **outputs, int n_outputs)
{
    const char *domain, *type = ot__op_split_name(&block->build, op, &domain);
    const char *token = block->build.status == OT_OK ? output_token(block, type) : NULL;
    ot_node *node;

    for (int i = 0; i < n_outputs && block->build.status == OT_OK; i++)
        outputs[i] = ot__block_value(block, token);
    node = ot__block_node(block, domain, type, inputs, n_inputs, outputs, n_outputs);
    ot__op_build_attrs(&block->build, node, attrs);
    ot__op_settle(&block->build, node);
}

void ot_block_node(ot_block *block, const char *op, const char *attrs, ot_value *const *inputs,
                   int n_inputs, ot_value **outputs, int n_outputs)
{
    const char *dot = op ? strrchr(op, '.') : NULL;
    const bool may = ot__block_enter(block, dot  ? dot + 1
                                            : op ? op
                                                 : "node") &&
                     check_lists(block, op, inputs, n_inputs, outputs, n_outputs);

    if (may)
        block_append(block, op, attrs, inputs, n_inputs, outputs, n_outputs);
    if (may && block->build.status == OT_OK)
        return;
    for (int i = 0; outputs && i < n_outputs; i++)
        outputs[i] = NULL;
}

ot_value *ot_block_op(ot_block *block, const char *op, const char *attrs, ot_value *const *inputs,
                      int n_inputs)
{
    ot_value *y = NULL;

    ot_block_node(block, op, attrs, inputs, n_inputs, &y, 1);
    return y;
}
