// SPDX-License-Identifier: Apache-2.0
// What choosing looks at: how large values are, how much work nodes are, and who lives when, with
// what is made again.
#include "passes/recompute_choose.h"

#include <math.h>
#include <string.h>

enum { WORK_OF_ELEMENT = 16 }; // operations of a product in the time of reading or writing one

// ---- sizes and work ----

static double value_elements(const ot_value *value)
{
    int64_t count;

    return value != NULL && value->kind == OT_VALUE_TENSOR && value->has_shape &&
                   ot__shape_is_static(&value->shape) && ot__shape_count(&value->shape, &count)
               ? (double)count
               : 0;
}

// A gradient that is only accumulated is made in its buffer.
static bool is_made_in_buffer(const ot__choosing *c, const ot_value *value)
{
    const int first = ot__uses_first(&c->a.uses, value);

    return ot__uses_count(&c->a.uses, value) == 1 && !value->is_output &&
           (c->a.uses.use[first].node->op->flags & OT_OP_ACCUMULATE) != 0;
}

static size_t memory_of(const ot__choosing *c, const ot_value *value)
{
    size_t n_bytes = 0;

    if (value->constant != NULL || value->producer == NULL || value_elements(value) == 0 ||
        (ot__is_view(value->producer) && value->i_producer_output == 0) ||
        (value->producer->op->flags & OT_OP_ACCUMULATE) != 0 || is_made_in_buffer(c, value) ||
        !ot__dtype_bytes(value->dtype, (int64_t)value_elements(value), &n_bytes))
        return 0;
    return n_bytes;
}

// Of a batched product all three have the same leading axes.
static double batches(const ot_value *x, const ot_value *w, const ot_value *y)
{
    const int n = y->shape.ndim;
    double count = 1;

    if (x->shape.ndim != n || w->shape.ndim != n)
        return 1;
    for (int i = 0; i < n - 2; i++) {
        if (x->shape.dim[i] != y->shape.dim[i] || w->shape.dim[i] != y->shape.dim[i])
            return 1;
        count *= (double)y->shape.dim[i];
    }
    return count;
}

// Reading and writing, and what a product of X, W and Y multiplies: of their numbers of elements
// m k, k n and m n the root of the product is m k n.
static double work_of(const ot_node *node)
{
    double touched = 0, product = 0;

    if (ot__is_view(node))
        return 0;
    for (int i = 0; i < node->n_inputs; i++)
        touched += value_elements(node->inputs[i]);
    for (int i = 0; i < node->n_outputs; i++)
        touched += value_elements(node->outputs[i]);
    if (node->n_inputs > 1 && node->inputs[0] != NULL && node->inputs[1] != NULL &&
        node->outputs[0] != NULL && (ot__op_input_port(node->op, 1)->flags & OT_PORT_WEIGHT) != 0) {
        const ot_value *x = node->inputs[0], *w = node->inputs[1], *y = node->outputs[0];

        product =
            2 * sqrt(value_elements(x) * value_elements(w) * value_elements(y) / batches(x, w, y));
    }
    return product + touched * WORK_OF_ELEMENT;
}

ot_status ot__choosing_measure(ot__choosing *c)
{
    const size_t n_values = (size_t)c->n_values + 1, n_nodes = (size_t)c->a.n_nodes + 2;
    ot__arena *arena = c->a.arena;

    c->root = ot__arena_alloc(arena, n_values * sizeof *c->root);
    c->bytes = ot__arena_alloc(arena, n_values * sizeof *c->bytes);
    c->kept = ot__arena_alloc(arena, n_values * sizeof *c->kept);
    c->again = ot__arena_alloc(arena, n_values * sizeof *c->again);
    c->work = ot__arena_alloc(arena, n_nodes * sizeof *c->work);
    c->time = ot__arena_alloc(arena, n_nodes * sizeof *c->time);
    c->again_time = ot__arena_alloc(arena, n_nodes * sizeof *c->again_time);
    c->change = ot__arena_alloc(arena, 2 * n_nodes * sizeof *c->change);
    c->live = ot__arena_alloc(arena, n_nodes * sizeof *c->live);
    OT_TRY(ot__made(c->root != NULL && c->bytes != NULL && c->kept != NULL && c->again != NULL &&
                    c->work != NULL && c->time != NULL && c->again_time != NULL &&
                    c->change != NULL && c->live != NULL));
    for (int v = 0; v < c->n_values; v++) {
        c->root[v] = v;
        c->bytes[v] = memory_of(c, c->a.uses.numbers.values[v]);
    }
    for (int n = 0; n < c->a.n_nodes; n++) {
        const ot_node *node = c->a.graph->nodes[n];

        if (n < c->a.n_forward)
            c->work[n] = work_of(node);
        if (ot__is_view(node))
            c->root[ot__choosing_value(c, node->outputs[0])] =
                c->root[ot__choosing_value(c, node->inputs[0])];
    }
    return OT_OK;
}

// ---- lifetimes ----

// Views of what is made again are views of that.
static void choose_views(ot__choosing *c)
{
    for (int n = 0; n < c->a.n_forward; n++) {
        const ot_node *node = c->a.graph->nodes[n];
        const ot_node *maker = ot__is_view(node) ? node->inputs[0]->producer : NULL;

        if (maker != NULL && c->a.can[n] && c->a.is_chosen[ot__choosing_node(c, maker)])
            c->a.is_chosen[n] = true;
    }
}

