// SPDX-License-Identifier: Apache-2.0
// A session over several ranks. Internal to `session`.
#ifndef OT_SESSION_RANKS_H
#define OT_SESSION_RANKS_H

#include "dist/dist.h"
#include "onnxtrain/parallel.h"
#include "session/session_internal.h"

// Tensors that are summed together lie one after the other in one memory.
typedef struct ot__bucket {
    ot_dtype dtype;
    int64_t n_elements;
    ot__parameter **parameters; // in the order of their places; within those of ot__ranks
    int n_parameters;
    int64_t *starts;    // of the elements whose sum each rank makes, and the end
    ot__reduce *reduce; // NULL: `starts` is still to be found
    bool is_complete;   // as far as a plan has come
    bool is_started;    // for the present update
} ot__bucket;

struct ot__ranks {
    ot_comm *comm;
    size_t bucket_bytes;
    int n_slices; // that contribute to sums, of all ranks
    int zero;
    bool is_cut;         // what zero cuts (zero.c)
    int64_t *first_here; // per parameter of the session: its first element whose state is here
    ot__bucket *buckets; // of gradients
    int n_buckets;
    ot__parameter **parameters; // of all buckets
    int n_parameters;
    int *bucket_of; // per parameter of the session; -1: it has no gradient
    // Running statistics, of either element type.
    ot__bucket statistics[2];
    int n_statistics;
    void *sums[2];   // memory in which those are summed
    bool is_last;    // the next train step is the last of its update: sums begin while it runs
    bool starts;     // so do those of this rank, whose gradients are complete then
    bool has_begun;  // sums of some rank have
    bool is_reduced; // the gradients are those of all ranks,
    bool is_mean;    // and have been divided by the number of ranks
    ot_exchange exchange, update_exchange; // of train steps and of updates
};

// ranks.c. An agreement; `st`: how it went on this rank so far.
ot_status ot__ranks_agree(ot_comm *comm, ot_status st, const char *call,
                          const ot_agree_field *fields, int n_fields);

// buckets.c: gradients, which are there, are laid into buckets.
ot_status ot__buckets_make(ot_session *session);
void ot__buckets_deinit(struct ot__ranks *ranks);
// Collective: from now on so many slices contribute to the sums of all ranks.
ot_status ot__buckets_set_slices(ot_session *session, int n_slices);
int64_t ot__bucket_count(const ot_tensor *t); // elements that a tensor takes in a bucket
// Number of the bucket of the gradient that each input of the training model is; -1: none. The
// caller frees it; NULL: no memory.
int *ot__buckets_of_inputs(const ot_session *session, int n_inputs);

// reduce_gradients.c
ot_status ot__ranks_reduce_start(void *context, int64_t bucket); // of ot_exchange
// What steps add to are the gradients of this rank.
ot_status ot__ranks_begin_step(ot_session *session);
// Sums that have begun on some rank come to an end, on all, whatever becomes of them.
void ot__ranks_give_up(ot_session *session);
// `st`: how it went on this rank; returns how it went on all.
ot_status ot__ranks_end_step(ot_session *session, ot_status st);
// Collective: gradients and running statistics become those of all ranks.
ot_status ot__ranks_reduce(ot_session *session);

// zero.c. Collective, before the first sum: finds the shares of the ranks, and cuts what the
// optimizer keeps.
ot_status ot__zero_cut(ot_session *session);
// Collective: the values that ranks have updated, to all.
ot_status ot__zero_gather(ot_session *session);

#endif
