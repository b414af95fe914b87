// SPDX-License-Identifier: Apache-2.0
// Running a plan: a loop over prepared steps.
#include <string.h>

#include "exec/plan.h"

static ot_status check_run_inputs(const ot__plan *plan)
{
    for (int i = 0; i < plan->n_inputs; i++)
        for (int k = 0; k < plan->inputs[i].count; k++) {
            const ot__entry *e = &plan->entries[plan->inputs[i].first + k];

            if (e->arg.data == NULL && e->n_bytes > 0 && plan->entries[e->root].last >= 0)
                return ot__error(OT_ERR_INVALID, "input '%s' has no memory bound to it", e->name);
        }
    return OT_OK;
}

static ot_status run_kernel(ot__plan_step *step)
{
    return step->edges != NULL ? ot__edges_run(step->kernel, &step->run, step->edges)
                               : step->kernel->run(&step->run);
}

static ot_status run_plan_step(const ot__plan *plan, ot__plan_step *step)
{
    const double start = plan->profile ? ot__clock_seconds() : 0.0;
    ot_status st;

    if (step->run.n_threads != plan->n_threads) {
        ot__parallel_set(step->run.n_threads);
        st = run_kernel(step);
        ot__parallel_set(plan->n_threads);
    } else {
        st = run_kernel(step);
    }
    if (plan->profile)
        step->seconds += ot__clock_seconds() - start;
    return st == OT_OK ? OT_OK : ot__error_prefix(st, "%s", step->label);
}

static void copy_outputs(const ot__plan *plan)
{
    for (int i = 0; i < plan->n_outputs; i++) {
        const ot__entry *e = &plan->entries[plan->outputs[i].first];

        if (plan->bound[i] != NULL && e->n_bytes > 0)
            memcpy(plan->bound[i], e->arg.data, e->n_bytes);
    }
}

// What other ranks wait for is done whatever has failed, with what is in memory: that the step has
// failed all ranks learn after it.
static ot_status drain_plan(const ot__plan *plan, int from, ot_status st)
{
    char message[OT_MESSAGE_MAX];

    snprintf(message, sizeof message, "%s", ot_error_message());
    for (int s = from; s < plan->n_steps; s++)
        if (plan->steps[s].is_ordered)
            (void)run_plan_step(plan, &plan->steps[s]);
    return ot__error(st, "%s", message);
}

static ot_status run_plan_steps(const ot__plan *plan, int first, int end)
{
    const ot_exchange *exchange = plan->step.exchange;
    ot_status st = OT_OK;

    for (int s = first; s < end; s++) {
        st = run_plan_step(plan, &plan->steps[s]);
        if (exchange != NULL && exchange->poke != NULL)
            OT_THEN(st, exchange->poke(exchange->context));
        if (st != OT_OK)
            return exchange == NULL ? st : drain_plan(plan, s + 1, st);
    }
    return OT_OK;
}

static ot_status run_half(ot__plan *plan, int first, int end)
{
    const int n_threads = ot__parallel_max();
    ot_status st;

    ot__parallel_set(plan->n_threads);
    st = run_plan_steps(plan, first, end);
    ot__parallel_set(n_threads);
    return st;
}

ot_status ot__plan_begin(ot__plan *plan, const ot_step *step)
{
    ot_status st = check_run_inputs(plan);

    if (st != OT_OK)
        return st;
    ot__plan_direct_gradients(plan);
    plan->step = *step;
    st = run_half(plan, 0, plan->n_before_pause);
    if (st == OT_OK)
        copy_outputs(plan);
    plan->n_runs++;
    return st;
}

ot_status ot__plan_finish(ot__plan *plan)
{
    return run_half(plan, plan->n_before_pause, plan->n_steps);
}

ot_status ot__plan_run(ot__plan *plan, const ot_step *step)
{
    OT_TRY(ot__plan_begin(plan, step));
    return ot__plan_finish(plan);
}