static int set_times(ot__choosing *c)
{
    const int n = c->a.n_nodes;
    int *count = c->time, t = 0;

    memset(count, 0, (size_t)n * sizeof *count);
    for (int i = 0; i < c->a.n_forward; i++)
        if (ot__again_has_place(&c->a, i))
            count[c->a.place[i]]++;
    for (int i = 0; i < n; i++) { // now count[i] is when what stands before node i begins
        const int before = count[i];

        count[i] = t;
        t += before + 1;
    }
    for (int i = 0; i < c->a.n_forward; i++)
        if (ot__again_has_place(&c->a, i))
            c->again_time[i] = count[c->a.place[i]]++;
    return t;
}

// The lifetime of what a node of the backward pass, or one that is made again, reads as `value`.
static ot__life *late_lifetime(ot__choosing *c, const ot_value *value)
{
    const ot_node *maker = value->producer;
    int n;

    while (maker != NULL && ot__choosing_node(c, maker) >= c->a.n_forward && ot__is_view(maker)) {
        value = maker->inputs[0];
        maker = value->producer;
    }
    n = maker == NULL ? c->a.n_nodes : ot__choosing_node(c, maker);
    return ot__again_has_place(&c->a, n) && ot__again_gives(&c->a, n, value->i_producer_output)
               ? &c->again[c->root[ot__choosing_value(c, value)]]
               : &c->kept[c->root[ot__choosing_value(c, value)]];
}

static void begin_or_extend(ot__life *l, int time)
{
    l->first = OT_MIN(l->first, time);
    l->last = OT_MAX(l->last, time);
}

static void find_choice_lifetimes(ot__choosing *c, int n_times)
{
    const ot__again *a = &c->a;

    for (int v = 0; v < c->n_values; v++)
        c->kept[v] = c->again[v] = (ot__life){n_times, -1};
    for (int n = 0; n < a->n_nodes; n++) {
        const ot_node *node = a->graph->nodes[n];

        for (int i = 0; i < node->n_outputs; i++) {
            const ot_value *y = node->outputs[i];

            if (y == NULL)
                continue;
            begin_or_extend(n < a->n_forward ? &c->kept[c->root[ot__choosing_value(c, y)]]
                                             : late_lifetime(c, y),
                            c->time[n]);
            if (y->is_output)
                begin_or_extend(&c->kept[c->root[ot__choosing_value(c, y)]], n_times);
            if (ot__again_has_place(&c->a, n) && ot__again_gives(a, n, i))
                begin_or_extend(&c->again[c->root[ot__choosing_value(c, y)]], c->again_time[n]);
        }
        for (int i = 0; i < node->n_inputs; i++) {
            const ot_value *x = node->inputs[i];

            if (x == NULL)
                continue;
            if (n < a->n_forward)
                begin_or_extend(&c->kept[c->root[ot__choosing_value(c, x)]], c->time[n]);
            else
                begin_or_extend(late_lifetime(c, x), c->time[n]);
            if (ot__again_has_place(&c->a, n))
                begin_or_extend(late_lifetime(c, x), c->again_time[n]);
        }
    }
}

// Where a plan replaces an operand by the result, the two are not alive together.
static void end_replaced(ot__choosing *c, const ot_node *node, ot__life *lives, int time)
{
    const int y = c->root[ot__choosing_value(c, node->outputs[0])];

    for (int i = 0; i < OT_MIN(node->n_inputs, 2); i++) {
        const ot_value *value = node->inputs[i];
        ot__life *x = value == NULL ? NULL : &lives[c->root[ot__choosing_value(c, value)]];

        if (x == NULL || x->last != time || x->first >= time ||
            c->bytes[c->root[ot__choosing_value(c, value)]] != c->bytes[y])
            continue;
        x->last = time - 1;
        return;
    }
}

static void find_replaced(ot__choosing *c)
{
    for (int n = 0; n < c->a.n_nodes; n++) {
        const ot_node *node = c->a.graph->nodes[n];

        if ((node->op->flags & OT_OP_IN_PLACE) == 0 || ot__is_view(node) ||
            node->outputs[0] == NULL)
            continue;
        end_replaced(c, node, c->kept, c->time[n]);
        if (ot__again_has_place(&c->a, n))
            end_replaced(c, node, c->again, c->again_time[n]);
    }
}

static void add_live(ot__choosing *c, const ot__life *l, size_t n_bytes)
{
    if (l->first > l->last)
        return;
    c->change[l->first] += (int64_t)n_bytes;
    c->change[l->last + 1] -= (int64_t)n_bytes;
}

// Where most bytes are alive, with what is chosen now.
void ot__choosing_find_peak(ot__choosing *c)
{
    int64_t live = 0;
    int n_times, t = 0;

    choose_views(c);
    ot__again_find_places(&c->a);
    n_times = set_times(c);
    find_choice_lifetimes(c, n_times);
    find_replaced(c);
    memset(c->change, 0, ((size_t)n_times + 2) * sizeof *c->change);
    for (int v = 0; v < c->n_values; v++)
        if (c->bytes[v] > 0) {
            add_live(c, &c->kept[v], c->bytes[v]);
            add_live(c, &c->again[v], c->bytes[v]);
        }
    c->peak = -1;
    for (int n = 0; n < c->a.n_nodes; n++) {
        c->live[n] = 0;
        for (; t <= c->time[n]; t++) {
            live += c->change[t];
            c->live[n] = OT_MAX(c->live[n], live);
        }
        if (c->live[n] > c->peak) {
            c->peak = c->live[n];
            c->peak_at = n;
        }
    }
}
