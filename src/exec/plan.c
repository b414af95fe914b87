// SPDX-License-Identifier: Apache-2.0
// Making a plan: the stages one after the other, and the prepared steps.
#include <assert.h>
#include <string.h>

#include "exec/plan.h"

// ---- steps ----

static int count_plan_entries(const ot__plan_builder *b, ot_value *const *values, int n)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        count += values[i] == NULL ? 1 : ot__builder_range(b, values[i]).count;
    return count;
}

// The arguments of one node, sequences expanded; first (may be NULL) receives where each port
// starts.
static void list_args(const ot__plan_builder *b, ot_value *const *values, int n, ot_arg **args,
                      int *first)
{
    int at = 0;

    for (int i = 0; i < n; i++) {
        ot__range range = {-1, 1};

        if (first != NULL)
            first[i] = at;
        if (values[i] != NULL)
            range = ot__builder_range(b, values[i]);
        for (int k = 0; k < range.count; k++)
            args[at++] = range.first < 0 ? NULL : &b->plan->entries[range.first + k].arg;
    }
    if (first != NULL)
        first[n] = at;
}

static ot_status set_args(ot__plan_builder *b, const ot_node *node, ot__plan_step *step)
{
    ot__arena *arena = b->plan->arena;
    const int n_in = count_plan_entries(b, node->inputs, node->n_inputs);
    const int n_out = count_plan_entries(b, node->outputs, node->n_outputs);
    ot_arg **in = ot__arena_alloc(arena, ((size_t)n_in + 1) * sizeof *in);
    ot_arg **out = ot__arena_alloc(arena, ((size_t)n_out + 1) * sizeof *out);
    int *first = ot__arena_alloc(arena, ((size_t)node->n_inputs + 1) * sizeof *first);
    char label[256];

    step->label = ot__arena_strdup(arena, ot__node_label(node, label, sizeof label));
    OT_TRY(ot__made(in != NULL && out != NULL && first != NULL && step->label != NULL));
    list_args(b, node->inputs, node->n_inputs, in, first);
    list_args(b, node->outputs, node->n_outputs, out, NULL);
    step->run = (ot_run){.in = (const ot_arg *const *)in,
                         .out = out,
                         .n_in = n_in,
                         .n_out = n_out,
                         .in_first = first,
                         .step = &b->plan->step,
                         .n_threads = b->plan->n_threads};
    return OT_OK;
}

// For nodes of f16 or bf16.
static ot_status offer_edges(const ot__plan *plan, ot_prep *prep)
{
    if (!ot__edges_wanted(prep))
        return OT_OK;
    prep->edges = ot__arena_alloc(plan->arena, sizeof *prep->edges);
    OT_TRY(ot__made(prep->edges != NULL));
    return ot__edges_make(plan->arena, prep, prep->edges);
}

// NULL where there is nothing to say.
static ot_status keep_step_reason(const ot__plan *plan, const ot__reasons *reasons,
                                  ot__plan_step *step)
{
    ot__buf text = {0};
    ot_status st;

    ot__reasons_text(reasons, step->kernel, &text);
    st = ot__buf_status(&text);
    if (st == OT_OK && text.length > 0) {
        step->reason = ot__arena_strdup(plan->arena, text.data);
        st = ot__made(step->reason != NULL);
    }
    ot__buf_deinit(&text);
    return st;
}

static ot_status prepare_step(ot__plan_builder *b, const ot_node *node, ot__plan_step *step)
{
    const ot__plan *plan = b->plan;
    const size_t n_in = (size_t)step->run.n_in + 1;
    const int threads_before = ot__parallel_max();
    const void **constant = ot__arena_alloc(b->arena, n_in * sizeof *constant);
    ot__reasons reasons = {.n_declined = 0};
    ot_prep prep = {.node = node,
                    .in = step->run.in,
                    .out = (const ot_arg *const *)step->run.out,
                    .constant = constant,
                    .n_in = step->run.n_in,
                    .n_out = step->run.n_out,
                    .in_first = step->run.in_first,
                    .n_threads = plan->n_threads,
                    .reproducible = b->options->reproducible,
                    .reasons = &reasons};

    OT_TRY(ot__made(constant != NULL));
    for (int i = 0; i < step->run.n_in; i++) {
        const ot__entry *e = ot__entry_of(step->run.in[i]);

        if (e != NULL && e->source == OT_SOURCE_CONSTANT)
            constant[i] = e->arg.data;
    }
    OT_TRY(offer_edges(b->plan, &prep));
    step->kernel = ot__kernel_select(&prep, b->options->reference_only);
    if (step->kernel == NULL)
        return ot__kernel_refused(node);
    reasons.said = reasons.taken;
    step->edges = prep.is_widened ? prep.edges : NULL;
    // A primitive of a library runs with as many threads as there are while it is made.
    ot__parallel_set(prep.n_threads);
    const ot_status st = ot__kernel_prepare(step->kernel, &prep);

    ot__parallel_set(threads_before);
    reasons.taken = reasons.said; // prepare may know more
    step->state_bytes = prep.state_bytes;
    step->run.state = prep.state;
    step->run.n_threads = prep.n_threads;
    if (st == OT_OK)
        OT_TRY(keep_step_reason(plan, &reasons, step));
    step->scratch_bytes = prep.scratch_bytes;
    if (step->edges != NULL)
        step->scratch_bytes = ot__edges_place(node->op, step->kernel, step->edges, step->run.n_in,
                                              step->run.n_out, prep.scratch_bytes);
    return st;
}

