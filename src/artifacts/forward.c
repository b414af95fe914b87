// SPDX-License-Identifier: Apache-2.0
// From the user's model to one with loss, outputs and roles.
#include <string.h>

#include "artifacts/forward.h"

static ot_status check_name_list(const char *what, const char *const *names, int n)
{
    if (n < 0 || (n > 0 && !names))
        return ot__error(OT_ERR_INVALID, "artifacts options: a list of %d %s names", n, what);
    for (int i = 0; i < n; i++)
        if (!names[i])
            return ot__error(OT_ERR_INVALID, "artifacts options: %s name %d is NULL", what, i);
    return OT_OK;
}

static ot_status check_choices(const ot_artifacts_options *options)
{
    OT_TRY(check_name_list("trainable", options->trainable, options->n_trainable));
    OT_TRY(check_name_list("frozen", options->frozen, options->n_frozen));
    OT_TRY(check_name_list("additional output", options->additional_outputs,
                           options->n_additional_outputs));
    OT_TRY(check_name_list("init", options->init, options->n_init));
    OT_TRY(check_name_list("shared", options->shared, options->n_shared));
    if ((unsigned)options->prepare > OT_PREPARE_NONE)
        return ot__error(OT_ERR_INVALID, "unknown prepare mode %d (known: training, none)",
                         (int)options->prepare);
    if ((unsigned)options->batch_norm > OT_BATCH_NORM_STORED)
        return ot__error(OT_ERR_INVALID, "unknown batch norm mode %d (known: auto, batch, stored)",
                         (int)options->batch_norm);
    return OT_OK;
}

static ot_status take_losses(ot__options_taken *taken)
{
    static const ot_loss_options defaults = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options *options = &taken->options;

    OT_TRY(OT_GIVEN_MANY(options->losses, options->n_losses));
    taken->losses = ot__alloc_zero((size_t)options->n_losses + 1, sizeof *taken->losses);
    OT_TRY(ot__made(taken->losses));
    OT_TRY(ot__options_read_all("ot_loss_options", options->losses, options->n_losses, &defaults,
                                taken->losses, sizeof *taken->losses));
    options->losses = taken->losses;
    return OT_OK;
}

static ot_status take_groups(ot__options_taken *taken)
{
    static const ot_param_group defaults = OT_PARAM_GROUP_INIT;
    ot_optimizer_options *o = &taken->optimizer;

    if (!o->groups || o->n_groups <= 0) {
        o->n_groups = 0;
        return OT_OK;
    }
    taken->groups = ot__alloc_zero((size_t)o->n_groups, sizeof *taken->groups);
    OT_TRY(ot__made(taken->groups));
    OT_TRY(ot__options_read_all("ot_param_group", o->groups, o->n_groups, &defaults, taken->groups,
                                sizeof *taken->groups));
    o->groups = taken->groups;
    return OT_OK;
}

ot_status ot__options_take(const ot_artifacts_options *given, ot__options_taken *taken)
{
    ot_artifacts_options *options = &taken->options;

    taken->losses = NULL;
    taken->groups = NULL;
    OT_TRY(OT_OPTIONS_READ(ot_artifacts_options, OT_ARTIFACTS_OPTIONS_INIT, given, options));
    OT_TRY(OT_OPTIONS_READ(ot_optimizer_options, OT_OPTIMIZER_OPTIONS_INIT, options->optimizer,
                           &taken->optimizer));
    options->optimizer = &taken->optimizer;
    OT_TRY(take_groups(taken));
    if (!options->trainable)
        options->n_trainable = 0;
    OT_TRY(check_choices(options));
    return take_losses(taken);
}

void ot__options_drop(ot__options_taken *taken)
{
    ot__free(taken->losses);
    ot__free(taken->groups);
}

// ---- outputs ----

// The loss, then the additional outputs as they are listed; a pass-through keeps the model's own
// outputs first, and adds what is not among them.
static ot_status forward_set_outputs(ot_graph *graph, ot_value *loss,
                                     const ot_artifacts_options *options)
{
    if (options->n_losses > 0)
        ot__graph_clear_outputs(graph);
    if (!loss->is_output)
        OT_TRY(ot__made(ot__graph_add_output(graph, loss)));
    for (int i = 0; i < options->n_additional_outputs; i++) {
        const char *name = options->additional_outputs[i];
        ot_value *value = ot__graph_find(graph, name);

        if (!value)
            return ot__graph_no_value(graph, name,
                                      "additional output '%s' is not a tensor of the model", name);
        if (value->kind != OT_VALUE_TENSOR)
            return ot__error(OT_ERR_INVALID, "additional output '%s' is not a tensor", name);
        if (!value->producer)
            return ot__error(OT_ERR_INVALID, "additional output '%s' is computed by no operator",
                             name);
        if (options->n_losses > 0 || !value->is_output)
            OT_TRY(ot__made(ot__graph_add_output(graph, value)));
    }
    return OT_OK;
}

