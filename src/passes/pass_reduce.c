// SPDX-License-Identifier: Apache-2.0
// Where the gradients of a bucket are complete in a training graph, their sums over the ranks
// begin: behind the last of their accumulators stands a ReduceStart node, which reads the flags of
// all of them.
#include <string.h>

#include "passes/passes.h"

#define REDUCE_DOMAIN "ai.onnxtrain"
enum { BUFFER, DONE = 0 }; // input and output of an accumulator

typedef struct reducing {
    ot_graph *graph;
    int n_nodes;      // that were there at first
    int *bucket;      // per node: of the gradient that it accumulates; -1: none
    ot_value **flags; // of the bucket at hand
    ot_node **order;
} reducing;

// The buckets of nodes, from those of graph inputs.
static ot_status find_bucket_nodes(const reducing *r, const int *bucket_of)
{
    ot__numbers numbers = {0};
    int *of_value = NULL;
    ot_status st = ot__numbers_build(r->graph, &numbers);

    if (st == OT_OK)
        of_value = ot__alloc_zero((size_t)numbers.n_values + 1, sizeof *of_value);
    OT_THEN(st, ot__made(of_value != NULL));
    for (int i = 0; st == OT_OK && i < r->graph->n_inputs; i++)
        of_value[ot__value_number(&numbers, r->graph->inputs[i])] = bucket_of[i] + 1;
    for (int k = 0; st == OT_OK && k < r->n_nodes; k++) {
        const ot_node *node = r->graph->nodes[k];
        const bool accumulates = (node->op->flags & OT_OP_ACCUMULATE) != 0 &&
                                 node->inputs[BUFFER] != NULL && node->outputs[DONE] != NULL;

        r->bucket[k] =
            accumulates ? of_value[ot__value_number(&numbers, node->inputs[BUFFER])] - 1 : -1;
    }
    ot__free(of_value);
    ot__numbers_deinit(&numbers);
    return st;
}

// *last: the node behind which it belongs; -1: the graph has nothing of the bucket.
static ot_status add_reduce_start(const reducing *r, int bucket, int *last)
{
    ot__builder b = {.graph = r->graph};
    int n_flags = 0;

    *last = -1;
    for (int k = 0; k < r->n_nodes; k++)
        if (r->bucket[k] == bucket) {
            r->flags[n_flags++] = r->graph->nodes[k]->outputs[DONE];
            *last = k;
        }
    if (n_flags == 0)
        return OT_OK;
    ot_node *node = ot__op_build(&b, REDUCE_DOMAIN, "ReduceStart", "", r->flags, n_flags, NULL, 0);

    ot__build_int(&b, node, "bucket", bucket);
    ot__op_settle(&b, node);
    return b.status;
}

// behind[k]: the node that comes behind node k, as a number; -1: none.
static void put_behind(const reducing *r, const int *behind)
{
    int n = 0;

    for (int k = 0; k < r->n_nodes; k++) {
        r->order[n++] = r->graph->nodes[k];
        if (behind[k] >= 0)
            r->order[n++] = r->graph->nodes[behind[k]];
    }
    if (n > 0)
        memcpy(r->graph->nodes, r->order, (size_t)n * sizeof(ot_node *));
}

static ot_status add_reduce_starts(reducing *r, const int *bucket_of, int n_buckets, int *behind)
{
    OT_TRY(find_bucket_nodes(r, bucket_of));
    for (int k = 0; k < r->n_nodes; k++)
        behind[k] = -1;
    for (int bucket = 0; bucket < n_buckets; bucket++) {
        const int n = r->graph->n_nodes;
        int last;

        OT_TRY(add_reduce_start(r, bucket, &last));
        if (last >= 0)
            behind[last] = n;
    }
    put_behind(r, behind);
    return OT_OK;
}

ot_status ot__pass_reduce(ot_graph *graph, const int *bucket_of, int n_buckets)
{
    const size_t n = (size_t)graph->n_nodes + (size_t)n_buckets + 1;
    reducing r = {.graph = graph, .n_nodes = graph->n_nodes};
    int *behind = ot__alloc_zero(n, sizeof *behind);
    ot_status st;

    r.bucket = ot__alloc_zero(n, sizeof *r.bucket);
    r.flags = ot__alloc_zero(n, sizeof(ot_value *));
    r.order = ot__alloc_zero(n, sizeof(ot_node *));
    st = ot__made(behind != NULL && r.bucket != NULL && r.flags != NULL && r.order != NULL);
    OT_THEN(st, add_reduce_starts(&r, bucket_of, n_buckets, behind));
    ot__free(behind);
    ot__free(r.bucket);
    ot__free(r.flags);
    ot__free(r.order);
    return st;
}
