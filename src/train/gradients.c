// SPDX-License-Identifier: Apache-2.0
// Gradients of one value of a model with respect to others: a graph to run, and one for files.
#include <string.h>

#include "train/train.h"

struct ot_gradients {
    ot_model *standard; // for files
    ot_runner *runner;  // over the graph as it was differentiated
};

typedef struct request {
    const char *of;
    const char *const *wrt;
    int n_wrt;
    ot_gradients_options options;
} request;

// A model being differentiated.
typedef struct build {
    ot_model *model;
    ot_value *of, *seed;  // seed NULL: ones
    ot_value **wrt;       // `n_wrt` each
    ot_tensor **constant; // of a parameter, while it stands as an input; else NULL
    ot_value **gradients;
    int n_wrt;
} build;

static ot_status grads_options(const ot_gradients_options *given, ot_gradients_options *own)
{
    OT_TRY(OT_OPTIONS_READ(ot_gradients_options, OT_GRADIENTS_OPTIONS_INIT, given, own));
    if ((unsigned)own->seed > OT_SEED_ONES)
        return ot__error(OT_ERR_INVALID, "unknown gradient seed %d (known: auto, input, ones)",
                         (int)own->seed);
    return OT_OK;
}

// ---- values ----

// Old models list initializers among the inputs.
static void drop_defaults(ot_graph *graph)
{
    for (int i = 0; i < graph->n_inputs; i++)
        graph->inputs[i]->is_input = graph->inputs[i]->constant == NULL;
    ot__graph_relist(graph);
}

static ot_status find_value(const ot_graph *graph, const char *role, const char *name,
                            ot_value **out)
{
    *out = name == NULL ? NULL : ot__graph_find(graph, name);
    if (*out == NULL)
        return ot__graph_no_value(graph, name == NULL ? "" : name,
                                  "%s: the model has no value '%s'", role,
                                  name == NULL ? "" : name);
    if ((*out)->kind == OT_VALUE_TENSOR && ((*out)->dtype == OT_F32 || (*out)->dtype == OT_F64))
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "%s: '%s' is %s, expected f32 or f64", role, name,
                     (*out)->kind == OT_VALUE_TENSOR ? ot_dtype_name((*out)->dtype) : "no tensor");
}

static ot_status find_grad_values(build *b, const request *r)
{
    const ot_graph *graph = b->model->graph;

    OT_TRY(find_value(graph, "of", r->of, &b->of));
    if (b->of->producer == NULL)
        return ot__error(OT_ERR_INVALID, "of: '%s' is computed by no operator", r->of);
    for (int i = 0; i < r->n_wrt; i++) {
        OT_TRY(find_value(graph, "wrt", r->wrt[i], &b->wrt[i]));
        if (b->wrt[i] == b->of)
            return ot__error(OT_ERR_INVALID, "wrt: '%s' is the value to differentiate", r->wrt[i]);
        for (int k = 0; k < i; k++)
            if (b->wrt[k] == b->wrt[i])
                return ot__error(OT_ERR_INVALID, "wrt: '%s' is named twice", r->wrt[i]);
    }
    b->n_wrt = r->n_wrt;
    return OT_OK;
}

// ---- the graph ----

// What is a constant would be folded into others. Parameters stand among the inputs until the
// gradients are there, computed values among the outputs.
static ot_status hold_values(build *b)
{
    ot_graph *graph = b->model->graph;

    ot__graph_clear_outputs(graph);
    OT_TRY(ot__made(ot__graph_add_output(graph, b->of)));
    for (int i = 0; i < b->n_wrt; i++) {
        ot_value *x = b->wrt[i];
        ot_tensor *value = ot__match_constant(x->producer);

        if (value != NULL) {
            ot__node_detach(x->producer);
            x->constant = value;
        }
        b->constant[i] = x->producer == NULL && !x->is_input ? x->constant : NULL;
        if (b->constant[i] != NULL) {
            x->is_initializer = false;
            x->constant = NULL;
            x->n_known = 0;
            OT_TRY(ot__made(ot__graph_add_input(graph, x)));
        } else if (x->producer != NULL) {
            OT_TRY(ot__made(ot__graph_add_output(graph, x)));
        }
    }
    ot__graph_drop_detached(graph);
    ot__graph_relist(graph);
    return OT_OK;
}

