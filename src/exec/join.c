// SPDX-License-Identifier: Apache-2.0
// Tensors that a node puts into a buffer, one after the other, are made there by the nodes that
// make them, where nothing else needs their memory: there is nothing left to put.
#include "exec/plan.h"

typedef struct joined {
    int buffer; // entry
    int x;      // root of an input
    size_t place;
} joined;

// The input's memory is the plan's, its last reader is step s, and the buffer has room for it.
static bool can_join(const ot__plan *plan, const joined *j, int s)
{
    const ot__entry *x = &plan->entries[j->x], *buffer = &plan->entries[j->buffer];

    return x->source == OT_SOURCE_PLANNED && buffer->source == OT_SOURCE_PLANNED &&
           j->x != j->buffer && x->last == s && !x->is_written && !x->is_direct &&
           j->place <= buffer->n_bytes && x->n_bytes <= buffer->n_bytes - j->place;
}

static void join(ot__plan *plan, const joined *j)
{
    ot__entry *buffer = &plan->entries[j->buffer];
    int last = j->x;

    buffer->first = OT_MIN(buffer->first, plan->entries[j->x].first);
    for (int k = j->x; k >= 0; k = plan->entries[k].next) {
        plan->entries[k].root = j->buffer;
        plan->entries[k].place += j->place;
        last = k;
    }
    plan->entries[last].next = buffer->next;
    buffer->next = j->x;
}

ot_status ot__build_joins(ot__plan_builder *b)
{
    ot__plan *plan = b->plan;

    for (int s = 0; s < plan->n_steps; s++) {
        const ot_attr *offsets = ot__node_attr(b->step_nodes[s], "offsets");
        const ot_run *run = &plan->steps[s].run;

        if ((b->step_ops[s]->flags & OT_OP_JOIN) == 0)
            continue;
        for (int k = 0; k < offsets->n; k++) {
            const ot__entry *x = ot__entry_of(run->in[run->n_in - offsets->n + k]);
            const joined j = {ot__entry_of(run->out[0])->root, x->root,
                              (size_t)offsets->ints[k] * ot_dtype_size(x->arg.dtype)};

            if (x->place == 0 && x->n_bytes == plan->entries[x->root].n_bytes &&
                can_join(plan, &j, s))
                join(plan, &j);
        }
    }
    return OT_OK;
}
