// SPDX-License-Identifier: Apache-2.0
// In which order the nodes run: topological, readers of an overwritten value before its writer,
// ordered nodes in their order, and then few live bytes. Two orders are made, the file's with every
// overwriting node (accumulators) moved as far forward as it can go, and a greedy one; the one with
// the lower peak is taken, the file's when they are equal. Both take time in proportion to what the
// nodes read and make, times a logarithm.
#include <stdlib.h>
#include <string.h>

#include "exec/plan.h"

enum {
    CHAIN_MAX = 4,       // nodes the greedy order looks ahead
    EDGES_MAX = 1 << 28, // of either kind
};

typedef struct adjacency {
    int *first, *item; // item[first[k]] .. item[first[k + 1] - 1]
    int64_t n_items;   // counted so far
} adjacency;

// Of several nodes, those that are left: how many, and when it is one, `all` is it.
typedef struct remaining {
    int count;
    int all; // exclusive or
} remaining;

typedef struct scheduler scheduler;
typedef bool (*before)(const scheduler *s, int a, int b);

struct scheduler {
    const ot__order_problem *problem;
    ot__arena *arena;
    adjacency readers;     // of a value, in the file's order
    adjacency reads;       // of a node: values, each once
    adjacency writers;     // of a value: who overwrites it, in the file's order
    adjacency becomes;     // what that makes of it; -1: nothing that has a name
    adjacency followers;   // of a node: those that wait for it
    remaining *unread;     // per value: readers still to come
    remaining *waiting;    // per node: those it waits for that have not run
    int64_t *net;          // per node: live bytes after it ran less those before
    int64_t *chain;        // per node that is ready: the greedy order's measure
    int *count, *mark;     // while indices are made
    int *other;            // the greedy order
    int *ready, *ready_at; // a heap, and where a node is in it; -1: nowhere
    int n_ready;
    before runs_before;
    size_t live, peak;
};

// ---- who waits for whom ----

// Counts an edge (item NULL) or writes it down.
static void add_dependence(adjacency *edges, int *count, int from, int to)
{
    if (edges->item != NULL)
        edges->item[edges->first[from] + count[from]] = to;
    else
        edges->n_items++;
    if (edges->n_items <= EDGES_MAX)
        count[from]++;
}

static void add_readers(scheduler *s, int value, int writer)
{
    for (int k = s->readers.first[value]; k < s->readers.first[value + 1]; k++)
        if (s->readers.item[k] != writer)
            add_dependence(&s->followers, s->count, s->readers.item[k], writer);
}

// Readers of an overwritten value run before its writer, several writers in the file's order, and
// between two of them those who read what the first one wrote.
static void add_overwrite_edges(scheduler *s, int value)
{
    const int first = s->writers.first[value], end = s->writers.first[value + 1];
    int k = first, next = -1;

    if (first == end)
        return;
    for (int r = s->readers.first[value]; r < s->readers.first[value + 1]; r++) {
        while (k < end && s->writers.item[k] < s->readers.item[r])
            k++;
        if (k == end || s->writers.item[k] != s->readers.item[r])
            add_dependence(&s->followers, s->count, s->readers.item[r], s->writers.item[first]);
    }
    for (k = end - 1; k >= first; k--) {
        const int writer = s->writers.item[k];

        if (k + 1 < end && s->writers.item[k + 1] != writer) {
            next = s->writers.item[k + 1];
            add_dependence(&s->followers, s->count, writer, next);
        }
        if (next >= 0 && s->becomes.item[k] >= 0)
            add_readers(s, s->becomes.item[k], next);
    }
}

static void add_edges(scheduler *s)
{
    const ot__order_problem *p = s->problem;

    for (int n = 0; n < p->n_nodes; n++)
        for (int i = 0; i < p->nodes[n].n_makes; i++) {
            const int value = p->nodes[n].makes[i];

            for (int k = s->readers.first[value]; k < s->readers.first[value + 1]; k++)
                add_dependence(&s->followers, s->count, n, s->readers.item[k]);
        }
    for (int v = 0; v < p->n_values; v++)
        add_overwrite_edges(s, v);
    for (int n = 0, before_it = -1; n < p->n_nodes; n++)
        if (p->nodes[n].is_ordered) {
            if (before_it >= 0)
                add_dependence(&s->followers, s->count, before_it, n);
            before_it = n;
        }
}

