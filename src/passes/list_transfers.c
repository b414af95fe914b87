// SPDX-License-Identifier: Apache-2.0
// What a step over several ranks does with buckets that are cut over them, in the order of the
// model's nodes.
#include "passes/passes.h"
#include "passes/recompute.h"

enum { BUFFER, VALUE }; // inputs of an accumulator

typedef struct transfer_lister {
    const ot_graph *graph;
    const ot__transfer_buckets *buckets;
    ot__numbers numbers;
    bool *is_forward;       // per node
    int *of_value, *of_sum; // per value: the bucket of the parameter or the accumulator; -1: none
    int *completed_by;      // per bucket: the node that makes the last of its gradients; -1: none
    bool *completes;        // per node: it is such a one
    bool *is_gathered;      // per bucket, for the forward pass and the backward pass
    ot__transfer *uses;     // first uses of gathered buckets, and completed gradients
    int n_uses;
    int latest; // bucket that was gathered last; -1: none
} transfer_lister;

static void note_use(transfer_lister *l, ot_transfer what, int bucket, bool is_backward)
{
    l->uses[l->n_uses++] = (ot__transfer){what, bucket, is_backward};
}

// Whose gradient a node adds up; -1: none.
static int bucket_of_sum(const transfer_lister *l, const ot_node *node)
{
    return (node->op->flags & OT_OP_ACCUMULATE) != 0 && node->inputs[BUFFER] != NULL
               ? l->of_sum[ot__value_number(&l->numbers, node->inputs[BUFFER])]
               : -1;
}

static void list_uses_of(transfer_lister *l, int k)
{
    const ot_node *node = l->graph->nodes[k];

    for (int i = 0; i < node->n_inputs; i++) {
        const int bucket = node->inputs[i] != NULL
                               ? l->of_value[ot__value_number(&l->numbers, node->inputs[i])]
                               : -1;
        const bool is_backward = !l->is_forward[k];

        if (bucket < 0 || l->is_gathered[2 * bucket + is_backward])
            continue;
        l->is_gathered[2 * bucket + is_backward] = true;
        if (bucket != l->latest) // else it is still there
            note_use(l, OT_TRANSFER_GATHER_WAIT, bucket, is_backward);
        l->latest = bucket;
    }
    for (int b = 0; b < l->buckets->n_buckets && l->completes[k]; b++)
        if (l->completed_by[b] == k)
            note_use(l, OT_TRANSFER_SCATTER_START, b, false);
}

// Accumulators may stand at the end of the model, where the gradients of all buckets would wait.
static void find_completions(const transfer_lister *l)
{
    for (int b = 0; b < l->buckets->n_buckets; b++)
        l->completed_by[b] = -1;
    for (int k = 0; k < l->graph->n_nodes; k++) {
        const ot_node *node = l->graph->nodes[k];
        const int bucket = bucket_of_sum(l, node);
        const ot_value *gradient = bucket >= 0 ? node->inputs[VALUE] : NULL;
        const int maker = gradient != NULL && gradient->producer != NULL
                              ? ot__node_number(&l->numbers, gradient->producer)
                              : k;

        if (bucket >= 0)
            l->completed_by[bucket] = OT_MAX(l->completed_by[bucket], maker);
    }
    for (int b = 0; b < l->buckets->n_buckets; b++)
        if (l->completed_by[b] >= 0)
            l->completes[l->completed_by[b]] = true;
}

static ot_status find_uses(transfer_lister *l)
{
    const ot_graph *g = l->graph;
    const ot__transfer_buckets *b = l->buckets;

    OT_TRY(ot__find_forward(g, &l->numbers, b->outputs, b->n_outputs, l->is_forward));
    for (int v = 0; v < l->numbers.n_values; v++)
        l->of_value[v] = l->of_sum[v] = -1;
    for (int i = 0; i < g->n_inputs; i++) {
        const int number = ot__value_number(&l->numbers, g->inputs[i]);

        l->of_value[number] = b->of_parameter[i];
        l->of_sum[number] = b->of_accumulator[i];
    }
    find_completions(l);
    for (int k = 0; k < g->n_nodes; k++)
        list_uses_of(l, k);
    return OT_OK;
}

// The next use of that kind behind use `k`; -1: none.
static int next_use(const transfer_lister *l, int k, ot_transfer what)
{
    for (k++; k < l->n_uses; k++)
        if (l->uses[k].what == what)
            return k;
    return -1;
}

