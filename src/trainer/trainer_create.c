// SPDX-License-Identifier: Apache-2.0
// A trainer of a forward model: its description against the graph, then artifacts in memory and a
// session over them.
#include <string.h>

#include "artifacts/artifacts.h"
#include "trainer/options.h"
#include "trainer/trainer.h"

// ---- the description against the graph ----

// Names that `has` denies, into one error.
static void list_missing(const ot_graph *graph, bool (*has)(const ot_graph *, const char *),
                         const char *what, const char *name, ot__buf *missing)
{
    if (!has(graph, name))
        ot__buf_printf(missing, "%s%s '%s'", missing->length > 0 ? ", " : "", what, name);
}

static bool has_named(ot_value *const *values, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(values[i]->name, name) == 0)
            return true;
    return false;
}

static bool has_graph_input(const ot_graph *graph, const char *name)
{
    return has_named(graph->inputs, graph->n_inputs, name);
}

static bool has_graph_output(const ot_graph *graph, const char *name)
{
    return has_named(graph->outputs, graph->n_outputs, name);
}

static bool has_initializer(const ot_graph *graph, const char *name)
{
    const ot_value *value = ot__graph_find(graph, name);

    return value != NULL && value->is_initializer;
}

static ot_status refuse_missing(ot__buf *missing, const char *expected)
{
    ot_status st = ot__buf_status(missing);

    if (st == OT_OK && missing->length > 0)
        st = ot__error(OT_ERR_INVALID, "the model has no %s, expected %s", missing->data, expected);
    ot__buf_deinit(missing);
    return st;
}

static ot_status check_described_names(const ot_graph *graph, const ot_model_description *d)
{
    ot__buf missing = {0};

    for (int i = 0; i < d->n_inputs; i++)
        list_missing(graph, has_graph_input, "input", d->inputs[i].name, &missing);
    for (int i = 0; i < d->n_outputs; i++)
        list_missing(graph, has_graph_output, "output", d->outputs[i].name, &missing);
    return refuse_missing(&missing, "names of its graph's inputs and outputs");
}

static ot_status check_frozen_names(const ot_graph *graph, const ot_trainer_options *options)
{
    ot__buf missing = {0};

    for (int i = 0; i < options->n_frozen_weights; i++)
        list_missing(graph, has_initializer, "initializer", options->frozen_weights[i], &missing);
    return refuse_missing(&missing, "in frozen_weights names of initializers");
}

static bool is_described(const ot_value_description *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return true;
    return false;
}

// Inputs that the description lacks: those that are read are an error, of the others the number is
// told.
static ot_status check_needed_inputs(const ot_graph *graph, const ot_model_description *d,
                                     int *n_unread)
{
    ot__uses uses = {0};
    ot__buf missing = {0};
    ot_status st = ot__uses_build(graph, &uses);

    *n_unread = 0;
    for (int i = 0; st == OT_OK && i < graph->n_inputs; i++) {
        const ot_value *input = graph->inputs[i];

        if (input->is_initializer || is_described(d->inputs, d->n_inputs, input->name))
            continue;
        if (ot__uses_count(&uses, input) > 0)
            ot__buf_printf(&missing, "%s'%s'", missing.length > 0 ? ", " : "", input->name);
        else
            (*n_unread)++;
    }
    OT_THEN(st, ot__buf_status(&missing));
    if (st == OT_OK && missing.length > 0)
        st = ot__error(OT_ERR_INVALID, "the model reads inputs that the description lacks: %s",
                       missing.data);
    ot__buf_deinit(&missing);
    ot__uses_deinit(&uses);
    return st;
}

// A copy without the inputs that the description lacks, which nothing reads.
static ot_status drop_unread_inputs(const ot_model *model, const ot_model_description *d,
                                    ot_model **out)
{
    ot_graph *graph;
    int n = 0;

    OT_TRY(ot__model_clone(model, out));
    graph = (*out)->graph;
    for (int i = 0; i < graph->n_inputs; i++) {
        ot_value *input = graph->inputs[i];

        input->is_input =
            input->is_initializer || is_described(d->inputs, d->n_inputs, input->name);
        if (input->is_input)
            graph->inputs[n++] = input;
    }
    graph->n_inputs = n;
    return OT_OK;
}

// ---- the loss ----

static bool may_be_loss(const ot_value *value)
{
    return value->kind == OT_VALUE_TENSOR && ot__dtype_is_float(value->dtype) && value->has_shape &&
           ot__value_has_one_element(value);
}