static void add_reads(scheduler *s)
{
    const ot__order_problem *p = s->problem;

    for (int v = 0; v < p->n_values; v++)
        s->mark[v] = -1;
    for (int n = 0; n < p->n_nodes; n++)
        for (int i = 0; i < p->nodes[n].n_reads; i++) {
            const int value = p->nodes[n].reads[i];

            if (s->mark[value] != n)
                add_dependence(&s->readers, s->count, value, n);
            s->mark[value] = n;
        }
}

// The same as readers, from the other end.
static void add_values_read(scheduler *s)
{
    for (int v = 0; v < s->problem->n_values; v++)
        for (int k = s->readers.first[v]; k < s->readers.first[v + 1]; k++)
            add_dependence(&s->reads, s->count, s->readers.item[k], v);
}

static void add_writers(scheduler *s)
{
    const ot__order_problem *p = s->problem;

    for (int n = 0; n < p->n_nodes; n++)
        for (int i = 0; i < p->nodes[n].n_overwrites; i++)
            add_dependence(&s->writers, s->count, p->nodes[n].overwrites[i], n);
}

static void add_becomes(scheduler *s)
{
    const ot__order_problem *p = s->problem;

    for (int n = 0; n < p->n_nodes; n++)
        for (int i = 0; i < p->nodes[n].n_overwrites; i++)
            add_dependence(&s->becomes, s->count, p->nodes[n].overwrites[i],
                           p->nodes[n].becomes[i]);
}

// `add` is called twice: for counts, which become starts, and for the items.
static ot_status index_by(scheduler *s, adjacency *x, int n, void (*add)(scheduler *s))
{
    memset(s->count, 0, (size_t)n * sizeof *s->count);
    add(s);
    if (x->n_items > EDGES_MAX)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "the nodes depend on one another in more than %d places", EDGES_MAX);
    x->first = ot__arena_alloc(s->arena, ((size_t)n + 1) * sizeof *x->first);
    x->item = ot__arena_alloc(s->arena, ((size_t)x->n_items + 1) * sizeof *x->item);
    OT_TRY(ot__made(x->first != NULL && x->item != NULL));
    for (int i = 0; i < n; i++)
        x->first[i + 1] = x->first[i] + s->count[i];
    memset(s->count, 0, (size_t)n * sizeof *s->count);
    add(s);
    return OT_OK;
}

// A node waits once for another, however many reasons it has.
static void drop_doubles(scheduler *s)
{
    adjacency *x = &s->followers;
    const int n = s->problem->n_nodes;
    int kept = 0;

    for (int i = 0; i < n; i++)
        s->mark[i] = -1;
    for (int i = 0, k = 0; i < n; i++) {
        const int end = x->first[i + 1];

        for (; k < end; k++)
            if (s->mark[x->item[k]] != i) {
                s->mark[x->item[k]] = i;
                x->item[kept++] = x->item[k];
            }
        x->first[i + 1] = kept;
    }
}

static ot_status index_all(scheduler *s)
{
    const int n_values = s->problem->n_values, n_nodes = s->problem->n_nodes;

    OT_TRY(index_by(s, &s->readers, n_values, add_reads));
    OT_TRY(index_by(s, &s->reads, n_nodes, add_values_read));
    OT_TRY(index_by(s, &s->writers, n_values, add_writers));
    OT_TRY(index_by(s, &s->becomes, n_values, add_becomes));
    OT_TRY(index_by(s, &s->followers, n_nodes, add_edges));
    drop_doubles(s);
    return OT_OK;
}

static ot_status scheduler_init(scheduler *s, const ot__order_problem *p)
{
    const size_t n_values = (size_t)p->n_values + 1, n_nodes = (size_t)p->n_nodes + 1;

    s->problem = p;
    s->unread = ot__arena_alloc(s->arena, n_values * sizeof *s->unread);
    s->waiting = ot__arena_alloc(s->arena, n_nodes * sizeof *s->waiting);
    s->net = ot__arena_alloc(s->arena, n_nodes * sizeof *s->net);
    s->chain = ot__arena_alloc(s->arena, n_nodes * sizeof *s->chain);
    s->count = ot__arena_alloc(s->arena, OT_MAX(n_values, n_nodes) * sizeof *s->count);
    s->mark = ot__arena_alloc(s->arena, OT_MAX(n_values, n_nodes) * sizeof *s->mark);
    s->other = ot__arena_alloc(s->arena, n_nodes * sizeof *s->other);
    s->ready = ot__arena_alloc(s->arena, n_nodes * sizeof *s->ready);
    s->ready_at = ot__arena_alloc(s->arena, n_nodes * sizeof *s->ready_at);
    OT_TRY(ot__made(s->unread != NULL && s->waiting != NULL && s->net != NULL && s->chain != NULL &&
                    s->count != NULL && s->mark != NULL && s->other != NULL && s->ready != NULL &&
                    s->ready_at != NULL));
    return index_all(s);
}

