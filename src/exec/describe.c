// SPDX-License-Identifier: Apache-2.0
// What a plan is, a step after the other: as text, and as JSON.
#include <string.h>

#include "exec/plan.h"

enum { LAYOUT_TEXT = 64 };

// ---- text ----

static void describe_args(ot__buf *out, const ot_arg *const *args, int n)
{
    enum { SHOWN = 8 };
    char layout[LAYOUT_TEXT];

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

void ot__plan_describe_step(ot__buf *out, const ot__plan *plan, const ot__plan_step *step)
{
    ot__buf_printf(out, "%s [%s%s%s]", step->label, step->kernel->name,
                   step->reason != NULL ? ": " : "", step->reason != NULL ? step->reason : "");
    describe_args(out, step->run.in, step->run.n_in);
    ot__buf_text(out, " ->");
    describe_args(out, (const ot_arg *const *)step->run.out, step->run.n_out);
    describe_place(out, plan, &step->run);
    if (step->scratch_bytes > 0)
        ot__buf_printf(out, " scratch %zu @%zu", step->scratch_bytes, step->scratch_offset);
}

// ---- steps that run reference kernels, by operator ----

static bool runs_reference(const ot__plan_step *step)
{
    return (step->kernel->flags & OT_KERNEL_REFERENCE) != 0;
}

static size_t operator_length(const ot__plan_step *step)
{
    return strcspn(step->label, " ");
}

static bool is_same_operator(const ot__plan_step *a, const ot__plan_step *b)
{
    return operator_length(a) == operator_length(b) &&
           strncmp(a->label, b->label, operator_length(a)) == 0;
}

// How many there are of the operator of step `s`; 0 when an earlier step has said so, or none runs
// a reference kernel.
static int count_references(const ot__plan *plan, int s)
{
    int n = 0;

    for (int k = 0; k < plan->n_steps && runs_reference(&plan->steps[s]); k++)
        if (runs_reference(&plan->steps[k]) && is_same_operator(&plan->steps[k], &plan->steps[s])) {
            if (k < s)
                return 0;
            n++;
        }
    return n;
}

static void describe_references(ot__buf *out, const ot__plan *plan)
{
    const char *before = "reference kernels:";

    for (int s = 0; s < plan->n_steps; s++) {
        const ot__plan_step *step = &plan->steps[s];
        const int n = count_references(plan, s);

        if (n == 0)
            continue;
        ot__buf_printf(out, "%s %.*s %d", before, (int)operator_length(step), step->label, n);
        before = ",";
    }
    ot__buf_text(out, before[0] == ',' ? "\n" : "");
}

ot_status ot__plan_describe(const ot__plan *plan, ot__buf *out)
{
    ot__buf_printf(out, "%d steps, %zu bytes (%zu live at once), %d threads\n", plan->n_steps,
                   plan->block_bytes, plan->least_bytes, plan->n_threads);
    for (int s = 0; s < plan->n_steps; s++) {
        ot__plan_describe_step(out, plan, &plan->steps[s]);
        ot__buf_text(out, "\n");
    }
    describe_references(out, plan);
    return ot__buf_status(out);
}

// ---- JSON ----

static void write_args(ot__buf *out, const char *name, const ot_arg *const *args, int n)
{
    char layout[LAYOUT_TEXT];

    ot__json_open(out, name, '[');
    for (int i = 0; i < n; i++) {
        if (args[i] == NULL) {
            ot__json_string(out, NULL, NULL);
            continue;
        }
        ot__json_open(out, NULL, '{');
        ot__json_string(out, "dtype", ot_dtype_name(args[i]->dtype));
        ot__json_open(out, "shape", '[');
        for (int k = 0; k < args[i]->shape.ndim; k++)
            ot__json_int(out, NULL, args[i]->shape.dim[k]);
        ot__json_close(out, ']');
        if (args[i]->layout != NULL)
            ot__json_string(out, "layout", ot__layout_text(args[i]->layout, layout, sizeof layout));
        ot__json_close(out, '}');
    }
    ot__json_close(out, ']');
}

static void write_plan_step(ot__buf *out, const ot__plan_step *step)
{
    ot__json_open(out, NULL, '{');
    ot__json_string(out, "node", step->label);
    ot__json_string(out, "kernel", step->kernel->name);
    ot__json_string(out, "reason", step->reason);
    ot__json_bool(out, "reference", runs_reference(step));
    write_args(out, "inputs", step->run.in, step->run.n_in);
    write_args(out, "outputs", (const ot_arg *const *)step->run.out, step->run.n_out);
    ot__json_int(out, "scratch_bytes", (int64_t)step->scratch_bytes);
    ot__json_close(out, '}');
}

ot_status ot__plan_write_json(const ot__plan *plan, ot__buf *out)
{
    ot__json_open(out, NULL, '{');
    ot__json_int(out, "bytes", (int64_t)plan->block_bytes);
    ot__json_int(out, "live_bytes", (int64_t)plan->least_bytes);
    ot__json_int(out, "threads", plan->n_threads);
    ot__json_open(out, "steps", '[');
    for (int s = 0; s < plan->n_steps; s++)
        write_plan_step(out, &plan->steps[s]);
    ot__json_close(out, ']');
    ot__json_close(out, '}');
    return ot__buf_status(out);
}
