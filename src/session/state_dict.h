// SPDX-License-Identifier: Apache-2.0
// What getting and setting state dicts share. Private to `session`.
#ifndef OT_SESSION_STATE_DICT_H
#define OT_SESSION_STATE_DICT_H

#include "dist/dist.h"
#include "onnxtrain/state_dict.h"
#include "session/session_internal.h"

// A name in state dicts, of a parameter.
typedef struct ot__state_name {
    char *name;
    ot__parameter *parameter;
    const ot_name_entry *how; // NULL: as the checkpoint has it
    bool is_first;            // of the parameter's names: what its slots go by
    bool is_optional;         // may be missing
} ot__state_name;

// Names of sections, and in that of OT_STATE_OWN.
#define OT_KEY_SECTION_MODEL "model"
#define OT_KEY_SECTION_OPTIMIZER "optim"
#define OT_KEY_SECTION_OWN "train"
#define OT_KEY_TRAIN_SEED "seed"
#define OT_KEY_TRAIN_COUNTER "counter"
#define OT_KEY_TRAIN_RATE "learning_rate"
#define OT_KEY_TRAIN_SCHEDULE "schedule"
#define OT_KEY_TRAIN_PROPERTIES "properties"

// One call.
typedef struct ot__state_call {
    const char *what; // "get_shards"
    ot_session *session;
    ot_checkpoint *checkpoint;
    unsigned sections;
    const ot__state_owner *owner; // NULL: the session has no trainer
    bool takes_shown;             // the model's values are those that exports take
    bool keeps_layouts;           // views of whole tensors lie as they do, ot_tensor.layout
    ot_state_dict_options options;
    ot_name_entry *entries; // of the options' names
    ot__state_name *names;  // sorted
    int n_names;
    ot__map by_name;                  // ot__state_name
    ot__map first_names;              // of parameters' names, the ot__state_name that is first
    int (*places)[OT_MAX_CUT_GROUPS]; // of every rank
    void *window;
} ot__state_call;

// state_names.c: options are read, names made, and where there are ranks, they agree. `is_set`:
// frozen parameters that need not be given may be.
ot_status ot__state_begin(ot__state_call *call, const char *what, ot_session *session,
                          unsigned sections, const ot_state_dict_options *options, bool is_set);
void ot__state_end(ot__state_call *call);
bool ot__state_includes(const ot__state_call *call, const char *name);
// NULL: it is filtered out.
const ot__state_name *ot__state_name_of(const ot__state_call *call, const ot__parameter *p);
ot_shape ot__state_shape(const ot__state_name *name); // in state dicts
// How it went on this rank, and on all; without ranks on this one.
ot_status ot__state_agree(const ot__state_call *call, ot_status st);
static inline bool ot__state_is_root(const ot__state_call *call)
{
    return call->options.comm == NULL || ot_comm_rank(call->options.comm) == 0;
}

// transforms.c: elements between the shape of the checkpoint and that of state dicts; both
// transforms are their own inverse. OT_NAME_RESHAPE changes none.
void ot__transpose(void *to, const void *from, const ot_shape *from_shape, const int axes[2],
                   size_t element_size);
// Between the axes of state dicts and those of the checkpoint, of a name that is not reshaped. A
// parameter without axes has one in its sharding (NULL: it is whole), of one element.
ot_box ot__box_in_checkpoint(const ot__state_name *name, const ot_sharding *sharding,
                             const ot_box *box);
ot_box ot__box_in_state(const ot__state_name *name, const ot_box *of_sharding);

// gather.c: who has what of one tensor, for a transfer of all of it. Rank 0 knows that of all
// ranks, the others their own.
typedef struct ot__parts_of_ranks {
    const ot_sharding *sharding;
    ot_dtype dtype;
    int n_ranks;
    ot_shape *local;      // of each rank's tensor
    ot_shard_box **boxes; // NULL: a rank with a lower number has the same, or it has nothing
    int64_t *n_boxes;
    size_t piece_bytes; // of the window
} ot__parts_of_ranks;
// `has_copies`: also those of ranks that have what another one has.
ot_status ot__parts_make(const ot__state_call *call, const ot_sharding *sharding, ot_dtype dtype,
                         bool has_copies, ot__parts_of_ranks *out);
void ot__parts_free(ot__parts_of_ranks *parts);
// Between every rank's row-major tensor and the whole on rank 0.
ot_status ot__parts_gather(const ot__state_call *call, const ot__parts_of_ranks *parts,
                           const ot_tensor *local, void *whole);
ot_status ot__parts_scatter(const ot__state_call *call, const ot__parts_of_ranks *parts,
                            const void *whole, ot_tensor *local);
bool ot__sharding_cuts(const ot_sharding *sharding); // NULL: no

// slots and groups of the optimizer: group_table.c
const char *ot__slot_key(const ot__optimizer *o, int k); // NULL: it keeps none
bool ot__counts_steps(const ot__optimizer *o);
int ot__group_of(const ot__optimizer *o, int i_parameter);
// The numbers of a group under their names, and what was kept for others.
ot_status ot__group_write(const ot__state_call *call, int group, ot_dict *to);

// set_groups.c: groups that are given, checked; then taken.
typedef struct ot__pending_groups {
    bool is_given;
    ot__optimizer optimizer; // with other numbers; program.model NULL: they are the same
    double *rates;           // of each group
    bool has_rates;          // they are given
    ot_dict *custom;         // by group
} ot__pending_groups;
// `is_flat`: the list has all groups of the optimizer, some perhaps empty. `is_refused`: the report
// says of groups what cannot be.
ot_status ot__groups_check(const ot__state_call *call, ot_dict *list, bool is_flat,
                           ot_shards_report *report, bool *is_refused, ot__pending_groups *out);
void ot__groups_take(ot_session *session, ot__pending_groups *groups);
void ot__groups_drop(ot__pending_groups *groups);
// A number of whatever kind; false: it is none.
bool ot__given_number(const ot_dict *from, const char *key, double *out);

// state_properties.c: what the state has of them, with the library's own, in a checkpoint of their
// own; NULL: it has none. Taking leaves there what the checkpoint had, so it is undone by itself.
ot_status ot__properties_write(const ot_checkpoint *checkpoint, ot_dict *to);
// The library's own, which are no part of the state, to a dict and back.
ot_status ot__properties_write_own(const ot_checkpoint *checkpoint, ot_dict *to);
// To be taken in the place of all that the checkpoint has.
ot_status ot__properties_stage_own(const ot_checkpoint *checkpoint, const ot_dict *from,
                                   ot_checkpoint **staged);
ot_status ot__properties_check(const ot_checkpoint *checkpoint, ot_dict *given,
                               ot_checkpoint **staged);
void ot__properties_take(ot_checkpoint *checkpoint, ot_checkpoint *staged);

// shards_report.c
ot_status ot__report_create(ot_shards_report **out);
void ot__reports_exchange(ot_shards_report *a, ot_shards_report *b); // what they have
ot_status ot__report_add(ot_shards_report *report, ot_report_category category, unsigned section,
                         const char *name, const char *detail);

// bytes.c: strings of the program, by name
typedef struct ot__named_bytes {
    struct ot__named_bytes *next; // sorted by name
    char *name;
    void *data;
    size_t n_bytes;
} ot__named_bytes;
const ot__named_bytes *ot__bytes_find(const ot_session *session, const char *name);
void ot__bytes_free(ot__named_bytes *list);
// A copy; replaces what has that name.
ot_status ot__bytes_put(ot__named_bytes **list, const char *name, const void *data, size_t n_bytes);

#endif
