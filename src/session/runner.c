// SPDX-License-Identifier: Apache-2.0
// Any model by hand, without a checkpoint: plans by the shapes of what is fed.
#include <string.h>

#include "session/session_internal.h"

#define OT_KIND_RUNNER "runner"

struct ot_runner {
    ot__guard guard;
    ot__compiled_model program; // its user inputs are those that have no initializer
    ot_session_options options;
    ot__plan_options plan_options;
    uint64_t n_runs;
};

// ---- life ----

static ot_status build_runner(ot_runner *runner, const ot_model *given,
                              const ot_session_options *options)
{
    ot_model *model;

    OT_TRY(ot__session_options_take(options, &runner->options, &runner->plan_options));
    runner->plan_options.borrow_block = false;
    OT_TRY(ot__model_acquire(given, &model));
    OT_TRY(ot__compiled_model_create(&runner->program, NULL, model, NULL));
    runner->program.narrow = ot__session_narrow(&runner->options);
    return ot__compiled_model_sort_by_hand(&runner->program);
}

ot_status ot_runner_create(const ot_model *model, const ot_session_options *options,
                           ot_runner **out)
{
    ot_runner *runner;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(model));
    runner = ot__alloc_zero(1, sizeof *runner);
    OT_TRY(ot__made(runner != NULL));
    ot__dump_start();
    ot__guard_init(&runner->guard, OT_KIND_RUNNER);
    st = build_runner(runner, model, options);
    return OT_HAND_OUT(st, out, runner, ot_runner_destroy);
}

void ot_runner_destroy(ot_runner *runner)
{
    if (runner == NULL || ot__guard_enter(runner, OT_KIND_RUNNER) != OT_OK)
        return;
    ot__compiled_model_deinit(&runner->program);
    ot__guard_deinit(&runner->guard);
    ot__free(runner);
}

// ---- what is fed ----

static ot_status check_feed(const ot_runner *runner, int i_fed, const ot_feed *feed)
{
    const ot_value *value = ot__user_input(&runner->program, i_fed);

    if (value->kind == OT_VALUE_TENSOR && feed->count != 1)
        return ot__error(OT_ERR_INVALID, "input %d '%s' is a tensor, got a sequence of %d", i_fed,
                         value->name, feed->count);
    OT_TRY(OT_GIVEN_MANY(feed->tensors, feed->count));
    if (value->kind == OT_VALUE_SEQUENCE && feed->count == 0)
        return ot__error(OT_ERR_UNSUPPORTED, "input %d '%s' is a sequence of no tensors", i_fed,
                         value->name);
    for (int k = 0; k < feed->count; k++) {
        const ot_tensor *t = feed->tensors[k];

        if (t == NULL)
            return ot__error(OT_ERR_INVALID, "input %d '%s' is missing", i_fed, value->name);
        OT_TRY(OT_OPTIONAL(t, value->name));
        if (t->dtype != value->dtype)
            return ot__error(OT_ERR_INVALID, "input %d '%s' is %s, expected %s", i_fed, value->name,
                             ot_dtype_name(t->dtype), ot_dtype_name(value->dtype));
    }
    return OT_OK;
}

static ot_status check_feeds(const ot_runner *runner, const ot_feed *feeds, int n_feeds)
{
    for (int i = 0; i < runner->program.n_user_inputs; i++) {
        if (i == n_feeds)
            return ot__error(OT_ERR_INVALID, "input %d '%s' is missing", i,
                             ot__user_input(&runner->program, i)->name);
        OT_TRY(check_feed(runner, i, &feeds[i]));
    }
    if (n_feeds != runner->program.n_user_inputs)
        return ot__error(OT_ERR_INVALID, "got %d inputs, expected %d", n_feeds,
                         runner->program.n_user_inputs);
    return OT_OK;
}

static ot_status runner_shapes(ot__compiled_model *program, const ot_feed *feeds)
{
    int n_shapes = 0;

    for (int i = 0; i < program->n_user_inputs; i++)
        n_shapes += feeds[i].count;
    OT_TRY(ot__compiled_model_reserve(program, n_shapes));
    program->given.n_shapes = 0;
    for (int i = 0; i < program->n_user_inputs; i++) {
        program->given.lengths[i] = feeds[i].count;
        for (int k = 0; k < feeds[i].count; k++) {
            program->given.tensors[program->given.n_shapes] = feeds[i].tensors[k];
            program->given.shapes[program->given.n_shapes++] = feeds[i].tensors[k]->shape;
        }
    }
    program->given.has_tensors = true;
    return OT_OK;
}

static ot_status plan_of_runner(void *owner, const ot__compiled_model *program, ot_graph *graph,
                                const ot__input_shapes *shapes, size_t *excess, ot__plan **plan)
{
    const ot_runner *runner = owner;
    ot__plan_options options = runner->plan_options;

    (void)program;
    options.excess = excess;
    options.memory_max = OT_MAX(ot__memory_left(0), (size_t)1);
    if (runner->options.memory_max > 0)
        options.memory_max = OT_MIN(options.memory_max, runner->options.memory_max);
    return ot__plan_create(graph, &options, shapes->lengths, shapes->sequences, plan);
}

