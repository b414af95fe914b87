// SPDX-License-Identifier: Apache-2.0
// Any model by hand, without a checkpoint: plans by the shapes of what is fed.
#include <string.h>

#include "session/session_internal.h"

typedef struct fed_plan {
    int *lengths;     // per fed input: tensors given
    ot_shape *shapes; // of all of them
    int n_shapes;
    ot_model *model; // the specialised copy: the plan points at its constants
    ot__plan *plan;  // NULL: the slot is free
    uint64_t last_used;
} fed_plan;

#define OT_KIND_RUNNER "runner"

struct ot_runner {
    ot__guard guard;
    ot_model *model; // prepared
    ot_session_options options;
    ot__plan_options plan_options;
    int *fed; // positions of the inputs that have no initializer
    int n_fed;
    fed_plan plans[OT_PLAN_CACHE];
    uint64_t clock, n_runs;
};

// ---- life ----

static ot_status list_fed(ot_runner *runner)
{
    const ot_graph *g = runner->model->graph;

    runner->fed = ot__alloc_zero((size_t)g->n_inputs + 1, sizeof *runner->fed);
    if (runner->fed == NULL)
        return OT_ERR_NO_MEMORY;
    for (int i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->constant == NULL)
            runner->fed[runner->n_fed++] = i;
    return OT_OK;
}

static ot_status build_runner(ot_runner *runner, const ot_model *model,
                              const ot_session_options *options)
{
    OT_TRY(ot__session_options_take(options, &runner->options, &runner->plan_options));
    runner->plan_options.borrow_block = false;
    OT_TRY(ot__model_clone(model, &runner->model));
    OT_TRY(ot__model_align_constants(runner->model));
    OT_TRY(ot__pass_prepare(runner->model));
    return list_fed(runner);
}

ot_status ot_runner_create(const ot_model *model, const ot_session_options *options,
                           ot_runner **out)
{
    ot_runner *runner;
    ot_status st;

    OT_TRY(OT_GIVEN(out));
    *out = NULL;
    OT_TRY(OT_GIVEN(model));
    runner = ot__alloc_zero(1, sizeof *runner);
    if (runner == NULL)
        return OT_ERR_NO_MEMORY;
    ot__dump_start();
    ot__guard_init(&runner->guard, OT_KIND_RUNNER);
    st = build_runner(runner, model, options);
    if (st != OT_OK) {
        ot_runner_destroy(runner);
        return st;
    }
    *out = runner;
    return OT_OK;
}

static void plan_release(fed_plan *slot)
{
    ot__plan_destroy(slot->plan);
    ot_model_destroy(slot->model);
    ot__free(slot->lengths);
    ot__free(slot->shapes);
    *slot = (fed_plan){0};
}

void ot_runner_destroy(ot_runner *runner)
{
    if (runner == NULL || ot__guard_enter(runner, OT_KIND_RUNNER) != OT_OK)
        return;
    for (int k = 0; k < OT_PLAN_CACHE; k++)
        plan_release(&runner->plans[k]);
    ot_model_destroy(runner->model);
    ot__free(runner->fed);
    ot__guard_deinit(&runner->guard);
    ot__free(runner);
}

// ---- what is fed ----

static ot_status check_feed(const ot_runner *runner, int i_fed, const ot_feed *feed)
{
    const ot_value *value = runner->model->graph->inputs[runner->fed[i_fed]];

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
    for (int i = 0; i < runner->n_fed; i++) {
        if (i == n_feeds)
            return ot__error(OT_ERR_INVALID, "input %d '%s' is missing", i,
                             runner->model->graph->inputs[runner->fed[i]]->name);
        OT_TRY(check_feed(runner, i, &feeds[i]));
    }
    if (n_feeds != runner->n_fed)
        return ot__error(OT_ERR_INVALID, "got %d inputs, expected %d", n_feeds, runner->n_fed);
    return OT_OK;
}

static bool fits(const ot_runner *runner, const fed_plan *slot, const ot_feed *feeds)
{
    int at = 0;

    for (int i = 0; i < runner->n_fed; i++) {
        if (feeds[i].count != slot->lengths[i])
            return false;
        for (int k = 0; k < feeds[i].count; k++)
            if (!ot__shape_equal(&feeds[i].tensors[k]->shape, &slot->shapes[at++]))
                return false;
    }
    return true;
}

