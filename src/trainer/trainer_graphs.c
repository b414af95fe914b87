// SPDX-License-Identifier: Apache-2.0
// debug.graph_save_paths: the graphs of a training, as files to look at.
#include <string.h>

#include "ckpt/ckpt.h"
#include "trainer/trainer.h"

static ot_status save_graph(const ot_model *model, const char *option, const char *path)
{
    const ot_status st = ot_model_save(model, path, NULL);

    return st == OT_OK ? OT_OK : ot__error_prefix(st, "debug.graph_save_paths.%s", option);
}

// ---- the training graph with the optimizer's nodes behind it ----

typedef struct joining {
    ot__builder b;          // of the training graph
    const ot_graph *update; // the optimizer's
    ot__map values;         // name in `update` -> value of the training graph
    ot_value **parameters;  // inputs of the training graph that train, in its order
    ot_value **gradients;   // their buffers
    int n_parameters;
} joining;

static ot_status list_trained(joining *j)
{
    ot_graph *graph = j->b.graph;
    const size_t n = (size_t)graph->n_inputs + 1;

    j->parameters = ot__arena_alloc(graph->model->arena, n * sizeof *j->parameters);
    j->gradients = ot__arena_alloc(graph->model->arena, n * sizeof *j->gradients);
    OT_TRY(ot__made(j->parameters && j->gradients));
    for (int i = 0; i < graph->n_inputs; i++) {
        const char *name = ot__build_name(&j->b, "%s%s", graph->inputs[i]->name, OT_SUFFIX_BUFFER);
        ot_value *buffer = name ? ot__graph_find(graph, name) : NULL;

        if (buffer == NULL)
            continue;
        j->parameters[j->n_parameters] = graph->inputs[i];
        j->gradients[j->n_parameters++] = buffer;
    }
    return j->b.status;
}

// A value like `from`, with its shape in the symbols of the training graph.
static ot_value *value_like(joining *j, const ot_value *from)
{
    ot_value *to = ot__build_value(&j->b, from->name);

    if (to == NULL)
        return NULL;
    to->kind = from->kind;
    to->dtype = from->dtype;
    to->has_shape = from->has_shape;
    to->shape = from->shape;
    for (int k = 0; k < to->shape.ndim; k++)
        if (!ot__dim_is_number(to->shape.dim[k]))
            to->shape.dim[k] = ot__dim_symbol(j->b.graph->model,
                                              ot__dim_name(j->update->model, from->shape.dim[k]));
    ot__build_made(&j->b, ot__map_put(&j->values, from->name, to));
    return to;
}

static void join_inputs(joining *j)
{
    for (int i = 0; i < j->update->n_inputs; i++) {
        const ot_value *input = j->update->inputs[i];
        const bool is_parameters = strcmp(input->name, "params") == 0;
        ot_value *value = input->is_initializer ? NULL : value_like(j, input);

        if (value == NULL)
            continue;
        if (is_parameters || strcmp(input->name, "gradients") == 0)
            ot__build_node(&j->b, "", "SequenceConstruct", value->name,
                           is_parameters ? j->parameters : j->gradients, j->n_parameters, &value,
                           1);
        else
            ot__build_input(&j->b, value);
    }
    for (int i = 0; i < j->update->n_initializers; i++) {
        const ot_value *from = j->update->initializers[i];
        ot_value *value = value_like(j, from);

        ot__build_made(&j->b,
                       value && ot__graph_add_initializer(j->b.graph, value, from->constant));
    }
}

static void join_node(joining *j, const ot_node *node)
{
    ot_graph *graph = j->b.graph;
    ot_value **ends = ot__arena_alloc(
        graph->model->arena, (size_t)(node->n_inputs + node->n_outputs + 1) * sizeof *ends);
    ot_node *copy;

    if (!ot__build_made(&j->b, ends))
        return;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL)
            ends[i] = ot__map_get(&j->values, node->inputs[i]->name);
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] != NULL)
            ends[node->n_inputs + i] = value_like(j, node->outputs[i]);
    copy = ot__build_node(&j->b, node->domain, node->op_type, node->name, ends, node->n_inputs,
                          ends + node->n_inputs, node->n_outputs);
    if (copy != NULL)
        ot__build_made(&j->b, ot__node_copy_attrs(copy, node));
}

static ot_status join_update(joining *j)
{
    OT_TRY(ot__model_keep(j->b.graph->model, j->update->model));
    OT_TRY(list_trained(j));
    join_inputs(j);
    for (int n = 0; n < j->update->n_nodes && j->b.status == OT_OK; n++)
        join_node(j, j->update->nodes[n]);
    for (int i = 0; i < j->update->n_outputs && j->b.status == OT_OK; i++)
        ot__build_output(&j->b, ot__map_get(&j->values, j->update->outputs[i]->name));
    return j->b.status;
}

static ot_status save_with_update(const ot_session *session, const char *option, const char *path)
{
    ot_model *model;
    joining j = {.update = ot__session_optimizer_graph(session)};
    ot_status st;

    OT_TRY(ot__model_clone(ot__session_graph(session, OT_MODE_TRAIN)->model, &model));
    j.b.graph = model->graph;
    st = j.update != NULL ? join_update(&j) : OT_OK;
    OT_THEN(st, save_graph(model, option, path));
    ot__map_deinit(&j.values);
    ot_model_destroy(model);
    return st;
}

// ---- all of them ----

#define STEP_GRAPH "model_with_training_graph_after_optimization_path"

static bool is_path(const char *path)
{
    return path != NULL && path[0] != '\0';
}

ot_status ot__trainer_save_graphs(ot_trainer *trainer, const ot_trainer_options *o)
{
    const ot_session *session = trainer->session;
    const ot_graph *training = ot__session_graph(session, OT_MODE_TRAIN);
    const ot_graph *forward = ot__session_graph(session, OT_MODE_EVAL);

    if (is_path(o->model_after_graph_transforms_path))
        OT_TRY(save_graph((forward ? forward : training)->model,
                          "model_after_graph_transforms_path",
                          o->model_after_graph_transforms_path));
    if (is_path(o->model_with_gradient_graph_path))
        OT_TRY(save_graph(training->model, "model_with_gradient_graph_path",
                          o->model_with_gradient_graph_path));
    if (is_path(o->model_with_training_graph_path))
        OT_TRY(save_with_update(session, "model_with_training_graph_path",
                                o->model_with_training_graph_path));
    if (!is_path(o->model_with_training_graph_after_optimization_path))
        return OT_OK;
    trainer->step_graph_path =
        ot__arena_strdup(trainer->arena, o->model_with_training_graph_after_optimization_path);
    OT_TRY(ot__made(trainer->step_graph_path));
    // Before there is a step: whether it can be written.
    return save_graph(training->model, STEP_GRAPH, trainer->step_graph_path);
}

static ot_status save_step_graph(const ot_model *model, const char *path)
{
    ot_model *copy;
    ot_status st;

    OT_TRY(ot__model_clone(model, &copy));
    st = ot__graph_list_constants(copy->graph); // the plan reads those that folding has left
    OT_THEN(st, save_graph(copy, STEP_GRAPH, path));
    ot_model_destroy(copy);
    return st;
}

// The step is done by then: it does not fail for it.
void ot__trainer_save_step_graph(ot_trainer *trainer)
{
    const ot_model *model = ot__session_step_model(trainer->session);

    if (model != NULL && save_step_graph(model, trainer->step_graph_path) != OT_OK)
        ot__log(OT_LOG_WARNING, "not written: %s", ot_error_message());
    trainer->step_graph_path = NULL;
}
