// SPDX-License-Identifier: Apache-2.0
// transformer_layer_recompute: the layers of a transformer. One begins with the output of a
// normalisation or a Dropout that four inputs read (query, key, value and the sum around
// attention), and ends with the normalisation that comes first behind its Gelu.
#include "passes/recompute.h"

enum { N_READERS = 4 };

static const ot_node *made_by(const ot_value *value, const char *op_type)
{
    const ot_node *node = value != NULL ? value->producer : NULL;

    return ot__node_is(node, "", op_type) ? node : NULL;
}

// The factor of a normalisation written in other operators: (x - mean) / sqrt(variance).
static bool is_normalised(const ot_value *value)
{
    const ot_node *div = made_by(value, "Div");

    return div != NULL && made_by(div->inputs[0], "Sub") != NULL &&
           made_by(div->inputs[1], "Sqrt") != NULL;
}

// The last node of a normalisation over features.
static bool is_norm(const ot_node *node)
{
    const ot_node *mul;

    if (ot__node_is(node, "", "LayerNormalization"))
        return true;
    if (!ot__node_is(node, "", "Add"))
        return false;
    mul = made_by(node->inputs[0], "Mul");
    if (mul == NULL)
        mul = made_by(node->inputs[1], "Mul");
    return mul != NULL && (is_normalised(mul->inputs[0]) || is_normalised(mul->inputs[1]));
}

static bool starts_layer(const ot__matching *m, const ot_node *node)
{
    const ot_value *y = node->n_outputs > 0 ? node->outputs[0] : NULL;
    int n = 0;

    if (y == NULL || !(is_norm(node) || ot__node_is(node, "", "Dropout")))
        return false;
    for (int u = ot__uses_first(&m->uses, y); u < ot__uses_end(&m->uses, y); u++)
        n += m->is_forward[ot__node_number(&m->uses.numbers, m->uses.use[u].node)];
    return n == N_READERS;
}

// By first readers to a normalisation; NULL: none comes.
static ot_value *find_layer_end(const ot__matching *m, const ot_value *value)
{
    for (const ot_node *node; (node = ot__forward_reader(m, value, 0)) != NULL;) {
        if (node->n_outputs == 0 || node->outputs[0] == NULL)
            return NULL;
        if (is_norm(node))
            return node->outputs[0];
        value = node->outputs[0];
    }
    return NULL;
}

static ot_status add_layers(ot__matching *m, ot_value *const *starts, ot_value *const *ends,
                            int n_found, int n_layers, bool warns)
{
    const int most = n_found - 1;

    if (n_layers > most && warns)
        ot__log(OT_LOG_WARNING,
                "number_recompute_layers is %d, the model has %d layers: all but the last are made "
                "again",
                n_layers, n_found);
    if (n_layers == 0 || n_layers > most)
        n_layers = most;
    for (int i = 0; i < n_layers; i++)
        OT_TRY(ot__add_region(m, starts[i], ends[i], false));
    return OT_OK;
}

ot_status ot__match_recompute_layer(ot__matching *m, int n_layers, bool warns)
{
    const size_t n = (size_t)m->graph->n_nodes + 1;
    ot_value **starts = ot__alloc_zero(2 * n, sizeof(ot_value *)), **ends = starts + n, *x, *end;
    int n_starts = 0, n_ends = 0;
    ot_status st = ot__made(starts != NULL);

    for (int k = 0; st == OT_OK && k < m->graph->n_nodes; k++) {
        ot_node *node = m->graph->nodes[k];
        const ot_value *y;

        if (!m->is_forward[k])
            continue;
        if (starts_layer(m, node))
            starts[n_starts++] = node->outputs[0];
        y = ot__match_gelu(m, node, &x);
        end = y == NULL ? NULL : find_layer_end(m, y);
        if (end != NULL && (n_ends == 0 || ends[n_ends - 1] != end))
            ends[n_ends++] = end;
    }
    if (st == OT_OK && n_starts > 0 && n_starts == n_ends)
        st = add_layers(m, starts, ends, n_starts, n_layers, warns);
    else if (st == OT_OK && warns)
        ot__log(OT_LOG_WARNING,
                "transformer_layer_recompute: %d values begin a layer (a normalisation or Dropout "
                "read %d times) and %d end one (the normalisation behind a Gelu), expected as many "
                "of both; no layer is made again",
                n_starts, N_READERS, n_ends);
    ot__free(starts);
    return st;
}
