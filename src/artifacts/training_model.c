// SPDX-License-Identifier: Apache-2.0
// The training model: forward, loss, gradients, accumulators.
#include "artifacts/training_model.h"

// ---- parameters ----

ot_status ot__parameters_to_inputs(const ot__forward *forward)
{
    ot_graph *graph = forward->model->graph;
    const ot__candidates *c = &forward->candidates;

    for (int i = 0; i < c->n; i++) {
        ot_value *value = c->items[i].value;

        if (c->items[i].role == OT_ROLE_CONSTANT)
            continue;
        value->is_initializer = false;
        value->constant = NULL; // the forward's candidates have been read before
        value->n_known = 0;
        OT_TRY(ot__made(ot__graph_add_input(graph, value)));
    }
    ot__graph_relist(graph);
    OT_TRY(ot__model_drop_unused(forward->model)); // the checkpoint has the parameters
    return ot__pass_finished(forward->model, "parameters");
}

// ---- forward rewriting ----

// Nothing has changed the order of the nodes since ot__batch_norm_choose().
static ot_status settle_batch_norms(ot_graph *graph, const ot__candidates *c)
{
    int k = 0;

    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];

        if (!ot__is_batch_norm(node))
            continue;
        if (k < c->n_batch_norms && node == c->batch_norms[k]) {
            k++;
            OT_TRY(ot__batch_norm_to_internal(node));
        } else {
            OT_TRY(ot__batch_norm_to_inference(node));
        }
    }
    assert(k == c->n_batch_norms);
    return ot__pass_finished(graph->model, "batch_norm");
}

// ---- accumulation ----

static ot_status new_named(ot_graph *graph, const char *base, const char *suffix, ot_value **out)
{
    char *name = ot__arena_printf(graph->model->arena, "%s%s", base, suffix);

    *out = NULL;
    if (name && ot__graph_find(graph, name))
        return ot__error(OT_ERR_INVALID,
                         "'%s' is a value of the model, but training needs the name", name);
    *out = name ? ot__graph_value(graph, name) : NULL;
    return ot__made(*out);
}

static ot_status accumulate_gradients(ot_graph *graph, const ot_value *trained, ot_value *gradient,
                                      ot_value *buffer, ot_value *lazy_reset)
{
    ot_value *inputs[] = {buffer, gradient, lazy_reset}, *updated;
    ot__builder b = {.graph = graph};
    char name[48];
    ot_node *node;

    OT_TRY(new_named(graph, trained->name, OT_SUFFIX_ACCUMULATED, &updated));
    snprintf(name, sizeof name, "GradientAccumulator%d", graph->n_outputs);
    ot__value_set(updated, OT_BOOL, &OT_SHAPE(1));
    node = ot__op_build(&b, "com.microsoft", "InPlaceAccumulatorV2", name, inputs,
                        (int)OT_COUNT(inputs), &updated, 1);
    ot__build_output(&b, updated);
    ot__op_settle(&b, node);
    return b.status;
}

static ot_status add_accumulators(ot_graph *graph, ot_value *const *trained,
                                  ot_value *const *gradients, int n)
{
    ot_value **buffers = ot__arena_alloc(graph->model->arena, (size_t)(n + 1) * sizeof *buffers);
    ot_value *lazy_reset;

    OT_TRY(ot__made(buffers));
    for (int i = 0; i < n; i++) {
        OT_TRY(new_named(graph, trained[i]->name, OT_SUFFIX_BUFFER, &buffers[i]));
        ot__value_set(buffers[i], gradients[i]->dtype, &gradients[i]->shape);
        OT_TRY(ot__made(ot__graph_add_input(graph, buffers[i])));
    }
    OT_TRY(new_named(graph, "", OT_NAME_LAZY_RESET, &lazy_reset));
    ot__value_set(lazy_reset, OT_BOOL, &OT_SHAPE(1));
    OT_TRY(ot__made(ot__graph_add_input(graph, lazy_reset)));
    for (int i = 0; i < n; i++)
        OT_TRY(accumulate_gradients(graph, trained[i], gradients[i], buffers[i], lazy_reset));
    return OT_OK;
}

// ---- the loss scale ----

