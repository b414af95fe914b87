// SPDX-License-Identifier: Apache-2.0
// Copies: a whole model, the attributes of a node with their subgraphs, the body of a function for
// inlining.
#include <string.h>

#include "graph/graph_internal.h"

// ---- values ----

static void copy_knowledge(const ot__copier *copier, const ot_value *from, ot_value *to)
{
    to->kind = from->kind;
    to->dtype = from->dtype;
    to->type_bytes = from->type_bytes;
    to->constant = from->constant;
    to->doc = from->doc;
    to->extra = from->extra;
    to->tensor_extra = from->tensor_extra;
    to->tensor_doc = from->tensor_doc;
    to->metadata = from->metadata;
    to->alias = from->alias;
    // A symbol in a function's body need not be the same extent in two calls of it.
    if (copier->rename)
        return;
    to->has_shape = from->has_shape;
    to->shape = from->shape;
    to->n_known = from->n_known;
    to->known = from->known;
}

ot_status ot__copy_value(const ot__copier *copier, ot__copy_scope *scope, ot_value *value,
                         ot_value **out)
{
    *out = value;
    while (scope && ot__graph_find(scope->from, value->name) != value)
        scope = scope->outer;
    if (!scope)
        return OT_OK;
    if (!copier->rename) {
        *out = ot__graph_value(scope->to, value->name);
        return ot__made(*out);
    }
    *out = ot__map_get(&scope->renamed, value->name);
    if (*out)
        return OT_OK;
    *out = ot__graph_new_value(scope->to, value->name);
    OT_TRY(ot__made(*out && ot__map_put(&scope->renamed, value->name, *out)));
    copy_knowledge(copier, value, *out);
    return OT_OK;
}

static ot_status copy_list(const ot__copier *copier, ot__copy_scope *scope, ot_value *const *values,
                           int n, bool (*add)(ot_graph *graph, ot_value *value))
{
    for (int i = 0; i < n; i++) {
        ot_value *copy;

        OT_TRY(ot__copy_value(copier, scope, values[i], &copy));
        if (copy == copier->omitted)
            return ot__error(OT_ERR_FORMAT, "output '%s' of subgraph '%s' is an omitted input",
                             values[i]->name, scope->from->name);
        OT_TRY(ot__made(add(scope->to, copy)));
    }
    return OT_OK;
}

static bool add_initializer(ot_graph *graph, ot_value *value)
{
    return ot__graph_add_initializer(graph, value, value->constant);
}

// ---- attributes ----

static ot_status copy_subgraph(const ot__copier *copier, ot__copy_scope *outer, ot_graph *parent,
                               const ot_graph *from, ot_graph **out)
{
    ot__copy_scope scope = {.from = from, .outer = outer};
    ot_status st;

    *out = scope.to = ot__graph_create(parent->model, parent, from->name);
    OT_TRY(ot__made(scope.to));
    st = ot__copy_graph(copier, &scope);
    ot__map_deinit(&scope.renamed);
    return st;
}

static ot_status copy_graphs(const ot__copier *copier, ot__copy_scope *scope, ot_graph *parent,
                             ot_attr *attr)
{
    ot_graph **graphs;

    if (attr->g)
        OT_TRY(copy_subgraph(copier, scope, parent, attr->g, &attr->g));
    if (!attr->graphs || attr->n == 0)
        return OT_OK;
    graphs = ot__arena_alloc(parent->model->arena, (size_t)attr->n * sizeof *graphs);
    OT_TRY(ot__made(graphs));
    for (int i = 0; i < attr->n; i++)
        OT_TRY(copy_subgraph(copier, scope, parent, attr->graphs[i], &graphs[i]));
    attr->graphs = graphs;
    return OT_OK;
}

static ot_status copy_attrs(const ot__copier *copier, ot__copy_scope *scope, ot_node *to,
                            const ot_node *from)
{
    for (int i = 0; i < from->n_attrs; i++) {
        const ot_attr *attr = from->attrs[i], *source = attr;
        ot_attr *copy;
        const char *name;

        if (attr->ref_name && copier->resolve)
            OT_TRY(copier->resolve(copier->context, from, attr, &source));
        if (!source)
            continue;
        copy = ot__node_add_attr(to, attr->name, source->kind);
        OT_TRY(ot__made(copy));
        name = copy->name;
        *copy = *source;
        copy->name = name;
        // A subgraph given to a function belongs to the caller's scope: its values stand for
        // themselves.
        OT_TRY(copy_graphs(copier, source == attr ? scope : NULL, to->graph, copy));
    }
    return OT_OK;
}

bool ot__node_copy_attrs(ot_node *to, const ot_node *from)
{
    const ot__copier copier = {0};

    return copy_attrs(&copier, NULL, to, from) == OT_OK;
}

// ---- nodes and graphs ----

