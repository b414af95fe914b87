// SPDX-License-Identifier: Apache-2.0
// Casts that nothing needs: a node of f16 or bf16 that a kernel for f32 runs would convert back
// what they made, so it reads what they were made of.
#include "exec/plan.h"

typedef struct undoing {
    ot__plan_builder b;
    ot_value **source; // per value: what it is a cast of, or NULL
} undoing;

static ot_status prepare_undoing(undoing *u, const ot__casts *casts)
{
    size_t n;

    OT_TRY(ot__numbers_build(u->b.graph, &u->b.numbers));
    n = (size_t)u->b.numbers.n_values + 1;
    u->b.layouts = ot__arena_alloc(u->b.arena, n * sizeof *u->b.layouts);
    u->source = ot__arena_alloc(u->b.arena, n * sizeof *u->source);
    OT_TRY(ot__made(u->b.layouts != NULL && u->source != NULL));
    for (int i = 0; i < casts->n; i++)
        u->source[ot__value_number(&u->b.numbers, casts->made[i])] = casts->of[i];
    return OT_OK;
}

static ot_value *source_of(const undoing *u, const ot_node *node, int i)
{
    return node->inputs[i] == NULL ? NULL
                                   : u->source[ot__value_number(&u->b.numbers, node->inputs[i])];
}

static ot_status undo_reads(const undoing *u, ot_node *node)
{
    bool reads_cast = false;
    ot__view v;

    for (int i = 0; i < node->n_inputs && !reads_cast; i++)
        reads_cast = source_of(u, node, i) != NULL;
    if (!reads_cast)
        return OT_OK;
    OT_TRY(ot__view_make(&u->b, node, &v));
    if (v.is_complete)
        OT_TRY(ot__view_ask(&u->b, node, &v));
    for (int i = 0; v.is_widened && i < node->n_inputs; i++)
        if (source_of(u, node, i) != NULL)
            node->inputs[i] = source_of(u, node, i);
    return OT_OK;
}

ot_status ot__plan_undo_casts(ot_graph *graph, const ot__plan_options *options,
                              const ot__casts *casts)
{
    ot__plan plan = {.n_threads = options->n_threads > 0 ? options->n_threads : ot__parallel_max()};
    undoing u = {.b = {.graph = graph, .options = options, .plan = &plan}};
    ot_status st;

    if (options->reference_only || casts->n == 0)
        return OT_OK;
    u.b.arena = ot__arena_create();
    OT_TRY(ot__made(u.b.arena != NULL));
    st = prepare_undoing(&u, casts);
    for (int n = 0; st == OT_OK && n < graph->n_nodes; n++)
        st = undo_reads(&u, graph->nodes[n]);
    ot__numbers_deinit(&u.b.numbers);
    ot__arena_destroy(u.b.arena);
    return st;
}
