// SPDX-License-Identifier: Apache-2.0
// Exchanges regions for the fused operators that stand for them: finds them, has their gradients
// derived, recognises these in the graph, and rewires it.
#include <string.h>

#include "passes/region.h"

static const ot__region_matcher matchers[] = {ot__match_attention, ot__match_activation,
                                              ot__match_group_norm, ot__match_layer_norm};

typedef struct regions {
    ot_model *model;
    ot__arena *arena;
    // Of nodes that only hand on what they read: its name -> what they call it, and back.
    ot__map handed_on, originals;
    ot__region **items;
    int n, capacity;
    const ot_node *last; // of the nodes that the graph had before gradients were derived
    int n_before;        // those nodes, afterwards
    ot__classes classes;
    bool *is_mirrored;  // per node, of the region at hand: it belongs to its gradient
    ot_node **mirrored; // those nodes
    int n_mirrored;
    ot_value **next;  // per value: the next one of its class
    ot_value **first; // per class: its first value
} regions;

// ---- finding ----

static ot_status add_region(regions *r, ot__region *region)
{
    if (r->n == r->capacity) {
        const int capacity = r->capacity * 2 + 8;
        ot__region **items = ot__arena_alloc(r->arena, (size_t)capacity * sizeof *items);

        OT_TRY(ot__made(items != NULL));
        if (r->n > 0)
            memcpy(items, r->items, (size_t)r->n * sizeof *items);
        r->items = items;
        r->capacity = capacity;
    }
    r->items[r->n++] = region;
    return OT_OK;
}

static bool is_apart(const ot__region *region, const bool *is_taken, const ot__numbers *numbers)
{
    for (int k = 0; k < region->n_nodes; k++)
        if (is_taken[ot__node_number(numbers, region->nodes[k])])
            return false;
    return true;
}

static ot_status find_at(regions *r, const ot__uses *uses, ot_node *node, bool *is_taken)
{
    for (size_t m = 0; m < sizeof matchers / sizeof *matchers; m++) {
        ot__region *region = NULL;

        OT_TRY(matchers[m](uses, node, r->arena, &region));
        if (region == NULL || !is_apart(region, is_taken, &uses->numbers))
            continue;
        for (int k = 0; k < region->n_nodes; k++)
            is_taken[ot__node_number(&uses->numbers, region->nodes[k])] = true;
        return add_region(r, region);
    }
    return OT_OK;
}

static ot_status collect_regions(regions *r)
{
    const ot_graph *graph = r->model->graph;
    bool *is_taken = ot__alloc_zero((size_t)graph->n_nodes, sizeof *is_taken);
    ot__uses uses;
    ot_status st = ot__made(is_taken != NULL);

    OT_THEN(st, ot__uses_build(graph, &uses));
    if (st == OT_OK) {
        for (int n = 0; st == OT_OK && n < graph->n_nodes; n++)
            st = find_at(r, &uses, graph->nodes[n], is_taken);
        ot__uses_deinit(&uses);
    }
    ot__free(is_taken);
    return st;
}

// ---- gradients ----

static ot_value *gradient_called(const regions *r, const ot_value *value, const char *name)
{
    ot__buf text = {0};
    ot_value *found = NULL;

    ot__buf_printf(&text, "%s_grad", name);
    if (!text.failed) {
        const char *other = ot__map_get(&r->originals, text.data);

        found = ot__graph_find(r->model->graph, other != NULL ? other : text.data);
    }
    ot__buf_deinit(&text);
    return found != NULL && found->dtype == value->dtype && found->has_shape &&
                   ot__shape_equal(&found->shape, &value->shape)
               ? found
               : NULL;
}

// What autodiff calls the gradient of a value. That it is one is found out afterwards: only then is
// what follows from it in the graph.
static ot_value *called_gradient(const regions *r, const ot_value *value)
{
    ot_value *found = gradient_called(r, value, value->name);
    const char *other = found == NULL ? ot__map_get(&r->handed_on, value->name) : NULL;

    return other != NULL ? gradient_called(r, value, other) : found;
}

// The gradient of a value that is only handed on has the name of what it is handed on as, and may
// be handed on itself.
static ot_status note_names(regions *r)
{
    const ot_graph *graph = r->model->graph;

    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];
        char *x, *other;

        if (!ot__node_is_identity(node))
            continue;
        x = ot__map_get(&r->originals, node->inputs[0]->name);
        x = ot__arena_strdup(r->arena, x != NULL ? x : node->inputs[0]->name);
        other = ot__arena_strdup(r->arena, node->outputs[0]->name);
        OT_TRY(ot__made(x != NULL && other != NULL && ot__map_put(&r->originals, other, x) &&
                        ot__map_put(&r->handed_on, x, other)));
    }
    return OT_OK;
}

