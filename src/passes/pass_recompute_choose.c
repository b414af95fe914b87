// SPDX-License-Identifier: Apache-2.0
// Under a ceiling: which nodes of the forward pass are made again so that fewer bytes are alive at
// once. Candidates are a value with what is needed to make it, and what lies between two narrow
// points of the forward pass; the one that takes most bytes off the peak for its work is chosen
// until enough are gone. Only lifetimes, sizes and work are looked at.
#include "passes/recompute_choose.h"

#include <string.h>

enum {
    MAX_CLOSURE = 24, // nodes that one value may need
    MAX_TRIED = 12,   // candidates whose effect is computed before one is chosen
    NARROW_REACH = 2, // nodes on each side among which a narrow point is the narrowest
};

// ---- candidates ----

static ot_status list_node(ot__choosing *c, int node)
{
    return ot__made(
        ot__arena_push(c->a.arena, &c->list, &c->list_capacity, &c->n_list, &node, sizeof node));
}

// What is listed since `first` becomes a candidate.
static void end_candidate(ot__choosing *c, int first)
{
    if (c->n_list > first)
        c->candidates[c->n_candidates++] = (ot__candidate){first, c->n_list - first, false, 0};
}

static bool is_listed(const ot__choosing *c, int first, int node)
{
    for (int i = first; i < c->n_list; i++)
        if (c->list[i] == node)
            return true;
    return false;
}

// Whether the value is there in the backward pass anyway.
static bool is_kept_anyway(const ot__choosing *c, const ot_value *value)
{
    const int r = c->root[ot__choosing_value(c, value)];

    return c->bytes[r] == 0 || c->kept[r].last >= c->time[c->a.n_forward - 1];
}

// A node, with those before it down to what is kept anyway; alone where that is too many.
static ot_status add_closure(ot__choosing *c, int node)
{
    const int first = c->n_list;

    OT_TRY(list_node(c, node));
    for (int k = first; k < c->n_list && c->n_list - first <= MAX_CLOSURE; k++) {
        const ot_node *n = c->a.graph->nodes[c->list[k]];

        for (int i = 0; i < n->n_inputs; i++) {
            const ot_node *maker = n->inputs[i] != NULL ? n->inputs[i]->producer : NULL;

            if (maker == NULL || is_kept_anyway(c, n->inputs[i]) ||
                !c->a.can[ot__choosing_node(c, maker)] ||
                is_listed(c, first, ot__choosing_node(c, maker)))
                continue;
            OT_TRY(list_node(c, ot__choosing_node(c, maker)));
        }
    }
    if (c->n_list - first > MAX_CLOSURE)
        c->n_list = first + 1;
    end_candidate(c, first);
    return OT_OK;
}

// The last node of the forward pass that reads what shares memory with a value; -1: none does.
static ot_status find_last_readers(ot__choosing *c, int **out)
{
    *out = ot__arena_alloc(c->a.arena, ((size_t)c->n_values + 1) * sizeof **out);
    OT_TRY(ot__made(*out != NULL));
    for (int v = 0; v < c->n_values; v++)
        (*out)[v] = -1;
    for (int n = 0; n < c->a.n_forward; n++) {
        const ot_node *node = c->a.graph->nodes[n];

        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i] != NULL)
                (*out)[c->root[ot__choosing_value(c, node->inputs[i])]] = n;
    }
    return OT_OK;
}

static bool is_read_after(const ot__choosing *c, const int *last_reader, const ot_node *node,
                          int at)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] != NULL &&
            last_reader[c->root[ot__choosing_value(c, node->outputs[i])]] > at)
            return true;
    return false;
}

