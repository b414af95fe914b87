// SPDX-License-Identifier: Apache-2.0
// Running statistics are written by the node that reads them: nothing else may have the same
// tensor.
#include <string.h>

#include "passes/sharing.h"

enum { MAX_DEPTH = 8 }; // of copies of copies

static bool is_statistics_copy(const ot_node *node)
{
    return ot__match_copy(node) && node->n_inputs == 1 && node->n_outputs == 1 && node->outputs[0];
}

// The tensor behind copies of it.
static ot_value *root_of(ot_value *value)
{
    for (int depth = 0; depth < MAX_DEPTH && value && is_statistics_copy(value->producer); depth++)
        value = value->producer->inputs[0];
    return value;
}

static int count_readers(const ot__separation *s, const ot_value *value, int depth)
{
    int n = value->is_output;

    for (int u = ot__uses_first(&s->uses, value); u < ot__uses_end(&s->uses, value); u++) {
        const ot_node *node = s->uses.use[u].node;

        n += is_statistics_copy(node) && depth > 0 ? count_readers(s, node->outputs[0], depth - 1)
                                                   : 1;
    }
    return n;
}

static ot_status statistics_name(const ot__separation *s, const ot_node *node, const ot_value *root,
                                 const char *leaf, const char **out)
{
    ot__arena *arena = s->graph->model->arena;
    ot__owner owner;

    OT_TRY(ot__owner_find(&s->owners, node, leaf, &owner));
    if (owner.source == OT_OWNER_EXACT)
        *out = owner.parameter;
    else if (owner.source != OT_OWNER_NONE)
        *out = ot__arena_printf(arena, "%s%s%s", owner.module, *owner.module ? "." : "", leaf);
    else
        *out = ot__arena_printf(arena, "%s_%s", root->name, leaf);
    return ot__made(*out);
}

static ot_status separate_statistics(ot__separation *s, const ot__use *use, const ot_value *root,
                                     int *n_left)
{
    const char *name, *leaf;
    ot_value *value;

    ot__sharing_role(s, use, &leaf);
    OT_TRY(statistics_name(s, use->node, root, leaf, &name));
    if (ot__sharing_stays(s, root->name) || ot__sharing_stays(s, name))
        return OT_OK;
    value = ot__graph_new_value(s->graph, name);
    OT_TRY(ot__made(value && ot__graph_add_initializer(s->graph, value, root->constant)));
    use->node->inputs[use->i_input] = value;
    --*n_left;
    return ot__sharing_say(s, OT_SHARING_SEPARATED, root->name, &value->name, 1);
}

// `n_left` per value: readers that it still has, and one; 0: not counted yet.
static ot_status visit_statistics(ot__separation *s, const ot__use *use, int *n_left)
{
    ot_value *root = root_of(use->node->inputs[use->i_input]);

    if (!root || !ot__is_parameter(root) || !ot__has_number(&s->uses.numbers, root))
        return OT_OK;
    n_left += ot__value_number(&s->uses.numbers, root);
    if (*n_left == 0)
        *n_left = count_readers(s, root, MAX_DEPTH) + 1;
    return *n_left > 2 ? separate_statistics(s, use, root, n_left) : OT_OK;
}

ot_status ot__sharing_statistics(ot__separation *s)
{
    int *n_left = ot__alloc_zero((size_t)s->uses.numbers.n_values + 1, sizeof *n_left);
    ot_status st = ot__made(n_left);

    for (int n = 0; st == OT_OK && n < s->graph->n_nodes; n++) {
        ot_node *node = s->graph->nodes[n];

        for (int i = 0; st == OT_OK && i < node->n_inputs; i++) {
            const ot__use use = {node, i};

            if (node->inputs[i] && ot__node_input_role(node, i) == OT_PORT_ROLE_STATISTIC)
                st = visit_statistics(s, &use, n_left);
        }
    }
    ot__free(n_left);
    return st;
}