static ot_status derive_all(regions *r)
{
    ot_graph *graph = r->model->graph;
    int kept = 0;

    for (int k = 0; k < r->n; k++) {
        ot__region *region = r->items[k];
        ot_status st = OT_OK;

        for (ot__region *one = region; st == OT_OK && one != NULL; one = one->otherwise) {
            one->dy = called_gradient(r, one->output);
            if (one->dy != NULL)
                st = ot__region_derive(graph, one);
        }
        if (st == OT_ERR_UNSUPPORTED)
            continue;
        OT_TRY(st);
        r->items[kept++] = region;
    }
    r->n = kept;
    return ot__pass_fold(r->model, 0);
}

static ot_status classify(regions *r)
{
    const ot_graph *graph = r->model->graph;
    const ot__numbers *numbers = &r->classes.uses.numbers;
    size_t n_nodes;

    OT_TRY(ot__classes_build(graph, &r->classes));
    n_nodes = (size_t)graph->n_nodes;
    for (r->n_before = graph->n_nodes; r->n_before > 0; r->n_before--)
        if (graph->nodes[r->n_before - 1] == r->last)
            break;
    r->is_mirrored = ot__arena_alloc(r->arena, n_nodes * sizeof *r->is_mirrored);
    r->mirrored = ot__arena_alloc(r->arena, n_nodes * sizeof *r->mirrored);
    r->next = ot__arena_alloc(r->arena, (size_t)numbers->n_values * sizeof *r->next);
    r->first = ot__arena_alloc(r->arena, (size_t)r->classes.n * sizeof *r->first);
    OT_TRY(ot__made(r->is_mirrored && r->mirrored && r->next && r->first));
    memset(r->is_mirrored, 0, n_nodes * sizeof *r->is_mirrored);
    memset(r->first, 0, (size_t)r->classes.n * sizeof *r->first);
    for (int v = numbers->n_values - 1; v >= 0; v--) {
        r->next[v] = r->first[r->classes.of[v]];
        r->first[r->classes.of[v]] = numbers->values[v];
    }
    return OT_OK;
}

static bool was_there(const regions *r, const ot_node *node)
{
    const ot__numbers *numbers = &r->classes.uses.numbers;

    return ot__has_node_number(numbers, node) && ot__node_number(numbers, node) < r->n_before;
}

static bool is_alike(const regions *r, const ot_value *a, const ot_value *b)
{
    const ot__numbers *numbers = &r->classes.uses.numbers;

    return a != NULL && b != NULL && ot__has_number(numbers, a) && ot__has_number(numbers, b) &&
           ot__class_of(&r->classes, a) == ot__class_of(&r->classes, b);
}

// The n-th value of the graph as it was that is computed as `derived` is; NULL: there is none.
static ot_value *recognise(const regions *r, const ot_value *derived, int n)
{
    const ot__numbers *numbers = &r->classes.uses.numbers;
    ot_value *value =
        ot__has_number(numbers, derived) ? r->first[ot__class_of(&r->classes, derived)] : NULL;

    for (; n > 0 && value != NULL; n--)
        value = r->next[ot__value_number(numbers, value)];
    return value != NULL && (value->producer == NULL || was_there(r, value->producer)) ? value
                                                                                       : NULL;
}

// The parts of the i-th gradient become those that the graph has; where it has not all, it has not
// asked for it. Two parts may be computed alike: those of x * x.
static void recognise_parts(const regions *r, ot__region *region, int i)
{
    ot_value *found[OT_REGION_PARTS];

    for (int p = 0; p < region->n_parts[i]; p++) {
        int n = 0;

        for (int q = 0; q < p; q++)
            n += is_alike(r, region->parts[i][q], region->parts[i][p]);
        found[p] = recognise(r, region->parts[i][p], n);
        if (found[p] == NULL) {
            region->n_parts[i] = 0;
            return;
        }
    }
    memcpy(region->parts[i], found, (size_t)region->n_parts[i] * sizeof *found);
}

// ---- what a region's gradient is made of ----

