// SPDX-License-Identifier: Apache-2.0
// Raise old nodes to opset 13, resolve every node's record, check it.
#include <string.h>

#include "passes/unroll.h"

enum { IR_VERSION_OF_BASE_OPSET = 7 }; // the IR version that opset 13 came with

// ---- operators without a record ----

typedef struct unknown_list {
    ot__map seen;
    ot__arena *arena;
    ot__buf *lines;
} unknown_list;

static ot_status note_unknown(unknown_list *list, const ot_model *model, const ot_node *node)
{
    const int64_t opset = ot__model_opset(model, node->domain);
    const char *line;

    if (node->domain[0] == '\0' || strcmp(node->domain, "ai.onnx") == 0)
        line = ot__arena_printf(list->arena, "%s (opset %" PRId64 ")", node->op_type, opset);
    else
        line = ot__arena_printf(list->arena, "%s.%s", node->domain, node->op_type);
    OT_TRY(ot__made(line));
    if (ot__map_get(&list->seen, line))
        return OT_OK;
    ot__buf_printf(list->lines, "%s\n", line);
    return ot__made(ot__map_put(&list->seen, line, list));
}

static bool has_sequence(ot_value *const *values, int n)
{
    for (int i = 0; i < n; i++)
        if (values[i] && values[i]->kind == OT_VALUE_SEQUENCE)
            return true;
    return false;
}

// Of loops a step tells how many turns they take, and of sequences which tensors they hold; what is
// inside of loops comes out with their turns. A model does not take or give sequences.
static bool waits_for_data(const ot_node *node)
{
    const ot_graph *graph = node->graph, *branch = ot__body_of(node, "then_branch");

    if (ot__is_control(node))
        return graph->parent != NULL || ot__body_of(node, "body") != NULL ||
               (branch != NULL && has_sequence(branch->outputs, branch->n_outputs));
    return ot__is_sequence_node(node) &&
           (graph->parent != NULL || (!has_sequence(graph->inputs, graph->n_inputs) &&
                                      !has_sequence(graph->outputs, graph->n_outputs)));
}

// A domain that is not imported is another mistake, which ot__op_lookup names.
static bool is_known_op(const ot_model *model, const ot_node *node)
{
    const int64_t opset = ot__model_opset(model, node->domain);

    return ot__op_find(node->domain, node->op_type, opset > 0 ? opset : INT64_MAX) != NULL;
}

static bool is_supported(const ot_model *model, const ot_node *node)
{
    return waits_for_data(node) || ot__is_backward(node) || is_known_op(model, node);
}

static ot_status list_unknown(unknown_list *list, const ot_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];

        if (!is_supported(graph->model, node))
            OT_TRY(note_unknown(list, graph->model, node));
        for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);)
            OT_TRY(list_unknown(list, s.graph));
    }
    return OT_OK;
}

ot_status ot__pass_unknown_operators(const ot_model *model, ot__buf *lines)
{
    unknown_list list = {.arena = ot__arena_create(), .lines = lines};
    ot_status st;

    OT_TRY(ot__made(list.arena));
    st = list_unknown(&list, model->graph);
    ot__map_deinit(&list.seen);
    ot__arena_destroy(list.arena);
    return st != OT_OK ? st : ot__buf_status(lines);
}

static ot_status refuse_unknown(const ot_model *model)
{
    ot__buf lines = {0}, text = {0};
    ot_status st = ot__pass_unknown_operators(model, &lines);
    int n = 0;

    for (const char *line = lines.data; st == OT_OK && line && *line; n++) {
        const char *end = strchr(line, '\n');

        ot__buf_printf(&text, "%s%.*s", n > 0 ? ", " : "", (int)(end - line), line);
        line = end + 1;
    }
    OT_THEN(st, ot__buf_status(&text));
    if (st == OT_OK && n > 0)
        st = ot__error(OT_ERR_UNSUPPORTED, "%d operator%s not supported: %s", n,
                       n == 1 ? " is" : "s are", text.data);
    ot__buf_deinit(&lines);
    ot__buf_deinit(&text);
    return st;
}