static ot_status answer_of_runner(void *owner, const ot__compiled_model *program,
                                  ot__plan *question)
{
    const ot_runner *runner = owner;
    const ot_step step = {.counter = runner->n_runs};
    int at = 0;

    for (int i = 0; i < program->n_user_inputs; i++)
        for (int k = 0; k < program->given.lengths[i]; k++)
            ot__plan_bind_input(question, program->user_inputs[i], k,
                                program->given.tensors[at++]->data);
    return ot__plan_run(question, &step);
}

// ---- running ----

static ot_status check_runner_outputs(const ot_graph *g, const int *which, int n_outputs)
{
    for (int i = 0; i < n_outputs; i++) {
        const int output = which != NULL ? which[i] : i;

        if (output < 0 || output >= g->n_outputs)
            return ot__error(OT_ERR_INVALID, "output %d is wanted, the model has %d", output,
                             g->n_outputs);
        if (g->outputs[output]->kind != OT_VALUE_TENSOR)
            return ot__error(OT_ERR_UNSUPPORTED, "output '%s' is not a tensor",
                             g->outputs[output]->name);
        for (int k = 0; which != NULL && k < i; k++)
            if (which[k] == output)
                return ot__error(OT_ERR_INVALID, "output '%s' is wanted twice",
                                 g->outputs[output]->name);
    }
    return OT_OK;
}

static ot_status bind_runner(const ot_runner *runner, ot__plan *plan, const ot_feed *feeds,
                             const int *which, ot_tensor **outputs, int n_outputs)
{
    for (int i = 0; i < runner->program.n_user_inputs; i++)
        for (int k = 0; k < feeds[i].count; k++)
            ot__plan_bind_input(plan, runner->program.user_inputs[i], k, feeds[i].tensors[k]->data);
    for (int i = 0; i < runner->program.model->graph->n_outputs; i++)
        ot__plan_bind_output(plan, i, NULL);
    for (int i = 0; i < n_outputs; i++)
        OT_TRY(ot__output_make(plan, which != NULL ? which[i] : i, &outputs[i]));
    return OT_OK;
}

static ot_status run_runner(ot_runner *runner, const ot_feed *feeds, int n_feeds, const int *which,
                            ot_tensor **outputs, int n_outputs)
{
    const ot_step step = {.counter = runner->n_runs};
    const ot__plan_owner owner = {runner, plan_of_runner, plan_of_runner, answer_of_runner};
    ot__plan *plan;

    OT_TRY(check_feeds(runner, feeds, n_feeds));
    OT_TRY(check_runner_outputs(runner->program.model->graph, which, n_outputs));
    OT_TRY(runner_shapes(&runner->program, feeds));
    OT_TRY(ot__compiled_model_plan(&runner->program, &owner, &plan));
    OT_TRY(bind_runner(runner, plan, feeds, which, outputs, n_outputs));
    OT_TRY(ot__plan_run(plan, &step));
    for (int i = 0; i < n_outputs; i++)
        OT_TRY(ot__output_take(plan, which != NULL ? which[i] : i, &outputs[i]));
    runner->n_runs++;
    return OT_OK;
}

static ot_status run_or_nothing(ot_runner *runner, const ot_feed *feeds, int n_feeds,
                                const int *which, ot_tensor **outputs, int n_outputs)
{
    const ot_status st = run_runner(runner, feeds, n_feeds, which, outputs, n_outputs);

    for (int i = 0; st != OT_OK && i < n_outputs; i++) {
        ot_tensor_destroy(outputs[i]);
        outputs[i] = NULL;
    }
    return st;
}

ot_status ot_runner_run(ot_runner *runner, const ot_feed *feeds, int n_feeds, const int *which,
                        ot_tensor **outputs, int n_outputs)
{
    ot_status st;

    OT_TRY(OT_GIVEN_MANY(outputs, n_outputs));
    for (int i = 0; i < n_outputs; i++)
        outputs[i] = NULL;
    OT_TRY(OT_GIVEN_MANY(feeds, n_feeds));
    OT_TRY(ot__guard_enter(runner, OT_KIND_RUNNER));
    st = run_or_nothing(runner, feeds, n_feeds, which, outputs, n_outputs);
    ot__guard_leave(runner);
    return st;
}

ot_status ot__runner_run(ot_runner *runner, const ot_tensor *const *inputs, int n_inputs,
                         ot_tensor **outputs, int n_outputs)
{
    ot_feed *feeds = ot__alloc_zero((size_t)n_inputs + 1, sizeof *feeds);
    ot_status st;

    OT_TRY(ot__made(feeds != NULL));
    for (int i = 0; i < n_inputs; i++)
        feeds[i] = (ot_feed){&inputs[i], 1};
    st = ot_runner_run(runner, feeds, n_inputs, NULL, outputs, n_outputs);
    ot__free(feeds);
    return st;
}

ot_status ot_model_run(const ot_model *model, const ot_session_options *options,
                       const ot_tensor *const *inputs, int n_inputs, ot_tensor **outputs,
                       int n_outputs)
{
    ot_runner *runner;
    ot_status st;

    OT_TRY(OT_GIVEN_MANY(outputs, n_outputs));
    for (int i = 0; i < n_outputs; i++)
        outputs[i] = NULL;
    OT_TRY(OT_GIVEN_MANY(inputs, n_inputs));
    OT_TRY(ot_runner_create(model, options, &runner));
    st = ot__runner_run(runner, inputs, n_inputs, outputs, n_outputs);
    ot_runner_destroy(runner);
    return st;
}
