// SPDX-License-Identifier: Apache-2.0
// A fresh module's bias is all zeros, so that the newer exporter drops it. It trains like any
// other.
#include "passes/sharing.h"

typedef struct restoring {
    ot__separation *s;
    const char **names; // of the biases that are back
    int n, capacity;
} restoring;

static bool is_vector_of_zeros(const ot_value *value, int64_t n, ot_dtype dtype)
{
    const ot_tensor *t = value->is_initializer ? value->constant : NULL;

    return t && t->dtype == dtype && t->shape.ndim == 1 && t->shape.dim[0] == n &&
           ot__tensor_is_uniform(t) && ot__tensor_get_f64(t, 0) == 0.0;
}

static ot_status make_zeros(restoring *r, const char *name, int64_t n, ot_dtype dtype,
                            ot_value **out)
{
    ot_graph *graph = r->s->graph;
    ot__arena *arena = graph->model->arena;
    ot_tensor *zeros = ot__model_tensor_new(graph->model, dtype, &OT_SHAPE(n));

    *out = zeros ? ot__graph_new_value(graph, name) : NULL;
    OT_TRY(ot__made(*out && ot__graph_add_initializer(graph, *out, zeros)));
    return ot__made(
        ot__arena_push(arena, &r->names, &r->capacity, &r->n, &(*out)->name, sizeof *r->names));
}

// A module that is called twice has one bias.
static ot_status restore_bias(restoring *r, ot_node *node, int64_t n, const char *name)
{
    const ot_dtype dtype = node->inputs[1]->constant->dtype;
    ot_value *bias = ot__graph_find(r->s->graph, name);

    if (ot__sharing_stays(r->s, name) || (bias && !is_vector_of_zeros(bias, n, dtype)))
        return OT_OK;
    if (!bias)
        OT_TRY(make_zeros(r, name, n, dtype, &bias));
    return ot__made(ot__node_put_input(node, OT_MATCH_BIAS, bias));
}

ot_status ot__sharing_restore(ot__separation *s)
{
    restoring r = {.s = s};

    for (int i = 0; i < s->graph->n_nodes; i++) {
        ot_node *node = s->graph->nodes[i];
        const int64_t n = ot__match_missing_bias(node);
        const char *name = n > 0 ? ot__owner_bias(&s->owners, node) : NULL;

        if (name)
            OT_TRY(restore_bias(&r, node, n, name));
    }
    return r.n == 0 ? OT_OK : ot__sharing_say(s, OT_SHARING_RESTORED, r.names[0], r.names, r.n);
}
