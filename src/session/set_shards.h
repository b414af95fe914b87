// SPDX-License-Identifier: Apache-2.0
// A state that is given, checked against a session, and ready to be taken. Private to `session`.
#ifndef OT_SESSION_SET_SHARDS_H
#define OT_SESSION_SET_SHARDS_H

#include "session/group_table.h"
#include "session/state_dict.h"

// A tensor of the session's, and what is given for it.
typedef struct ot__pending_tensor {
    const ot__state_name *name;
    ot_tensor *to;
    const ot_sharding *sharding; // of `to`; NULL: it is whole
    const ot_tensor *tensor;     // given whole
    const ot_shards *shards;     // given in parts, or on rank 0 alone, of which these say the type
    const ot_tensor *otherwise;  // without both: a copy of this, NULL: zeros
    ot__parts_of_ranks parts;    // of one that is cut
} ot__pending_tensor;

typedef struct ot__pending_state {
    ot__state_call *call;
    ot_shards_report *report;
    ot__pending_tensor *tensors;
    int n_tensors, capacity;
    bool is_refused;  // by more than the report's categories and the strictness say
    int64_t *updates; // of each parameter of the optimizer; NULL: they stay
    ot__pending_groups groups;
    bool has_resume;
    ot__resume resume;
    int64_t step;              // of the checkpoint; below 0: it stays
    ot_checkpoint *properties; // of the user's, that are given; NULL: none
    ot_dict *normal;           // groups of a flat state
    ot__named_bytes *bytes;    // that replace the session's
    bool has_bytes;
    void *scratch[2]; // for elements in another type, and in another order
} ot__pending_state;

// check_shards.c, check_optimizer.c: `state` NULL: nothing is given on this rank, and `pending` has
// no tensors from here.
ot_status ot__pending_check(ot__pending_state *pending, ot_dict *state);
ot_status ot__pending_check_optimizer(ot__pending_state *pending, ot_dict *optim);
// One value for one tensor: what does not fit is in the report.
ot_status ot__pending_add(ot__pending_state *pending, unsigned section, const char *label,
                          const ot_dict *from, const char *key, ot__pending_tensor *tensor);
// None is given: it begins anew.
ot_status ot__pending_add_fresh(ot__pending_state *pending, const ot__pending_tensor *tensor,
                                bool is_average);
// join_reports.c. Collective where there are ranks: a report has what that of any rank has, in the
// order of the ranks.
ot_status ot__reports_join(const ot__state_call *call, ot_shards_report *report);
// Collective: all have the bytes of the root.
ot_status ot__state_spread(ot_comm *comm, int root, ot__buf *bytes, const char *what);
// agree_shards.c. Collective where all ranks give a state: OT_ERR_MISMATCH when they are about to
// take other numbers, or other values of what is whole on all.
ot_status ot__pending_agree(const ot__pending_state *pending, ot_dict *state);
// set_shards.c: a given tensor in the type and the axes of the checkpoint, until the next call;
// what is here of given parts, into `to`.
const void *ot__pending_values(const ot__pending_state *pending, const ot__pending_tensor *t,
                               const ot_tensor *given);
void ot__pending_copy_parts(const ot__pending_state *pending, const ot__pending_tensor *t);
// check_verdict.c: what the strictness makes of the report.
ot_status ot__pending_verdict(const ot__pending_state *pending);

#endif