// What the region takes from elsewhere or makes itself.
static bool is_given(const regions *r, const ot__region *region, const ot_value *value)
{
    if (value->producer == NULL || is_alike(r, value, region->dy) ||
        ot__region_makes(region, value))
        return true;
    for (int k = 0; k < region->n_nodes; k++)
        for (int i = 0; i < region->nodes[k]->n_inputs; i++)
            if (region->nodes[k]->inputs[i] == value)
                return true;
    return false;
}

static void mirror_value(regions *r, const ot__region *region, const ot_value *value)
{
    const ot__numbers *numbers = &r->classes.uses.numbers;

    if (value == NULL || is_given(r, region, value) ||
        r->is_mirrored[ot__node_number(numbers, value->producer)])
        return;
    r->is_mirrored[ot__node_number(numbers, value->producer)] = true;
    r->mirrored[r->n_mirrored++] = value->producer;
}

static void mirror(regions *r, const ot__region *region)
{
    const ot__numbers *numbers = &r->classes.uses.numbers;

    for (int k = 0; k < r->n_mirrored; k++)
        r->is_mirrored[ot__node_number(numbers, r->mirrored[k])] = false;
    r->n_mirrored = 0;
    for (int i = 0; i < region->n_inputs; i++)
        for (int p = 0; p < region->n_parts[i]; p++)
            mirror_value(r, region, region->parts[i][p]);
    for (int k = 0; k < r->n_mirrored; k++)
        for (int i = 0; i < r->mirrored[k]->n_inputs; i++)
            mirror_value(r, region, r->mirrored[k]->inputs[i]);
}

static int part_position(const ot_node *sum, const ot_value *part)
{
    for (int i = 0; i < sum->n_inputs; i++)
        if (sum->inputs[i] == part)
            return i;
    return -1;
}

// The node that adds up all parts of the i-th gradient; NULL: there is none.
static ot_node *find_sum(const regions *r, const ot__region *region, int i)
{
    const ot__uses *uses = &r->classes.uses;
    const ot_value *part = region->parts[i][0];

    if (ot__uses_count(uses, part) > OT_REGION_READERS)
        return NULL;
    for (int u = ot__uses_first(uses, part); u < ot__uses_end(uses, part); u++) {
        ot_node *node = uses->use[u].node;
        int n = 0;

        if (!was_there(r, node) || !ot__node_is(node, "", "Sum") ||
            r->is_mirrored[ot__node_number(&uses->numbers, node)])
            continue;
        while (n < region->n_parts[i] && part_position(node, region->parts[i][n]) >= 0)
            n++;
        if (n == region->n_parts[i])
            return node;
    }
    return NULL;
}

// Whether a value is a gradient as it is: the fused node makes it.
static bool is_sole_part(const regions *r, const ot__region *region, const ot_value *value)
{
    for (int i = 0; i < region->n_inputs; i++)
        if (region->n_parts[i] == 1 && region->parts[i][0] == value && !is_given(r, region, value))
            return true;
    return false;
}

// Whether a node that reads what goes with the region goes too, or will read something else.
static bool may_read(const regions *r, const ot__region *region, const ot_node *node,
                     const ot_value *value)
{
    if (!was_there(r, node) || ot__region_has(region, node) ||
        r->is_mirrored[ot__node_number(&r->classes.uses.numbers, node)])
        return true;
    if (is_sole_part(r, region, value))
        return true;
    for (int i = 0; i < region->n_inputs; i++)
        for (int p = 0; p < region->n_parts[i]; p++)
            if (region->parts[i][p] == value)
                return region->n_parts[i] > 1 && find_sum(r, region, i) == node;
    return false;
}

static bool goes_along(const regions *r, const ot__region *region, const ot_node *node)
{
    const ot__uses *uses = &r->classes.uses;

    for (int o = 0; o < node->n_outputs; o++) {
        const ot_value *y = node->outputs[o];

        if (y == NULL || y == region->output)
            continue;
        if (y->is_output && !is_sole_part(r, region, y))
            return false;
        for (int u = ot__uses_first(uses, y); u < ot__uses_end(uses, y); u++)
            if (!may_read(r, region, uses->use[u].node, y))
                return false;
    }
    return true;
}

static bool is_whole(const regions *r, const ot__region *region)
{
    for (int k = 0; k < region->n_nodes; k++)
        if (!goes_along(r, region, region->nodes[k]))
            return false;
    for (int k = 0; k < r->n_mirrored; k++)
        if (!goes_along(r, region, r->mirrored[k]))
            return false;
    for (int i = 0; i < region->n_inputs; i++) {
        if (region->n_parts[i] > 1 && find_sum(r, region, i) == NULL)
            return false;
    }
    return true;
}

