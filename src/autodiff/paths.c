// SPDX-License-Identifier: Apache-2.0
// What differentiable paths exist, and what is in their way.
#include <string.h>

#include "autodiff/reach.h"

// Of a value, found by one walk backwards.
typedef struct obstacle {
    bool leads;           // to the target through edges of any kind
    ot_node *unsupported; // the next operator without gradient on a path, or NULL
    ot_node *stopper;     // where its paths end that lead to the target only in other ways
} obstacle;

typedef struct obstacles {
    const ot__reach *reach;
    obstacle *of; // per value
} obstacles;

static bool has_gradient_or_waits(const ot_node *node)
{
    return ot__op_is_differentiable(node->op) || ot__reach_waits(node);
}

static obstacle *obstacle_of(const obstacles *o, const ot_value *value)
{
    return &o->of[ot__reach_number(o->reach, value)];
}

typedef struct capture_walk {
    obstacles *o;
    ot_node *unsupported;
} capture_walk;

static void note_capture(void *context, const ot_value *value)
{
    const capture_walk *walk = context;

    obstacle_of(walk->o, value)->leads = true;
    if (walk->unsupported)
        obstacle_of(walk->o, value)->unsupported = walk->unsupported;
}

static void path_visit(obstacles *o, ot_node *node)
{
    const bool on_way = ot__reach_goes_on(o->reach, node);
    ot_node *unsupported = NULL, *stopper = NULL;
    bool leads = false;

    for (int i = 0; i < node->n_outputs; i++) {
        const obstacle *y = node->outputs[i] ? obstacle_of(o, node->outputs[i]) : NULL;

        leads = leads || (y && y->leads);
        if (!y || !ot__output_passes(node, i))
            continue;
        if (o->reach->to[ot__reach_number(o->reach, node->outputs[i])] && y->unsupported)
            unsupported = y->unsupported;
        stopper = y->stopper ? y->stopper : stopper;
    }
    if (!leads)
        return;
    if (on_way && !has_gradient_or_waits(node))
        unsupported = node;
    for (int i = 0; i < node->n_inputs; i++) {
        obstacle *x = node->inputs[i] ? obstacle_of(o, node->inputs[i]) : NULL;

        if (!x)
            continue;
        x->leads = true;
        if (!on_way || !o->reach->edge(node, i))
            x->stopper = o->reach->edge(node, i) && stopper ? stopper : node;
        else if (unsupported)
            x->unsupported = unsupported;
    }
    if (on_way) {
        capture_walk captures = {o, unsupported};

        ot__reach_visit_captures(o->reach, node, note_capture, &captures);
    }
}

// o->of is for the caller to free.
static ot_status find_obstacles(const ot__reach *reach, obstacles *o)
{
    o->reach = reach;
    o->of = ot__alloc_zero((size_t)reach->uses.numbers.n_values, sizeof *o->of);
    OT_TRY(ot__made(o->of));
    obstacle_of(o, reach->target)->leads = true;
    for (int n = reach->n_nodes - 1; n >= 0; n--)
        path_visit(o, reach->graph->nodes[n]);
    return OT_OK;
}

static ot__path_status path_status(const obstacles *o, const ot_value *value, ot_node **blocker)
{
    *blocker = NULL;
    if (!ot__reach_knows(o->reach, value) || !obstacle_of(o, value)->leads)
        return OT_PATH_NONE;
    if (!o->reach->to[ot__reach_number(o->reach, value)]) {
        *blocker = obstacle_of(o, value)->stopper;
        return OT_PATH_STOPPED;
    }
    *blocker = obstacle_of(o, value)->unsupported;
    return *blocker ? OT_PATH_UNSUPPORTED : OT_PATH_OK;
}

ot_status ot__autodiff_paths(ot_graph *graph, ot_value *target, ot_value *const *from, int n_from,
                             ot__edge_rule *edge, ot__path_status *status, ot_node **blocker)
{
    ot__reach reach;
    obstacles o = {0};
    ot_status st = ot__reach_build(graph, target, from, n_from, edge, &reach);

    OT_THEN(st, find_obstacles(&reach, &o));
    for (int i = 0; st == OT_OK && i < n_from; i++) {
        ot_node *found;

        status[i] = path_status(&o, from[i], &found);
        if (blocker)
            blocker[i] = found;
    }
    ot__free(o.of);
    ot__reach_deinit(&reach);
    return st;
}

// ---- messages ----

// Of a path at each end; of a list of names; of operators, each with its path.
enum { PATH_SHOWN = 3, NAMES_SHOWN = 8, OPERATORS_SHOWN = 64 };

// Why a value does not reach the target, after its name.
static void say_why(ot__buf *text, const obstacles *o, const ot_value *value)
{
    ot_node *blocker;
    const ot_port *port = NULL;

    if (path_status(o, value, &blocker) == OT_PATH_NONE || !blocker) {
        ot__buf_text(text, " (no path of operators)");
        return;
    }
    for (int i = 0; i < blocker->n_inputs && !port; i++)
        if (blocker->inputs[i] == value)
            port = ot__op_input_port(blocker->op, i);
    if (port)
        ot__buf_printf(text, " (only through input '%s' of %s)", port->name, OT_LABEL(blocker));
    else
        ot__buf_printf(text, " (stopped at %s)", OT_LABEL(blocker));
}

