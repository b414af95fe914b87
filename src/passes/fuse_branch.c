// SPDX-License-Identifier: Apache-2.0
// If whose condition only the data of a step tell: the nodes of both branches stand in the graph,
// BranchOutput behind them, and go from the copy for a step once the condition is known.
#include <string.h>

#include "passes/branch.h"
#include "passes/unroll.h"

#define DOMAIN "ai.onnxtrain"

enum { CONDITION, THEN = OT_BRANCH_THEN, ELSE = OT_BRANCH_ELSE }; // inputs of BranchOutput

static bool is_branch_output(const ot_node *node)
{
    return ot__node_is(node, DOMAIN, "BranchOutput");
}

static bool is_branch_input(const ot_node *node)
{
    return ot__node_is(node, DOMAIN, "BranchInput");
}

bool ot__has_branches(const ot_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (is_branch_output(graph->nodes[n]) || is_branch_input(graph->nodes[n]))
            return true;
    return false;
}

// ---- in the place of an If ----

static bool makes_tensors(const ot_graph *body, const ot_node *node)
{
    if (body == NULL || body->n_inputs > 0 || body->n_outputs != node->n_outputs)
        return false;
    for (int i = 0; i < body->n_outputs; i++)
        if (body->outputs[i]->kind == OT_VALUE_SEQUENCE || body->outputs[i]->kind == OT_VALUE_OTHER)
            return false;
    return true;
}

// What runtimes of others compute stays where they compute it conditionally.
static bool is_all_known(const ot_graph *body)
{
    for (int n = 0; n < body->n_nodes; n++) {
        ot__subgraphs s = {.node = body->nodes[n]};
        bool has_inside = false;

        while (ot__next_subgraph(&s)) {
            has_inside = true;
            if (!is_all_known(s.graph))
                return false;
        }
        if (!has_inside && ot__node_record(body->nodes[n]) == NULL)
            return false;
    }
    return true;
}

static ot_status add_branch_output(ot_graph *graph, ot_value *condition, ot_value *then,
                                   ot_value *otherwise, ot_value *y)
{
    ot_value *const in[] = {condition, then, otherwise};

    return ot__made(y == NULL ||
                    ot__graph_add_node(graph, DOMAIN, "BranchOutput", y->name, in, 3, &y, 1));
}

ot_status ot__branch_both(ot_graph *graph, ot_node *node, bool *has_changed)
{
    const ot_graph *then = ot__body_of(node, "then_branch");
    const ot_graph *otherwise = ot__body_of(node, "else_branch");
    ot_value *condition = node->n_inputs == 1 ? node->inputs[0] : NULL, **made;
    ot_status st;

    if (condition == NULL || !makes_tensors(then, node) || !makes_tensors(otherwise, node) ||
        !is_all_known(then) || !is_all_known(otherwise))
        return OT_OK; // told by who checks it
    made = ot__alloc_zero((size_t)node->n_outputs * 2 + 1, sizeof(ot_value *));
    OT_TRY(ot__made(made != NULL));
    ot__node_detach(node);
    st = ot__graph_inline_body(graph, then, NULL, made);
    OT_THEN(st, ot__graph_inline_body(graph, otherwise, NULL, made + node->n_outputs));
    for (int i = 0; i < node->n_outputs && st == OT_OK; i++)
        st = add_branch_output(graph, condition, made[i], made[node->n_outputs + i],
                               node->outputs[i]);
    if (ot__model_opset(graph->model, DOMAIN) == 0)
        OT_THEN(st, ot__model_set_opset(graph->model, DOMAIN, 1));
    ot__free(made);
    *has_changed = true;
    return st;
}

// ---- entering branches ----

bool ot__branch_ends(const ot__branch *b, const ot_node *node)
{
    return is_branch_output(node) && node->inputs[CONDITION] == b->condition;
}

static bool leads_only_there(const ot__branch *b, const ot_node *node)
{
    bool is_read = false;

    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *y = node->outputs[i];

        if (y == NULL)
            continue;
        if (y->is_output)
            return false;
        for (int u = ot__uses_first(&b->uses, y); u < ot__uses_end(&b->uses, y); u++) {
            const ot__use *use = &b->uses.use[u];

            is_read = true;
            if (ot__branch_ends(b, use->node)
                    ? use->i_input != b->port
                    : !b->is_inside[ot__node_number(&b->uses.numbers, use->node)])
                return false;
        }
    }
    return is_read;
}

