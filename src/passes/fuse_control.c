// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan whose way is known before anything runs: exporters write them where the number
// of axes, an option of a module, the length of a list or of a sequence decides. Where data decide,
// both branches of an If stand in the graph (fuse_branch.c).
#include <string.h>

#include "passes/branch.h"
#include "passes/unroll.h"

enum {
    MAX_ROUNDS = 64,       // of nodes inside each other
    MAX_UNROLLED = 100000, // nodes that the turns of all of a model make
};

// What a node asks for, as far as it is known: the number that a value is, or its extent along an
// axis.
typedef struct asked {
    ot_value *value; // NULL: nothing is asked for
    bool is_extent, is_known;
    int64_t axis, number;
} asked;

typedef struct control {
    ot_node *node;
    asked condition, turns;
} control;

typedef struct controls {
    ot_model *model;
    control *items;
    int n, capacity;
    int64_t n_left; // nodes that turns may still make
    bool has_changed;
} controls;

bool ot__is_control(const ot_node *node)
{
    return ot__node_is(node, "", "If") || ot__node_is(node, "", "Loop") ||
           ot__node_is(node, "", "Scan");
}

// ---- what is known ----

static void take_known(asked *a, const ot_tensor *tensor)
{
    if (!tensor || ot_tensor_count(tensor) != 1 ||
        (tensor->dtype != OT_BOOL && tensor->dtype != OT_I64 && tensor->dtype != OT_I32))
        return;
    a->is_known = true;
    a->number = ot__tensor_get_i64(tensor, 0);
}

static void take_extent(asked *a, const ot_value *value)
{
    int axis;

    if (!value->has_shape || !ot__axis_normalize(a->axis, value->shape.ndim, &axis) ||
        !ot__dim_is_number(value->shape.dim[axis]))
        return;
    a->is_known = true;
    a->number = value->shape.dim[axis];
}

static void take_asked(asked *a, const ot_value *value)
{
    if (a->is_extent)
        take_extent(a, value);
    else
        take_known(a, ot__match_constant_value(value));
}

static asked ask(ot_value *value)
{
    asked a = {.value = value};

    if (value)
        take_asked(&a, value);
    return a;
}

// A Scan takes a turn for each place along the axis of what it scans; all have as many.
static asked ask_scanned(const ot_node *node)
{
    const ot__scanned in = ot__scanned_input(node, 0);
    asked a = {.value = in.value, .is_extent = true, .axis = in.axis};

    if (a.value)
        take_asked(&a, a.value);
    return a;
}

static bool is_open(const asked *a)
{
    return a->value && !a->is_known;
}

static ot_value *control_input(const ot_node *node, int i)
{
    return i < node->n_inputs ? node->inputs[i] : NULL;
}

static ot_status collect_controls(controls *c)
{
    const ot_graph *graph = c->model->graph;

    c->n = 0;
    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];
        control found = {.node = node};

        if (!ot__is_control(node))
            continue;
        if (ot__node_is(node, "", "Scan"))
            found.turns = ask_scanned(node);
        else if (ot__node_is(node, "", "Loop"))
            found.turns = ask(control_input(node, 0));
        if (!ot__node_is(node, "", "Scan"))
            found.condition = ask(control_input(node, ot__node_is(node, "", "If") ? 0 : 1));
        OT_TRY(ot__made(ot__grow(&c->items, &c->capacity, c->n, sizeof *c->items)));
        c->items[c->n++] = found;
    }
    return OT_OK;
}

// ---- what follows from shapes: in a copy that computes nothing else ----

static bool has_control(const ot_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (ot__is_control(graph->nodes[n]) || ot__node_is(graph->nodes[n], "", "SequenceMap"))
            return true;
    return false;
}

typedef struct capture_search {
    const ot__map *behind;
    bool is_found;
} capture_search;

static void search_capture(void *context, ot_value *value)
{
    capture_search *s = context;

    s->is_found = s->is_found || ot__map_get(s->behind, value->name) != NULL;
}

static bool comes_behind(const ot__map *behind, const ot_node *node)
{
    capture_search s = {behind, ot__is_control(node)};

    for (int i = 0; i < node->n_inputs && !s.is_found; i++)
        if (node->inputs[i])
            search_capture(&s, node->inputs[i]);
    if (!s.is_found)
        ot__node_visit_captures(node, search_capture, &s);
    return s.is_found;
}

// What waits for an If or Loop is asked in a later round.
static ot_status find_behind(const ot_graph *graph, ot__map *behind)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];

        if (!comes_behind(behind, node))
            continue;
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i])
                OT_TRY(ot__made(ot__map_put(behind, node->outputs[i]->name, node)));
    }
    return OT_OK;
}

