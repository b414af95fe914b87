// SPDX-License-Identifier: Apache-2.0
// Model-local functions, put in where they are called.
#include <string.h>

#include "graph/graph_internal.h"

enum {
    MAX_CALL_DEPTH = 64,
    MAX_INLINED_NODES = 1000000, // a few short functions that call each other twice make any number
};

typedef struct inlining {
    ot_model *model;
    ot__map functions; // key -> ot__function
    int64_t *n_nodes;  // per function, expanded: COUNTING while on the way, 0: not known yet
} inlining;

enum { COUNTING = -1 };

typedef struct call {
    const ot__function *function;
    const ot_node *node;
} call;

static void function_key(ot__buf *key, const char *domain, const char *name, const char *overload)
{
    key->length = 0;
    ot__buf_printf(key, "%s\n%s\n%s", ot__domain_same(domain, "") ? "" : domain, name, overload);
}

static ot_status index_functions(inlining *in)
{
    ot__buf key = {0};
    ot_status st = OT_OK;

    for (int i = 0; i < in->model->n_functions && st == OT_OK; i++) {
        ot__function *f = in->model->functions[i];
        const char *kept;

        function_key(&key, f->domain, f->name, f->overload);
        kept = key.failed ? NULL : ot__arena_strdup(in->model->arena, key.data);
        if (kept && ot__map_get(&in->functions, kept))
            st = ot__error(OT_ERR_FORMAT, "function '%s' is defined twice", f->name);
        else if (!kept || !ot__map_put(&in->functions, kept, &in->model->functions[i]))
            st = OT_ERR_NO_MEMORY;
    }
    ot__buf_deinit(&key);
    return st;
}

// *out: where the function that `node` calls stands in the model's list; NULL when it calls none.
static ot_status find_called(const inlining *in, const ot_node *node, ot__function ***out)
{
    ot__buf key = {0};
    ot_status st;

    function_key(&key, node->domain, node->op_type, node->overload);
    st = ot__buf_status(&key);
    *out = st == OT_OK ? ot__map_get(&in->functions, key.data) : NULL;
    ot__buf_deinit(&key);
    return st;
}

// ---- how much it will be ----

static ot_status count_graph(inlining *in, const ot_graph *graph, int depth, int64_t *count);

static ot_status count_function(inlining *in, ot__function **function, int depth, int64_t *count)
{
    ptrdiff_t index = function - in->model->functions;
    int64_t n = 0;

    if (in->n_nodes[index] == COUNTING)
        return ot__error(OT_ERR_FORMAT, "function '%s' calls itself", (*function)->name);
    if (depth > MAX_CALL_DEPTH)
        return ot__error(OT_ERR_NO_MEMORY, "function '%s' is called more than %d calls deep",
                         (*function)->name, MAX_CALL_DEPTH);
    if (in->n_nodes[index] == 0) {
        in->n_nodes[index] = COUNTING;
        OT_TRY(count_graph(in, (*function)->body, depth, &n));
        in->n_nodes[index] = n + 1;
    }
    *count += in->n_nodes[index];
    return OT_OK;
}

static ot_status count_graph(inlining *in, const ot_graph *graph, int depth, int64_t *count)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];
        ot__function **called;

        OT_TRY(find_called(in, node, &called));
        if (called)
            OT_TRY(count_function(in, called, depth + 1, count));
        ++*count;
        for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);)
            OT_TRY(count_graph(in, s.graph, depth, count));
        if (*count > MAX_INLINED_NODES)
            return ot__error(OT_ERR_NO_MEMORY, "inlining functions makes more than %d nodes",
                             MAX_INLINED_NODES);
    }
    return OT_OK;
}

// ---- one call ----

static ot_status resolve_attr(void *context, const ot_node *node, const ot_attr *attr,
                              const ot_attr **out)
{
    const call *c = context;
    const ot_attr *found = ot__node_attr(c->node, attr->ref_name);

    for (int i = 0; i < c->function->n_attr_defaults && !found; i++)
        if (strcmp(c->function->attr_defaults[i]->name, attr->ref_name) == 0)
            found = c->function->attr_defaults[i];
    if (found && attr->kind != OT_ATTR_UNDEFINED && attr->kind != found->kind)
        return ot__error(
            OT_ERR_FORMAT, "%s in function '%s': attribute '%s' has kind %d, but '%s' has kind %d",
            OT_LABEL(node), c->function->name, attr->name, attr->kind, found->name, found->kind);
    *out = found;
    return OT_OK;
}

static ot_status check_counts(const call *c)
{
    const ot__function *f = c->function;

    if (c->node->n_inputs > f->n_inputs)
        return ot__error(OT_ERR_FORMAT, "%s has %d inputs, but the function takes %d",
                         OT_LABEL(c->node), c->node->n_inputs, f->n_inputs);
    if (c->node->n_outputs > f->n_outputs)
        return ot__error(OT_ERR_FORMAT, "%s has %d outputs, but the function gives %d",
                         OT_LABEL(c->node), c->node->n_outputs, f->n_outputs);
    return OT_OK;
}