static void mark_named(const ot__uses *uses, bool *is_named, const ot_value *value)
{
    if (value != NULL && ot__has_number(&uses->numbers, value))
        is_named[ot__value_number(&uses->numbers, value)] = true;
}

// Parameters back among the initializers; inputs that only served other outputs go.
static ot_status release_grads(build *b, const ot__uses *uses, bool *is_named)
{
    ot_graph *graph = b->model->graph;

    for (int i = 0; i < b->n_wrt; i++)
        mark_named(uses, is_named, b->wrt[i]);
    mark_named(uses, is_named, b->seed);
    for (int i = 0; i < b->n_wrt; i++)
        if (b->constant[i] != NULL)
            b->wrt[i]->is_input = false;
    for (int i = 0; i < graph->n_inputs; i++) {
        ot_value *x = graph->inputs[i];

        x->is_input = x->is_input && (ot__uses_count(uses, x) > 0 ||
                                      is_named[ot__value_number(&uses->numbers, x)]);
    }
    ot__graph_relist(graph);
    for (int i = 0; i < b->n_wrt; i++)
        if (b->constant[i] != NULL && ot__uses_count(uses, b->wrt[i]) > 0)
            OT_TRY(ot__made(ot__graph_add_initializer(graph, b->wrt[i], b->constant[i])));
    return OT_OK;
}

static ot_status release_values(build *b)
{
    ot__uses uses;
    bool *is_named;
    ot_status st;

    OT_TRY(ot__uses_build(b->model->graph, &uses));
    is_named = ot__alloc_zero((size_t)uses.numbers.n_values, sizeof *is_named);
    st = is_named == NULL ? OT_ERR_NO_MEMORY : release_grads(b, &uses, is_named);
    ot__free(is_named);
    ot__uses_deinit(&uses);
    return st;
}

// ---- gradients ----

static ot_status refuse_path(const build *b, const ot_value *x, ot__path_status status,
                             const ot_node *blocker)
{
    if (status == OT_PATH_OK)
        return OT_OK;
    if (status == OT_PATH_NONE || blocker == NULL)
        return ot__error(OT_ERR_INVALID, "no path from '%s' to '%s'", x->name, b->of->name);
    const char *label = OT_LABEL(blocker);
    if (status == OT_PATH_STOPPED)
        return ot__error(OT_ERR_INVALID, "from '%s' to '%s': %s passes on no gradient", x->name,
                         b->of->name, label);
    return ot__error(OT_ERR_UNSUPPORTED, "from '%s' to '%s': %s has no gradient", x->name,
                     b->of->name, label);
}

static ot_status check_paths(const build *b)
{
    ot__path_status *status = ot__alloc_zero((size_t)b->n_wrt, sizeof *status);
    ot_node **blocker = ot__alloc_zero((size_t)b->n_wrt, sizeof(ot_node *));
    ot_status st = ot__made(status != NULL && blocker != NULL);

    OT_THEN(st, ot__autodiff_paths(b->model->graph, b->of, b->wrt, b->n_wrt, ot__edge_passes,
                                   status, blocker));
    for (int i = 0; st == OT_OK && i < b->n_wrt; i++)
        st = refuse_path(b, b->wrt[i], status[i], blocker[i]);
    ot__free(status);
    ot__free(blocker);
    return st;
}

static ot_status make_grad_seed(build *b, ot_gradient_seed kind)
{
    ot__builder builder = {.graph = b->model->graph};

    if (kind == OT_SEED_ONES || (kind == OT_SEED_AUTO && ot__value_has_one_element(b->of)))
        return OT_OK;
    b->seed = ot__build_value(&builder, ot__build_name(&builder, "%s_grad", b->of->name));
    OT_TRY(builder.status);
    ot__value_set(b->seed, b->of->dtype, b->of->has_shape ? &b->of->shape : NULL);
    ot__build_input(&builder, b->seed);
    return builder.status;
}

// Outputs: the value, then the gradients; those that stood for computed values only held them.
static ot_status grads_set_outputs(build *b)
{
    ot_graph *graph = b->model->graph;

    for (int i = 1; i < graph->n_outputs; i++)
        graph->outputs[i]->is_output = false;
    graph->n_outputs = 1;
    for (int i = 0; i < b->n_wrt; i++)
        OT_TRY(ot__made(ot__graph_add_output(graph, b->gradients[i])));
    return OT_OK;
}

