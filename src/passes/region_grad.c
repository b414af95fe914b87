// SPDX-License-Identifier: Apache-2.0
// The gradient of a region, by the rules of its nodes: what autodiff has written in a training
// graph, once more.
#include "passes/region.h"

enum { MAX_EDGES = 4 * OT_REGION_NODES };

typedef struct deriving {
    ot_graph *graph;
    ot__region *region;
    bool is_active[OT_REGION_NODES]; // a gradient may go through
    struct {
        const ot_node *node;
        int i_input;
        ot_value *dx;
    } edge[MAX_EDGES];
    int n_edges;
    struct {
        const ot_value *of;
        ot_value *sum;
    } sum[OT_REGION_NODES]; // gradients with several parts
    int n_sums;
    ot_status status; // of what callbacks without a status have done
} deriving;

static int node_index(const ot__region *region, const ot_node *node)
{
    for (int k = 0; k < region->n_nodes; k++)
        if (region->nodes[k] == node)
            return k;
    return -1;
}

const ot__use *ot__region_reader(const ot__uses *uses, const ot_value *value, int k)
{
    return k < OT_MIN(ot__uses_count(uses, value), OT_REGION_READERS)
               ? &uses->use[ot__uses_first(uses, value) + k]
               : NULL;
}

bool ot__region_has(const ot__region *region, const ot_node *node)
{
    return node_index(region, node) >= 0;
}

bool ot__region_makes(const ot__region *region, const ot_value *value)
{
    return value->producer != NULL && ot__region_has(region, value->producer);
}

bool ot__region_keeps(const ot_value *x, double number)
{
    return x->dtype != OT_F64 || (double)(float)number == number;
}

bool ot__region_has_gradients(const ot__region *region)
{
    for (int i = 0; i < region->n_inputs; i++)
        if (region->gradients[i] != NULL)
            return true;
    return false;
}

bool ot__region_add(const ot__numbers *numbers, ot__region *region, ot_node *node)
{
    int at = region->n_nodes;

    if (ot__region_has(region, node))
        return true;
    if (region->n_nodes == OT_REGION_NODES)
        return false;
    for (;
         at > 0 && ot__node_number(numbers, region->nodes[at - 1]) > ot__node_number(numbers, node);
         at--)
        region->nodes[at] = region->nodes[at - 1];
    region->nodes[at] = node;
    region->n_nodes++;
    return true;
}

static bool is_wanted(const deriving *d, const ot_node *node, int i_input)
{
    const ot_value *x = i_input < node->n_inputs ? node->inputs[i_input] : NULL;
    const ot_port *port = ot__op_input_port(node->op, i_input);

    if (x == NULL || !ot__dtype_is_float(x->dtype) || port == NULL ||
        (port->flags & (OT_PORT_NO_GRAD | OT_PORT_STATE)) != 0)
        return false;
    for (int i = 0; i < d->region->n_inputs; i++)
        if (d->region->inputs[i] == x)
            return true;
    return ot__region_makes(d->region, x) && d->is_active[node_index(d->region, x->producer)];
}

static void find_active(deriving *d)
{
    for (int k = 0; k < d->region->n_nodes; k++) {
        const ot_node *node = d->region->nodes[k];

        for (int i = 0; (node->op->flags & OT_OP_NO_GRAD) == 0 && i < node->n_inputs; i++)
            d->is_active[k] = d->is_active[k] || is_wanted(d, node, i);
    }
}

// ---- parts of gradients, in autodiff's order ----

static int gather(const deriving *d, const ot_value *x, ot_value **parts, int capacity)
{
    int n = 0;

    for (int late = 0; late < 2; late++)
        for (int k = 0; k < d->region->n_nodes; k++) {
            const ot_node *node = d->region->nodes[k];

            if (((node->op->flags & OT_OP_LATE_PARTS) != 0) != (late == 1))
                continue;
            for (int i = 0; i < node->n_inputs; i++)
                for (int e = 0; e < d->n_edges; e++)
                    if (d->edge[e].node == node && d->edge[e].i_input == i &&
                        node->inputs[i] == x) {
                        if (n == capacity)
                            return -1;
                        parts[n++] = d->edge[e].dx;
                    }
        }
    return n;
}

static ot_value *sum_derived(deriving *d, const ot_value *x, ot_value **parts, int n)
{
    ot__builder b = {.graph = d->graph};
    ot_value *sum = ot__build_value(&b, ot__build_name(&b, "%s_grad", x->name));

    ot__op_settle(&b, ot__op_build(&b, "", "Sum", sum ? sum->name : "", parts, n, &sum, 1));
    if (b.status == OT_OK) {
        d->sum[d->n_sums].of = x;
        d->sum[d->n_sums++].sum = sum;
    }
    d->status = b.status;
    return b.status == OT_OK ? sum : NULL;
}

static ot_value *derived_dy(void *context, const ot_value *y)
{
    deriving *d = context;
    ot_value *parts[OT_REGION_PARTS];
    int n;

    if (y == d->region->output)
        return d->region->dy;
    for (int k = 0; k < d->n_sums; k++)
        if (d->sum[k].of == y)
            return d->sum[k].sum;
    n = d->status == OT_OK ? gather(d, y, parts, OT_REGION_PARTS) : 0;
    if (n < 0)
        d->status = ot__error(OT_ERR_UNSUPPORTED, "'%s' has too many readers", y->name);
    return n <= 0 ? NULL : n == 1 ? parts[0] : sum_derived(d, y, parts, n);
}

static bool derived_wants(void *context, const ot_node *node, int i_input)
{
    return is_wanted(context, node, i_input);
}

static ot_status derived_dx(void *context, const ot_node *node, int i_input, ot_value *dx)
{
    deriving *d = context;

    if (!is_wanted(d, node, i_input))
        return OT_OK;
    if (d->n_edges == MAX_EDGES)
        return ot__error(OT_ERR_UNSUPPORTED, "%s: too many gradients", OT_LABEL(node));
    d->edge[d->n_edges].node = node;
    d->edge[d->n_edges].i_input = i_input;
    d->edge[d->n_edges++].dx = dx;
    return OT_OK;
}

static bool has_dy(deriving *d, const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] != NULL && derived_dy(d, node->outputs[i]) != NULL)
            return true;
    return false;
}

static ot_status derive_region(deriving *d)
{
    const ot__grad_host host = {d, derived_dy, derived_wants, derived_dx};
    ot__region *r = d->region;

    find_active(d);
    for (int k = r->n_nodes - 1; k >= 0; k--) {
        if (d->is_active[k] && has_dy(d, r->nodes[k]))
            OT_TRY(ot__op_grad(r->nodes[k], &host));
        OT_TRY(d->status);
    }
    for (int i = 0; i < r->n_inputs; i++) {
        r->n_parts[i] = gather(d, r->inputs[i], r->parts[i], OT_REGION_PARTS);
        if (r->n_parts[i] < 0)
            return ot__error(OT_ERR_UNSUPPORTED, "'%s' has too many readers", r->inputs[i]->name);
    }
    return OT_OK;
}

ot_status ot__region_derive(ot_graph *graph, ot__region *region)
{
    deriving *d = ot__alloc_zero(1, sizeof *d);
    ot_status st = ot__made(d != NULL);

    if (st == OT_OK) {
        d->graph = graph;
        d->region = region;
        st = derive_region(d);
    }
    ot__free(d);
    return st;
}