static ot_status take_shapes(const ot_runner *runner, const ot_feed *feeds, fed_plan *slot)
{
    for (int i = 0; i < runner->n_fed; i++)
        slot->n_shapes += feeds[i].count;
    slot->lengths = ot__alloc_zero((size_t)runner->n_fed + 1, sizeof *slot->lengths);
    slot->shapes = ot__alloc_zero((size_t)slot->n_shapes + 1, sizeof *slot->shapes);
    if (slot->lengths == NULL || slot->shapes == NULL)
        return OT_ERR_NO_MEMORY;
    slot->n_shapes = 0;
    for (int i = 0; i < runner->n_fed; i++) {
        slot->lengths[i] = feeds[i].count;
        for (int k = 0; k < feeds[i].count; k++)
            slot->shapes[slot->n_shapes++] = feeds[i].tensors[k]->shape;
    }
    return OT_OK;
}

// ---- plans ----

// Per graph input: the shapes of what is fed; of an initializer, its own.
typedef struct layout {
    ot_shape *first;         // of tensors
    int *lengths;            // of sequences, else 0
    const ot_shape **shapes; // of sequences
} layout;

static ot_status layout_init(layout *l, const ot_runner *runner, const fed_plan *slot)
{
    const ot_graph *g = runner->model->graph;
    const size_t n = (size_t)g->n_inputs + 1;
    int at = 0;

    l->first = ot__alloc_zero(n, sizeof *l->first);
    l->lengths = ot__alloc_zero(n, sizeof *l->lengths);
    l->shapes = ot__alloc_zero(n, sizeof *l->shapes);
    if (l->first == NULL || l->lengths == NULL || l->shapes == NULL)
        return OT_ERR_NO_MEMORY;
    for (int i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->constant != NULL)
            l->first[i] = g->inputs[i]->constant->shape;
    for (int i = 0; i < runner->n_fed; i++) {
        const int input = runner->fed[i];

        if (g->inputs[input]->kind == OT_VALUE_SEQUENCE) {
            l->lengths[input] = slot->lengths[i];
            l->shapes[input] = &slot->shapes[at];
        } else {
            l->first[input] = slot->shapes[at];
        }
        at += slot->lengths[i];
    }
    return OT_OK;
}

static void layout_deinit(layout *l)
{
    ot__free(l->first);
    ot__free(l->lengths);
    ot__free(l->shapes);
}

// Sequences keep their types; tensors beside them are checked against what is declared.
static ot_status specialize(ot_model *model, const layout *l)
{
    OT_TRY(ot__pass_specialize(model, l->first, model->graph->n_inputs));
    return ot__pass_fuse(model);
}

static ot_status make_plan(const ot_runner *runner, const ot_feed *feeds, fed_plan *slot)
{
    ot__plan_options options = runner->plan_options;
    layout l = {0};
    ot_status st = take_shapes(runner, feeds, slot);

    if (st == OT_OK)
        st = layout_init(&l, runner, slot);
    if (st == OT_OK)
        st = ot__model_clone(runner->model, &slot->model);
    if (st == OT_OK)
        st = specialize(slot->model, &l);
    options.memory_max = OT_MAX(ot__memory_left(0), (size_t)1);
    if (runner->options.memory_max > 0)
        options.memory_max = OT_MIN(options.memory_max, runner->options.memory_max);
    if (st == OT_OK)
        st = ot__plan_create(slot->model->graph, &options, l.lengths, l.shapes, &slot->plan);
    layout_deinit(&l);
    return st;
}