// The function's inputs and outputs stand for the call's. An output that stands for something
// already, being an input or listed before, is copied at the end.
static ot_status bind_inlined(const call *c, ot__copy_scope *scope, ot_value *omitted)
{
    const ot__function *f = c->function;

    for (int i = 0; i < f->n_inputs; i++) {
        ot_value *given = i < c->node->n_inputs ? c->node->inputs[i] : NULL;

        OT_TRY(ot__made(ot__map_put(&scope->renamed, f->inputs[i], given ? given : omitted)));
    }
    for (int i = 0; i < c->node->n_outputs; i++)
        if (c->node->outputs[i] && !ot__map_get(&scope->renamed, f->outputs[i]))
            OT_TRY(ot__made(ot__map_put(&scope->renamed, f->outputs[i], c->node->outputs[i])));
    return OT_OK;
}

static ot_status copy_repeated_outputs(const call *c, ot__copy_scope *scope,
                                       const ot_value *omitted)
{
    for (int i = 0; i < c->node->n_outputs; i++) {
        ot_value *made = ot__map_get(&scope->renamed, c->function->outputs[i]);

        if (!c->node->outputs[i] || made == c->node->outputs[i])
            continue;
        if (made == omitted)
            return ot__error(OT_ERR_FORMAT,
                             "%s leaves out input '%s', which the function gives back as output %d",
                             OT_LABEL(c->node), c->function->outputs[i], i);
        OT_TRY(ot__made(ot__graph_add_node(scope->to, "", "Identity", c->node->name, &made, 1,
                                           &c->node->outputs[i], 1)));
    }
    return OT_OK;
}

static ot_status name_after_call(const call *c, ot_node *node)
{
    if (!c->node->name[0] || !node->name[0])
        return OT_OK;
    node->name = ot__arena_printf(node->graph->model->arena, "%s/%s", c->node->name, node->name);
    return ot__made(node->name);
}

static ot_status inline_node(inlining *in, ot_node *node);

static ot_status inline_body(inlining *in, const call *c, ot__copy_scope *scope)
{
    ot_value omitted = {.name = ""};
    const ot__copier copier = {.rename = true,
                               .resolve = resolve_attr,
                               .context = (void *)(uintptr_t)c,
                               .omitted = &omitted};

    OT_TRY(bind_inlined(c, scope, &omitted));
    for (int n = 0; n < scope->from->n_nodes; n++) {
        ot_node *copy;

        OT_TRY(ot__copy_node(&copier, scope, scope->from->nodes[n], &copy));
        OT_TRY(name_after_call(c, copy));
        // Taken off the end again: it is put back, or its function's body instead.
        scope->to->n_nodes--;
        OT_TRY(inline_node(in, copy));
    }
    return copy_repeated_outputs(c, scope, &omitted);
}

static ot_status import_opsets(ot_model *model, const ot__function *f)
{
    for (int i = 0; i < f->n_opsets; i++)
        if (ot__model_opset(model, f->opsets[i].domain) == 0)
            OT_TRY(ot__model_set_opset(model, f->opsets[i].domain, f->opsets[i].version));
    return OT_OK;
}

// ---- graphs ----

static ot_status inline_graph(inlining *in, ot_graph *graph);

// Append `node`, or what it calls, to its graph.
static ot_status inline_node(inlining *in, ot_node *node)
{
    ot_graph *graph = node->graph;
    ot__function **called;

    OT_TRY(find_called(in, node, &called));
    if (called) {
        const call c = {*called, node};
        ot__copy_scope scope = {.from = (*called)->body, .to = graph};
        ot_status st = check_counts(&c);

        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i])
                node->outputs[i]->producer = NULL;
        OT_THEN(st, import_opsets(in->model, *called));
        OT_THEN(st, inline_body(in, &c, &scope));
        ot__map_deinit(&scope.renamed);
        return st;
    }
    OT_TRY(ot__made(ot__arena_push(in->model->arena, &graph->nodes, &graph->nodes_capacity,
                                   &graph->n_nodes, &node, sizeof(ot_node *))));
    for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);)
        OT_TRY(inline_graph(in, s.graph));
    return OT_OK;
}

static ot_status inline_graph(inlining *in, ot_graph *graph)
{
    ot_node **nodes = graph->nodes;
    int n_nodes = graph->n_nodes;

    graph->nodes = NULL;
    graph->n_nodes = graph->nodes_capacity = 0;
    for (int n = 0; n < n_nodes; n++)
        OT_TRY(inline_node(in, nodes[n]));
    return OT_OK;
}

static ot_status inline_all(inlining *in)
{
    int64_t count = 0;

    OT_TRY(index_functions(in));
    in->n_nodes = ot__alloc_zero((size_t)in->model->n_functions, sizeof *in->n_nodes);
    OT_TRY(ot__made(in->n_nodes));
    OT_TRY(count_graph(in, in->model->graph, 0, &count));
    OT_TRY(inline_graph(in, in->model->graph));
    in->model->n_functions = 0;
    return OT_OK;
}

ot_status ot__model_inline_functions(ot_model *model)
{
    inlining in = {.model = model};
    ot_status st = OT_OK;

    if (model->n_functions > 0)
        st = inline_all(&in);
    ot__map_deinit(&in.functions);
    ot__free(in.n_nodes);
    return st;
}
