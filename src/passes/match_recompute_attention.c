// SPDX-License-Identifier: Apache-2.0
// attn_dropout_recompute: a Dropout between a Softmax and a product, where attention is not one
// operator, which draws again by itself; and regions before products.
#include "passes/recompute.h"

bool ot__match_attention_node(const ot_node *node)
{
    return ot__node_is(node, "ai.onnxtrain", "FusedAttention");
}

bool ot__match_product(const ot_node *node)
{
    return ot__node_is(node, "", "MatMul") || ot__node_is(node, "", "Gemm") ||
           ot__node_is(node, "com.microsoft", "FusedMatMul");
}

// Values between may be gone after the fusions, so each ends a region of its own.
ot_status ot__add_region_to_product(ot__matching *m, ot_value *first, ot_value *last, int *n)
{
    const int n_before = m->out->n;

    for (ot_node *node; (node = ot__forward_reader(m, last, 0)) != NULL;) {
        OT_TRY(ot__add_region(m, first, last, true));
        if (ot__match_product(node)) {
            ++*n;
            return OT_OK;
        }
        if (!(ot__node_rearranges(node) || ot__node_is(node, "", "Dropout")) ||
            node->outputs[0] == NULL)
            break;
        last = node->outputs[0];
    }
    m->out->n = n_before;
    return OT_OK;
}

static ot_value *made_by_softmax(ot_value *value)
{
    value = ot__before_rearranging(value);
    return ot__node_is(value->producer, "", "Softmax") ? value : NULL;
}

// What a Softmax made that `value` hands on. Newer exporters put 0 where a whole row is masked, by
// Where.
static ot_value *comes_from_softmax(ot_value *value)
{
    ot_value *softmax = made_by_softmax(value);
    const ot_node *node = ot__before_rearranging(value)->producer;

    if (softmax != NULL || !ot__node_is(node, "", "Where"))
        return softmax;
    softmax = made_by_softmax(node->inputs[1]);
    return softmax != NULL ? softmax : made_by_softmax(node->inputs[2]);
}

ot_status ot__match_recompute_attention(ot__matching *m, int *n)
{
    *n = 0;
    for (int k = 0; k < m->graph->n_nodes; k++) {
        const ot_node *node = m->graph->nodes[k];
        ot_value *softmax;

        *n += m->is_forward[k] && ot__match_attention_node(node) &&
              ot_attr_float(node, "dropout") > 0;
        if (!m->is_forward[k] || !ot__node_is(node, "", "Dropout") || node->outputs[0] == NULL)
            continue;
        softmax = comes_from_softmax(node->inputs[0]);
        if (softmax != NULL)
            OT_TRY(ot__add_region_to_product(m, softmax, node->outputs[0], n));
    }
    return OT_OK;
}
