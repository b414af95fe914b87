// SPDX-License-Identifier: Apache-2.0
// Values that decide shapes: where one does not follow from the shapes of the inputs, whoever has
// the data of a step computes the values that its operator asks for, by a question: the part of the
// model that makes them. As constants they let the rest follow.
#include <string.h>

#include "passes/branch.h"
#include "passes/unroll.h"

enum {
    MAX_ROUNDS = 256,      // questions, each of which follows from the answers before
    MAX_UNROLLED = 100000, // nodes that turns of loops make
};

typedef struct deciding {
    ot_model *model;
    const ot__answers *answers;
    int n_taken;         // of the answers
    ot_value **deciders; // of the model's arena: of the present question
    int n_deciders, capacity;
    int n_described; // of them, the first: why it is asked
    ot_node *node;   // for which they decide
    const ot_value
        *open;      // its output whose shape is not known; NULL: it is about what the node does
    int64_t n_left; // nodes that turns of loops may still make
    bool is_again;  // the graph has changed: what is asked is to be found anew
} deciding;

// ---- what is asked ----

static bool is_open_value(const ot_value *value)
{
    return value != NULL && value->kind != OT_VALUE_SEQUENCE &&
           (!value->has_shape || !ot__shape_is_static(&value->shape));
}

// Makes a tensor of what a sequence holds; how many it holds is a number that decides.
static bool reads_sequence(const ot_node *node)
{
    return ot__is_sequence_node(node) && !ot__gives_sequence(node) && node->n_outputs > 0 &&
           node->outputs[0] != NULL;
}

// The first node in order, of those `among` which are marked; NULL: all. The shapes of its inputs
// are known.
static ot_node *find_open(const ot_graph *graph, const bool *among, const ot_value **open)
{
    *open = NULL;
    for (int n = 0; n < graph->n_nodes; n++) {
        if ((among == NULL || among[n]) &&
            (ot__is_control(graph->nodes[n]) || reads_sequence(graph->nodes[n])))
            return graph->nodes[n];
        for (int i = 0; (among == NULL || among[n]) && i < graph->nodes[n]->n_outputs; i++)
            if (is_open_value(graph->nodes[n]->outputs[i])) {
                *open = graph->nodes[n]->outputs[i];
                return graph->nodes[n];
            }
    }
    return NULL;
}

// The nodes of a sorted graph that a value is made by.
static ot_status mark_before(const ot_graph *graph, const ot_value *value, bool *is_before)
{
    ot__numbers numbers = {0};
    bool *is_needed;

    OT_TRY(ot__numbers_build(graph, &numbers));
    is_needed = ot__alloc_zero((size_t)numbers.n_values + 1, sizeof *is_needed);
    if (is_needed != NULL)
        is_needed[ot__value_number(&numbers, value)] = true;
    for (int n = graph->n_nodes - 1; is_needed != NULL && n >= 0; n--) {
        const ot_node *node = graph->nodes[n];

        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i] != NULL)
                is_before[n] =
                    is_before[n] || is_needed[ot__value_number(&numbers, node->outputs[i])];
        for (int i = 0; is_before[n] && i < node->n_inputs; i++)
            if (node->inputs[i] != NULL)
                is_needed[ot__value_number(&numbers, node->inputs[i])] = true;
    }
    ot__numbers_deinit(&numbers);
    ot__free(is_needed);
    return ot__made(is_needed != NULL);
}

static bool is_decider(const deciding *d, const ot_value *x)
{
    for (int i = 0; i < d->n_deciders; i++)
        if (d->deciders[i] == x)
            return true;
    return false;
}

static bool may_decide(const ot_node *node, int i)
{
    const ot_port *port = ot__op_input_port(node->op, i);
    const ot_value *x = node->inputs[i];

    return x != NULL && x->kind == OT_VALUE_TENSOR && x->constant == NULL &&
           (port == NULL || (port->flags & OT_PORT_TYPE_ONLY) == 0);
}

static ot_status add_decider(deciding *d, ot_value *x)
{
    return ot__made(is_decider(d, x) || ot__arena_push(d->model->arena, &d->deciders, &d->capacity,
                                                       &d->n_deciders, &x, sizeof x));
}