static ot_status copy_ends(const ot__copier *copier, ot__copy_scope *scope, ot_value *const *from,
                           int n, ot_value ***out)
{
    ot_value **to = ot__arena_alloc(scope->to->model->arena, (size_t)(n + 1) * sizeof *to);

    *out = to;
    for (int i = 0; to && i < n; i++) {
        if (from[i])
            OT_TRY(ot__copy_value(copier, scope, from[i], &to[i]));
        if (to[i] == copier->omitted)
            to[i] = NULL;
    }
    return ot__made(to);
}

ot_status ot__copy_node(const ot__copier *copier, ot__copy_scope *scope, const ot_node *node,
                        ot_node **out)
{
    ot_value **inputs, **outputs;
    ot_node *copy;

    *out = NULL;
    OT_TRY(copy_ends(copier, scope, node->inputs, node->n_inputs, &inputs));
    OT_TRY(copy_ends(copier, scope, node->outputs, node->n_outputs, &outputs));
    copy = ot__graph_add_node(scope->to, node->domain, node->op_type, node->name, inputs,
                              node->n_inputs, outputs, node->n_outputs);
    OT_TRY(ot__made(copy));
    copy->overload = node->overload;
    copy->doc = node->doc;
    copy->op = node->op;
    copy->extra = node->extra;
    copy->metadata = node->metadata;
    *out = copy;
    return copy_attrs(copier, scope, copy, node);
}

ot_status ot__copy_graph(const ot__copier *copier, ot__copy_scope *scope)
{
    const ot_graph *from = scope->from;
    ot_graph *to = scope->to;

    to->doc = from->doc;
    to->extra = from->extra;
    to->metadata = from->metadata;
    to->infos = from->infos; // reading is over: nobody adds to them
    to->n_infos = to->infos_capacity = from->n_infos;
    if (!copier->rename) {
        size_t position = 0;
        const char *name;
        void *value;

        while (ot__map_next(&from->values, &position, &name, &value)) {
            ot_value *copy = ot__graph_value(to, name);

            OT_TRY(ot__made(copy));
            copy_knowledge(copier, value, copy);
        }
    }
    OT_TRY(copy_list(copier, scope, from->inputs, from->n_inputs, ot__graph_add_input));
    OT_TRY(copy_list(copier, scope, from->initializers, from->n_initializers, add_initializer));
    for (int i = 0; i < from->n_nodes; i++) {
        ot_node *copy;

        OT_TRY(ot__copy_node(copier, scope, from->nodes[i], &copy));
    }
    return copy_list(copier, scope, from->outputs, from->n_outputs, ot__graph_add_output);
}

// ---- models ----

static ot_status copy_functions(const ot_model *from, ot_model *to)
{
    const ot__copier copier = {0};

    if (from->n_functions == 0)
        return OT_OK;
    to->functions = ot__arena_alloc(to->arena, (size_t)from->n_functions * sizeof *to->functions);
    OT_TRY(ot__made(to->functions));
    for (int i = 0; i < from->n_functions; i++) {
        const ot__function *function = from->functions[i];
        ot__copy_scope scope = {.from = function->body};
        ot__function *copy = ot__arena_memdup(to->arena, function, sizeof *function);

        OT_TRY(ot__made(copy));
        copy->body = scope.to = ot__graph_create(to, NULL, function->body->name);
        OT_TRY(ot__made(copy->body));
        OT_TRY(ot__copy_graph(&copier, &scope));
        to->functions[to->n_functions++] = copy;
    }
    return OT_OK;
}

static ot_status copy_model(const ot_model *from, ot_model *to)
{
    const ot__copier copier = {0};
    ot__copy_scope scope = {.from = from->graph, .to = to->graph};

    OT_TRY(ot__model_keep(to, from)); // strings and constants stay where they are
    OT_TRY(ot__symbols_copy(from, to));
    to->ir_version = from->ir_version;
    to->model_version = from->model_version;
    to->producer_name = from->producer_name;
    to->producer_version = from->producer_version;
    to->domain = from->domain;
    to->doc = from->doc;
    to->metadata = from->metadata;
    to->n_metadata = from->n_metadata;
    to->metadata_extra = from->metadata_extra;
    to->n_metadata_extra = from->n_metadata_extra;
    to->extra = from->extra;
    to->folder = from->folder;
    if (from->n_opsets > 0) {
        to->opsets =
            ot__arena_memdup(to->arena, from->opsets, (size_t)from->n_opsets * sizeof *to->opsets);
        OT_TRY(ot__made(to->opsets));
        to->n_opsets = to->opsets_capacity = from->n_opsets;
    }
    OT_TRY(copy_functions(from, to));
    to->graph->name = from->graph->name;
    return ot__copy_graph(&copier, &scope);
}

ot_status ot__model_clone(const ot_model *model, ot_model **out)
{
    ot_model *copy;
    ot_status st;

    *out = NULL;
    OT_TRY(ot__model_create(&copy));
    st = copy_model(model, copy);
    return OT_HAND_OUT(st, out, copy, ot_model_destroy);
}
