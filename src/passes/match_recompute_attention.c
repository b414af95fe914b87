// SPDX-License-Identifier: Apache-2.0
// attn_dropout_recompute: a Dropout between a Softmax and a product.
#include "passes/recompute.h"

bool ot__match_product(const ot_node *node)
{
    return ot__node_is(node, "", "MatMul") || ot__node_is(node, "", "Gemm") ||
           ot__node_is(node, "com.microsoft", "FusedMatMul");
}

static bool is_softmax(const ot_value *value)
{
    const ot_node *node = value != NULL ? value->producer : NULL;

    while (node != NULL && (node->op->flags & OT_OP_REARRANGE) != 0)
        node = node->inputs[0]->producer;
    return ot__node_is(node, "", "Softmax");
}

// Newer exporters put 0 where a whole row is masked, by Where.
static bool comes_from_softmax(const ot_value *value)
{
    const ot_node *node = value->producer;

    return is_softmax(value) || (ot__node_is(node, "", "Where") &&
                                 (is_softmax(node->inputs[1]) || is_softmax(node->inputs[2])));
}

ot_status ot__match_recompute_attention(ot__matching *m, int *n)
{
    *n = 0;
    for (int k = 0; k < m->graph->n_nodes; k++) {
        const ot_node *node = m->graph->nodes[k];

        if (!m->is_forward[k] || !ot__node_is(node, "", "Dropout") || node->outputs[0] == NULL ||
            !comes_from_softmax(node->inputs[0]) ||
            !ot__match_product(ot__forward_consumer(m, node->outputs[0])))
            continue;
        OT_TRY(ot__add_region(m, node->inputs[0], node->outputs[0], true));
        ++*n;
    }
    return OT_OK;
}