static ot_status find_plan(ot_runner *runner, const ot_feed *feeds, ot__plan **out)
{
    fed_plan *oldest = &runner->plans[0], made = {0};
    ot_status st;

    for (int k = 0; k < OT_PLAN_CACHE; k++) {
        fed_plan *slot = &runner->plans[k];

        if (slot->plan != NULL && fits(runner, slot, feeds)) {
            slot->last_used = ++runner->clock;
            *out = slot->plan;
            return OT_OK;
        }
        if (slot->last_used < oldest->last_used)
            oldest = slot;
    }
    st = make_plan(runner, feeds, &made);
    if (st != OT_OK) {
        plan_release(&made);
        return st;
    }
    plan_release(oldest);
    *oldest = made;
    oldest->last_used = ++runner->clock;
    *out = oldest->plan;
    return OT_OK;
}

// ---- running ----

static ot_status check_outputs(const ot_graph *g, const int *which, int n_outputs)
{
    for (int i = 0; i < n_outputs; i++) {
        const int output = which != NULL ? which[i] : i;

        if (output < 0 || output >= g->n_outputs)
            return ot__error(OT_ERR_INVALID, "output %d is wanted, the model has %d", output,
                             g->n_outputs);
        if (g->outputs[output]->kind != OT_VALUE_TENSOR)
            return ot__error(OT_ERR_UNSUPPORTED, "output '%s' is no tensor",
                             g->outputs[output]->name);
        for (int k = 0; which != NULL && k < i; k++)
            if (which[k] == output)
                return ot__error(OT_ERR_INVALID, "output '%s' is wanted twice",
                                 g->outputs[output]->name);
    }
    return OT_OK;
}

static ot_status bind(const ot_runner *runner, ot__plan *plan, const ot_feed *feeds,
                      const int *which, ot_tensor **outputs, int n_outputs)
{
    for (int i = 0; i < runner->n_fed; i++)
        for (int k = 0; k < feeds[i].count; k++)
            ot__plan_bind_input(plan, runner->fed[i], k, feeds[i].tensors[k]->data);
    for (int i = 0; i < runner->model->graph->n_outputs; i++)
        ot__plan_bind_output(plan, i, NULL);
    for (int i = 0; i < n_outputs; i++)
        OT_TRY(ot__output_make(plan, which != NULL ? which[i] : i, &outputs[i]));
    return OT_OK;
}

static ot_status run(ot_runner *runner, const ot_feed *feeds, int n_feeds, const int *which,
                     ot_tensor **outputs, int n_outputs)
{
    const ot_step step = {.counter = runner->n_runs};
    ot__plan *plan;

    OT_TRY(check_feeds(runner, feeds, n_feeds));
    OT_TRY(check_outputs(runner->model->graph, which, n_outputs));
    OT_TRY(find_plan(runner, feeds, &plan));
    OT_TRY(bind(runner, plan, feeds, which, outputs, n_outputs));
    OT_TRY(ot__plan_run(plan, &step));
    for (int i = 0; i < n_outputs; i++)
        OT_TRY(ot__output_take(plan, which != NULL ? which[i] : i, &outputs[i]));
    runner->n_runs++;
    return OT_OK;
}

static ot_status run_or_nothing(ot_runner *runner, const ot_feed *feeds, int n_feeds,
                                const int *which, ot_tensor **outputs, int n_outputs)
{
    const ot_status st = run(runner, feeds, n_feeds, which, outputs, n_outputs);

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

ot_status ot_model_run(const ot_model *model, const ot_session_options *options,
                       const ot_tensor *const *inputs, int n_inputs, ot_tensor **outputs,
                       int n_outputs)
{
    ot_runner *runner = NULL;
    ot_feed *feeds;
    ot_status st;

    OT_TRY(OT_GIVEN_MANY(outputs, n_outputs));
    for (int i = 0; i < n_outputs; i++)
        outputs[i] = NULL;
    OT_TRY(OT_GIVEN_MANY(inputs, n_inputs));
    feeds = ot__alloc_zero((size_t)n_inputs + 1, sizeof *feeds);
    if (feeds == NULL)
        return OT_ERR_NO_MEMORY;
    for (int i = 0; i < n_inputs; i++)
        feeds[i] = (ot_feed){&inputs[i], 1};
    st = ot_runner_create(model, options, &runner);
    if (st == OT_OK)
        st = ot_runner_run(runner, feeds, n_inputs, NULL, outputs, n_outputs);
    ot_runner_destroy(runner);
    ot__free(feeds);
    return st;
}
