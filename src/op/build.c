// SPDX-License-Identifier: Apache-2.0
// What a builder's nodes get besides their place in the graph: a record, attributes in words, types
// and shapes.
#include <string.h>

#include "op/op.h"

ot_node *ot__op_build(ot__builder *b, const char *domain, const char *op_type, const char *name,
                      ot_value *const *inputs, int n_inputs, ot_value *const *outputs,
                      int n_outputs)
{
    ot_node *node = ot__build_node(b, domain, op_type, name, inputs, n_inputs, outputs, n_outputs);

    if (!node || !ot__build_note(b, ot__op_lookup(b->graph->model, node, &node->op)))
        return NULL;
    return node;
}

void ot__op_build_attrs(ot__builder *b, ot_node *node, const char *attrs)
{
    if (b->status == OT_OK && node && attrs)
        ot__build_note(b, ot__node_set_attrs_text(node, attrs));
}

void ot__op_settle(ot__builder *b, ot_node *node)
{
    if (b->status == OT_OK && node && ot__build_note(b, ot__op_check_node(node)))
        ot__build_note(b, ot__op_infer(node));
}

const char *ot__op_split_name(ot__builder *b, const char *op, const char **domain)
{
    const char *dot = strrchr(op, '.');

    *domain = "";
    if (!dot || b->status != OT_OK)
        return op;
    *domain = ot__arena_strndup(b->graph->model->arena, op, (size_t)(dot - op));
    ot__build_made(b, *domain != NULL);
    return dot + 1;
}