static ot_status add_probe(const ot__map *behind, ot_graph *graph, const asked *a, int *n_probes)
{
    ot_value *value = is_open(a) ? ot__graph_find(graph, a->value->name) : NULL, *probe;

    if (!value || ot__map_get(behind, value->name))
        return OT_OK;
    probe = ot__graph_new_value(graph, "asked");
    OT_TRY(ot__made(probe && ot__graph_add_node(graph, "", "Identity", "", &value, 1, &probe, 1) &&
                    ot__graph_add_output(graph, probe)));
    ++*n_probes;
    return OT_OK;
}

static void take_probed(asked *a, const ot_graph *probed)
{
    const ot_value *value = is_open(a) ? ot__graph_find(probed, a->value->name) : NULL;

    if (value)
        take_asked(a, value);
}

static ot_status probe_copy(controls *c, ot_model *copy, const ot__map *behind)
{
    int n_probes = 0;

    ot__graph_clear_outputs(copy->graph);
    for (int i = 0; i < c->n; i++) {
        OT_TRY(add_probe(behind, copy->graph, &c->items[i].condition, &n_probes));
        OT_TRY(add_probe(behind, copy->graph, &c->items[i].turns, &n_probes));
    }
    if (n_probes == 0)
        return OT_OK;
    OT_TRY(ot__graph_prune(copy->graph, NULL));
    OT_TRY(ot__pass_prepare(copy));
    OT_TRY(ot__pass_fold(copy, 0));
    for (int i = 0; i < c->n; i++) {
        take_probed(&c->items[i].condition, copy->graph);
        take_probed(&c->items[i].turns, copy->graph);
    }
    return OT_OK;
}

static bool has_open(const controls *c)
{
    for (int i = 0; i < c->n; i++)
        if (is_open(&c->items[i].condition) || is_open(&c->items[i].turns))
            return true;
    return false;
}

// What is not supported on the way there leaves the question open: the check of the model tells it.
static ot_status probe(controls *c)
{
    ot__map behind = {0};
    ot_model *copy = NULL;
    ot_status st;

    if (!has_open(c))
        return OT_OK;
    st = find_behind(c->model->graph, &behind);
    OT_THEN(st, ot__model_clone(c->model, &copy));
    OT_THEN(st, probe_copy(c, copy, &behind));
    ot_model_destroy(copy);
    ot__map_deinit(&behind);
    return st == OT_ERR_NO_MEMORY ? st : OT_OK;
}

// ---- rewriting ----

static ot_status take_branch(ot_graph *graph, ot_node *node, bool condition, bool *has_changed)
{
    const ot_graph *branch = ot__body_of(node, condition ? "then_branch" : "else_branch");
    ot_value **made;
    ot_status st;

    if (!branch || branch->n_inputs > 0 || branch->n_outputs < node->n_outputs)
        return OT_OK; // told by who checks it
    made = ot__alloc_zero((size_t)branch->n_outputs + 1, sizeof(ot_value *));
    OT_TRY(ot__made(made));
    ot__node_detach(node);
    st = ot__graph_inline_body(graph, branch, NULL, made);
    for (int i = 0; i < node->n_outputs && st == OT_OK; i++)
        st = ot__hand_on(graph, made[i], node->outputs[i]);
    ot__free(made);
    *has_changed = true;
    return st;
}

static ot_status take_turns(controls *c, const control *of)
{
    const bool is_over = of->condition.value && of->condition.number == 0;

    return ot__unroll(c->model->graph, of->node, is_over ? 0 : OT_MAX(of->turns.number, 0),
                      &c->n_left, &c->has_changed);
}

// ---- rounds ----

static ot_status rewrite_known(controls *c, const control *of)
{
    if (ot__node_is(of->node, "", "If"))
        return of->condition.is_known ? take_branch(c->model->graph, of->node,
                                                    of->condition.number != 0, &c->has_changed)
                                      : OT_OK;
    if (is_open(&of->condition) || !of->turns.is_known)
        return OT_OK;
    return take_turns(c, of);
}

static ot_status run_round(controls *c)
{
    c->has_changed = false;
    OT_TRY(ot__to_loops(c->model->graph, &c->has_changed));
    if (c->has_changed) {
        ot__graph_drop_detached(c->model->graph);
        OT_TRY(ot__graph_sort(c->model->graph));
    }
    OT_TRY(collect_controls(c));
    OT_TRY(probe(c));
    for (int i = 0; i < c->n; i++)
        OT_TRY(rewrite_known(c, &c->items[i]));
    for (int i = 0; i < c->n && !c->has_changed; i++) // one by one: it may tell others
        if (ot__node_is(c->items[i].node, "", "If"))
            OT_TRY(ot__branch_both(c->model->graph, c->items[i].node, &c->has_changed));
    if (!c->has_changed)
        return OT_OK;
    ot__graph_drop_detached(c->model->graph);
    return ot__graph_sort(c->model->graph);
}