static ot_status differentiate(build *b, const request *r)
{
    ot_graph *graph = b->model->graph;

    drop_defaults(graph);
    OT_TRY(ot__pass_prepare(b->model));
    OT_TRY(find_grad_values(b, r));
    OT_TRY(hold_values(b));
    OT_TRY(ot__to_inference(b->model));
    OT_TRY(ot__pass_prune(b->model));
    OT_TRY(ot__pass_train(b->model));
    OT_TRY(ot__pass_fold(b->model, 0));
    OT_TRY(ot__graph_list_constants(graph));
    OT_TRY(check_paths(b));
    OT_TRY(make_grad_seed(b, r->options.seed));
    OT_TRY(ot__autodiff_build(graph, b->of, b->seed, b->wrt, b->n_wrt, b->gradients));
    OT_TRY(grads_set_outputs(b));
    OT_TRY(ot__pass_prune(b->model));
    OT_TRY(release_values(b));
    return ot__pass_finished(b->model, "gradients");
}

// ---- the model for files ----

static ot_status make_standard(ot_gradients *gradients, const ot_model *model, bool keep_operators)
{
    const char *names;

    OT_TRY(ot__model_clone(model, &gradients->standard));
    OT_TRY(ot__pass_check(gradients->standard)); // a copy's nodes know no records
    if (!keep_operators)
        OT_TRY(ot__pass_expand(gradients->standard));
    return ot__pass_note_nonstandard(gradients->standard, &names);
}

// ---- the whole ----

static ot_status create_grads(ot_gradients *gradients, build *b, const ot_model *model,
                              const request *r)
{
    const size_t n = (size_t)r->n_wrt;

    OT_TRY(ot__model_clone(model, &b->model));
    OT_TRY(ot__model_align_constants(b->model)); // those of parameters are run with
    b->wrt = ot__arena_alloc(b->model->arena, n * sizeof(ot_value *));
    b->constant = ot__arena_alloc(b->model->arena, n * sizeof(ot_tensor *));
    b->gradients = ot__arena_alloc(b->model->arena, n * sizeof(ot_value *));
    OT_TRY(ot__made(b->wrt != NULL && b->constant != NULL && b->gradients != NULL));
    OT_TRY(differentiate(b, r));
    OT_TRY(make_standard(gradients, b->model, r->options.keep_operators != 0));
    OT_TRY(ot__model_align_constants(b->model));
    ot__pass_mark_prepared(b->model);
    b->model->is_final = true; // the runner has it, too
    return ot_runner_create(b->model, r->options.session, &gradients->runner);
}

ot_status ot_gradients_create(const ot_model *model, const char *of, const char *const *wrt,
                              int n_wrt, const ot_gradients_options *options, ot_gradients **out)
{
    request r = {.of = of, .wrt = wrt, .n_wrt = n_wrt};
    ot_gradients *gradients;
    build b = {0};
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(model));
    OT_TRY(OT_GIVEN(of));
    OT_TRY(OT_GIVEN(wrt));
    if (n_wrt < 1)
        return ot__error(OT_ERR_INVALID, "gradients need at least one value to derive by");
    OT_TRY(grads_options(options, &r.options));
    gradients = ot__alloc_zero(1, sizeof *gradients);
    OT_TRY(ot__made(gradients != NULL));
    OT_ENTER(gradients);
    st = create_grads(gradients, &b, model, &r);
    ot_model_destroy(b.model);
    return OT_HAND_OUT(st, out, gradients, ot_gradients_destroy);
}

void ot_gradients_destroy(ot_gradients *gradients)
{
    if (!OT_ENDS(gradients))
        return;
    ot_runner_destroy(gradients->runner);
    ot_model_destroy(gradients->standard);
    ot__free(gradients);
}

const ot_model *ot_gradients_model(const ot_gradients *gradients)
{
    return OT_IS_LIVE(gradients) ? gradients->standard : NULL;
}

ot_status ot_gradients_run(ot_gradients *gradients, const ot_tensor *const *inputs, int n_inputs,
                           ot_tensor **outputs, int n_outputs)
{
    OT_TRY(OT_GIVEN_MANY(outputs, n_outputs));
    for (int i = 0; i < n_outputs; i++)
        outputs[i] = NULL;
    OT_TRY(OT_GIVEN(gradients));
    OT_TRY(OT_GIVEN_MANY(inputs, n_inputs));
    return ot__runner_run(gradients->runner, inputs, n_inputs, outputs, n_outputs);
}