// Those whose elements the rule of the node has asked for; all where it has asked for none.
static ot_status add_deciders(deciding *d, ot_node *node)
{
    uint64_t asked;

    OT_TRY(ot__op_infer_asked(node, &asked));
    for (int i = 0; i < node->n_inputs; i++)
        if (may_decide(node, i) && (asked == 0 || (i < 64 && (asked >> i & 1) != 0)))
            OT_TRY(add_decider(d, node->inputs[i]));
    return OT_OK;
}

static bool has_open_output(const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (is_open_value(node->outputs[i]))
            return true;
    return false;
}

// What is open as well, and waits for nothing that is open, is asked for at the same time.
static ot_status add_others(deciding *d, const bool *among)
{
    const ot_graph *graph = d->model->graph;
    ot__numbers numbers = {0};
    ot_status st = ot__numbers_build(graph, &numbers);
    bool *waits = ot__alloc_zero((size_t)numbers.n_values + 1, sizeof *waits);

    OT_THEN(st, ot__made(waits != NULL));
    for (int n = 0; st == OT_OK && n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];
        bool is_behind = ot__is_control(node) || ot__is_sequence_node(node), is_open;

        for (int i = 0; i < node->n_inputs; i++)
            is_behind = is_behind || (node->inputs[i] != NULL &&
                                      waits[ot__value_number(&numbers, node->inputs[i])]);
        is_open = is_behind || has_open_output(node);
        if (is_open && !is_behind && (among == NULL || among[n]))
            st = add_deciders(d, node);
        for (int i = 0; is_open && i < node->n_outputs; i++)
            if (node->outputs[i] != NULL)
                waits[ot__value_number(&numbers, node->outputs[i])] = true;
    }
    ot__numbers_deinit(&numbers);
    ot__free(waits);
    return st;
}

static void forget_deciders(deciding *d)
{
    d->deciders = NULL;
    d->n_deciders = d->n_described = d->capacity = 0;
}

static ot_status refuse_open(const deciding *d)
{
    if (d->open == NULL)
        return ot__error(OT_ERR_UNSUPPORTED, "%s: how many turns it takes is not known",
                         OT_LABEL(d->node));
    return ot__error(OT_ERR_UNSUPPORTED, "%s: the shape of '%s' is known only at run time: %s",
                     OT_LABEL(d->node), d->open->name,
                     d->open->has_shape ? OT_DIMS_TEXT(d->model, &d->open->shape) : "?");
}

// Places in sequences that the node reads, of all that lies before it.
static ot_status add_places(deciding *d, const bool *is_before)
{
    const ot_graph *graph = d->model->graph;

    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];
        const int i = is_before[n] ? ot__sequence_decider(node) : -1;

        if (i >= 0 && may_decide(node, i))
            OT_TRY(add_decider(d, node->inputs[i]));
    }
    return OT_OK;
}

// Sequences become tensors when all their places are known.
static ot_status ask_sequence(deciding *d)
{
    bool *is_before = ot__alloc_zero((size_t)d->model->graph->n_nodes + 1, sizeof *is_before);
    ot_status st = ot__made(is_before != NULL);

    d->open = d->node->outputs[0];
    forget_deciders(d);
    OT_THEN(st, mark_before(d->model->graph, d->open, is_before));
    OT_THEN(st, add_places(d, is_before));
    ot__free(is_before);
    OT_TRY(st);
    d->n_described = d->n_deciders;
    if (d->n_deciders > 0)
        return OT_OK;
    OT_TRY(ot__take_sequences(d->model, &d->is_again));
    if (d->is_again)
        return ot__pass_fold_branches(d->model);
    return ot__error(OT_ERR_INVALID,
                     "%s: what it takes does not follow: a place is outside its sequence, or the "
                     "sequence holds other tensors than it takes",
                     OT_LABEL(d->node));
}

static ot_status ask_open(deciding *d, const bool *among)
{
    if (reads_sequence(d->node))
        return ask_sequence(d);
    if (ot__is_control(d->node)) {
        OT_TRY(ot__take_turns(d->model, d->node, &d->n_left, &d->is_again));
        if (d->is_again)
            return ot__pass_fold_branches(d->model);
    }
    forget_deciders(d);
    OT_TRY(add_deciders(d, d->node));
    d->n_described = d->n_deciders;
    return d->n_deciders > 0 ? add_others(d, among) : refuse_open(d);
}

