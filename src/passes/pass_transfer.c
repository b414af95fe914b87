// SPDX-License-Identifier: Apache-2.0
// Buckets that are cut over ranks, in a specialised graph: nodes gather the values of parameters,
// of which there is a part here, before their readers, and sum gradients over the ranks instead of
// accumulating them. Each node reads that the one before it is done, so every order of the graph is
// that of the list.
#include <stdlib.h>

#include "passes/passes.h"
#include "passes/recompute.h"

#define TRANSFER_DOMAIN "ai.onnxtrain"
enum { BUFFER, VALUE, DONE = 0, SUM }; // inputs and outputs of an accumulator

// A graph input that lies in a bucket: a parameter, or an accumulator.
typedef struct bucket_member {
    int bucket, input;
    int64_t offset;
    ot_node *accumulator;
} bucket_member;

typedef struct transferring {
    ot_graph *graph;
    const ot__transfer_buckets *buckets;
    ot__builder b;
    int n_nodes; // that were there at first
    ot__numbers numbers;
    bool *is_forward;             // per node
    bucket_member *values, *sums; // sorted
    int n_values, n_sums;
    ot_value **gathered[2];          // per value: for the forward and for the backward pass
    ot_value **gathering, **summing; // per bucket: the buffer that was started last
    ot_value *done;                  // of the latest node
    ot_value **inputs, **outputs;
    int64_t *offsets;
} transferring;

// ---- what the graph has ----