// ---- one node ----

static ot_status check_node(const ot_model *model, ot_node *node)
{
    if (node->op == NULL && waits_for_data(node))
        node->op = ot__op_control;
    if (ot__is_backward(node))
        node->op = ot__op_backward;
    if (ot__op_is_foreign(node) || node->op == ot__op_control || node->op == ot__op_backward)
        return OT_OK;
    OT_TRY(ot__op_lookup(model, node, &node->op));
    OT_TRY(ot__op_check_node(node));
    if (node->op->upgrade == NULL)
        return OT_OK;
    OT_TRY(ot__op_upgrade_node(node));
    return ot__op_check_node(node);
}

// Inferred at once: the constants made for the next nodes take their element type from this one.
static ot_status check_raised(const ot_model *model, ot_node *node)
{
    OT_TRY(check_node(model, node));
    if (ot__op_is_foreign(node))
        return OT_OK;
    return ot__pass_infer_node(node);
}

static ot_status for_each_node(ot_graph *graph,
                               ot_status (*visit)(const ot_model *model, ot_node *node))
{
    for (int n = 0; n < graph->n_nodes; n++) {
        ot__subgraphs s = {.node = graph->nodes[n]};

        // What a foreign node has inside is its own affair.
        while (!ot__op_is_foreign(s.node) && ot__next_subgraph(&s))
            OT_TRY(for_each_node(s.graph, visit));
        OT_TRY(visit(graph->model, graph->nodes[n]));
    }
    return OT_OK;
}

static ot_status raise_model(ot_model *model)
{
    OT_TRY(ot__graph_sort(model->graph));
    OT_TRY(for_each_node(model->graph, check_raised));
    OT_TRY(ot__graph_sort(model->graph)); // raising one node may have appended others it reads from
    if (model->ir_version < IR_VERSION_OF_BASE_OPSET)
        model->ir_version = IR_VERSION_OF_BASE_OPSET;
    return ot__model_set_opset(model, "", OT_OP_BASE_OPSET);
}

static ot_status check_model_nodes(ot_model *model)
{
    const int64_t opset = ot__model_opset(model, "");

    if (opset > 0 && opset < OT_OP_BASE_OPSET)
        OT_TRY(raise_model(model));
    else
        OT_TRY(for_each_node(model->graph, check_node));
    return ot__pass_finished(model, "check");
}

ot_status ot__pass_check(ot_model *model)
{
    OT_TRY(refuse_unknown(model));
    return check_model_nodes(model);
}

// ---- carrying what is not known ----

// Raising the opset of a model changes what its nodes of ai.onnx mean, which only records know.
static ot_status check_raising(const ot_model *model, const ot_node *node)
{
    const int64_t opset = ot__model_opset(model, "");
    const bool has_subgraph = ot__next_subgraph(&(ot__subgraphs){.node = node});

    if (opset == 0 || opset >= OT_OP_BASE_OPSET ||
        (node->domain[0] != '\0' && strcmp(node->domain, "ai.onnx") != 0 && !has_subgraph))
        return OT_OK;
    return ot__error(OT_ERR_UNSUPPORTED,
                     "%s: the operator is not known, and the model's opset %" PRId64
                     " is to be raised to %d; export it with that opset",
                     OT_LABEL(node), opset, OT_OP_BASE_OPSET);
}

// With all that its subgraphs hold: inside, nothing is looked at.
static void carry(ot_node *node)
{
    node->op = ot__op_foreign;
    for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);)
        for (int n = 0; n < s.graph->n_nodes; n++)
            carry(s.graph->nodes[n]);
}

ot_status ot__pass_check_carrying(ot_model *model)
{
    const ot_graph *graph = model->graph;

    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];

        if (ot__model_opset(model, node->domain) == 0 || is_supported(model, node))
            continue;
        OT_TRY(check_raising(model, node));
        carry(node);
    }
    return check_model_nodes(model);
}