static bool has_open_branch(const ot_graph *graph, const bool *among)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (among[n] && ot__is_open_branch(graph->nodes[n]))
            return true;
    return false;
}

// The last branch whose condition needs no other: inside of it are those that are not taken with
// it. is_before: marks what its condition is made by. NULL: there is none.
static ot_status find_branch(const ot_graph *graph, bool *is_before, ot_node **out)
{
    const ot_value *asked = NULL;

    *out = NULL;
    for (int n = graph->n_nodes - 1; n >= 0; n--) {
        ot_node *node = graph->nodes[n];

        if (!ot__is_open_branch(node) || ot__branch_condition(node) == asked)
            continue;
        asked = ot__branch_condition(node);
        memset(is_before, 0, (size_t)graph->n_nodes * sizeof *is_before);
        OT_TRY(mark_before(graph, asked, is_before));
        if (has_open_branch(graph, is_before))
            continue;
        *out = node;
        return OT_OK;
    }
    return OT_OK;
}

// A condition, for which other values may decide first.
static ot_status ask_branch(deciding *d, ot_node *branch, const bool *is_before)
{
    ot_value *condition = ot__branch_condition(branch);

    d->node = find_open(d->model->graph, is_before, &d->open);
    if (d->node != NULL)
        return ask_open(d, is_before);
    d->node = branch;
    d->open = NULL;
    forget_deciders(d);
    d->n_described = 1;
    return add_decider(d, condition);
}

static ot_status ask_branches(deciding *d)
{
    bool *is_before = ot__alloc_zero((size_t)d->model->graph->n_nodes + 1, sizeof *is_before);
    ot_node *branch;
    ot_status st = ot__made(is_before != NULL);

    d->node = NULL;
    OT_THEN(st, find_branch(d->model->graph, is_before, &branch));
    if (st == OT_OK && branch != NULL)
        st = ask_branch(d, branch, is_before);
    ot__free(is_before);
    return st;
}

// What is known of conditions is taken, and the rest follows from it.
static ot_status take_branches(deciding *d)
{
    bool has_changed = true;

    while (has_changed) {
        OT_TRY(ot__branches_take(d->model, &has_changed));
        if (has_changed)
            OT_TRY(ot__pass_fold_branches(d->model));
    }
    return OT_OK;
}

static ot_status find_question_now(deciding *d)
{
    OT_TRY(take_branches(d));
    if (ot__has_branches(d->model->graph)) {
        OT_TRY(ask_branches(d));
        if (d->node != NULL)
            return OT_OK;
    }
    d->node = find_open(d->model->graph, NULL, &d->open);
    if (d->node == NULL)
        return OT_OK;
    OT_TRY(ot__pass_prune(d->model)); // perhaps nothing needs it
    d->node = find_open(d->model->graph, NULL, &d->open);
    return d->node == NULL ? OT_OK : ask_open(d, NULL);
}

static ot_status find_question(deciding *d)
{
    ot_status st;

    do {
        d->is_again = false;
        st = find_question_now(d);
    } while (st == OT_OK && d->is_again);
    return st;
}

// ---- answers ----

static void replace_in(ot_value **list, int n, const ot_value *from, ot_value *to)
{
    for (int i = 0; i < n; i++)
        if (list[i] == from)
            list[i] = to;
}

// Readers go on with the constant; another value of the same name is what it was for the graph and
// for the node that makes it.
static ot_status make_decider_constant(ot_graph *graph, ot_value *x, ot_tensor *constant)
{
    char *name = ot__arena_printf(graph->model->arena, "%s", x->name);
    ot_value *made;

    OT_TRY(ot__made(name != NULL && ot__graph_rename_value(graph, x, name)));
    made = ot__graph_new_value(graph, name);
    OT_TRY(ot__made(made != NULL));
    ot__value_set(made, x->dtype, &x->shape);
    made->is_input = x->is_input;
    made->is_output = x->is_output;
    made->producer = x->producer;
    made->i_producer_output = x->i_producer_output;
    if (x->is_input)
        replace_in(graph->inputs, graph->n_inputs, x, made);
    if (x->is_output)
        replace_in(graph->outputs, graph->n_outputs, x, made);
    if (x->producer != NULL)
        x->producer->outputs[x->i_producer_output] = made;
    x->is_input = x->is_output = false;
    x->producer = NULL;
    x->i_producer_output = 0;
    x->constant = constant;
    x->n_known = 0;
    x->known = NULL;
    return OT_OK;
}