// ---- rewriting ----

static void take_parts_out(const ot__region *region, int i, ot_node *sum)
{
    int kept = 0;

    for (int k = 0; k < sum->n_inputs; k++) {
        bool is_part = false;

        for (int p = 1; p < region->n_parts[i]; p++)
            is_part = is_part || sum->inputs[k] == region->parts[i][p];
        if (!is_part)
            sum->inputs[kept++] = sum->inputs[k];
    }
    sum->n_inputs = kept;
}

// The fused node will make `value`; the node that makes it has another output for it.
static ot_status take_over(const regions *r, ot_value *value)
{
    ot_node *node = value->producer;
    ot_value *other = ot__graph_new_value(r->model->graph, value->name);

    OT_TRY(ot__made(other != NULL));
    ot__value_set(other, value->dtype, &value->shape);
    other->producer = node;
    other->i_producer_output = value->i_producer_output;
    node->outputs[value->i_producer_output] = other;
    value->producer = NULL;
    value->i_producer_output = 0;
    return OT_OK;
}

// The value that is the i-th gradient.
static ot_status give_gradient(const regions *r, ot__region *region, int i)
{
    ot_value *part = region->n_parts[i] > 0 ? region->parts[i][0] : NULL, *dx;
    ot_node *sum;

    if (part == NULL || (region->n_parts[i] == 1 && is_given(r, region, part)))
        return OT_OK;
    sum = region->n_parts[i] > 1 ? find_sum(r, region, i) : NULL;
    if (sum == NULL || sum->n_inputs == region->n_parts[i]) {
        region->gradients[i] = sum == NULL ? part : sum->outputs[0];
        return take_over(r, region->gradients[i]);
    }
    dx = ot__graph_new_value(r->model->graph, part->name);
    OT_TRY(ot__made(dx != NULL));
    ot__value_set(dx, region->inputs[i]->dtype, &region->inputs[i]->shape);
    region->gradients[i] = dx;
    take_parts_out(region, i, sum);
    sum->inputs[part_position(sum, part)] = dx;
    return OT_OK;
}

static ot_status rewrite(regions *r, ot__region *region)
{
    ot__fusing f = {.graph = r->model->graph};

    for (int i = 0; i < region->n_inputs; i++)
        OT_TRY(give_gradient(r, region, i));
    ot__node_detach(region->output->producer);
    return region->write(&f, region);
}

// Those stay in the list whose nodes can all go. What is looked at is the graph as it was, so this
// comes before the first is rewritten.
static void keep_whole(regions *r)
{
    int kept = 0;

    for (int k = 0; k < r->n; k++) {
        ot__region *region = r->items[k];

        for (; region != NULL; region = region->otherwise) {
            for (int i = 0; i < region->n_inputs; i++)
                recognise_parts(r, region, i);
            mirror(r, region);
            if (is_whole(r, region))
                break;
        }
        if (region != NULL)
            r->items[kept++] = region;
    }
    r->n = kept;
}

static ot_status exchange_regions(regions *r)
{
    OT_TRY(note_names(r));
    OT_TRY(ot__pass_simplify(r->model)); // a node that only renames would hide a pattern
    OT_TRY(ot__pass_fold(r->model, 0));  // numbers that such nodes have made
    OT_TRY(collect_regions(r));
    if (r->n == 0)
        return OT_OK;
    r->last = r->model->graph->nodes[r->model->graph->n_nodes - 1];
    OT_TRY(derive_all(r));
    OT_TRY(classify(r));
    keep_whole(r);
    for (int k = 0; k < r->n; k++) {
        mirror(r, r->items[k]);
        OT_TRY(rewrite(r, r->items[k]));
    }
    ot__graph_drop_detached(r->model->graph);
    OT_TRY(ot__graph_sort(r->model->graph));
    return ot__graph_prune(r->model->graph, ot__op_writes_state);
}

ot_status ot__fuse_regions(ot_model *model)
{
    regions r = {.model = model, .arena = ot__arena_create()};
    ot_status st = ot__made(r.arena != NULL);

    if (model->graph->n_nodes > 0)
        OT_THEN(st, exchange_regions(&r));
    ot__classes_deinit(&r.classes);
    ot__map_deinit(&r.handed_on);
    ot__map_deinit(&r.originals);
    ot__arena_destroy(r.arena);
    return st == OT_OK ? ot__pass_finished(model, "fuse_region") : st;
}
