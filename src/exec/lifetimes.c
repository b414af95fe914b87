// SPDX-License-Identifier: Apache-2.0
// From the order of the steps to memory: who lives when, what may be replaced in place, and the
// block that holds it all.
#include <limits.h>

#include "exec/plan.h"

enum { LARGEST = 3 }; // values named when a plan is refused

static void touch(ot__plan *plan, const ot_arg *arg, int step)
{
    ot__entry *root;

    if (arg == NULL)
        return;
    root = &plan->entries[ot__entry_of(arg)->root];
    root->first = OT_MIN(root->first, step);
    root->last = OT_MAX(root->last, step);
}

// Outputs stay readable until the next run.
static void find_plan_lifetimes(ot__plan_builder *b)
{
    ot__plan *plan = b->plan;

    for (int e = 0; e < plan->n_entries; e++) {
        plan->entries[e].first = plan->n_steps;
        plan->entries[e].last = -1;
    }
    for (int s = 0; s < plan->n_steps; s++) {
        const ot_run *run = &plan->steps[s].run;

        for (int i = 0; i < run->n_in; i++)
            touch(plan, run->in[i], s);
        for (int i = 0; i < run->n_out; i++)
            touch(plan, run->out[i], s);
    }
    for (int i = 0; i < plan->n_outputs; i++)
        ot__plan_root(plan, plan->outputs[i].first)->last = plan->n_steps;
}

// Input i of a step may be replaced by output 0: nothing else needs its memory then or later.
static bool may_replace(const ot__plan *plan, const ot__plan_step *step, const ot_op_def *op, int i,
                        int s)
{
    const ot_arg *x = i < step->run.n_in ? step->run.in[i] : NULL;
    const ot_arg *y = step->run.out[0];
    const ot__entry *root;

    if (x == NULL || x->dtype != y->dtype || x->count != y->count ||
        !ot__layout_equal(x->layout, y->layout) ||
        (i > 0 && !ot__shape_equal(&x->shape, &y->shape)))
        return false;
    root = &plan->entries[ot__entry_of(x)->root];
    if (root->source != OT_SOURCE_PLANNED || root->is_written || root->last != s ||
        root->n_bytes != ot__entry_of(y)->n_bytes)
        return false;
    // Elementwise kernels read element k of every input before they write it; others may not.
    for (int k = 0; k < step->run.n_in; k++)
        if (k != i && step->run.in[k] != NULL && op->tile == NULL &&
            ot__entry_of(step->run.in[k])->root == ot__entry_of(x)->root)
            return false;
    return true;
}

static int find_alias(const ot__plan *plan, const ot__plan_step *step, const ot_op_def *op, int s)
{
    const ot__entry *y = step->run.n_out > 0 ? ot__entry_of(step->run.out[0]) : NULL;

    if ((op->flags & OT_OP_IN_PLACE) == 0 || y == NULL || y->is_written ||
        plan->entries[y->root].usage >= 0 || &plan->entries[y->root] != y)
        return -1;
    for (int i = 0; i < 2; i++)
        if (may_replace(plan, step, op, i, s))
            return plan->entries[ot__entry_of(step->run.in[i])->root].usage;
    return -1;
}

static void add_usage(ot__plan *plan, ot__usage *usages, int *n, int entry, int alias)
{
    ot__entry *e = &plan->entries[entry];

    if (e->source != OT_SOURCE_PLANNED || e->root != entry || e->usage >= 0 || e->is_direct)
        return;
    e->usage = *n;
    usages[(*n)++] = (ot__usage){e->first, e->last, e->n_bytes, alias, 0};
}

// Values that are computed in their accumulation buffers only in runs that replace what is there
// go behind all others: those pages are touched only by runs that add, and take no memory until
// then.
static int add_direct(ot__plan *plan, ot__usage *usages, int n)
{
    for (int i = 0; i < plan->n_direct; i++) {
        ot__entry *e = &plan->entries[plan->direct[i].value];

        if (plan->direct[i].adder >= 0)
            continue;
        e->usage = n;
        usages[n++] = (ot__usage){e->first, e->last, e->n_bytes, -1, 0};
    }
    return n;
}

static int make_usages(ot__plan_builder *b, ot__usage *usages)
{
    ot__plan *plan = b->plan;
    int n = 0;

    for (int s = 0; s < plan->n_steps; s++) {
        const ot__plan_step *step = &plan->steps[s];
        const int alias = find_alias(plan, step, b->step_ops[s], s);

        for (int i = 0; i < step->run.n_out; i++)
            if (step->run.out[i] != NULL)
                add_usage(plan, usages, &n, ot__entry_of(step->run.out[i])->root,
                          i == 0 ? alias : -1);
    }
    for (int s = 0; s < plan->n_steps; s++)
        if (plan->steps[s].scratch_bytes > 0)
            usages[n++] = (ot__usage){s, s, plan->steps[s].scratch_bytes, -1, 0};
    return n;
}