// Behind which nodes the least is alive that later forward nodes read.
static ot_status find_narrow_points(ot__choosing *c, const int *last_reader, int *points,
                                    int *n_points)
{
    int64_t *width = ot__arena_alloc(c->a.arena, ((size_t)c->a.n_forward + 1) * sizeof *width);

    OT_TRY(ot__made(width != NULL));
    for (int n = 0; n < c->a.n_forward; n++)
        for (int i = 0; i < c->a.graph->nodes[n]->n_outputs; i++) {
            const ot_value *y = c->a.graph->nodes[n]->outputs[i];
            const int v = y == NULL ? -1 : ot__choosing_value(c, y);

            if (v >= 0 && c->root[v] == v && last_reader[v] > n) {
                width[n] += (int64_t)c->bytes[v];
                width[last_reader[v]] -= (int64_t)c->bytes[v];
            }
        }
    for (int n = 1; n < c->a.n_forward; n++)
        width[n] += width[n - 1];
    *n_points = 0;
    points[(*n_points)++] = -1;
    for (int n = NARROW_REACH; n < c->a.n_forward - NARROW_REACH; n++) {
        bool is_narrow = n - points[*n_points - 1] > NARROW_REACH;

        for (int k = n - NARROW_REACH; is_narrow && k <= n + NARROW_REACH; k++)
            is_narrow = width[n] <= width[k];
        if (is_narrow)
            points[(*n_points)++] = n;
    }
    points[(*n_points)++] = c->a.n_forward - 1;
    return OT_OK;
}

// What lies between two narrow points, but for what is alive at the second.
static ot_status add_segments(ot__choosing *c)
{
    static const int spans[] = {1, 2, 4};
    int *points = ot__arena_alloc(c->a.arena, ((size_t)c->a.n_forward + 2) * sizeof *points);
    int *last_reader, n_points;

    OT_TRY(ot__made(points != NULL));
    OT_TRY(find_last_readers(c, &last_reader));
    OT_TRY(find_narrow_points(c, last_reader, points, &n_points));
    for (size_t s = 0; s < OT_COUNT(spans); s++)
        for (int p = 0; p + spans[s] < n_points; p++) {
            const int first = c->n_list, end = points[p + spans[s]];

            for (int n = points[p] + 1; n <= end; n++)
                if (c->a.can[n] && !is_read_after(c, last_reader, c->a.graph->nodes[n], end))
                    OT_TRY(list_node(c, n));
            end_candidate(c, first);
        }
    return OT_OK;
}

static ot_status find_choices(ot__choosing *c)
{
    const size_t most = 5 * (size_t)c->a.n_forward + 8;

    c->candidates = ot__arena_alloc(c->a.arena, most * sizeof *c->candidates);
    c->chosen = ot__arena_alloc(c->a.arena, most * sizeof *c->chosen);
    OT_TRY(ot__made(c->candidates != NULL && c->chosen != NULL));
    for (int n = 0; n < c->a.n_forward; n++)
        if (c->a.can[n] && !ot__is_view(c->a.graph->nodes[n]))
            OT_TRY(add_closure(c, n));
    return add_segments(c);
}

// ---- choosing ----

static void choose_nodes(ot__choosing *c, const ot__candidate *k)
{
    for (int i = 0; i < k->n; i++)
        c->a.is_chosen[c->list[k->first + i]] = true;
}

// Of the nodes that a candidate would add.
static double added_work(const ot__choosing *c, const ot__candidate *k)
{
    double work = 1;

    for (int i = 0; i < k->n; i++)
        if (!c->a.is_chosen[c->list[k->first + i]])
            work += c->work[c->list[k->first + i]];
    return work;
}

static bool is_alive_at_peak(const ot__choosing *c, const ot_value *value)
{
    const int r = c->root[ot__choosing_value(c, value)];
    const int time = c->time[c->peak_at];

    return c->kept[r].first < time && time <= c->kept[r].last;
}

// Bytes per work at best, if all that is alive at the peak goes.
static void set_bounds(ot__choosing *c)
{
    for (int k = 0; k < c->n_candidates; k++) {
        ot__candidate *one = &c->candidates[k];
        double n_bytes = 0;

        for (int i = 0; !one->is_out && i < one->n; i++) {
            const int n = c->list[one->first + i];
            const ot_node *node = c->a.graph->nodes[n];

            for (int o = 0; !c->a.is_chosen[n] && o < node->n_outputs; o++)
                if (node->outputs[o] != NULL && ot__again_gives(&c->a, n, o) &&
                    is_alive_at_peak(c, node->outputs[o]))
                    n_bytes += (double)c->bytes[ot__choosing_value(c, node->outputs[o])];
        }
        one->bound = n_bytes / added_work(c, one);
    }
}

