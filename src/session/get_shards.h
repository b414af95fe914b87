// SPDX-License-Identifier: Apache-2.0
// How values of a state are put where they are wanted. Private to `session`.
#ifndef OT_SESSION_GET_SHARDS_H
#define OT_SESSION_GET_SHARDS_H

#include "session/group_table.h"
#include "session/state_dict.h"

enum { OT_STATE_PATH_MAX = 5 };

// Where values go: into a dict, or one by one to a function.
typedef struct ot__state_writer {
    ot__state_call *call;
    ot_dict *root; // NULL: to the function
    ot_state_sink sink;
    void *context;
    bool is_here; // this rank gets something
} ot__state_writer;

// What is put under a path: a function that sets it in a dict.
typedef struct ot__state_leaf {
    const char *path[OT_STATE_PATH_MAX];
    int n_path;
    ot_dict *dict; // to set path[n_path - 1] in
} ot__state_leaf;

// get_tensors.c: the dict for a value; then what became of it.
ot_status ot__leaf_open(const ot__state_writer *w, ot__state_leaf *l);
ot_status ot__leaf_close(const ot__state_writer *w, ot__state_leaf *l, ot_status st);
// A tensor of a parameter, cut as the sharding says. `failed`: what this rank has to say with the
// next agreement.
ot_status ot__leaf_put_tensor(const ot__state_writer *w, const ot__state_name *name,
                              ot__state_leaf *l, const ot_tensor *local,
                              const ot_sharding *sharding, ot_status *failed);

#endif