// The gradient of the loss, which is 1 otherwise, is an input. The loss itself stays as it is.
static ot_status add_loss_scale(ot_graph *graph, ot_value *loss, ot_value **seed)
{
    ot__builder b = {.graph = graph};
    const char *name = ot__build_name(&b, "%s_grad", loss->name);
    ot_value *scale, *ends[2];

    OT_TRY(new_named(graph, "", OT_NAME_LOSS_SCALE, &scale));
    ot__value_set(scale, OT_F32, &OT_SHAPE(1));
    OT_TRY(ot__made(ot__graph_add_input(graph, scale)));
    ends[0] = scale;
    if (loss->dtype != OT_F32) {
        const char *cast_name = ot__build_name(&b, "%s_cast", name);
        ot_node *cast;

        ends[0] = ot__build_value(&b, cast_name);
        cast = ot__op_build(&b, "", "Cast", cast_name, &scale, 1, &ends[0], 1);
        ot__build_int(&b, cast, "to", loss->dtype);
        ot__op_settle(&b, cast);
    }
    *seed = ot__build_value(&b, name);
    if (loss->has_shape && loss->shape.ndim == 0) {
        ot__op_settle(&b, ot__op_build(&b, "", "Squeeze", name, ends, 1, seed, 1));
        return b.status;
    }
    name = ot__build_name(&b, "%s_shape", name);
    ends[1] = ot__build_value(&b, name);
    ot__op_settle(&b, ot__op_build(&b, "", "Shape", name, &loss, 1, &ends[1], 1));
    ot__op_settle(&b, ot__op_build(&b, "", "Expand", name, ends, 2, seed, 1));
    return b.status;
}

// ---- ONNX's own operators ----

// Accumulators stay what they are: they change tensors in place, which ONNX cannot say.
static ot_status make_standard_ops(ot__forward *forward)
{
    ot_model *model = forward->model;
    const char *names;

    OT_TRY(ot__pass_expand(model));
    OT_TRY(ot__pass_note_nonstandard(model, &names));
    if (names == NULL)
        return OT_OK;
    return ot__forward_note(
        forward, OT_LOG_INFO,
        ot__arena_printf(model->arena,
                         "the training model keeps what ONNX's own operators cannot say: %s",
                         names));
}

// ---- gradients that wait ----

static ot_status note_waiting(ot__forward *forward)
{
    const ot_graph *graph = forward->model->graph;
    const ot_node *loop = NULL;
    bool waits = false;

    for (int n = graph->n_nodes - 1; n >= 0; n--) {
        waits = waits || ot__is_backward(graph->nodes[n]);
        if (ot__next_subgraph(&(ot__subgraphs){.node = graph->nodes[n]}))
            loop = graph->nodes[n];
    }
    if (!waits)
        return OT_OK;
    return ot__forward_note(forward, OT_LOG_INFO,
                            ot__arena_printf(forward->model->arena,
                                             "gradients are written in a step, which only "
                                             "onnxtrain does: what %s does is known only there",
                                             loop ? OT_LABEL(loop) : "a sequence"));
}

// ---- the whole ----

static ot_status training_gradients(ot__forward *forward, const ot_artifacts_options *options,
                                    ot_value **trained, ot_value **gradients, int n)
{
    ot_model *model = forward->model;
    ot_value *seed = NULL;

    // ONNX wants an import for every domain; rules emit operators of these two.
    OT_TRY(ot__model_set_opset(model, "com.microsoft", 1));
    OT_TRY(ot__model_set_opset(model, "ai.onnxtrain", 1));
    OT_TRY(settle_batch_norms(model->graph, &forward->candidates));
    OT_TRY(ot__pass_train(model));
    OT_TRY(ot__pass_fold(model, 0));
    OT_TRY(ot__graph_list_constants(model->graph));
    if (n > 0 && options->loss_scale)
        OT_TRY(add_loss_scale(model->graph, forward->loss, &seed));
    if (n > 0)
        OT_TRY(ot__autodiff_build(model->graph, forward->loss, seed, trained, n, gradients));
    OT_TRY(note_waiting(forward));
    OT_TRY(add_accumulators(model->graph, trained, gradients, n));
    if (options->standard_ops)
        OT_TRY(make_standard_ops(forward));
    // ONNX Runtime need not hear of a domain that no node uses.
    ot__pass_drop_imports(model, "ai.onnxtrain");
    OT_TRY(ot__pass_prune(model));
    return ot__note_loadable(model);
}

ot_status ot__training_model(ot__forward *forward, const ot_artifacts_options *options)
{
    const ot__candidates *c = &forward->candidates;
    const size_t n_max = (size_t)c->n + (size_t)forward->n_inputs + 1;
    ot__arena *arena = forward->model->arena;
    ot_value **trained = ot__arena_alloc(arena, n_max * sizeof *trained);
    ot_value **gradients = ot__arena_alloc(arena, n_max * sizeof *gradients);
    int n = 0;

    OT_TRY(ot__made(trained && gradients));
    for (int i = 0; i < forward->n_inputs; i++) // before parameters, as among the graph's inputs
        trained[n++] = forward->inputs[i];
    for (int i = 0; i < c->n; i++)
        if (c->items[i].role == OT_ROLE_TRAINABLE)
            trained[n++] = c->items[i].value;
    return training_gradients(forward, options, trained, gradients, n);
}
