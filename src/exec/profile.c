// SPDX-License-Identifier: Apache-2.0
// What a plan is and where its time goes, one line a step.
#include <stdlib.h>
#include <string.h>

#include "exec/plan.h"

bool ot__profile_wanted(void)
{
    const char *value = getenv("OT_PROFILE");

    return value != NULL && strcmp(value, "") != 0 && strcmp(value, "0") != 0;
}

static void describe_args(ot__buf *out, const ot_arg *const *args, int n)
{
    enum { SHOWN = 8 };
    char layout[64];

    for (int i = 0; i < OT_MIN(n, (int)SHOWN); i++) {
        ot__buf_text(out, i > 0 ? ", " : " ");
        if (args[i] == NULL)
            ot__buf_text(out, "-");
        else
            ot__buf_printf(out, "%s%s%s%s", ot_dtype_name(args[i]->dtype),
                           OT_SHAPE_TEXT(&args[i]->shape), args[i]->layout != NULL ? " as " : "",
                           ot__layout_text(args[i]->layout, layout, sizeof layout));
    }
    if (n > SHOWN)
        ot__buf_printf(out, ", ... (%d)", n);
}

static void describe_place(ot__buf *out, const ot__plan *plan, const ot_run *run)
{
    for (int i = 0; i < run->n_out; i++) {
        const ot__entry *e = ot__entry_of(run->out[i]);
        const ot__entry *root = e == NULL ? NULL : &plan->entries[e->root];

        if (root == NULL || root->source != OT_SOURCE_PLANNED)
            continue;
        ot__buf_printf(out, " @%zu", root->offset);
        for (int k = 0; k < run->n_in; k++)
            if (run->in[k] != NULL && run->in[k]->data == run->out[i]->data && root->n_bytes > 0) {
                ot__buf_text(out, " in place");
                break;
            }
    }
}

static void describe_step(ot__buf *out, const ot__plan *plan, const ot__plan_step *step)
{
    ot__buf_printf(out, "%s [%s]", step->label, step->kernel->name);
    describe_args(out, step->run.in, step->run.n_in);
    ot__buf_text(out, " ->");
    describe_args(out, (const ot_arg *const *)step->run.out, step->run.n_out);
    describe_place(out, plan, &step->run);
    if (step->scratch_bytes > 0)
        ot__buf_printf(out, " scratch %zu @%zu", step->scratch_bytes, step->scratch_offset);
}

ot_status ot__plan_describe(const ot__plan *plan, ot__buf *out)
{
    ot__buf_printf(out, "%d steps, %zu bytes (%zu live at once), %d threads\n", plan->n_steps,
                   plan->block_bytes, plan->least_bytes, plan->n_threads);
    for (int s = 0; s < plan->n_steps; s++) {
        describe_step(out, plan, &plan->steps[s]);
        ot__buf_text(out, "\n");
    }
    return ot__buf_status(out);
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

        describe_step(&line, plan, steps[s]);
        if (!line.failed)
            ot__log_asked("%5.1f %% %10.1f  %s",
                          total > 0.0 ? 100.0 * steps[s]->seconds / total : 0.0,
                          steps[s]->seconds / runs * 1e6, line.data);
        ot__buf_deinit(&line);
    }
    ot__free(steps);
}