// ---- the nodes that are ready ----

static void put_at(scheduler *s, int at, int node)
{
    s->ready[at] = node;
    s->ready_at[node] = at;
}

static void move_up(scheduler *s, int at, int node)
{
    while (at > 0 && s->runs_before(s, node, s->ready[(at - 1) / 2])) {
        put_at(s, at, s->ready[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put_at(s, at, node);
}

static void move_down(scheduler *s, int at, int node)
{
    for (;;) {
        int child = 2 * at + 1;

        if (child >= s->n_ready)
            break;
        if (child + 1 < s->n_ready && s->runs_before(s, s->ready[child + 1], s->ready[child]))
            child++;
        if (!s->runs_before(s, s->ready[child], node))
            break;
        put_at(s, at, s->ready[child]);
        at = child;
    }
    put_at(s, at, node);
}

static int take_next_ready(scheduler *s)
{
    const int node = s->ready[0], last = s->ready[--s->n_ready];

    if (s->n_ready > 0)
        move_down(s, 0, last);
    s->ready_at[node] = -1;
    return node;
}

// ---- choosing the next node ----

enum { EARLY, OVERWRITES, PLAIN, LATE };

// The earlier, the lower.
static int urgency(const ot__order_node *n)
{
    return n->is_early ? EARLY : n->is_late ? LATE : n->n_overwrites > 0 ? OVERWRITES : PLAIN;
}

static bool in_file_order(const scheduler *s, int a, int b)
{
    const int a_urgency = urgency(&s->problem->nodes[a]),
              b_urgency = urgency(&s->problem->nodes[b]);

    return a_urgency != b_urgency ? a_urgency < b_urgency : a < b;
}

static bool by_chain(const scheduler *s, int a, int b)
{
    const int a_urgency = urgency(&s->problem->nodes[a]),
              b_urgency = urgency(&s->problem->nodes[b]);

    if (a_urgency != b_urgency &&
        (OT_MIN(a_urgency, b_urgency) == EARLY || OT_MAX(a_urgency, b_urgency) == LATE))
        return a_urgency < b_urgency;
    return s->chain[a] != s->chain[b] ? s->chain[a] < s->chain[b] : a < b;
}

static bool has_one_follower(const scheduler *s, int node)
{
    return s->followers.first[node + 1] - s->followers.first[node] == 1;
}

// The lowest sum of net bytes along the chain that `node` starts, of nodes that wait for nothing
// but the one before: a weight gradient that is accumulated at once costs nothing, although it is
// large while it lives.
static int64_t chain_bytes(const scheduler *s, int node)
{
    int64_t sum = s->net[node], lowest = sum;

    for (int k = 1; k < CHAIN_MAX && has_one_follower(s, node); k++) {
        node = s->followers.item[s->followers.first[node]];
        if (s->waiting[node].count != 1)
            break;
        sum += s->net[node];
        lowest = OT_MIN(lowest, sum);
    }
    return lowest;
}

static void put_ready(scheduler *s, int node)
{
    s->chain[node] = chain_bytes(s, node);
    move_up(s, s->n_ready++, node);
}

// What is known of `node` has changed, and with it the chain that reaches it.
static void update_ready(scheduler *s, int node)
{
    for (int k = 1; k < CHAIN_MAX && s->waiting[node].count == 1; k++) {
        node = s->waiting[node].all;
        if (!has_one_follower(s, node))
            return;
    }
    if (s->waiting[node].count > 0 || s->ready_at[node] < 0)
        return;
    s->chain[node] = chain_bytes(s, node);
    move_up(s, s->ready_at[node], node);
    move_down(s, s->ready_at[node], node);
}

static void leave(remaining *r, int node)
{
    r->count--;
    r->all ^= node;
}

static void enter(remaining *r, int node)
{
    r->count++;
    r->all ^= node;
}

// ---- making an order ----

// The last reader of a value frees it.
static void now_last(scheduler *s, int value)
{
    if (!s->problem->value_kept[value])
        s->net[s->unread[value].all] -= (int64_t)s->problem->value_bytes[value];
}

static void start_order(scheduler *s)
{
    const ot__order_problem *p = s->problem;

    s->live = s->peak = 0;
    s->n_ready = 0;
    memset(s->waiting, 0, (size_t)p->n_nodes * sizeof *s->waiting);
    memset(s->unread, 0, (size_t)p->n_values * sizeof *s->unread);
    for (int n = 0; n < p->n_nodes; n++) {
        s->net[n] = 0;
        s->ready_at[n] = -1;
        for (int k = s->followers.first[n]; k < s->followers.first[n + 1]; k++)
            enter(&s->waiting[s->followers.item[k]], n);
        for (int k = s->reads.first[n]; k < s->reads.first[n + 1]; k++)
            enter(&s->unread[s->reads.item[k]], n);
    }
    for (int n = 0; n < p->n_nodes; n++)
        for (int i = 0; i < p->nodes[n].n_makes; i++) {
            const int value = p->nodes[n].makes[i];

            if (s->unread[value].count > 0 || p->value_kept[value])
                s->net[n] += (int64_t)p->value_bytes[value];
        }
    for (int v = 0; v < p->n_values; v++)
        if (s->unread[v].count == 1)
            now_last(s, v);
    for (int n = 0; n < p->n_nodes; n++)
        if (s->waiting[n].count == 0)
            put_ready(s, n);
}

static void account(scheduler *s, int node)
{
    const ot__order_problem *p = s->problem;
    const ot__order_node *d = &p->nodes[node];

    for (int i = 0; i < d->n_makes; i++)
        s->live += p->value_bytes[d->makes[i]];
    s->peak = OT_MAX(s->peak, s->live);
    for (int i = 0; i < d->n_makes; i++)
        if (s->unread[d->makes[i]].count == 0 && !p->value_kept[d->makes[i]])
            s->live -= p->value_bytes[d->makes[i]];
    for (int k = s->reads.first[node]; k < s->reads.first[node + 1]; k++) {
        const int value = s->reads.item[k];

        leave(&s->unread[value], node);
        if (s->unread[value].count == 0 && !p->value_kept[value])
            s->live -= p->value_bytes[value];
        if (s->unread[value].count == 1) {
            now_last(s, value);
            update_ready(s, s->unread[value].all);
        }
    }
}

static int schedule(scheduler *s, before runs_before, int *order)
{
    int n_run = 0;

    s->runs_before = runs_before;
    start_order(s);
    while (s->n_ready > 0) {
        const int node = take_next_ready(s);

        order[n_run++] = node;
        account(s, node);
        for (int k = s->followers.first[node]; k < s->followers.first[node + 1]; k++) {
            const int follower = s->followers.item[k];

            leave(&s->waiting[follower], node);
            if (s->waiting[follower].count == 0)
                put_ready(s, follower);
            else if (s->waiting[follower].count == 1)
                update_ready(s, follower);
        }
    }
    return n_run;
}

static ot_status choose_order(scheduler *s, int *order, size_t *peak, int *stuck)
{
    const int n = s->problem->n_nodes;

    if (schedule(s, in_file_order, order) < n) {
        for (int i = n - 1; i >= 0; i--)
            if (s->waiting[i].count > 0)
                *stuck = i;
        return OT_ERR_INVALID;
    }
    *peak = s->peak;
    if (schedule(s, by_chain, s->other) == n && s->peak < *peak) {
        memcpy(order, s->other, (size_t)n * sizeof *order);
        *peak = s->peak;
    }
    return OT_OK;
}

ot_status ot__order(const ot__order_problem *problem, int *order, size_t *peak, int *stuck)
{
    scheduler s = {.arena = ot__arena_create()};
    ot_status st = ot__made(s.arena != NULL);

    *stuck = -1;
    *peak = 0;
    OT_THEN(st, scheduler_init(&s, problem));
    OT_THEN(st, choose_order(&s, order, peak, stuck));
    ot__arena_destroy(s.arena);
    return st;
}