// The only scalar of a float type.
static ot_status loss_of_graph(const ot_graph *graph, const char **name)
{
    ot__buf names = {0};
    int n = 0;
    ot_status st;

    for (int i = 0; i < graph->n_outputs; i++) {
        const bool is_candidate = may_be_loss(graph->outputs[i]);

        ot__buf_printf(&names, "%s'%s'%s", i > 0 ? ", " : "", graph->outputs[i]->name,
                       is_candidate ? " (a scalar)" : "");
        if (is_candidate && n++ == 0)
            *name = graph->outputs[i]->name;
    }
    st = ot__buf_status(&names);
    if (st == OT_OK && n != 1)
        st = ot__error(OT_ERR_INVALID,
                       "%d outputs may be the loss, expected one scalar of a float type, or a "
                       "description that says which; outputs are %s",
                       n, names.data ? names.data : "none");
    ot__buf_deinit(&names);
    return st;
}

static ot_status loss_of_description(const ot_model_description *d, const char **name)
{
    int n = 0;

    for (int i = 0; i < d->n_outputs; i++)
        if (d->outputs[i].is_loss && n++ == 0)
            *name = d->outputs[i].name;
    if (n == 1)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "%d outputs of the description are the loss, expected 1", n);
}

// ---- artifacts ----

// Outputs besides the loss, in order; the caller frees the list.
static ot_status other_outputs(const ot_graph *graph, const ot_model_description *d,
                               const char *loss, const char ***out, int *n_out)
{
    const int n = d ? d->n_outputs : graph->n_outputs;
    const char **names = ot__alloc_zero((size_t)n + 1, sizeof *names);

    *out = names;
    *n_out = 0;
    OT_TRY(ot__made(names));
    for (int i = 0; i < n; i++) {
        const char *name = d ? d->outputs[i].name : graph->outputs[i]->name;

        if (strcmp(name, loss) != 0)
            names[(*n_out)++] = name;
    }
    return OT_OK;
}

// As the file is: what an exporter merged is one parameter, and nothing is held back.
static ot_status generate(const ot_model *model, const char *loss_name,
                          const ot_model_description *description,
                          const ot_optimizer_options *optimizer, const ot_trainer_options *options,
                          ot_artifacts **out)
{
    const ot__optimizer_wiring wiring = {.divides = true, .counts_apart = true};
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    const char **others;
    ot_status st =
        other_outputs(model->graph, description, loss_name, &others, &how.n_additional_outputs);

    loss.loss = OT_LOSS_NONE;
    loss.input = loss_name;
    how.losses = &loss;
    how.n_losses = 1;
    how.additional_outputs = others;
    how.optimizer = optimizer;
    how.prepare = OT_PREPARE_NONE;
    how.train_buffers = 1;
    how.train_scalars = 1;
    how.must_reach_loss = 1;
    how.unrecorded = 1;
    OT_THEN(st, ot__trainer_artifacts(model, &how, options, wiring, out));
    ot__free(others);
    return st;
}

// ---- the whole ----

static ot_status rated_over_artifacts(ot_artifacts *artifacts,
                                      const ot_model_description *description,
                                      const ot_optimizer_options *optimizer,
                                      const ot_trainer_options *options, ot_trainer **out)
{
    ot_trainer *trainer;
    ot_status st = OT_OK;

    OT_TRY(ot__trainer_over_artifacts(artifacts, description, options, &trainer));
    if (options->lr_schedule == NULL)
        OT_THEN(st, ot__trainer_set_rate(trainer, optimizer->lr));
    return OT_HAND_OUT(st, out, trainer, ot_trainer_destroy);
}

static ot_status generate_following(const ot_model *model, const char *loss,
                                    const ot_model_description *description,
                                    const ot_optimizer_options *optimizer,
                                    const ot_trainer_options *options, ot_artifacts **out)
{
    ot_model *following;
    ot_status st;

    *out = NULL;
    OT_TRY(ot__trainer_follow_step(model, &following));
    st = generate(following ? following : model, loss, description, optimizer, options, out);
    ot_model_destroy(following);
    return st;
}

// Without the inputs that the description lacks.
static ot_status generate_described(const ot_model *model, const char *loss,
                                    const ot_model_description *description,
                                    const ot_optimizer_options *optimizer,
                                    const ot_trainer_options *options, ot_artifacts **out)
{
    ot_model *less = NULL;
    int n_unread;
    ot_status st;

    *out = NULL;
    OT_TRY(check_needed_inputs(model->graph, description, &n_unread));
    st = n_unread > 0 ? drop_unread_inputs(model, description, &less) : OT_OK;
    OT_THEN(st,
            generate_following(less ? less : model, loss, description, optimizer, options, out));
    ot_model_destroy(less);
    return st;
}

