// SPDX-License-Identifier: Apache-2.0
// gelu_recompute: a Gelu before a product, as one node or as exporters write it:
// x * (1 + erf(x / sqrt(2))) / 2 and x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2, the
// factors in any order.
#include "passes/recompute.h"

enum {
    MAX_DEPTH = 10, // nodes from x to erf or tanh
    MAX_STEPS = 8,  // nodes from there to the result
};

static bool is_named_gelu(const ot_node *node)
{
    return ot__node_is(node, "", "Gelu") || ot__node_is(node, "com.microsoft", "Gelu") ||
           ot__node_is(node, "com.microsoft", "FastGelu") ||
           ot__node_is(node, "com.microsoft", "BiasGelu");
}

static bool scales(const ot_node *node)
{
    return ot__node_is(node, "", "Mul") || ot__node_is(node, "", "Div");
}

// The operand of a node that has another one besides a number; NULL: it has none.
static ot_value *operand_of(const ot_node *node)
{
    if (node->n_inputs != 2)
        return NULL;
    if (ot__value_has_one_element(node->inputs[1]))
        return node->inputs[0];
    return ot__value_has_one_element(node->inputs[0]) ? node->inputs[1] : NULL;
}

// Whether `value` is computed of x and numbers alone.
static bool is_made_of(const ot_value *value, const ot_value *x, int depth)
{
    const ot_node *node = value->producer;

    if (value == x || ot__value_has_one_element(value))
        return true;
    if (depth > 0 && node != NULL && ot__node_rearranges(node))
        return is_made_of(node->inputs[0], x, depth - 1);
    if (depth == 0 ||
        !(scales(node) || ot__node_is(node, "", "Add") || ot__node_is(node, "", "Pow")))
        return false;
    return is_made_of(node->inputs[0], x, depth - 1) && is_made_of(node->inputs[1], x, depth - 1);
}

// The x that erf or tanh of `argument` is multiplied by, perhaps as a half of it or in another
// type; NULL: something else.
static ot_value *find_x(const ot_value *argument, ot_value *factor)
{
    if (is_made_of(argument, factor, MAX_DEPTH))
        return factor;
    factor = ot__before_rearranging(factor);
    if (is_made_of(argument, factor, MAX_DEPTH))
        return factor;
    factor = scales(factor->producer) ? operand_of(factor->producer) : NULL;
    if (factor == NULL || is_made_of(argument, factor, MAX_DEPTH))
        return factor;
    factor = ot__before_rearranging(factor);
    return is_made_of(argument, factor, MAX_DEPTH) ? factor : NULL;
}

static ot_node *only_forward_reader(const ot__matching *m, const ot_value *value)
{
    return ot__forward_reader(m, value, 1) == NULL ? ot__forward_reader(m, value, 0) : NULL;
}

ot_value *ot__match_gelu(const ot__matching *m, ot_node *node, ot_value **x)
{
    ot_value *value = node->n_outputs > 0 ? node->outputs[0] : NULL, *at = value;
    bool has_one = false;

    *x = NULL;
    if (is_named_gelu(node)) {
        *x = node->inputs[0];
        return value;
    }
    if (!ot__node_is(node, "", "Erf") && !ot__node_is(node, "", "Tanh"))
        return NULL;
    for (int k = 0; k < MAX_STEPS; k++) {
        const ot_node *reader = only_forward_reader(m, at);

        if (reader == NULL)
            break;
        if (ot__node_rearranges(reader)) {
            at = reader->outputs[0];
            continue;
        }
        if (!has_one) {
            if (!ot__node_is(reader, "", "Add") || operand_of(reader) != at)
                return NULL;
            has_one = true;
        } else if (ot__node_is(reader, "", "Mul") && operand_of(reader) == NULL && *x == NULL) {
            *x = find_x(node->inputs[0], reader->inputs[reader->inputs[0] == at]);
            if (*x == NULL)
                return NULL;
        } else if (!scales(reader) || operand_of(reader) != at) {
            break;
        }
        at = value = reader->outputs[0];
    }
    return *x != NULL ? value : NULL;
}

ot_status ot__match_recompute_gelu(ot__matching *m, int *n)
{
    *n = 0;
    for (int k = 0; k < m->graph->n_nodes; k++) {
        ot_value *x, *y;

        if (!m->is_forward[k])
            continue;
        y = ot__match_gelu(m, m->graph->nodes[k], &x);
        if (y != NULL)
            OT_TRY(ot__add_region_to_product(m, x, y, n));
    }
    return OT_OK;
}