// What already stands where values enter other branches are those around this one.
ot_status ot__branch_find(ot__branch *b)
{
    OT_TRY(ot__uses_build(b->graph, &b->uses));
    b->is_inside = ot__alloc_zero((size_t)b->graph->n_nodes + 1, sizeof *b->is_inside);
    OT_TRY(ot__made(b->is_inside != NULL));
    for (int n = b->graph->n_nodes - 1; n >= 0; n--)
        b->is_inside[n] =
            !is_branch_input(b->graph->nodes[n]) && leads_only_there(b, b->graph->nodes[n]);
    return OT_OK;
}

void ot__branch_deinit(ot__branch *b)
{
    ot__uses_deinit(&b->uses);
    ot__free(b->is_inside);
}

typedef struct entering {
    ot__branch branch;
    ot__map entered; // name of a value -> what it is inside
} entering;

static bool comes_from_outside(const entering *e, const ot_value *x)
{
    return x != NULL && x->kind == OT_VALUE_TENSOR && ot__dtype_is_float(x->dtype) &&
           (x->constant == NULL || x->is_input) &&
           (x->producer == NULL ||
            !e->branch.is_inside[ot__node_number(&e->branch.uses.numbers, x->producer)]);
}

static ot_status enter_value(entering *e, ot_value **x)
{
    ot__builder b = {.graph = e->branch.graph};
    ot_value *ends[] = {e->branch.condition, *x}, *inside = ot__map_get(&e->entered, (*x)->name);
    ot_node *node;

    if (inside == NULL) {
        inside = ot__build_value(&b, ot__build_name(&b, "%s_branch", (*x)->name));
        node = ot__op_build(&b, DOMAIN, "BranchInput", ot__build_name(&b, "%s_branch", (*x)->name),
                            ends, 2, &inside, 1);
        ot__build_int(&b, node, "branch", e->branch.port == THEN);
        ot__op_settle(&b, node);
        OT_TRY(b.status);
        OT_TRY(ot__made(ot__map_put(&e->entered, (*x)->name, inside)));
    }
    *x = inside;
    return OT_OK;
}

static ot_status enter_all(entering *e)
{
    const int n_nodes = e->branch.graph->n_nodes;

    for (int n = 0; n < n_nodes; n++) {
        ot_node *node = e->branch.graph->nodes[n];
        const bool is_last = ot__branch_ends(&e->branch, node);

        if (!is_last && !e->branch.is_inside[n])
            continue;
        for (int i = 0; i < node->n_inputs; i++)
            if ((!is_last || i == e->branch.port) && comes_from_outside(e, node->inputs[i]))
                OT_TRY(enter_value(e, &node->inputs[i]));
    }
    return OT_OK;
}

static ot_status enter_one_branch(ot_graph *graph, ot_value *condition, int port)
{
    entering e = {.branch = {.graph = graph, .condition = condition, .port = port}};
    ot_status st = ot__branch_find(&e.branch);

    OT_THEN(st, enter_all(&e));
    ot__branch_deinit(&e.branch);
    ot__map_deinit(&e.entered);
    return st == OT_OK ? ot__graph_sort(graph) : st;
}

ot_status ot__branch_conditions(const ot_graph *graph, ot_value ***out, int *n_conditions)
{
    ot_value **conditions = ot__alloc_zero((size_t)graph->n_nodes + 1, sizeof(ot_value *));
    int n_found = 0;

    OT_TRY(ot__made(conditions != NULL));
    for (int n = graph->n_nodes - 1; n >= 0; n--) {
        bool is_new = is_branch_output(graph->nodes[n]);

        for (int i = 0; is_new && i < n_found; i++)
            is_new = conditions[i] != graph->nodes[n]->inputs[CONDITION];
        if (is_new)
            conditions[n_found++] = graph->nodes[n]->inputs[CONDITION];
    }
    *out = conditions;
    *n_conditions = n_found;
    return OT_OK;
}

ot_status ot__branches_enter(ot_model *model)
{
    ot_graph *graph = model->graph;
    ot_value **conditions;
    ot_status st = OT_OK;
    int n;

    if (!ot__has_branches(graph))
        return OT_OK;
    OT_TRY(ot__branch_conditions(graph, &conditions, &n));
    for (int i = 0; i < n && st == OT_OK; i++) {
        st = enter_one_branch(graph, conditions[i], THEN);
        OT_THEN(st, enter_one_branch(graph, conditions[i], ELSE));
    }
    ot__free(conditions);
    return st;
}

// ---- taking branches ----

typedef struct taking {
    ot_graph *graph;
    ot__uses uses;
    bool *is_dead; // per value: of a branch that is not taken
    bool has_changed;
} taking;

