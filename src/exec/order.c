// SPDX-License-Identifier: Apache-2.0
// In which order the nodes run: topological, readers of an overwritten value before its writer, and
// then few live bytes. Two orders are made, the file's with every overwriting node (accumulators)
// moved as far forward as it can go, and a greedy one; the one with the lower peak is taken, the
// file's when they are equal.
#include <stdlib.h>
#include <string.h>

#include "exec/plan.h"

enum {
    GREEDY_MAX = 20000,  // nodes; above it the quadratic greedy order is not tried
    CHAIN_MAX = 4,       // nodes the greedy order looks ahead
    EDGES_MAX = 1 << 26, // of either kind; writers of one value wait for one another, each for each
};

typedef struct adjacency {
    int *first, *item; // item[first[k]] .. item[first[k + 1] - 1]
    int64_t n_items;   // counted so far
} adjacency;

typedef struct scheduler {
    const ot__order_problem *problem;
    adjacency readers;   // of a value; a node that reads it twice is there twice
    adjacency followers; // of a node: those that wait for it
    int *n_waiting;      // per node: entries of `followers` that have not run
    int *n_unread;       // per value: reads still to come
    int *ready;          // candidates: a heap by file order, or in any order
    int n_ready;
    size_t live, peak;
} scheduler;

// ---- who waits for whom ----

static bool overwrites(const ot__order_node *node, int value)
{
    for (int i = 0; i < node->n_overwrites; i++)
        if (node->overwrites[i] == value)
            return true;
    return false;
}

static bool is_full(const adjacency *edges)
{
    return edges->n_items > EDGES_MAX;
}

// Counts an edge (item NULL) or writes it down. A full index counts no more.
static void add_edge(adjacency *edges, int *count, int from, int to)
{
    if (edges->item != NULL)
        edges->item[edges->first[from] + count[from]] = to;
    else if (is_full(edges))
        return;
    else
        edges->n_items++;
    count[from]++;
}

static void add_readers(const scheduler *s, adjacency *edges, int *count, int value, int writer)
{
    for (int k = s->readers.first[value]; k < s->readers.first[value + 1] && !is_full(edges); k++)
        if (s->readers.item[k] != writer)
            add_edge(edges, count, s->readers.item[k], writer);
}

// Readers of an overwritten value run before its writer, several writers in the file's order, and
// between two of them those who read what the first one wrote.
static void add_overwrite_edges(const scheduler *s, adjacency *edges, int *count, int writer,
                                int value)
{
    const ot__order_node *nodes = s->problem->nodes;

    for (int k = s->readers.first[value]; k < s->readers.first[value + 1] && !is_full(edges); k++) {
        const int reader = s->readers.item[k];
        const ot__order_node *node = &nodes[reader];

        if (reader == writer)
            continue;
        if (!overwrites(node, value)) {
            add_edge(edges, count, reader, writer);
        } else if (reader < writer) {
            add_edge(edges, count, reader, writer);
            for (int i = 0; i < node->n_overwrites; i++)
                if (node->overwrites[i] == value && node->becomes[i] >= 0)
                    add_readers(s, edges, count, node->becomes[i], writer);
        }
    }
}

static void add_edges(const scheduler *s, adjacency *edges, int *count)
{
    const ot__order_problem *p = s->problem;

    for (int n = 0; n < p->n_nodes && !is_full(edges); n++) {
        const ot__order_node *node = &p->nodes[n];

        for (int i = 0; i < node->n_makes; i++)
            for (int k = s->readers.first[node->makes[i]]; k < s->readers.first[node->makes[i] + 1];
                 k++)
                add_edge(edges, count, n, s->readers.item[k]);
        for (int i = 0; i < node->n_overwrites; i++)
            add_overwrite_edges(s, edges, count, n, node->overwrites[i]);
    }
}

// Turns counts into starts and makes room for the items.
static ot_status index_open(adjacency *x, int *count, int n)
{
    if (is_full(x))
        return ot__error(OT_ERR_UNSUPPORTED,
                         "the nodes depend on one another in more than %d places", EDGES_MAX);
    for (int i = 0; i < n; i++)
        x->first[i + 1] = x->first[i] + count[i];
    memset(count, 0, (size_t)n * sizeof *count);
    x->item = ot__alloc_zero((size_t)x->first[n] + 1, sizeof *x->item);
    return x->item != NULL ? OT_OK : OT_ERR_NO_MEMORY;
}