// ---- a ceiling ----

static const char *usage_name(const ot__plan *plan, const ot__usage *usages, int usage, char *text,
                              size_t size)
{
    for (int e = 0; e < plan->n_entries; e++)
        if (plan->entries[e].usage == usage) {
            snprintf(text, size, "'%s'", plan->entries[e].name);
            return text;
        }
    snprintf(text, size, "scratch of %s", plan->steps[usages[usage].first].label);
    return text;
}

static ot_status refuse_lifetime(const ot__plan_builder *b, const ot__usage *usages, int n,
                                 size_t total)
{
    bool *named = ot__arena_alloc(b->arena, (size_t)n + 1);
    ot__buf line = {0};
    ot_status st;

    if (b->options->excess != NULL)
        *b->options->excess = total - b->options->memory_max;
    OT_TRY(ot__made(named != NULL));
    for (int k = 0; k < OT_MIN((int)LARGEST, n); k++) {
        int largest = -1;
        char name[160];

        for (int i = 0; i < n; i++)
            if (!named[i] && (largest < 0 || usages[i].n_bytes > usages[largest].n_bytes))
                largest = i;
        named[largest] = true;
        ot__buf_printf(&line, "%s%s %zu", k > 0 ? ", " : "",
                       usage_name(b->plan, usages, largest, name, sizeof name),
                       usages[largest].n_bytes);
    }
    st = ot__error(OT_ERR_NO_MEMORY,
                   "a step needs %zu bytes for activations, %zu are allowed; largest: %s", total,
                   b->options->memory_max, line.data != NULL ? line.data : "none");
    ot__buf_deinit(&line);
    return st;
}

// ---- the block ----

void ot__plan_set_block(ot__plan *plan, void *block)
{
    if (plan->block == block)
        return;
    plan->block = block;
    for (int e = 0; e < plan->n_entries; e++) {
        const ot__entry *root = &plan->entries[e];

        for (int k = root->usage < 0 ? -1 : e; k >= 0; k = plan->entries[k].next)
            plan->entries[k].arg.data = plan->block + root->offset + plan->entries[k].place;
    }
    for (int s = 0; s < plan->n_steps; s++)
        if (plan->steps[s].scratch_bytes > 0)
            plan->steps[s].run.scratch = plan->block + plan->steps[s].scratch_offset;
}

// *behind: bytes of those from n_shared on, which lie behind the others.
static ot_status place_lifetime(ot__usage *usages, int n_shared, int n, size_t *total,
                                size_t *behind)
{
    OT_TRY(ot__memory_plan(usages, n_shared, total));
    OT_TRY(ot__memory_plan(usages + n_shared, n - n_shared, behind));
    if (*behind > SIZE_MAX - *total)
        return ot__error(OT_ERR_NO_MEMORY, "the values of a step exceed the address space");
    for (int i = n_shared; i < n; i++)
        usages[i].offset += *total;
    *total += *behind;
    return OT_OK;
}

ot_status ot__build_memory(ot__plan_builder *b)
{
    ot__plan *plan = b->plan;
    const size_t capacity = (size_t)plan->n_entries + (size_t)plan->n_steps + 1;
    ot__usage *usages = NULL;
    void *block;
    int n_shared, n, at;

    if (capacity > INT_MAX)
        return ot__error(OT_ERR_UNSUPPORTED, "a step computes more than %d values", INT_MAX);
    usages = ot__arena_alloc(b->arena, capacity * sizeof *usages);
    OT_TRY(ot__made(usages != NULL));
    find_plan_lifetimes(b);
    OT_TRY(ot__build_accumulation(b));
    OT_TRY(ot__build_joins(b));
    n_shared = make_usages(b, usages);
    n = add_direct(plan, usages, n_shared);
    OT_TRY(place_lifetime(usages, n_shared, n, &plan->block_bytes, &plan->gradient_bytes));
    plan->least_bytes = ot__memory_lower_bound(usages, n_shared) +
                        ot__memory_lower_bound(usages + n_shared, n - n_shared);
    if (b->options->memory_max > 0 && plan->block_bytes > b->options->memory_max)
        return refuse_lifetime(b, usages, n, plan->block_bytes);
    for (int e = 0; e < plan->n_entries; e++)
        if (plan->entries[e].usage >= 0)
            plan->entries[e].offset = usages[plan->entries[e].usage].offset;
    at = n_shared; // scratch stands last among these, in the order of the steps
    for (int s = plan->n_steps - 1; s >= 0; s--)
        if (plan->steps[s].scratch_bytes > 0)
            plan->steps[s].scratch_offset = usages[--at].offset;
    plan->borrows_block = b->options->borrow_block;
    if (plan->borrows_block)
        return OT_OK;
    block = ot__alloc_aligned(OT_MAX(plan->block_bytes, (size_t)1));
    OT_TRY(ot__made(block != NULL));
    ot__plan_set_block(plan, block);
    return OT_OK;
}
