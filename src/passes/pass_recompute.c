// SPDX-License-Identifier: Apache-2.0
// Values that are cheap to make again are not kept from the forward to the backward pass, where
// that lowers the most bytes that are alive at once: a node that makes such a value anew stands
// before its first reader in the backward pass. Only what others keep anyway may be read for that.
#include "passes/recompute.h"

#include <string.h>

enum { LEAST_SHARE = 256 }; // of the peak that a value must be to be worth a node

enum { Y = 0 }; // output that is made again

typedef struct lifetime {
    int first, last; // nodes by position; last is n_nodes for what outlives them
    size_t n_bytes;
} lifetime;

// A value, output Y of its node, that nothing reads between two positions.
typedef struct candidate {
    ot_node *maker, *again; // the second is what makes it once more, last in the graph
    int before, after;      // the readers around that time; the maker may be the first
    bool is_chosen;
} candidate;

typedef struct recomputing {
    ot_graph *graph;
    ot__uses uses;
    ot__arena *arena;    // for the time of the pass
    lifetime *lifetimes; // by number, then those of the values made again
    int n_lifetimes;
    candidate *candidates;
    int n_candidates;
    candidate **chosen; // in the order of choice
    int n_chosen;
    int64_t *change; // of the live bytes, by position
    int n_nodes;     // that were there at first
    bool spares_readers;
} recomputing;

// ---- who lives when ----

static size_t bytes_of(const ot_value *value)
{
    int64_t count;
    size_t n_bytes;

    if (value->kind != OT_VALUE_TENSOR || value->constant != NULL || value->producer == NULL ||
        !value->has_shape || !ot__shape_is_static(&value->shape) ||
        !ot__shape_count(&value->shape, &count) ||
        !ot__dtype_bytes(value->dtype, count, &n_bytes) || n_bytes > INT32_MAX * (size_t)1024)
        return 0;
    return n_bytes;
}

static int position(const recomputing *r, const ot__use *use)
{
    return ot__node_number(&r->uses.numbers, use->node);
}

// Of the value that a node may make again.
static int recompute_number(const recomputing *r, const ot_node *maker)
{
    return ot__value_number(&r->uses.numbers, maker->outputs[Y]);
}

static void find_value_lifetimes(recomputing *r)
{
    r->n_lifetimes = r->uses.numbers.n_values;
    for (int v = 0; v < r->uses.numbers.n_values; v++) {
        const ot_value *value = r->uses.numbers.values[v];
        lifetime *l = &r->lifetimes[v];

        *l = (lifetime){.last = r->n_nodes, .n_bytes = bytes_of(value)};
        if (value->producer == NULL)
            continue;
        l->first = ot__node_number(&r->uses.numbers, value->producer);
        if (!value->is_output)
            l->last = ot__uses_count(&r->uses, value) > 0
                          ? position(r, &r->uses.use[r->uses.first[v + 1] - 1])
                          : l->first;
    }
}

// The position where most bytes are alive.
static int find_peak(const recomputing *r, int64_t *peak)
{
    int64_t live = 0;
    int at = 0;

    *peak = 0;
    memset(r->change, 0, ((size_t)r->n_nodes + 2) * sizeof *r->change);
    for (int v = 0; v < r->n_lifetimes; v++) {
        r->change[r->lifetimes[v].first] += (int64_t)r->lifetimes[v].n_bytes;
        r->change[r->lifetimes[v].last + 1] -= (int64_t)r->lifetimes[v].n_bytes;
    }
    for (int n = 0; n <= r->n_nodes; n++) {
        live += r->change[n];
        if (live > *peak) {
            *peak = live;
            at = n;
        }
    }
    return at;
}

// ---- what can be made again ----

// What is read for it is alive then anyway.
static bool is_there(const recomputing *r, const candidate *c)
{
    for (int i = 0; i < c->again->n_inputs; i++)
        if (c->again->inputs[i] != NULL &&
            r->lifetimes[ot__value_number(&r->uses.numbers, c->again->inputs[i])].last < c->after)
            return false;
    return true;
}

// Whether what is chosen reads the value later than it would be kept.
static bool is_read_again(const recomputing *r, const candidate *c)
{
    for (int k = 0; k < r->n_chosen; k++) {
        const candidate *other = r->chosen[k];

        for (int i = 0; other->after > c->before && i < other->again->n_inputs; i++)
            if (other->again->inputs[i] == c->maker->outputs[Y])
                return true;
    }
    return false;
}

// The longest time in which nobody reads what `maker` makes; false when there is none.
static bool find_gap(const recomputing *r, ot_node *maker, candidate *c)
{
    const int v = recompute_number(r, maker);
    int before = ot__node_number(&r->uses.numbers, maker);

    *c = (candidate){.maker = maker};
    for (int k = r->uses.first[v]; k < r->uses.first[v + 1]; k++) {
        const ot__use *use = &r->uses.use[k];

        if (use->i_input < 0) // a subgraph reads it by its name
            return false;
        if (position(r, use) - before > c->after - c->before) {
            c->before = before;
            c->after = position(r, use);
        }
        before = position(r, use);
    }
    return c->after > c->before + 1;
}