static void add_reads(const ot__order_problem *p, adjacency *readers, int *count)
{
    for (int n = 0; n < p->n_nodes; n++)
        for (int i = 0; i < p->nodes[n].n_reads; i++)
            add_edge(readers, count, p->nodes[n].reads[i], n);
}

static ot_status index_all(scheduler *s, int *value_count, int *node_count)
{
    const ot__order_problem *p = s->problem;

    add_reads(p, &s->readers, value_count);
    OT_TRY(index_open(&s->readers, value_count, p->n_values));
    add_reads(p, &s->readers, value_count);
    add_edges(s, &s->followers, node_count);
    OT_TRY(index_open(&s->followers, node_count, p->n_nodes));
    add_edges(s, &s->followers, node_count);
    return OT_OK;
}

static ot_status scheduler_init(scheduler *s, const ot__order_problem *p)
{
    const size_t n_values = (size_t)p->n_values + 1, n_nodes = (size_t)p->n_nodes + 1;
    int *value_count = ot__alloc_zero(n_values, sizeof(int));
    int *node_count = ot__alloc_zero(n_nodes, sizeof(int));
    ot_status st = OT_ERR_NO_MEMORY;

    *s = (scheduler){.problem = p};
    s->readers.first = ot__alloc_zero(n_values, sizeof(int));
    s->followers.first = ot__alloc_zero(n_nodes, sizeof(int));
    s->n_waiting = ot__alloc_zero(n_nodes, sizeof(int));
    s->n_unread = ot__alloc_zero(n_values, sizeof(int));
    s->ready = ot__alloc_zero(n_nodes, sizeof(int));
    if (value_count != NULL && node_count != NULL && s->readers.first != NULL &&
        s->followers.first != NULL && s->n_waiting != NULL && s->n_unread != NULL &&
        s->ready != NULL)
        st = index_all(s, value_count, node_count);
    ot__free(value_count);
    ot__free(node_count);
    return st;
}

static void scheduler_deinit(scheduler *s)
{
    ot__free(s->readers.first);
    ot__free(s->readers.item);
    ot__free(s->followers.first);
    ot__free(s->followers.item);
    ot__free(s->n_waiting);
    ot__free(s->n_unread);
    ot__free(s->ready);
}

// ---- choosing the next node ----

// Live bytes after `node` ran less those before.
static int64_t net_bytes(const scheduler *s, int node)
{
    const ot__order_problem *p = s->problem;
    const ot__order_node *d = &p->nodes[node];
    int64_t net = 0;

    for (int i = 0; i < d->n_makes; i++)
        if (s->n_unread[d->makes[i]] > 0 || p->value_kept[d->makes[i]])
            net += (int64_t)p->value_bytes[d->makes[i]];
    for (int i = 0; i < d->n_reads; i++) {
        const int value = d->reads[i];
        int n_same = 0;
        bool counted = false;

        for (int k = 0; k < d->n_reads; k++) {
            n_same += d->reads[k] == value;
            counted = counted || (k < i && d->reads[k] == value);
        }
        if (!counted && !p->value_kept[value] && s->n_unread[value] == n_same)
            net -= (int64_t)p->value_bytes[value];
    }
    return net;
}

// The only node that waits for nothing but `node`, or -1.
static int sole_follower(const scheduler *s, int node)
{
    const int first = s->followers.first[node], end = s->followers.first[node + 1];

    if (first == end)
        return -1;
    for (int k = first + 1; k < end; k++)
        if (s->followers.item[k] != s->followers.item[first])
            return -1;
    return s->n_waiting[s->followers.item[first]] == end - first ? s->followers.item[first] : -1;
}

// The lowest sum of net bytes along the chain that `node` starts: a weight gradient that is
// accumulated at once costs nothing, although it is large while it lives.
static int64_t chain_bytes(const scheduler *s, int node)
{
    int64_t sum = 0, lowest = INT64_MAX;

    for (int k = 0; k < CHAIN_MAX && node >= 0; k++) {
        sum += net_bytes(s, node);
        lowest = OT_MIN(lowest, sum);
        node = sole_follower(s, node);
    }
    return lowest;
}

static int take_greedy(scheduler *s)
{
    int64_t best_bytes = INT64_MAX;
    int best = 0;

    for (int k = 0; k < s->n_ready; k++) {
        const int64_t n_bytes = chain_bytes(s, s->ready[k]);

        if (n_bytes < best_bytes || (n_bytes == best_bytes && s->ready[k] < s->ready[best])) {
            best_bytes = n_bytes;
            best = k;
        }
    }
    const int node = s->ready[best];

    s->ready[best] = s->ready[--s->n_ready];
    return node;
}

