// SPDX-License-Identifier: Apache-2.0
// Parameters that an exporter merged leave copies: name = Identity (kept). One that the caller
// names is a parameter of its own.
#include "artifacts/forward.h"

static const ot_node *identity_of(const ot_value *value)
{
    const ot_node *node = value->producer;

    return ot__match_copy(node) && node->n_inputs == 1 && node->inputs[0] ? node : NULL;
}

// The initializer that the value copies, perhaps through other copies; NULL: none.
static const ot_value *copied_initializer(const ot_graph *graph, const ot_value *value)
{
    const ot_node *node = identity_of(value);

    for (int n = graph->n_nodes; node && n > 0; n--) { // never more, should they go in a circle
        const ot_value *from = node->inputs[0];

        if (from->is_initializer && from->constant)
            return from;
        node = identity_of(from);
    }
    return NULL;
}

static ot_status take_name(ot_graph *graph, const char *const *patterns, int n)
{
    for (int i = 0; i < n; i++) {
        ot_value *value =
            ot__pattern_is_name(patterns[i]) ? ot__graph_find(graph, patterns[i]) : NULL;
        const ot_value *from = value && !value->is_output ? copied_initializer(graph, value) : NULL;

        if (!from)
            continue;
        ot__node_detach(value->producer);
        OT_TRY(ot__made(ot__graph_add_initializer(graph, value, from->constant)));
    }
    return OT_OK;
}

ot_status ot__named_copies_take(ot_graph *graph, const ot_artifacts_options *options)
{
    OT_TRY(take_name(graph, options->trainable, options->n_trainable));
    OT_TRY(take_name(graph, options->frozen, options->n_frozen));
    ot__graph_drop_detached(graph);
    return OT_OK;
}
