// SPDX-License-Identifier: Apache-2.0
// One state of the parts that several processes have saved.
#ifndef OT_TRAINER_AGGREGATE_H
#define OT_TRAINER_AGGREGATE_H

#include "trainer/state.h"

// What one process has saved. What it lacks is NULL.
typedef struct ot__shard {
    const char *path;
    int64_t rank;
    const ot_dict *options, *weights, *optimizer, *partition, *steps, *own, *averages;
} ot__shard;

// Rank r has column r % n_columns of what is split by columns or rows (Megatron) and, of those that
// have the same column, part r / n_columns of what is cut (ZeRO).
typedef struct ot__shards {
    ot__shard *of_rank;
    int n, n_columns, n_replicas; // n is the product
    bool is_zero, is_mixed;
} ot__shards;

// A value of the whole state: of a weight, or of its optimizer state.
typedef struct ot__shard_value {
    const char *name;
    const char *state; // "Moment_1", or OT_KEY_AVERAGES; NULL: the weight itself
} ot__shard_value;

// aggregate_join.c
// NULL in *out: no process has it.
ot_status ot__shards_find(const ot__shard *shard, const ot__shard_value *value,
                          const ot_tensor **out);
ot_status ot__shards_join(const ot__shards *shards, const ot__shard_value *value, ot_tensor **out);

// aggregate.c: `paths` name the states in messages; *out has copies. `rank`: as of
// ot__state_aggregate_files().
ot_status ot__state_aggregate(const ot_dict *const *states, const char *const *paths, int n,
                              int rank, ot_dict **out);
// The joined value, unless it is there already.
ot_status ot__shards_take(const ot__shards *shards, const ot__shard_value *value, ot_dict *to);
ot_status ot__shard_section(const ot_dict *state, const char *name, const ot_dict **out); // or NULL

// aggregate_own.c: what only this library's trainers have, of which `state` has the rest.
ot_status ot__shards_join_own(const ot__shards *shards, int rank, ot_dict *state);

#endif