static ot_status list_given(ot__forward *forward)
{
    const ot_graph *g = forward->model->graph;
    ot__name_list *given = &forward->given;

    given->names =
        ot__arena_alloc(forward->model->arena, ((size_t)g->n_outputs + 1) * sizeof *given->names);
    OT_TRY(ot__made(given->names != NULL));
    for (int i = 0; i < g->n_outputs; i++)
        given->names[given->n++] = g->outputs[i]->name;
    return OT_OK;
}

// Names by which ONNX Runtime recognises what is not the user's.
static bool is_reserved(const char *name)
{
    return strcmp(name, OT_NAME_LAZY_RESET) == 0 || strcmp(name, OT_NAME_LOSS_SCALE) == 0 ||
           ot__ends_with(name, "_grad") || ot__ends_with(name, OT_SUFFIX_BUFFER) ||
           ot__ends_with(name, OT_SUFFIX_ACCUMULATED);
}

static ot_status check_names(const char *what, ot_value *const *values, int n)
{
    for (int i = 0; i < n; i++)
        if (is_reserved(values[i]->name))
            return ot__error(OT_ERR_INVALID, "%s '%s' has a name that training uses for gradients",
                             what, values[i]->name);
    return OT_OK;
}

// ---- notes ----

ot_status ot__forward_note(ot__forward *forward, ot_log_level level, const char *text)
{
    return ot__made(text &&
                    ot__arena_push(forward->model->arena, &forward->notes, &forward->notes_capacity,
                                   &forward->n_notes, &(ot__note){level, text}, sizeof(ot__note)));
}

// ---- the whole ----

// Inputs that are to have a gradient, too.
static ot_status choose_inputs(ot__forward *forward, const ot_artifacts_options *options)
{
    const ot_graph *graph = forward->model->graph;

    if (options->input_gradients == 0)
        return OT_OK;
    forward->inputs =
        ot__arena_alloc(forward->model->arena, ((size_t)graph->n_inputs + 1) * sizeof(ot_value *));
    OT_TRY(ot__made(forward->inputs));
    for (int i = 0; i < graph->n_inputs; i++) {
        ot_value *input = graph->inputs[i];

        if (ot__index_of(options->trainable, options->n_trainable, input->name) < 0)
            continue;
        if (input->kind != OT_VALUE_TENSOR || !ot__dtype_is_float(input->dtype))
            return ot__error(OT_ERR_INVALID,
                             "trainable '%s' is an input of element type %s, expected a float type",
                             input->name, ot_dtype_name(input->dtype));
        forward->inputs[forward->n_inputs++] = input;
    }
    return OT_OK;
}

// Without an optimizer there may be nothing to train: whoever runs the graph may want the loss.
static ot_status say_nothing_trains(const ot__forward *forward, const ot_artifacts_options *options)
{
    const ot__candidates *c = &forward->candidates;
    ot_status st;

    if (c->n == 0)
        st = ot__error(OT_ERR_INVALID, "nothing to train: the model has no initializers");
    else
        st = ot__error(OT_ERR_INVALID, "nothing to train: no parameter reaches '%s' ('%s': %s)",
                       forward->loss->name, c->items[0].value->name, c->items[0].reason);
    if (options->optimizer->name != NULL)
        return st;
    ot__log(OT_LOG_WARNING, "%s", ot_error_message());
    return OT_OK;
}

static ot_status check_any_trains(const ot__forward *forward, const ot_artifacts_options *options)
{
    const ot__candidates *c = &forward->candidates;

    if ((options->trainable && options->n_trainable == 0) || forward->n_inputs > 0)
        return OT_OK;
    for (int i = 0; i < c->n; i++)
        if (c->items[i].role == OT_ROLE_TRAINABLE)
            return OT_OK;
    return say_nothing_trains(forward, options);
}

static ot_status note_computed_norm(ot__forward *forward)
{
    const ot_node *node = forward->candidates.computed_norm;

    return node == NULL
               ? OT_OK
               : ot__forward_note(
                     forward, OT_LOG_WARNING,
                     ot__arena_printf(forward->model->arena,
                                      "%s and others like it normalise by the statistics that the "
                                      "model computes for them, which no checkpoint can keep, not "
                                      "by those of the batch",
                                      OT_LABEL(node)));
}