static ot_status find_candidates(recomputing *r)
{
    for (int n = 0; n < r->n_nodes; n++) {
        ot_node *maker = r->graph->nodes[n];
        candidate *c = &r->candidates[r->n_candidates];
        ot_value *y;

        if ((maker->op->flags & OT_OP_FREE_AGAIN) == 0 || maker->outputs[Y]->is_output ||
            (r->spares_readers && ot__reads_graph_input(maker)) || !find_gap(r, maker, c))
            continue;
        OT_TRY(ot__op_recompute(maker, &y));
        if (y == NULL)
            continue;
        c->again = y->producer;
        r->n_candidates++;
    }
    return OT_OK;
}

// ---- choosing ----

// The largest value that is alive at the peak without being read; NULL: none is worth a node.
static candidate *find_best(const recomputing *r, int at, int64_t peak)
{
    candidate *best = NULL;
    size_t most = (size_t)peak / LEAST_SHARE;

    for (int k = 0; k < r->n_candidates; k++) {
        candidate *c = &r->candidates[k];
        const size_t n_bytes = r->lifetimes[recompute_number(r, c->maker)].n_bytes;

        if (!c->is_chosen && c->before < at && at < c->after && n_bytes > most && is_there(r, c) &&
            !is_read_again(r, c)) {
            best = c;
            most = n_bytes;
        }
    }
    return best;
}

// As many as lower the peak: those after the lowest one that was reached are let go.
static void choose_recomputed(recomputing *r)
{
    int64_t peak, lowest;
    int at = find_peak(r, &peak), n_best = 0;

    lowest = peak;
    for (candidate *c; (c = find_best(r, at, peak)) != NULL;) {
        lifetime *l = &r->lifetimes[recompute_number(r, c->maker)];

        c->is_chosen = true;
        r->lifetimes[r->n_lifetimes++] = (lifetime){c->after, l->last, l->n_bytes};
        l->last = c->before;
        r->chosen[r->n_chosen++] = c;
        at = find_peak(r, &peak);
        if (peak < lowest) {
            lowest = peak;
            n_best = r->n_chosen;
        }
    }
    r->n_chosen = n_best;
}

// ---- rewriting ----

static void recompute_rewrite(recomputing *r, const candidate *c)
{
    const int v = recompute_number(r, c->maker);

    for (int u = r->uses.first[v]; u < r->uses.first[v + 1]; u++)
        if (position(r, &r->uses.use[u]) >= c->after)
            r->uses.use[u].node->inputs[r->uses.use[u].i_input] = c->again->outputs[Y];
}

static void drop_others(recomputing *r)
{
    for (int k = 0; k < r->n_candidates; k++)
        r->candidates[k].is_chosen = false;
    for (int k = 0; k < r->n_chosen; k++)
        r->chosen[k]->is_chosen = true;
    for (int k = 0; k < r->n_candidates; k++)
        if (!r->candidates[k].is_chosen)
            ot__map_remove(&r->graph->values, r->candidates[k].again->outputs[Y]->name);
    r->graph->n_nodes = r->n_nodes;
}

// Each new node goes before the first that reads what it makes.
static ot_status put_in_place(recomputing *r)
{
    ot_graph *g = r->graph;
    ot_node **nodes = ot__arena_alloc(g->model->arena,
                                      ((size_t)r->n_nodes + (size_t)r->n_chosen) * sizeof *nodes);
    int n_nodes = 0;

    OT_TRY(ot__made(nodes != NULL));
    for (int n = 0; n < r->n_nodes; n++) {
        for (int k = 0; k < r->n_chosen; k++)
            if (r->chosen[k]->after == n)
                nodes[n_nodes++] = r->chosen[k]->again;
        nodes[n_nodes++] = g->nodes[n];
    }
    g->nodes = nodes;
    g->n_nodes = g->nodes_capacity = n_nodes;
    return OT_OK;
}

static ot_status recompute_value(recomputing *r)
{
    const size_t n_nodes = (size_t)r->n_nodes, n_values = (size_t)r->uses.numbers.n_values;

    r->lifetimes = ot__arena_alloc(r->arena, (n_values + n_nodes + 1) * sizeof *r->lifetimes);
    r->candidates = ot__arena_alloc(r->arena, (n_nodes + 1) * sizeof *r->candidates);
    r->chosen = ot__arena_alloc(r->arena, (n_nodes + 1) * sizeof(candidate *));
    r->change = ot__arena_alloc(r->arena, (n_nodes + 2) * sizeof *r->change);
    OT_TRY(ot__made(r->lifetimes != NULL && r->candidates != NULL && r->chosen != NULL &&
                    r->change != NULL));
    OT_TRY(find_candidates(r));
    if (r->n_candidates == 0)
        return OT_OK;
    find_value_lifetimes(r);
    choose_recomputed(r);
    drop_others(r);
    for (int k = 0; k < r->n_chosen; k++)
        recompute_rewrite(r, r->chosen[k]);
    return r->n_chosen > 0 ? put_in_place(r) : OT_OK;
}

ot_status ot__pass_recompute(ot_model *model, bool spares_readers)
{
    recomputing r = {
        .graph = model->graph, .n_nodes = model->graph->n_nodes, .spares_readers = spares_readers};
    ot_status st = ot__uses_build(model->graph, &r.uses);

    r.arena = ot__arena_create();
    OT_THEN(st, r.arena == NULL ? OT_ERR_NO_MEMORY : recompute_value(&r));
    ot__uses_deinit(&r.uses);
    ot__arena_destroy(r.arena);
    return st == OT_OK ? ot__pass_finished(model, "recompute") : st;
}