// A transfer list that is made, and the sums that are not in it yet.
typedef struct arranging {
    ot__transfer *out;
    int n;
    int summed;  // bucket whose sum has begun last; -1: none
    int pending; // the first use that may be a sum that has not begun
} arranging;

static void add_sum(arranging *a, const ot__transfer *start)
{
    a->out[a->n++] = *start;
    if (a->summed >= 0)
        a->out[a->n++] = (ot__transfer){OT_TRANSFER_SCATTER_WAIT, a->summed, false};
    a->summed = start->bucket;
}

// Of the uses before `end`.
static void add_pending_sums(const transfer_lister *l, arranging *a, int end)
{
    for (; a->pending < end; a->pending++)
        if (l->uses[a->pending].what == OT_TRANSFER_SCATTER_START)
            add_sum(a, &l->uses[a->pending]);
}

// A gather starts when the one before it is waited for, and a sum ends when the next one has
// started. A sum starts behind the next gather: fused nodes that make its gradients may read
// parameters of the next bucket, as the shift of a normalisation whose scale is the last of its
// own.
static int arrange_transfers(const transfer_lister *l, ot__transfer *out)
{
    const int first = next_use(l, -1, OT_TRANSFER_GATHER_WAIT);
    arranging a = {.out = out, .summed = -1};

    if (first >= 0) {
        out[a.n] = l->uses[first];
        out[a.n++].what = OT_TRANSFER_GATHER_START;
    }
    for (int k = first; k >= 0;) {
        const int next = next_use(l, k, OT_TRANSFER_GATHER_WAIT);

        if (next >= 0) {
            out[a.n] = l->uses[next];
            out[a.n++].what = OT_TRANSFER_GATHER_START;
        }
        out[a.n++] = l->uses[k];
        if (!l->buckets->sums_late)
            add_pending_sums(l, &a, k);
        k = next;
    }
    add_pending_sums(l, &a, l->n_uses);
    if (a.summed >= 0)
        out[a.n++] = (ot__transfer){OT_TRANSFER_SCATTER_WAIT, a.summed, false};
    return a.n;
}

static ot_status list_transfers(transfer_lister *l, ot__transfer **out, int *n_out)
{
    enum { PER_BUCKET = 3 }; // uses: two gathers and a sum
    const size_t n_buckets = (size_t)l->buckets->n_buckets + 1;
    size_t n_values;

    OT_TRY(ot__numbers_build(l->graph, &l->numbers));
    n_values = (size_t)l->numbers.n_values + 1;
    l->is_forward = ot__alloc_zero((size_t)l->graph->n_nodes + 1, sizeof *l->is_forward);
    l->of_value = ot__alloc_zero(n_values, sizeof *l->of_value);
    l->of_sum = ot__alloc_zero(n_values, sizeof *l->of_sum);
    l->is_gathered = ot__alloc_zero(2 * n_buckets, sizeof *l->is_gathered);
    l->completed_by = ot__alloc_zero(n_buckets, sizeof *l->completed_by);
    l->completes = ot__alloc_zero((size_t)l->graph->n_nodes + 1, sizeof *l->completes);
    l->uses = ot__alloc_zero(PER_BUCKET * n_buckets, sizeof *l->uses);
    OT_TRY(ot__made(l->is_forward != NULL && l->of_value != NULL && l->of_sum != NULL &&
                    l->is_gathered != NULL && l->completed_by != NULL && l->completes != NULL &&
                    l->uses != NULL));
    OT_TRY(find_uses(l));
    *out = ot__alloc_zero(2 * PER_BUCKET * n_buckets, sizeof **out);
    OT_TRY(ot__made(*out != NULL));
    *n_out = arrange_transfers(l, *out);
    return OT_OK;
}

ot_status ot__list_transfers(const ot_graph *graph, const ot__transfer_buckets *buckets,
                             ot__transfer **out, int *n_out)
{
    transfer_lister l = {.graph = graph, .buckets = buckets, .latest = -1};
    ot_status st;

    *out = NULL;
    *n_out = 0;
    st = list_transfers(&l, out, n_out);
    ot__numbers_deinit(&l.numbers);
    ot__free(l.is_forward);
    ot__free(l.of_value);
    ot__free(l.of_sum);
    ot__free(l.is_gathered);
    ot__free(l.completed_by);
    ot__free(l.completes);
    ot__free(l.uses);
    return st;
}