static ot_status classify_forward(ot__forward *forward, const ot_artifacts_options *options)
{
    ot__candidates *c = &forward->candidates;

    OT_TRY(choose_inputs(forward, options));
    OT_TRY(ot__candidates_classify(c, forward->loss, options));
    OT_TRY(ot__batch_norm_choose(c, options->batch_norm));
    OT_TRY(note_computed_norm(forward));
    forward->is_classified = true;
    OT_TRY(ot__forward_note_unsure(forward, options));
    OT_TRY(ot__forward_note_folded(forward));
    if (options->must_reach_loss)
        OT_TRY(ot__forward_check_reach(forward));
    OT_TRY(check_any_trains(forward, options));
    return ot__forward_widen(forward);
}

// What was changed and left or, of a model that is taken as it is, what would change.
static ot_status note_finding(ot__forward *forward, const ot_finding *finding, bool is_done)
{
    ot__arena *arena = forward->model->arena;

    forward->has_lost = forward->has_lost || finding->kind == OT_FINDING_LOST;
    if (is_done)
        return ot__forward_note(forward, OT_LOG_INFO, ot__arena_strdup(arena, finding->text));
    if (!finding->changes)
        return OT_OK;
    return ot__forward_note(
        forward, OT_LOG_WARNING,
        ot__arena_printf(arena, "taken as the file has it, where preparing would change it: %s",
                         finding->text));
}

static ot_status take_model(const ot_model *model, const ot_artifacts_options *options,
                            ot__forward *forward)
{
    const bool is_done = options->prepare == OT_PREPARE_TRAINING;
    ot_prepare_options prepare = OT_PREPARE_OPTIONS_INIT;
    ot_findings *findings = NULL;
    ot_model *right;
    ot_status st;

    prepare.shared = options->shared;
    prepare.n_shared = options->n_shared;
    OT_TRY(ot_model_prepare_training(model, &prepare, &right, &findings));
    if (is_done) {
        forward->model = right;
        st = OT_OK;
    } else {
        ot_model_destroy(right);
        st = ot__model_clone(model, &forward->model);
    }
    for (int i = 0; st == OT_OK && i < ot_findings_count(findings); i++)
        st = note_finding(forward, ot_findings_get(findings, i), is_done);
    ot_findings_destroy(findings);
    return st;
}

// Models of artifacts look like any other, and would fail with what they were made of.
static ot_status check_is_forward(const ot_graph *graph)
{
    for (int i = 0; i < graph->n_inputs; i++)
        if (strcmp(graph->inputs[i]->name, OT_NAME_LAZY_RESET) == 0)
            return ot__error(OT_ERR_INVALID, "the model is the training model of artifacts, "
                                             "expected a forward model: train their directory");
    for (int n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n]->domain[0] != '\0' &&
            (ot__ends_with(graph->nodes[n]->op_type, "Optimizer") ||
             ot__ends_with(graph->nodes[n]->op_type, "OptimizerV2")))
            return ot__error(OT_ERR_INVALID, "the model is the optimizer model of artifacts, "
                                             "expected a forward model: train their directory");
    return OT_OK;
}

ot_status ot__forward_open(const ot_model *model, const ot_artifacts_options *options,
                           ot__foreign foreign, ot__forward *forward)
{
    *forward = (ot__forward){0};
    OT_TRY(check_is_forward(model->graph));
    OT_TRY(take_model(model, options, forward));
    OT_TRY(ot__named_copies_take(forward->model->graph, options));
    OT_TRY(ot__init_parameters(forward->model, options));
    // Before preparing: what raising adds are constants.
    OT_TRY(ot__candidates_collect(forward->model->graph, &forward->candidates));
    return foreign == OT_FOREIGN_CARRIED ? ot__pass_prepare_carrying(forward->model)
                                         : ot__pass_prepare(forward->model);
}

ot_status ot__forward_close(ot__forward *forward, const ot_artifacts_options *options)
{
    ot_graph *graph = forward->model->graph;

    OT_TRY(list_given(forward));
    OT_TRY(ot__loss_attach(graph, options->losses, options->n_losses, &forward->loss));
    OT_TRY(ot__losses_judge(forward, options));
    OT_TRY(forward_set_outputs(graph, forward->loss, options));
    OT_TRY(check_names("input", graph->inputs, graph->n_inputs));
    OT_TRY(check_names("output", graph->outputs, graph->n_outputs));
    return classify_forward(forward, options);
}

ot_status ot__forward_build(const ot_model *model, const ot_artifacts_options *options,
                            ot__foreign foreign, ot__forward *forward)
{
    OT_TRY(ot__forward_open(model, options, foreign, forward));
    return ot__forward_close(forward, options);
}

void ot__forward_deinit(ot__forward *forward)
{
    ot_model_destroy(forward->model);
    *forward = (ot__forward){0};
}
