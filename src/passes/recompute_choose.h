// SPDX-License-Identifier: Apache-2.0
// What choosing by itself what is made again consists of: lifetimes (recompute_peak.c) and the
// choice (pass_recompute_choose.c).
#ifndef OT_PASSES_RECOMPUTE_CHOOSE_H
#define OT_PASSES_RECOMPUTE_CHOOSE_H

#include "passes/recompute.h"

typedef struct ot__life {
    int first, last; // times; first > last: it does not live
} ot__life;

// Nodes that are made again together: list[first] .. list[first + n - 1].
typedef struct ot__candidate {
    int first, n;
    bool is_out;  // chosen, or of no use
    double bound; // at the present peak: bytes per work at best
} ot__candidate;

typedef struct ot__choosing {
    ot__again a;
    int n_values;
    int *root;              // per value: the one whose memory it shares
    size_t *bytes;          // per value; 0 where it has no memory of its own
    double *work;           // per forward node
    int *time;              // per node: when it runs among those that are made again
    int *again_time;        // per forward node: when it runs again
    ot__life *kept, *again; // per root: of the value, and of what is made again
    int64_t *change;        // of live bytes, per time
    int64_t *live; // per node: most bytes alive while it and what stands before it for it run
    int *list;     // of the candidates
    int n_list, list_capacity;
    ot__candidate *candidates;
    int n_candidates;
    int *chosen; // candidates in their order
    int n_chosen;
    int peak_at;
    int64_t peak;
} ot__choosing;

static inline int ot__choosing_value(const ot__choosing *c, const ot_value *value)
{
    return ot__value_number(&c->a.uses.numbers, value);
}

static inline int ot__choosing_node(const ot__choosing *c, const ot_node *node)
{
    return ot__node_number(&c->a.uses.numbers, node);
}

// As a plan sees it: it takes no memory of its own.
static inline bool ot__is_view(const ot_node *node)
{
    return (node->op->flags & OT_OP_VIEW) != 0 && node->n_inputs > 0 && node->inputs[0] != NULL &&
           node->outputs[0] != NULL;
}

// recompute_peak.c: sizes and work of everything, for which the list may grow afterwards.
ot_status ot__choosing_measure(ot__choosing *c);
// Where most bytes are alive, with what is chosen now.
void ot__choosing_find_peak(ot__choosing *c);

#endif