static ot__candidate *most_promising(const ot__choosing *c)
{
    ot__candidate *best = NULL;

    for (int k = 0; k < c->n_candidates; k++)
        if (c->candidates[k].bound > 0 && (best == NULL || c->candidates[k].bound > best->bound))
            best = &c->candidates[k];
    return best;
}

// The candidate that takes most bytes off the present peak for its work; NULL: none does.
static ot__candidate *find_best_choice(ot__choosing *c, bool *before)
{
    const int64_t live = c->peak;
    const int at = c->peak_at;
    ot__candidate *best = NULL;
    double most = 0;

    set_bounds(c);
    memcpy(before, c->a.is_chosen, (size_t)c->a.n_forward);
    for (int tried = 0; tried < MAX_TRIED || best == NULL; tried++) {
        ot__candidate *k = most_promising(c);
        double worth;

        if (k == NULL || k->bound <= most)
            break;
        k->bound = 0;
        worth = 1 / added_work(c, k);
        choose_nodes(c, k);
        ot__choosing_find_peak(c);
        worth *= (double)(live - c->live[at]);
        memcpy(c->a.is_chosen, before, (size_t)c->a.n_forward);
        if (worth > most) {
            most = worth;
            best = k;
        }
    }
    return best;
}

static void choose_first(ot__choosing *c, int n, int without)
{
    memset(c->a.is_chosen, 0, (size_t)c->a.n_forward);
    for (int k = 0; k < n; k++)
        if (k != without && c->chosen[k] >= 0)
            choose_nodes(c, &c->candidates[c->chosen[k]]);
    ot__choosing_find_peak(c);
}

// Those after the lowest peak that was reached are let go, and those without which it is as low.
static void drop_useless(ot__choosing *c, int n_best, int64_t enough)
{
    for (int k = n_best - 1; k >= 0; k--) {
        choose_first(c, n_best, k);
        if (c->peak <= enough)
            c->chosen[k] = -1;
    }
    choose_first(c, n_best, -1);
}

static ot_status choose_all(ot__choosing *c, int64_t reduction, int64_t *fell)
{
    bool *before = ot__arena_alloc(c->a.arena, (size_t)c->a.n_forward + 1);
    int64_t first, lowest;
    int n_best = 0;

    OT_TRY(ot__made(before != NULL));
    first = lowest = c->peak;
    while (c->peak > first - reduction) {
        ot__candidate *best = find_best_choice(c, before);

        if (best == NULL)
            break;
        best->is_out = true;
        choose_nodes(c, best);
        c->chosen[c->n_chosen++] = (int)(best - c->candidates);
        ot__choosing_find_peak(c);
        if (c->peak < lowest) {
            lowest = c->peak;
            n_best = c->n_chosen;
        }
    }
    drop_useless(c, n_best, OT_MAX(lowest, first - reduction));
    *fell = first - c->peak;
    return OT_OK;
}

static ot_status choose_again(ot__choosing *c, int64_t reduction, int64_t *fell)
{
    c->n_values = c->a.uses.numbers.n_values;
    OT_TRY(ot__choosing_measure(c));
    ot__choosing_find_peak(c);
    OT_TRY(find_choices(c));
    OT_TRY(choose_all(c, reduction, fell));
    return ot__again_write(&c->a);
}

ot_status ot__pass_recompute_choose(ot_model *model, const int *outputs, int n_outputs,
                                    bool spares_readers, int64_t reduction, int64_t *fell)
{
    ot__choosing c = {.n_list = 0};
    ot_status st = ot__again_start(&c.a, model->graph, outputs, n_outputs, spares_readers);

    *fell = 0;
    if (st == OT_OK && c.a.n_forward > 0)
        st = choose_again(&c, reduction, fell);
    ot__again_deinit(&c.a);
    return st == OT_OK ? ot__pass_finished(model, "recompute_choose") : st;
}