static bool is_dead(const taking *t, const ot_value *x)
{
    return x != NULL && ot__has_number(&t->uses.numbers, x) &&
           t->is_dead[ot__value_number(&t->uses.numbers, x)];
}

static bool reads_dead(const taking *t, const ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (is_dead(t, node->inputs[i]))
            return true;
    return false;
}

// NULL: it is not known.
static const ot_tensor *known_condition(const ot_node *node)
{
    const ot_tensor *constant = ot__match_constant_value(node->inputs[CONDITION]);

    return constant != NULL && constant->dtype == OT_BOOL && ot_tensor_count(constant) == 1
               ? constant
               : NULL;
}

static ot_status drop_dead(taking *t, ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *y = node->outputs[i];

        if (y == NULL)
            continue;
        if (y->is_output)
            return ot__error(OT_ERR_INTERNAL, "%s: output '%s' is of a branch that is not taken",
                             OT_LABEL(node), y->name);
        t->is_dead[ot__value_number(&t->uses.numbers, y)] = true;
    }
    ot__node_detach(node);
    t->has_changed = true;
    return OT_OK;
}

// Readers read x; an output of the graph becomes a copy of it.
static ot_status read_instead(taking *t, ot_node *node, ot_value *x)
{
    ot_value *y = node->outputs[0];
    bool is_left = y->is_output;

    for (int u = ot__uses_first(&t->uses, y); u < ot__uses_end(&t->uses, y); u++) {
        const ot__use *use = &t->uses.use[u];

        if (use->i_input < 0)
            is_left = true;
        else
            use->node->inputs[use->i_input] = x;
    }
    ot__node_detach(node);
    t->has_changed = true;
    if (is_left) {
        ot__builder b = {.graph = t->graph};

        ot__op_settle(&b, ot__op_build(&b, "", "Identity", node->name, &x, 1, &y, 1));
        return b.status;
    }
    ot__graph_forget_value(t->graph, y);
    return OT_OK;
}

// What enters a branch that is not taken; where it is an output of the graph, its node stays, which
// makes zeros.
static ot_status leave_branch(taking *t, ot_node *node)
{
    const ot_value *y = node->outputs[0];

    if (!y->is_output)
        return drop_dead(t, node);
    t->is_dead[ot__value_number(&t->uses.numbers, y)] = true;
    return OT_OK;
}

static ot_status take_branch_node(taking *t, ot_node *node)
{
    const bool is_input = is_branch_input(node), is_output = is_branch_output(node);
    const ot_tensor *known = is_input || is_output ? known_condition(node) : NULL;
    const bool is_true = known != NULL && ot__tensor_get_i64(known, 0) != 0;
    ot_value *taken;

    if (is_output && known != NULL) {
        taken = node->inputs[is_true ? THEN : ELSE];
        return is_dead(t, taken) ? drop_dead(t, node) : read_instead(t, node, taken);
    }
    if (reads_dead(t, node))
        return drop_dead(t, node);
    if (!is_input || known == NULL)
        return OT_OK;
    return is_true == (ot_attr_int(node, "branch") != 0) ? read_instead(t, node, node->inputs[1])
                                                         : leave_branch(t, node);
}

ot_status ot__branches_take(ot_model *model, bool *has_changed)
{
    taking t = {.graph = model->graph};
    const int n_nodes = model->graph->n_nodes;
    ot_status st;

    *has_changed = false;
    if (!ot__has_branches(model->graph))
        return OT_OK;
    st = ot__uses_build(model->graph, &t.uses);
    if (st == OT_OK) {
        t.is_dead = ot__alloc_zero((size_t)t.uses.numbers.n_values + 1, sizeof *t.is_dead);
        st = ot__made(t.is_dead != NULL);
    }
    for (int n = 0; n < n_nodes && st == OT_OK; n++)
        st = take_branch_node(&t, model->graph->nodes[n]);
    ot__uses_deinit(&t.uses);
    ot__free(t.is_dead);
    *has_changed = t.has_changed;
    if (st != OT_OK || !t.has_changed)
        return st;
    ot__graph_drop_detached(model->graph);
    OT_TRY(ot__graph_sort(model->graph));
    return ot__graph_prune(model->graph, ot__op_writes_state);
}

bool ot__is_open_branch(const ot_node *node)
{
    return (is_branch_input(node) || is_branch_output(node)) && known_condition(node) == NULL;
}

ot_value *ot__branch_condition(const ot_node *node)
{
    return node->inputs[CONDITION];
}
