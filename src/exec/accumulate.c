// A gradient that replaces what is in its accumulation buffer is computed where it belongs: while
// the flag says "replace", the value's memory is the buffer's, and the accumulator finds nothing
// left to copy. That holds for every operator that makes a whole value, so no kernel knows of it.
#include "exec/plan.h"

enum { BUFFER, VALUE, FLAG, N_PORTS }; // inputs of an operator with OT_OP_ACCUMULATE

static int entry_number(const ot__plan *plan, const ot_arg *arg)
{
    // Every argument is the first member of its entry.
    return (int)((const ot__entry *)(const void *)arg - plan->entries);
}

// Nothing but this step uses the buffer, so nobody can see that it is written earlier.
static bool can_be_direct(const ot__plan *plan, int s)
{
    const ot_run *run = &plan->steps[s].run;
    const ot__entry *buffer, *value, *flag;

    for (int i = 0; i < N_PORTS; i++)
        if (i >= run->n_in || run->in[i] == NULL)
            return false;
    buffer = ot__plan_root(plan, entry_number(plan, run->in[BUFFER]));
    value = ot__plan_root(plan, entry_number(plan, run->in[VALUE]));
    flag = ot__plan_root(plan, entry_number(plan, run->in[FLAG]));
    return buffer->source == OT_SOURCE_INPUT && buffer->first == s && buffer->last == s &&
           flag->source == OT_SOURCE_INPUT && flag->arg.dtype == OT_BOOL && flag->n_bytes > 0 &&
           value->source == OT_SOURCE_PLANNED && !value->is_written &&
           value->n_bytes == buffer->n_bytes && value->n_bytes > 0 &&
           run->in[BUFFER]->dtype == run->in[VALUE]->dtype &&
           ot__form_equal(run->in[BUFFER]->form, run->in[VALUE]->form) && !value->is_direct;
}

ot_status ot__build_accumulation(ot__builder *b)
{
    ot__plan *plan = b->plan;

    plan->direct = ot__arena_alloc(plan->arena, ((size_t)plan->n_steps + 1) * sizeof *plan->direct);
    if (plan->direct == NULL)
        return OT_ERR_NO_MEMORY;
    for (int s = 0; s < plan->n_steps; s++) {
        const ot_run *run = &plan->steps[s].run;

        if ((b->step_ops[s]->flags & OT_OP_ACCUMULATE) == 0 || !can_be_direct(plan, s))
            continue;
        plan->direct[plan->n_direct++] =
            (ot__direct){.value = plan->entries[entry_number(plan, run->in[VALUE])].root,
                         .buffer = entry_number(plan, run->in[BUFFER]),
                         .flag = entry_number(plan, run->in[FLAG])};
        plan->entries[plan->direct[plan->n_direct - 1].value].is_direct = true;
    }
    return OT_OK;
}

void ot__plan_direct_gradients(ot__plan *plan)
{
    for (int i = 0; i < plan->n_direct; i++) {
        const ot__direct *d = &plan->direct[i];
        const bool replaces = *(const uint8_t *)plan->entries[d->flag].arg.data != 0;
        void *data = replaces ? plan->entries[d->buffer].arg.data
                              : plan->block + plan->entries[d->value].offset;

        for (int k = d->value; k >= 0; k = plan->entries[k].next)
            plan->entries[k].arg.data = data;
    }
}