static ot_status generate_of_model(const ot_model *model, const ot_model_description *description,
                                   const ot_optimizer_options *optimizer,
                                   const ot_trainer_options *options, ot_artifacts **out)
{
    const char *loss = NULL;

    *out = NULL;
    if (description != NULL)
        OT_TRY(check_described_names(model->graph, description));
    OT_TRY(description != NULL ? loss_of_description(description, &loss)
                               : loss_of_graph(model->graph, &loss));
    OT_TRY(check_frozen_names(model->graph, options));
    return description != NULL
               ? generate_described(model, loss, description, optimizer, options, out)
               : generate_following(model, loss, NULL, optimizer, options, out);
}

static ot_status create_of_model(const ot_model *model, const ot_model_description *description,
                                 const ot_optimizer_options *optimizer,
                                 const ot_trainer_options *options, ot_trainer **out)
{
    ot_artifacts *artifacts;
    ot_status st = generate_of_model(model, description, optimizer, options, &artifacts);

    OT_THEN(st, rated_over_artifacts(artifacts, description, optimizer, options, out));
    ot_artifacts_destroy(artifacts);
    return st;
}

// ---- once more, of a graph with other constants ----

typedef struct names_again {
    ot_value_description *inputs, *outputs;
    const char **frozen;
    ot_model_description description;
    ot_trainer_options options;
} names_again;

static void drop_names(names_again *names)
{
    ot__free(names->inputs);
    ot__free(names->outputs);
    ot__free(names->frozen);
}

// What the trainer has shows what it was made with.
static ot_status list_names_again(const ot_trainer *trainer, names_again *out)
{
    const ot_checkpoint *checkpoint = ot_session_checkpoint(trainer->session);
    int n_frozen = 0;

    out->inputs = ot__alloc_zero((size_t)trainer->n_inputs + 1, sizeof *out->inputs);
    out->outputs = ot__alloc_zero((size_t)trainer->n_outputs + 1, sizeof *out->outputs);
    out->frozen = ot__alloc_zero((size_t)checkpoint->n_parameters + 1, sizeof *out->frozen);
    OT_TRY(ot__made(out->inputs && out->outputs && out->frozen));
    for (int i = 0; i < trainer->n_inputs; i++)
        out->inputs[i].name = trainer->inputs[i].name;
    for (int i = 0; i < trainer->n_outputs; i++)
        out->outputs[i].name = trainer->outputs[i].name;
    for (int i = 0; i < checkpoint->n_parameters; i++)
        if (!checkpoint->parameters[i]->trainable)
            out->frozen[n_frozen++] = checkpoint->parameters[i]->name;
    out->description = (ot_model_description){sizeof out->description, out->inputs, out->outputs,
                                              trainer->n_inputs, trainer->n_outputs};
    out->options = (ot_trainer_options)OT_TRAINER_OPTIONS_INIT;
    out->options.frozen_weights = out->frozen;
    out->options.n_frozen_weights = n_frozen;
    out->options.loss_scaler = trainer->scaler;
    return OT_OK;
}

ot_status ot__trainer_generate_again(const ot_trainer *trainer, const ot_model *forward,
                                     ot_artifacts **out)
{
    const char *loss = ot_session_output_name(trainer->session, OT_MODE_TRAIN, 0);
    ot_optimizer_options none = OT_OPTIMIZER_OPTIONS_INIT;
    names_again names = {0};
    ot_status st = list_names_again(trainer, &names);

    *out = NULL;
    none.name = NULL;
    OT_THEN(st, generate_described(forward, loss, &names.description, &none, &names.options, out));
    drop_names(&names);
    return st;
}

// ---- public ----

ot_status ot_trainer_create(const ot_model *model, const ot_model_description *description,
                            const ot_optimizer_options *optimizer,
                            const ot_trainer_options *options, ot_trainer **out)
{
    ot_model_description own_description;
    ot_optimizer_options own_optimizer;
    ot_trainer_options own;
    ot_trainer *trainer = NULL;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(model));
    OT_TRY(ot__trainer_options_take(options, &own));
    OT_TRY(OT_OPTIONS_READ(ot_optimizer_options, OT_OPTIMIZER_OPTIONS_INIT, optimizer,
                           &own_optimizer));
    if (description != NULL)
        OT_TRY(ot__model_description_take(description, &own_description));
    st = create_of_model(model, description ? &own_description : NULL, &own_optimizer, &own,
                         &trainer);
    OT_THEN(st, ot__trainer_keep_forward(trainer, model));
    return OT_HAND_OUT(st, out, trainer, ot_trainer_destroy);
}