static int by_bucket(const void *a, const void *b)
{
    const bucket_member *x = a, *y = b;

    if (x->bucket != y->bucket)
        return x->bucket < y->bucket ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void list_members(const transferring *t, const int *bucket_of, bucket_member *out, int *n)
{
    for (int i = 0; i < t->graph->n_inputs; i++)
        if (bucket_of[i] >= 0)
            out[(*n)++] = (bucket_member){bucket_of[i], i, t->buckets->offset[i], NULL};
}

// Where a bucket's begin in a sorted list.
static int first_of_bucket(const bucket_member *members, int n, int bucket)
{
    int low = 0, high = n;

    while (low < high) {
        const int middle = low + (high - low) / 2;

        if (members[middle].bucket < bucket)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static ot_status find_replaced_accumulators(transferring *t)
{
    int *input_of = ot__alloc_zero((size_t)t->numbers.n_values + 1, sizeof *input_of);
    ot_status st = ot__made(input_of != NULL);
    int n = 0;

    for (int k = 0; st == OT_OK && k < t->n_sums; k++)
        input_of[ot__value_number(&t->numbers, t->graph->inputs[t->sums[k].input])] = k + 1;
    for (int k = 0; st == OT_OK && k < t->n_nodes; k++) {
        ot_node *node = t->graph->nodes[k];
        int at;

        if ((node->op->flags & OT_OP_ACCUMULATE) == 0 || node->inputs[BUFFER] == NULL)
            continue;
        at = input_of[ot__value_number(&t->numbers, node->inputs[BUFFER])] - 1;
        if (at < 0)
            continue;
        if (node->n_outputs > SUM && node->outputs[SUM] != NULL)
            st = ot__error(
                OT_ERR_UNSUPPORTED,
                "%s: gradients that are cut over ranks (zero 2, 3) have no whole sum '%s'",
                OT_LABEL(node), node->outputs[SUM]->name);
        t->sums[at].accumulator = node;
    }
    for (int k = 0; st == OT_OK && k < t->n_sums; k++) // of which something is added up
        if (t->sums[k].accumulator != NULL)
            t->sums[n++] = t->sums[k];
    t->n_sums = st == OT_OK ? n : 0;
    ot__free(input_of);
    return st;
}

static ot_status make_transferring(transferring *t)
{
    const size_t n = (size_t)t->graph->n_inputs + 1, n_buckets = (size_t)t->buckets->n_buckets + 1;
    ot__arena *arena = t->graph->model->arena;

    OT_TRY(ot__numbers_build(t->graph, &t->numbers));
    t->is_forward = ot__arena_alloc(arena, (size_t)t->n_nodes + 1);
    t->values = ot__arena_alloc(arena, n * sizeof *t->values);
    t->sums = ot__arena_alloc(arena, n * sizeof *t->sums);
    t->gathered[0] = ot__arena_alloc(arena, n * sizeof(ot_value *));
    t->gathered[1] = ot__arena_alloc(arena, n * sizeof(ot_value *));
    t->gathering = ot__arena_alloc(arena, n_buckets * sizeof(ot_value *));
    t->summing = ot__arena_alloc(arena, n_buckets * sizeof(ot_value *));
    t->inputs = ot__arena_alloc(arena, (2 * n + 2) * sizeof(ot_value *));
    t->outputs = ot__arena_alloc(arena, (n + 2) * sizeof(ot_value *));
    t->offsets = ot__arena_alloc(arena, n * sizeof *t->offsets);
    OT_TRY(ot__made(t->is_forward != NULL && t->values != NULL && t->sums != NULL &&
                    t->gathered[0] != NULL && t->gathered[1] != NULL && t->gathering != NULL &&
                    t->summing != NULL && t->inputs != NULL && t->outputs != NULL &&
                    t->offsets != NULL));
    OT_TRY(ot__find_forward(t->graph, &t->numbers, t->buckets->outputs, t->buckets->n_outputs,
                            t->is_forward));
    list_members(t, t->buckets->of_parameter, t->values, &t->n_values);
    list_members(t, t->buckets->of_accumulator, t->sums, &t->n_sums);
    OT_TRY(find_replaced_accumulators(t));
    qsort(t->values, (size_t)t->n_values, sizeof *t->values, by_bucket);
    qsort(t->sums, (size_t)t->n_sums, sizeof *t->sums, by_bucket);
    return OT_OK;
}

// ---- new nodes ----

static ot_node *build_transfer(transferring *t, ot_transfer what, int n_inputs, int n_outputs)
{
    ot_value **x = t->inputs, **y = t->outputs;

    switch (what) {
    case OT_TRANSFER_GATHER_START:
        return ot__op_build(&t->b, TRANSFER_DOMAIN, "GatherStart", "", x, n_inputs, y, n_outputs);
    case OT_TRANSFER_GATHER_WAIT:
        return ot__op_build(&t->b, TRANSFER_DOMAIN, "GatherWait", "", x, n_inputs, y, n_outputs);
    case OT_TRANSFER_SCATTER_START:
        return ot__op_build(&t->b, TRANSFER_DOMAIN, "ScatterStart", "", x, n_inputs, y, n_outputs);
    default:
        return ot__op_build(&t->b, TRANSFER_DOMAIN, "ScatterWait", "", x, n_inputs, y, n_outputs);
    }
}

static void add_transfer(transferring *t, ot_transfer what, int bucket, int n_inputs, int n_outputs,
                         const bucket_member *members, int n)
{
    ot_node *node = build_transfer(t, what, n_inputs, n_outputs);

    for (int k = 0; k < n; k++)
        t->offsets[k] = members[k].offset;
    ot__build_int(&t->b, node, "bucket", bucket);
    ot__build_int(&t->b, node, "elements", t->buckets->n_elements[bucket]);
    ot__build_ints(&t->b, node, "offsets", t->offsets, n);
    ot__op_settle(&t->b, node);
}

static ot_value *graph_input(const transferring *t, const bucket_member *member)
{
    return t->graph->inputs[member->input];
}

static void start_transfer(transferring *t, ot_transfer what, int bucket, int n_inputs,
                           const bucket_member *members, int n, ot_value **buffer)
{
    t->inputs[0] = t->done;
    t->outputs[0] = *buffer = ot__build_value(&t->b, "bucket");
    t->outputs[1] = ot__build_value(&t->b, "done");
    if (t->b.status != OT_OK)
        return;
    add_transfer(t, what, bucket, n_inputs, 2, members, n);
    t->done = t->outputs[1];
}

static void add_gather_start(transferring *t, int bucket)
{
    const int first = first_of_bucket(t->values, t->n_values, bucket);
    int n = 0;

    for (; first + n < t->n_values && t->values[first + n].bucket == bucket; n++)
        t->inputs[1 + n] = graph_input(t, &t->values[first + n]);
    start_transfer(t, OT_TRANSFER_GATHER_START, bucket, 1 + n, &t->values[first], n,
                   &t->gathering[bucket]);
}

static void add_gather_wait(transferring *t, int bucket, bool is_backward)
{
    const int first = first_of_bucket(t->values, t->n_values, bucket);
    int n = 0;

    t->inputs[0] = t->gathering[bucket];
    t->inputs[1] = t->done;
    t->outputs[0] = ot__build_value(&t->b, "done");
    for (; first + n < t->n_values && t->values[first + n].bucket == bucket; n++) {
        t->inputs[2 + n] = graph_input(t, &t->values[first + n]);
        t->outputs[1 + n] = t->gathered[is_backward][first + n] =
            ot__build_value(&t->b, t->inputs[2 + n]->name);
    }
    if (t->b.status != OT_OK)
        return;
    add_transfer(t, OT_TRANSFER_GATHER_WAIT, bucket, 2 + n, 1 + n, &t->values[first], n);
    t->done = t->outputs[0];
}

// The accumulators give their gradients away.
static void add_scatter_start(transferring *t, int bucket)
{
    const int first = first_of_bucket(t->sums, t->n_sums, bucket);
    int n = 0;

    while (first + n < t->n_sums && t->sums[first + n].bucket == bucket)
        n++;
    for (int k = 0; k < n; k++) {
        t->inputs[1 + k] = graph_input(t, &t->sums[first + k]);
        t->inputs[1 + n + k] = t->sums[first + k].accumulator->inputs[VALUE];
    }
    start_transfer(t, OT_TRANSFER_SCATTER_START, bucket, 1 + 2 * n, &t->sums[first], n,
                   &t->summing[bucket]);
}

// What the accumulators made says that the sums are there.
static void add_scatter_wait(transferring *t, int bucket)
{
    const int first = first_of_bucket(t->sums, t->n_sums, bucket);
    int n = 0, n_outputs = 1;

    t->inputs[0] = t->summing[bucket];
    t->inputs[1] = t->done;
    t->outputs[0] = ot__build_value(&t->b, "done");
    for (; first + n < t->n_sums && t->sums[first + n].bucket == bucket; n++) {
        ot_node *accumulator = t->sums[first + n].accumulator;
        ot_value *flag = accumulator->outputs[DONE];

        ot__node_detach(accumulator);
        if (flag != NULL)
            t->outputs[n_outputs++] = flag;
    }
    if (t->b.status != OT_OK)
        return;
    add_transfer(t, OT_TRANSFER_SCATTER_WAIT, bucket, 2, n_outputs, &t->sums[first], n);
    t->done = t->outputs[0];
}

static void add_transfer_nodes(transferring *t, const ot__transfer *transfers, int n_transfers)
{
    for (int k = 0; k < n_transfers && t->b.status == OT_OK; k++) {
        const int bucket = transfers[k].bucket;

        switch (transfers[k].what) {
        case OT_TRANSFER_GATHER_START:
            add_gather_start(t, bucket);
            break;
        case OT_TRANSFER_GATHER_WAIT:
            add_gather_wait(t, bucket, transfers[k].is_backward);
            break;
        case OT_TRANSFER_SCATTER_START:
            add_scatter_start(t, bucket);
            break;
        case OT_TRANSFER_SCATTER_WAIT:
            add_scatter_wait(t, bucket);
            break;
        }
    }
}

// ---- readers ----

static ot_status refuse_reader(const ot_value *value, const char *what)
{
    return ot__error(OT_ERR_UNSUPPORTED,
                     "parameter '%s' is %s: its value cannot be cut over ranks (zero 3)",
                     value->name, what);
}

static ot_status check_outputs(const transferring *t)
{
    for (int k = 0; k < t->n_values; k++)
        if (graph_input(t, &t->values[k])->is_output)
            return refuse_reader(graph_input(t, &t->values[k]), "an output of the model");
    return OT_OK;
}

// What was gathered for a pass, or for the other one where it is still there.
static ot_value *value_for(const transferring *t, int k, bool is_backward)
{
    ot_value *value = t->gathered[is_backward][k];

    return value != NULL ? value : t->gathered[!is_backward][k];
}

static ot_status replace_readers(const transferring *t)
{
    int *member_of = ot__alloc_zero((size_t)t->numbers.n_values + 1, sizeof *member_of);
    ot_status st = ot__made(member_of != NULL);

    for (int k = 0; st == OT_OK && k < t->n_values; k++)
        member_of[ot__value_number(&t->numbers, graph_input(t, &t->values[k]))] = k + 1;
    for (int n = 0; st == OT_OK && n < t->n_nodes; n++) {
        ot_node *node = t->graph->nodes[n];

        for (int i = 0; i < node->n_inputs && st == OT_OK; i++) {
            const int k = node->inputs[i] != NULL
                              ? member_of[ot__value_number(&t->numbers, node->inputs[i])] - 1
                              : -1;

            if (k < 0)
                continue;
            if (value_for(t, k, !t->is_forward[n]) == NULL)
                st = refuse_reader(node->inputs[i], "read where the model does not read it");
            else
                node->inputs[i] = value_for(t, k, !t->is_forward[n]);
        }
    }
    ot__free(member_of);
    return st;
}

// ---- all of it ----

static ot_status transfer_buckets(transferring *t, const ot__transfer *transfers, int n_transfers)
{
    ot_status st;

    OT_TRY(make_transferring(t));
    OT_TRY(check_outputs(t));
    add_transfer_nodes(t, transfers, n_transfers);
    OT_TRY(t->b.status);
    OT_TRY(replace_readers(t));
    ot__graph_drop_detached(t->graph);
    st = ot__graph_sort(t->graph);
    return st != OT_ERR_FORMAT
               ? st
               : ot__error(OT_ERR_UNSUPPORTED,
                           "the nodes of graph '%s' have no order in which all ranks can gather "
                           "parameters and sum gradients; train it with zero 1",
                           t->graph->name);
}

ot_status ot__pass_transfer(ot_graph *graph, const ot__transfer_buckets *buckets,
                            const ot__transfer *transfers, int n_transfers)
{
    transferring t = {
        .graph = graph, .buckets = buckets, .b = {.graph = graph}, .n_nodes = graph->n_nodes};
    ot_status st = transfer_buckets(&t, transfers, n_transfers);

    ot__numbers_deinit(&t.numbers);
    return st;
}
