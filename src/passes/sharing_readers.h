// SPDX-License-Identifier: Apache-2.0
// Shared by the files that separate one tensor into the parameters that it stands for.
#ifndef OT_PASSES_SHARING_READERS_H
#define OT_PASSES_SHARING_READERS_H

#include "passes/sharing.h"

typedef struct ot__shared_reader {
    ot__use use;
    bool is_copy;  // it reads one with a generated name
    bool is_named; // `use` is an Identity whose output has a parameter's name
    ot__port_role role;
    const char *leaf; // by the role, "weight"; "" when nothing says
    ot__owner owner;
    const char *name; // of the parameter that it reads
    int next;         // in its group; -1: none
} ot__shared_reader;

typedef struct ot__shared_tensor { // one that is looked at
    ot__separation *s;
    ot_value *value;
    bool is_generated; // its name is none of a parameter
    bool is_uniform;
    int n_copies;
    ot__shared_reader *readers;
    int n_readers, readers_capacity;
    struct ot__shared_group *groups; // sharing_separate.c
    int n_groups, groups_capacity;
} ot__shared_tensor;

// Who reads it, also through copies with generated names.
ot_status ot__sharing_find_readers(ot__shared_tensor *tensor);
// Which parameter each of them reads.
ot_status ot__sharing_name_readers(ot__shared_tensor *tensor);

#endif