ot_status ot__reach_check_values(const ot__reach *reach, ot_value *const *from, int n_from)
{
    obstacles o;
    ot__buf text = {0};
    int n_lost = 0;
    ot_status st = find_obstacles(reach, &o);

    for (int i = 0; st == OT_OK && i < n_from; i++) {
        if (ot__reach_knows(reach, from[i]) && reach->to[ot__reach_number(reach, from[i])] &&
            ot__value_is_differentiable(from[i]))
            continue;
        if (n_lost++ >= NAMES_SHOWN)
            continue;
        ot__buf_printf(&text, "%s'%s'", n_lost > 1 ? ", " : "", from[i]->name);
        say_why(&text, &o, from[i]);
    }
    if (n_lost > NAMES_SHOWN)
        ot__buf_printf(&text, " and %d more", n_lost - NAMES_SHOWN);
    OT_THEN(st, ot__buf_status(&text));
    if (st == OT_OK && n_lost > 0)
        st = ot__error(OT_ERR_INVALID, "no gradient reaches from '%s' to %s", reach->target->name,
                       text.data);
    ot__buf_deinit(&text);
    ot__free(o.of);
    return st;
}

static const char *path_name(const ot_node *node)
{
    return node->name[0] ? node->name : node->op_type;
}

// Backwards from `node` along values that come from a parameter; their producers only get earlier.
static const ot_node *previous(const ot__reach *reach, const ot_node *node, const ot_value **from)
{
    const ot_value *captured;

    for (int i = 0; i < node->n_inputs; i++) {
        const ot_value *x = node->inputs[i];

        if (!x || !reach->from[ot__reach_number(reach, x)] || !reach->edge(node, i))
            continue;
        *from = x;
        if (x->producer && reach->is_active[ot__node_number(&reach->uses.numbers, x->producer)])
            return x->producer;
        return NULL;
    }
    captured = ot__reach_find_capture(reach, node);
    if (!captured)
        return NULL;
    *from = captured;
    return captured->producer;
}

// "Foo 'f' (from 'w' by a > b > ... > y > z)"
static ot_status say_operator(ot__buf *text, const ot__reach *reach, const ot_node *node)
{
    const ot_node **path = ot__alloc((size_t)reach->n_nodes * sizeof *path);
    const ot_value *from = NULL;
    int n = 0;

    OT_TRY(ot__made(path));
    for (const ot_node *at = previous(reach, node, &from); at; at = previous(reach, at, &from))
        path[n++] = at;
    if (ot__op_is_foreign(node) && node->domain[0])
        ot__buf_printf(text, "%s.", node->domain);
    ot__buf_text(text, OT_LABEL(node));
    if (from)
        ot__buf_printf(text, " (from '%s'", from->name);
    for (int i = n - 1; from && i >= 0; i--) {
        const bool is_left_out = i < n - PATH_SHOWN && i >= PATH_SHOWN;

        if (!is_left_out)
            ot__buf_printf(text, "%s%s", i == n - 1 ? " by " : " > ", path_name(path[i]));
        else if (i == PATH_SHOWN)
            ot__buf_text(text, " > ...");
    }
    if (from)
        ot__buf_text(text, ")");
    ot__free(path);
    return OT_OK;
}

// The parameters that would have to stay as they are for the others to train.
static ot_status say_freeze(ot__buf *text, const ot__reach *reach, ot_value *const *from,
                            int n_from)
{
    obstacles o;
    int n = 0;
    ot_status st = find_obstacles(reach, &o);

    for (int i = 0; st == OT_OK && i < n_from; i++) {
        if (!ot__reach_knows(reach, from[i]) || !obstacle_of(&o, from[i])->unsupported)
            continue;
        if (n++ < NAMES_SHOWN)
            ot__buf_printf(text, "%s'%s'", n == 1 ? "; freeze " : ", ", from[i]->name);
    }
    if (n > NAMES_SHOWN)
        ot__buf_printf(text, " and %d more", n - NAMES_SHOWN);
    if (n == n_from)
        ot__buf_text(text, ", which leaves nothing to train");
    else
        ot__buf_text(text, " to train the rest");
    ot__free(o.of);
    return st;
}

ot_status ot__reach_check_operators(const ot__reach *reach, ot_value *const *from, int n_from)
{
    const ot_node *foreign = NULL; // the first without a record
    ot__buf text = {0};
    ot_status st = OT_OK;
    int n_missing = 0;
    char op[160];

    for (int n = 0; st == OT_OK && n < reach->n_nodes; n++) {
        const ot_node *node = reach->graph->nodes[n];

        if (!reach->is_active[n] || has_gradient_or_waits(node))
            continue;
        if (!foreign && ot__op_is_foreign(node))
            foreign = node;
        if (n_missing++ >= OPERATORS_SHOWN)
            continue;
        if (n_missing > 1)
            ot__buf_text(&text, ", ");
        st = say_operator(&text, reach, node);
    }
    if (n_missing > OPERATORS_SHOWN)
        ot__buf_printf(&text, " and %d more", n_missing - OPERATORS_SHOWN);
    if (st == OT_OK && n_missing > 0)
        st = say_freeze(&text, reach, from, n_from);
    OT_THEN(st, ot__buf_status(&text));
    if (st == OT_OK && n_missing > 0)
        st = ot__error(OT_ERR_UNSUPPORTED, "%d operator%s on the way to '%s' without gradient: %s",
                       n_missing, n_missing == 1 ? "" : "s", reach->target->name, text.data);
    if (st == OT_ERR_UNSUPPORTED && foreign)
        st = ot__error_prefix(st, "%s is not supported", ot__op_type_text(foreign, op, sizeof op));
    ot__buf_deinit(&text);
    return st;
}