// What starts sums, and makes nothing, has no place among what ranks wait for.
static uint64_t add_to_exchange_id(uint64_t id, const ot_node *node)
{
    const ot_attr *bucket = ot__node_attr(node, "bucket");

    if ((node->op->flags & OT_OP_ORDERED) == 0 || node->n_outputs == 0)
        return id;
    id = ot__id_mix(id, node->op->name, strlen(node->op->name) + 1);
    return ot__id_mix_word(id, bucket != NULL ? (uint64_t)bucket->i : 0);
}

static ot_status build_steps(ot__plan_builder *b)
{
    ot__plan *plan = b->plan;
    const size_t n = (size_t)b->graph->n_nodes + 1;

    plan->steps = ot__arena_alloc(plan->arena, n * sizeof *plan->steps);
    b->step_ops = ot__arena_alloc(b->arena, n * sizeof *b->step_ops);
    b->step_nodes = ot__arena_alloc(b->arena, n * sizeof *b->step_nodes);
    OT_TRY(ot__made(plan->steps != NULL && b->step_ops != NULL && b->step_nodes != NULL));
    for (int i = 0; i < b->graph->n_nodes; i++) {
        const ot_node *node = b->order[i];

        if (b->is_view[ot__node_number(&b->numbers, node)])
            continue;
        b->step_ops[plan->n_steps] = node->op;
        b->step_nodes[plan->n_steps] = node;
        OT_TRY(set_args(b, node, &plan->steps[plan->n_steps]));
        plan->steps[plan->n_steps].is_ordered = (node->op->flags & OT_OP_ORDERED) != 0;
        plan->exchange_id = add_to_exchange_id(plan->exchange_id, node);
        // Counted before it is prepared, so that whatever state it has is released.
        plan->n_steps++;
        if ((node->op->flags & OT_OP_PAUSE) != 0)
            plan->n_before_pause = plan->n_steps;
        OT_TRY(prepare_step(b, node, &plan->steps[plan->n_steps - 1]));
    }
    if (plan->n_before_pause == 0)
        plan->n_before_pause = plan->n_steps;
    return OT_OK;
}

// ---- the plan ----

static ot_status check_graph(const ot_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const ot_op_def *op = graph->nodes[i]->op;

        if (op == NULL || op->kernels == NULL)
            return ot__error(OT_ERR_UNSUPPORTED, "%s: the operator cannot be run",
                             OT_LABEL(graph->nodes[i]));
    }
    return OT_OK;
}

static ot_status keep_ports(ot__plan_builder *b)
{
    const ot_graph *g = b->graph;
    ot__plan *plan = b->plan;

    plan->inputs = ot__arena_alloc(plan->arena, ((size_t)g->n_inputs + 1) * sizeof *plan->inputs);
    plan->outputs =
        ot__arena_alloc(plan->arena, ((size_t)g->n_outputs + 1) * sizeof *plan->outputs);
    plan->bound = ot__arena_alloc(plan->arena, ((size_t)g->n_outputs + 1) * sizeof *plan->bound);
    plan->name = ot__arena_strdup(plan->arena, g->name);
    OT_TRY(ot__made(plan->inputs != NULL && plan->outputs != NULL && plan->bound != NULL &&
                    plan->name != NULL));
    for (int i = 0; i < g->n_inputs; i++)
        plan->inputs[i] = ot__builder_range(b, g->inputs[i]);
    for (int i = 0; i < g->n_outputs; i++) {
        plan->outputs[i] = ot__builder_range(b, g->outputs[i]);
        if (g->outputs[i]->kind != OT_VALUE_TENSOR)
            return ot__error(OT_ERR_UNSUPPORTED, "output '%s' is not a tensor",
                             g->outputs[i]->name);
    }
    plan->n_inputs = g->n_inputs;
    plan->n_outputs = g->n_outputs;
    return OT_OK;
}

static ot_status build_plan(ot__plan_builder *b)
{
    OT_TRY(check_graph(b->graph));
    OT_TRY(ot__build_layout(b));
    OT_TRY(ot__build_entries(b));
    OT_TRY(keep_ports(b));
    OT_TRY(ot__build_order(b));
    OT_TRY(build_steps(b));
    return ot__build_memory(b);
}

