// SPDX-License-Identifier: Apache-2.0
// Packed layouts: how a parameter lies in memory for as long as a session lives, and with it its
// gradient and its moments. Chosen once, so that all plans of the session agree.
#include <string.h>

#include "exec/plan.h"

typedef struct choice {
    const ot_layout *layout; // what the readers asked so far want
    const ot_value *value;   // of the parameter
    int n_readers;
    bool is_plain; // somebody disagrees
} choice;

typedef struct packing {
    ot__plan_builder b;
    choice *choices;
    struct packed_value {
        choice *choice;             // of the parameter; NULL: not one
        const ot_layout *written;   // the layout that its producer would write
        const ot_node *accumulator; // the first that adds to it
        int n_reads;
    } * values; // by number
} packing;

static struct packed_value *packed(const packing *p, const ot_value *value)
{
    return &p->values[ot__value_number(&p->b.numbers, value)];
}

static ot_status prepare_parameters(packing *p, const int *parameter_of, int n_parameters)
{
    const ot_graph *g = p->b.graph;
    ot__arena *arena = p->b.arena;
    size_t n;
    bool *open;

    OT_TRY(ot__numbers_build(g, &p->b.numbers));
    n = (size_t)p->b.numbers.n_values + 1;
    open = ot__arena_alloc(arena, n);
    p->b.layouts = ot__arena_alloc(arena, n * sizeof *p->b.layouts);
    p->choices = ot__arena_alloc(arena, ((size_t)n_parameters + 1) * sizeof *p->choices);
    p->values = ot__arena_alloc(arena, n * sizeof *p->values);
    OT_TRY(
        ot__made(open != NULL && p->b.layouts != NULL && p->choices != NULL && p->values != NULL));
    p->b.open = open;
    for (int i = 0; i < g->n_inputs; i++) {
        if (parameter_of[i] < 0 || g->inputs[i]->constant != NULL)
            continue;
        open[ot__value_number(&p->b.numbers, g->inputs[i])] = true;
        packed(p, g->inputs[i])->choice = &p->choices[parameter_of[i]];
        p->choices[parameter_of[i]] =
            (choice){.value = g->inputs[i],
                     .is_plain = g->inputs[i]->is_output || g->inputs[i]->dtype != OT_F32};
    }
    return OT_OK;
}

// ---- what the kernels that read parameters want ----

static void take_wish(choice *c, const ot_layout *layout)
{
    if (layout == NULL || !ot__layout_fits(layout, &c->value->shape) ||
        (c->n_readers > 0 && !ot__layout_equal(layout, c->layout)))
        c->is_plain = true;
    c->layout = layout;
    c->n_readers++;
}

static ot_status ask_kernels(packing *p, const ot_node *node)
{
    bool reads_parameter = false;
    ot__view v;

    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL) {
            packed(p, node->inputs[i])->n_reads++;
            reads_parameter = reads_parameter || packed(p, node->inputs[i])->choice != NULL;
        }
    if (!reads_parameter)
        return OT_OK;
    OT_TRY(ot__view_make(&p->b, node, &v));
    if (v.is_complete)
        OT_TRY(ot__view_ask(&p->b, node, &v));
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL && packed(p, node->inputs[i])->choice != NULL)
            take_wish(packed(p, node->inputs[i])->choice, v.want_in[i]);
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] != NULL)
            packed(p, node->outputs[i])->written = v.want_out[i];
    return OT_OK;
}

// ---- what happens to their gradients ----

enum { BUFFER, VALUE }; // inputs of an operator with OT_OP_ACCUMULATE

static void find_accumulators(packing *p)
{
    const ot_graph *g = p->b.graph;

    for (int n = g->n_nodes - 1; n >= 0; n--)
        if ((g->nodes[n]->op->flags & OT_OP_ACCUMULATE) != 0 && g->nodes[n]->n_inputs > VALUE &&
            g->nodes[n]->inputs[BUFFER] != NULL)
            packed(p, g->nodes[n]->inputs[BUFFER])->accumulator = g->nodes[n];
}

// The gradient is made in `layout` and added to a buffer that nothing else uses.
static ot_status check_gradient(packing *p, const ot_value *buffer, choice *c)
{
    const ot_node *node = packed(p, buffer)->accumulator;
    ot__view v;

    if (c->is_plain)
        return OT_OK;
    c->is_plain = true;
    if (node == NULL || buffer->is_output || packed(p, buffer)->n_reads != 1 ||
        node->inputs[VALUE] == NULL ||
        !ot__layout_equal(packed(p, node->inputs[VALUE])->written, c->layout))
        return OT_OK;
    p->b.layouts[ot__value_number(&p->b.numbers, buffer)] = c->layout;
    OT_TRY(ot__view_make(&p->b, node, &v));
    if (v.is_complete)
        OT_TRY(ot__view_ask(&p->b, node, &v));
    c->is_plain = !ot__layout_equal(v.want_in[BUFFER], c->layout) ||
                  !ot__layout_equal(v.want_in[VALUE], c->layout);
    return OT_OK;
}

static ot_status choose_parameter(packing *p, const int *parameter_of, const int *buffer_of,
                                  const ot_layout **layouts, int n_parameters)
{
    const ot_graph *g = p->b.graph;

    OT_TRY(prepare_parameters(p, parameter_of, n_parameters));
    for (int n = 0; n < g->n_nodes; n++)
        OT_TRY(ask_kernels(p, g->nodes[n]));
    find_accumulators(p);
    for (int i = 0; i < g->n_inputs; i++)
        if (buffer_of[i] >= 0)
            OT_TRY(check_gradient(p, g->inputs[i], &p->choices[buffer_of[i]]));
    for (int k = 0; k < n_parameters; k++)
        layouts[k] = p->choices[k].is_plain ? NULL : p->choices[k].layout; // NULL too when unread
    return OT_OK;
}

ot_status ot__plan_choose_layouts(ot_graph *graph, const ot__plan_options *options,
                                  const int *parameter_of, const int *buffer_of,
                                  const ot_layout **layouts, int n_parameters)
{
    ot__plan plan = {.n_threads = options->n_threads > 0 ? options->n_threads : ot__parallel_max()};
    packing p = {.b = {.graph = graph, .options = options, .plan = &plan}};
    ot_status st;

    memset(layouts, 0, (size_t)n_parameters * sizeof *layouts);
    p.b.arena = ot__arena_create();
    OT_TRY(ot__made(p.b.arena != NULL));
    st = choose_parameter(&p, parameter_of, buffer_of, layouts, n_parameters);
    ot__numbers_deinit(&p.b.numbers);
    ot__arena_destroy(p.b.arena);
    return st;
}