static void put_greedy(scheduler *s, int node)
{
    s->ready[s->n_ready++] = node;
}

static bool runs_before(const scheduler *s, int a, int b)
{
    const bool a_writes = s->problem->nodes[a].n_overwrites > 0;
    const bool b_writes = s->problem->nodes[b].n_overwrites > 0;

    return a_writes != b_writes ? a_writes : a < b;
}

static void put_in_file_order(scheduler *s, int node)
{
    int at = s->n_ready++;

    while (at > 0 && runs_before(s, node, s->ready[(at - 1) / 2])) {
        s->ready[at] = s->ready[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->ready[at] = node;
}

static int take_in_file_order(scheduler *s)
{
    const int node = s->ready[0], last = s->ready[--s->n_ready];
    int at = 0;

    for (;;) {
        int child = 2 * at + 1;

        if (child >= s->n_ready)
            break;
        if (child + 1 < s->n_ready && runs_before(s, s->ready[child + 1], s->ready[child]))
            child++;
        if (!runs_before(s, s->ready[child], last))
            break;
        s->ready[at] = s->ready[child];
        at = child;
    }
    s->ready[at] = last;
    return node;
}

// ---- making an order ----

typedef struct rule {
    void (*put)(scheduler *s, int node);
    int (*take)(scheduler *s);
} rule;

static void account(scheduler *s, int node)
{
    const ot__order_problem *p = s->problem;
    const ot__order_node *d = &p->nodes[node];

    for (int i = 0; i < d->n_makes; i++)
        s->live += p->value_bytes[d->makes[i]];
    s->peak = OT_MAX(s->peak, s->live);
    for (int i = 0; i < d->n_makes; i++)
        if (s->n_unread[d->makes[i]] == 0 && !p->value_kept[d->makes[i]])
            s->live -= p->value_bytes[d->makes[i]];
    for (int i = 0; i < d->n_reads; i++)
        if (--s->n_unread[d->reads[i]] == 0 && !p->value_kept[d->reads[i]])
            s->live -= p->value_bytes[d->reads[i]];
}

static int schedule(scheduler *s, const rule *r, int *order)
{
    const ot__order_problem *p = s->problem;
    int n_run = 0;

    s->live = s->peak = 0;
    s->n_ready = 0;
    memset(s->n_waiting, 0, (size_t)p->n_nodes * sizeof *s->n_waiting);
    for (int k = 0; k < s->followers.first[p->n_nodes]; k++)
        s->n_waiting[s->followers.item[k]]++;
    for (int v = 0; v < p->n_values; v++)
        s->n_unread[v] = s->readers.first[v + 1] - s->readers.first[v];
    for (int n = 0; n < p->n_nodes; n++)
        if (s->n_waiting[n] == 0)
            r->put(s, n);
    while (s->n_ready > 0) {
        const int node = r->take(s);

        account(s, node);
        order[n_run++] = node;
        for (int k = s->followers.first[node]; k < s->followers.first[node + 1]; k++)
            if (--s->n_waiting[s->followers.item[k]] == 0)
                r->put(s, s->followers.item[k]);
    }
    return n_run;
}

ot_status ot__order(const ot__order_problem *problem, int *order, size_t *peak, int *stuck)
{
    static const rule file_order = {put_in_file_order, take_in_file_order};
    static const rule greedy = {put_greedy, take_greedy};
    const int n = problem->n_nodes;
    int *other = ot__alloc_zero((size_t)n + 1, sizeof *other);
    scheduler s = {0};
    ot_status st = other == NULL ? OT_ERR_NO_MEMORY : OT_OK;

    *stuck = -1;
    *peak = 0;
    if (st == OT_OK)
        st = scheduler_init(&s, problem);
    if (st != OT_OK)
        goto done;
    if (schedule(&s, &file_order, order) < n) {
        for (int i = n - 1; i >= 0; i--)
            if (s.n_waiting[i] > 0)
                *stuck = i;
        st = OT_ERR_INVALID;
        goto done;
    }
    *peak = s.peak;
    if (n <= GREEDY_MAX && schedule(&s, &greedy, other) == n && s.peak < *peak) {
        memcpy(order, other, (size_t)n * sizeof *order);
        *peak = s.peak;
    }
done:
    scheduler_deinit(&s);
    ot__free(other);
    return st;
}