ot_status ot__plan_create(ot_graph *graph, const ot__plan_options *options,
                          const int *sequence_lengths, const ot_shape *const *sequence_shapes,
                          ot__plan **out)
{
    ot__plan_builder b = {.graph = graph,
                          .options = options,
                          .sequence_lengths = sequence_lengths,
                          .sequence_shapes = sequence_shapes};
    ot_status st;

    *out = NULL;
    b.arena = ot__arena_create();
    b.plan = ot__alloc_zero(1, sizeof *b.plan);
    if (b.plan != NULL) {
        b.plan->arena = ot__arena_create();
        b.plan->n_threads = options->n_threads > 0 ? options->n_threads : ot__parallel_max();
        b.plan->profile = ot__profile_wanted();
    }
    st = ot__made(b.arena != NULL && b.plan != NULL && b.plan->arena != NULL);
    OT_THEN(st, build_plan(&b));
    ot__numbers_deinit(&b.numbers);
    ot__arena_destroy(b.arena);
    return OT_HAND_OUT(st, out, b.plan, ot__plan_destroy);
}

static ot_status sort_nodes(ot__plan_builder *b)
{
    OT_TRY(check_graph(b->graph));
    OT_TRY(ot__numbers_build(b->graph, &b->numbers));
    b->layouts = ot__arena_alloc(b->arena, ((size_t)b->numbers.n_values + 1) * sizeof *b->layouts);
    OT_TRY(ot__made(b->layouts != NULL));
    OT_TRY(ot__build_entries(b));
    OT_TRY(ot__build_order(b));
    memcpy(b->graph->nodes, b->order, (size_t)b->graph->n_nodes * sizeof *b->order);
    return OT_OK;
}

ot_status ot__plan_sort(ot_graph *graph, const int *sequence_lengths,
                        const ot_shape *const *sequence_shapes)
{
    ot__plan plan = {.arena = ot__arena_create()};
    ot__plan_builder b = {.graph = graph,
                          .sequence_lengths = sequence_lengths,
                          .sequence_shapes = sequence_shapes,
                          .plan = &plan,
                          .arena = ot__arena_create()};
    ot_status st = ot__made(plan.arena != NULL && b.arena != NULL);

    OT_THEN(st, graph->n_nodes > 0 ? sort_nodes(&b) : OT_OK);
    ot__numbers_deinit(&b.numbers);
    ot__arena_destroy(b.arena);
    ot__arena_destroy(plan.arena);
    return st;
}

void ot__plan_destroy(ot__plan *plan)
{
    if (plan == NULL)
        return;
    if (plan->profile && plan->n_runs > 0)
        ot__profile_log(plan);
    for (int s = 0; s < plan->n_steps; s++)
        if (plan->steps[s].run.state != NULL)
            ot__kernel_release(plan->steps[s].kernel, plan->steps[s].run.state);
    if (!plan->borrows_block)
        ot__free_aligned(plan->block);
    ot__arena_destroy(plan->arena);
    ot__free(plan);
}

// ---- inputs and outputs ----

int ot__plan_input_entries(const ot__plan *plan, int i_input)
{
    return plan->inputs[i_input].count;
}

void ot__plan_bind_input(ot__plan *plan, int i_input, int entry, const void *data)
{
    const int first = plan->inputs[i_input].first + entry;

    assert(entry >= 0 && entry < plan->inputs[i_input].count);
    assert(plan->entries[first].source == OT_SOURCE_INPUT);
    for (int e = first; e >= 0; e = plan->entries[e].next)
        plan->entries[e].arg.data = // written only where the port says STATE
            data == NULL ? NULL : (char *)data + plan->entries[e].place;
}

void ot__plan_bind_output(ot__plan *plan, int i_output, void *data)
{
    plan->bound[i_output] = data;
}

const ot_arg *ot__plan_input(const ot__plan *plan, int i_input, int entry)
{
    return &plan->entries[plan->inputs[i_input].first + entry].arg;
}

const ot_arg *ot__plan_output(const ot__plan *plan, int i_output)
{
    return &plan->entries[plan->outputs[i_output].first].arg;
}

bool ot__plan_writes_input(const ot__plan *plan, int i_input)
{
    const ot__range range = plan->inputs[i_input];

    return range.count > 0 && plan->entries[range.first].is_written;
}

uint64_t ot__plan_exchange_id(const ot__plan *plan)
{
    return plan->exchange_id;
}

size_t ot__plan_bytes(const ot__plan *plan)
{
    return plan->block_bytes;
}

size_t ot__plan_structure_bytes(const ot__plan *plan)
{
    size_t n = sizeof *plan + ot__arena_taken(plan->arena);

    for (int s = 0; s < plan->n_steps; s++)
        n += plan->steps[s].state_bytes;
    return n;
}

size_t ot__plan_gradient_bytes(const ot__plan *plan)
{
    return plan->gradient_bytes;
}

size_t ot__plan_scratch_bytes(const ot__plan *plan)
{
    size_t most = 0;

    for (int s = 0; s < plan->n_steps; s++)
        most = OT_MAX(most, plan->steps[s].scratch_bytes);
    return most;
}
