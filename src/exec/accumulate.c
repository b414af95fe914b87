// SPDX-License-Identifier: Apache-2.0
// A gradient is made where it is accumulated: its value's memory is that of the accumulation
// buffer, and the accumulator finds nothing left to do. That holds in every run for kernels that
// can add to what is in an output, and for all others in runs whose flag says "replace"; in the
// rest of their runs the value has memory of its own.
#include "exec/plan.h"

enum { BUFFER, VALUE, FLAG }; // inputs of an operator with OT_OP_ACCUMULATE

static int entry_number(const ot__plan *plan, const ot_arg *arg)
{
    return (int)(ot__entry_of(arg) - plan->entries);
}

static bool uses(const ot_arg *arg, int root)
{
    return arg != NULL && ot__entry_of(arg)->root == root;
}

// Nothing uses the buffer before this step, so nobody can see that it is written earlier. Steps
// after it see the sum. One of them may change it: then none of them may use the value.
static bool can_be_direct(const ot__plan *plan, int s)
{
    const ot_arg *const *in = plan->steps[s].run.in;
    const ot__entry *buffer, *value;

    if (plan->steps[s].run.n_in <= VALUE || in[BUFFER] == NULL || in[VALUE] == NULL)
        return false;
    buffer = &plan->entries[ot__entry_of(in[BUFFER])->root];
    value = &plan->entries[ot__entry_of(in[VALUE])->root];
    return buffer->source == OT_SOURCE_INPUT && buffer->first == s &&
           (buffer->last == s || value->last == s) && value->source == OT_SOURCE_PLANNED &&
           !value->is_written && !value->is_direct && value->n_bytes == buffer->n_bytes &&
           value->n_bytes > 0 && in[BUFFER]->dtype == in[VALUE]->dtype &&
           ot__layout_equal(in[BUFFER]->layout, in[VALUE]->layout);
}

// The entry of the flag; -1: there is none. What is computed is not known before the run.
static bool find_flag(const ot__plan *plan, const ot_run *run, int *flag)
{
    const ot__entry *e;

    *flag = -1;
    if (run->n_in <= FLAG || run->in[FLAG] == NULL)
        return true;
    *flag = entry_number(plan, run->in[FLAG]);
    e = ot__plan_root(plan, *flag);
    return (e->source == OT_SOURCE_INPUT || e->source == OT_SOURCE_CONSTANT) &&
           e->arg.dtype == OT_BOOL && e->n_bytes > 0;
}

// Per entry: whether a step after the one that makes it and before its last reads it.
static ot_status find_earlier_readers(const ot__plan_builder *b, bool **out)
{
    const ot__plan *plan = b->plan;

    *out = ot__arena_alloc(b->arena, (size_t)plan->n_entries + 1);
    OT_TRY(ot__made(*out != NULL));
    for (int s = 0; s < plan->n_steps; s++)
        for (int i = 0; i < plan->steps[s].run.n_in; i++) {
            const ot_arg *arg = plan->steps[s].run.in[i];
            const int root = arg != NULL ? ot__entry_of(arg)->root : -1;

            if (root >= 0 && s > plan->entries[root].first && s < plan->entries[root].last)
                (*out)[root] = true;
        }
    return OT_OK;
}

// The step that makes the value, when it can add it to the buffer and only step s reads it; `bit`:
// of the output in ot_run.accumulates.
static int find_adder(const ot__plan *plan, const bool *has_earlier_reader, int value, int s,
                      unsigned *bit)
{
    const int maker = plan->entries[value].first;
    const ot__plan_step *step = &plan->steps[maker];

    if (plan->entries[value].last != s || has_earlier_reader[value])
        return -1;
    for (int i = 0; i < step->run.n_out; i++) {
        *bit = i < 32 ? 1U << i : 0;
        if (uses(step->run.out[i], value))
            return (step->kernel->accumulates & *bit) != 0 &&
                           !ot__edges_convert_output(step->edges, step->run.n_in, i)
                       ? maker
                       : -1;
    }
    return -1;
}

ot_status ot__build_accumulation(ot__plan_builder *b)
{
    ot__plan *plan = b->plan;
    bool *has_earlier_reader;

    OT_TRY(find_earlier_readers(b, &has_earlier_reader));
    plan->direct = ot__arena_alloc(plan->arena, ((size_t)plan->n_steps + 1) * sizeof *plan->direct);
    OT_TRY(ot__made(plan->direct != NULL));
    for (int s = 0; s < plan->n_steps; s++) {
        const ot_run *run = &plan->steps[s].run;
        ot__direct d;

        if ((b->step_ops[s]->flags & OT_OP_ACCUMULATE) == 0 || !can_be_direct(plan, s) ||
            !find_flag(plan, run, &d.flag))
            continue;
        d.buffer = entry_number(plan, run->in[BUFFER]);
        d.value = ot__entry_of(run->in[VALUE])->root;
        d.adder = find_adder(plan, has_earlier_reader, d.value, s, &d.bit);
        if (d.flag < 0 && d.adder < 0)
            continue;
        plan->entries[d.value].is_direct = true;
        plan->direct[plan->n_direct++] = d;
    }
    return OT_OK;
}

void ot__plan_direct_gradients(ot__plan *plan)
{
    for (int i = 0; i < plan->n_direct; i++) {
        const ot__direct *d = &plan->direct[i];
        const bool accumulates =
            d->flag < 0 || *(const uint8_t *)plan->entries[d->flag].arg.data == 0;
        void *data = plan->entries[d->buffer].arg.data;

        if (d->adder >= 0) {
            ot_run *run = &plan->steps[d->adder].run;

            run->accumulates = accumulates ? run->accumulates | d->bit : run->accumulates & ~d->bit;
        } else if (accumulates) {
            data = plan->block + plan->entries[d->value].offset;
        }
        for (int k = d->value; k >= 0; k = plan->entries[k].next)
            plan->entries[k].arg.data = data;
    }
}
