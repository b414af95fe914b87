// SPDX-License-Identifier: Apache-2.0
// Where the time of a plan goes, one line a step.
#include <stdlib.h>
#include <string.h>

#include "exec/plan.h"

bool ot__profile_wanted(void)
{
    const char *value = getenv("OT_PROFILE");

    return value != NULL && strcmp(value, "") != 0 && strcmp(value, "0") != 0;
}

// What takes longest comes first, what takes as long in the order of the plan.
static int by_seconds(const void *a, const void *b)
{
    const ot__plan_step *x = *(const ot__plan_step *const *)a;
    const ot__plan_step *y = *(const ot__plan_step *const *)b;

    return x->seconds != y->seconds ? (x->seconds < y->seconds ? 1 : -1) : (x > y) - (x < y);
}

// NULL when there is no memory for the order.
static const ot__plan_step **sorted_steps(const ot__plan *plan)
{
    const ot__plan_step **steps = ot__alloc_zero((size_t)plan->n_steps, sizeof *steps);

    for (int s = 0; steps != NULL && s < plan->n_steps; s++)
        steps[s] = &plan->steps[s];
    if (steps != NULL)
        qsort(steps, (size_t)plan->n_steps, sizeof *steps, by_seconds);
    return steps;
}

void ot__profile_log(const ot__plan *plan)
{
    const ot__plan_step **steps = sorted_steps(plan);
    const double runs = (double)plan->n_runs;
    double total = 0.0;

    for (int s = 0; s < plan->n_steps; s++)
        total += plan->steps[s].seconds;
    ot__log_asked("profile of graph '%s': %" PRId64 " runs of %d steps, %.1f us a run", plan->name,
                  plan->n_runs, plan->n_steps, total / runs * 1e6);
    if (steps != NULL && plan->n_steps > 0)
        ot__log_asked("%7s %10s  %s", "share", "us", "step");
    for (int s = 0; steps != NULL && s < plan->n_steps; s++) {
        ot__buf line = {0};

        ot__plan_describe_step(&line, plan, steps[s]);
        if (!line.failed)
            ot__log_asked("%5.1f %% %10.1f  %s",
                          total > 0.0 ? 100.0 * steps[s]->seconds / total : 0.0,
                          steps[s]->seconds / runs * 1e6, line.data);
        ot__buf_deinit(&line);
    }
    ot__free(steps);
}