ot_status ot__fuse_control(ot_model *model)
{
    controls c = {.model = model, .n_left = MAX_UNROLLED};
    ot_status st = OT_OK;

    if (!has_control(model->graph))
        return OT_OK;
    for (int i = 0; i < MAX_ROUNDS && st == OT_OK && (i == 0 || c.has_changed); i++)
        st = run_round(&c);
    ot__free(c.items);
    return st == OT_OK ? ot__pass_finished(model, "control") : st;
}

// ---- in a step ----

static ot_status refuse_turns(const ot_node *node, const char *why)
{
    return ot__error(OT_ERR_UNSUPPORTED, "%s: %s", OT_LABEL(node), why);
}

// OT_OK and no change: what it asks for is not known yet.
static ot_status turn_loop(ot_graph *graph, ot_node *loop, int64_t *n_left, bool *has_changed)
{
    const asked condition = ask(control_input(loop, 1)), count = ask(control_input(loop, 0));
    const ot_graph *body = ot__body_of(loop, "body");
    const bool is_over = condition.value != NULL && condition.number == 0;
    const int64_t made = ot__turns_made(loop);

    if (is_open(&condition) || is_open(&count) || body == NULL || body->n_outputs == 0 ||
        body->n_inputs < 2)
        return OT_OK;
    if (is_over || (count.value != NULL && made >= count.number))
        return ot__end_turns(graph, loop, has_changed);
    if (!ot__goes_on_always(body))
        return ot__next_turn(graph, loop, n_left, has_changed);
    return count.value == NULL ? refuse_turns(loop, "it never ends")
                               : ot__unroll(graph, loop, count.number, n_left, has_changed);
}

static bool is_told(const ot_node *node)
{
    const asked count = ask(control_input(node, 0)), condition = ask(control_input(node, 1));

    return ot__node_is(node, "", "Scan") || (!is_open(&count) && !is_open(&condition));
}

// Types first: a node that hands on a sequence has no record.
static ot_status resolve_record(const ot_model *model, ot_node *node)
{
    if (ot__is_control(node) || ot__is_sequence_node(node)) {
        node->op = ot__op_control;
        return ot__op_infer(node);
    }
    if (node->op != NULL)
        return OT_OK;
    OT_TRY(ot__op_lookup(model, node, &node->op));
    return ot__op_check_node(node);
}

static ot_status resolve_records(ot_model *model)
{
    ot_graph *graph = model->graph;

    ot__graph_drop_detached(graph);
    OT_TRY(ot__graph_sort(graph));
    for (int n = 0; n < graph->n_nodes; n++)
        OT_TRY(resolve_record(model, graph->nodes[n]));
    return OT_OK;
}

// What the turns have brought into the graph.
static ot_status resolve_turns(ot_model *model)
{
    ot_graph *graph = model->graph;
    bool has_changed;

    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];

        if (node->graph == graph && ot__node_is(node, "", "If"))
            OT_TRY(ot__branch_both(graph, node, &has_changed));
    }
    return resolve_records(model);
}

ot_status ot__take_sequences(ot_model *model, bool *has_changed)
{
    const int n_nodes = model->graph->n_nodes;
    int n_left = 0;

    OT_TRY(ot__fuse_sequence(model));
    for (int n = 0; n < model->graph->n_nodes; n++)
        n_left += model->graph->nodes[n]->op != NULL;
    *has_changed = n_left < n_nodes; // it has left nodes out, or rewritten them
    return *has_changed ? resolve_records(model) : OT_OK;
}

ot_status ot__take_turns(ot_model *model, ot_node *node, int64_t *n_left, bool *has_changed)
{
    const bool is_branch = ot__node_is(node, "", "If");
    const asked turns = ot__node_is(node, "", "Scan") ? ask_scanned(node) : (asked){0};
    const asked condition = is_branch ? ask(control_input(node, 0)) : (asked){0};
    ot_status st = OT_OK;

    *has_changed = false;
    if (condition.is_known)
        st = take_branch(model->graph, node, condition.number != 0, has_changed);
    else if (ot__node_is(node, "", "Loop"))
        st = turn_loop(model->graph, node, n_left, has_changed);
    else if (turns.is_known)
        st = ot__unroll(model->graph, node, turns.number, n_left, has_changed);
    OT_TRY(st);
    if (*has_changed)
        return resolve_turns(model);
    if (is_branch)
        return condition.is_known ? refuse_turns(node, "its branch makes too little") : OT_OK;
    return is_told(node) ? refuse_turns(node, "it takes too many turns, or none and says no shape "
                                              "of what they make")
                         : OT_OK;
}