static ot_status take_answer(deciding *d, ot_value *x)
{
    const ot_tensor *answer = d->answers->tensors[d->n_taken++];
    ot_tensor *constant;

    if (answer->dtype != x->dtype || !ot__shape_equal(&answer->shape, &x->shape))
        return ot__error(OT_ERR_INTERNAL, "'%s' decides as %s%s, computed was %s%s", x->name,
                         ot_dtype_name(x->dtype), OT_SHAPE_TEXT(&x->shape),
                         ot_dtype_name(answer->dtype), OT_SHAPE_TEXT(&answer->shape));
    OT_TRY(ot_tensor_clone(answer, &constant));
    OT_TRY(ot__model_hold_tensor(d->model, constant));
    return make_decider_constant(d->model->graph, x, constant);
}

// ---- the question ----

static ot_status add_asked(ot_graph *graph, ot_value *x)
{
    ot__builder b = {.graph = graph};
    ot_value *y = ot__build_value(&b, "asked");
    ot_node *node = ot__op_build(&b, "", "Identity", "", &x, 1, &y, 1);

    ot__op_settle(&b, node);
    ot__build_output(&b, y);
    return b.status;
}

// The model becomes what computes the deciders, which are its outputs.
static ot_status become_question(const deciding *d)
{
    ot_graph *graph = d->model->graph;
    bool was_composed;

    ot__graph_clear_outputs(graph);
    for (int i = 0; i < d->n_deciders; i++)
        OT_TRY(add_asked(graph, d->deciders[i]));
    OT_TRY(ot__graph_prune(graph, NULL)); // what writes state is for the step
    OT_TRY(ot__pass_compose(d->model, &was_composed));
    if (was_composed)
        OT_TRY(ot__pass_fold(d->model, 0));
    OT_TRY(ot__graph_prune(graph, NULL));
    return ot__pass_finished(d->model, "question");
}

static ot_status describe_question(const deciding *d, const char **out)
{
    ot__buf names = {0};

    for (int i = 0; i < d->n_described; i++)
        ot__buf_printf(&names, "%s'%s'", i > 0 ? ", " : "", d->deciders[i]->name);
    *out = d->open == NULL
               ? ot__arena_printf(d->model->arena,
                                  "%s: %s is known only at run time, which the element of %s "
                                  "decides",
                                  OT_LABEL(d->node),
                                  ot__is_control(d->node) ? "how many turns it takes"
                                                          : "which branch is taken",
                                  names.data != NULL ? names.data : "")
               : ot__arena_printf(
                     d->model->arena,
                     "%s: the shape of '%s' is known only at run time: %s, which elements "
                     "of %s decide",
                     OT_LABEL(d->node), d->open->name,
                     d->open->has_shape ? OT_DIMS_TEXT(d->model, &d->open->shape) : "?",
                     names.data != NULL ? names.data : "");
    ot__buf_deinit(&names);
    return ot__made(*out != NULL);
}

static ot_status run_rounds(deciding *d, const char **question)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        OT_TRY(find_question(d));
        if (d->node == NULL)
            return OT_OK;
        if (d->answers->n - d->n_taken < d->n_deciders) {
            OT_TRY(describe_question(d, question));
            return become_question(d);
        }
        for (int i = 0; i < d->n_deciders; i++)
            OT_TRY(take_answer(d, d->deciders[i]));
        OT_TRY(ot__pass_fold_branches(d->model));
    }
    return ot__error(OT_ERR_UNSUPPORTED,
                     "%s: what it makes or does is not known after %d questions to the data of a "
                     "step, which is too many",
                     OT_LABEL(d->node), MAX_ROUNDS);
}

ot_status ot__decide(ot_model *model, const ot__answers *answers, int *n_taken,
                     const char **question)
{
    deciding d = {.model = model, .answers = answers, .n_taken = *n_taken, .n_left = MAX_UNROLLED};
    const ot_status st = run_rounds(&d, question);

    *n_taken = d.n_taken;
    return st;
}
