// SPDX-License-Identifier: Apache-2.0
// A session over several ranks. Internal to `session`.
#ifndef OT_SESSION_RANKS_H
#define OT_SESSION_RANKS_H

#include "dist/dist.h"
#include "onnxtrain/parallel.h"
#include "passes/passes.h"
#include "session/session_internal.h"

// Tensors that are summed together lie one after the other in one memory.
typedef struct ot__bucket {
    ot_dtype dtype;
    int64_t n_elements;
    ot__parameter **parameters; // in the order of their places; within those of ot__ranks
    int n_parameters;
    int64_t *starts;    // of the elements whose sum each rank makes, and the end
    ot__reduce *reduce; // NULL: `starts` is still to be found
    ot__reduce *gather; // of values that are cut; NULL: they are whole
    // The share of this rank, where values or gradients are cut; else NULL. The checkpoint's.
    char *value_share, *gradient_share;
    bool is_complete; // as far as a plan has come
    bool is_started;  // for the present update
} ot__bucket;

struct ot__ranks {
    ot_comm *comm; // NULL: the ranks are only thought of (ranks_memory.c)
    int n_ranks, rank;
    size_t bucket_bytes; // 0: chosen with the buckets
    int n_slices;        // that contribute to sums, of all ranks
    int zero;
    bool cuts_gradients, cuts_values; // beside what the optimizer keeps
    bool joins_steps;                 // ranks exchange buckets in every train step (transfer.c)
    bool has_layouts;                 // parameters are packed alike on all ranks (zero.c)
    bool is_cut;                      // what zero cuts,
    bool is_half_cut;                 // that, or some of it after a failure
    bool gathers_averages;            // instead of values, in the present step
    int64_t n_owed; // steps that other ranks still wait for, of this one (ot__session_owe_steps)
    int64_t *first_here; // per parameter of the session: its first element whose state is here
    ot__bucket *buckets; // of gradients
    int n_buckets;
    ot__parameter **parameters; // of all buckets
    int n_parameters;
    int *bucket_of;             // per parameter of the session; -1: it has no gradient
    int64_t *offset_of;         // per parameter of the session: its first element in the bucket
    ot__transfer *transfers[2]; // in a train step and in an eval step
    int n_transfers[2];
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

// Whether all ranks make every train step together: they exchange buckets, or statistics.
static inline bool ot__ranks_step_together(const ot_session *session)
{
    return session->ranks->joins_steps || session->syncs_norms;
}

// ranks.c. Whether steps gather what they take of parameters, for it is cut or will be: values, or
// in evaluation averages. Such steps are those of all ranks.
bool ot__ranks_gather(const ot_session *session, ot_mode mode);

// ranks.c. An agreement; `st`: how it went on this rank so far, and all there is to say without
// other ranks (NULL).
ot_status ot__ranks_agree(ot_comm *comm, ot_status st, const char *call,
                          const ot_agree_field *fields, int n_fields);
// Whether a number differs from that of rank 0 on some rank.
ot_status ot__ranks_compare(ot_comm *comm, uint64_t mine, const char *call, bool *differs);

// ranks.c: those that the session trains with, or is asked about.
void ot__ranks_init(struct ot__ranks *ranks, ot_session *session, int n_ranks, int zero,
                    size_t bucket_bytes);
ot_status ot__ranks_check_zero(const ot_session *session, int zero);

// buckets.c: gradients, which are there, are laid into buckets.
ot_status ot__buckets_make(ot_session *session);
void ot__buckets_deinit(struct ot__ranks *ranks);
ot_status ot__buckets_find(ot_session *session); // where nothing is laid into them
// Of the sums of gradients: what so many slices of an update contribute.
int ot__buckets_terms(const struct ot__ranks *ranks, int n_slices);
// Collective: from now on so many slices contribute to the sums of all ranks.
ot_status ot__buckets_set_slices(ot_session *session, int n_slices);
int64_t ot__bucket_count(const ot_tensor *t); // elements that a tensor takes in a bucket
size_t ot__bucket_share_bytes(const struct ot__ranks *ranks, const ot__bucket *b); // of this rank
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

// transfer.c: what steps do with buckets that are cut, in the order of all ranks: as nodes of a
// plan.
ot_status ot__transfers_list(ot_session *session);
ot_status ot__transfers_list_averages(ot_session *session); // of eval steps that take these
ot_status ot__transfers_add(const ot_session *session, const ot__compiled_model *program,
                            ot_graph *graph);
ot_status ot__transfer_run(void *context, ot_transfer what, int64_t bucket, void *buffer);
// The same of a rank that has nothing to compute in a step that others run: it adds nothing to the
// sums, and drops what it gathers. The room is the block of plans.
ot_status ot__transfers_make_room(ot_session *session, ot_mode mode, void **out);
ot_status ot__transfers_join(ot_session *session, ot_mode mode, void *room);

// models_agree.c: what a model computes, in one number; NULL: 0. Models that differ only in names
// of nodes or in documentation have the same.
uint64_t ot__ranks_hash_model(const ot_model *model);

// zero.c. Collective, before the first sum: all ranks have parameters in the same layouts.
ot_status ot__ranks_settle_layouts(ot_session *session);
// Collective: finds the shares of the ranks, and cuts what the optimizer keeps.
ot_status ot__zero_cut(ot_session *session);
// Shares of the buckets, as they will be.
void ot__zero_find_shares(const ot_session *session);
// Collective: the values that ranks have updated, to all.
ot_status ot__zero_gather(ot_session *session);

// ranks_memory.c: adds what belongs to the parameters of buckets, when all is cut that will be, and
// what exchanging takes.
bool ot__ranks_have(const ot_session *session, const ot__parameter *p); // in a bucket
ot_status ot__ranks_measure(const ot_session *session, ot__session_bytes *out);
// Bytes of parameters of buckets, of their gradients and what the optimizer keeps of them, with
// what sums take: as they will be. The most that these parameters take until then.
ot_status ot__ranks_kept_bytes(const ot_session *session, size_t *out);
size_t ot__ranks_cut_bytes(const ot_session *session);
// Bytes that a rank sends for an update with so many collective steps, besides agreements.
ot_status ot__ranks_count_sent(const ot_session *session, int64_t n_steps, int64_t *n_sent);

#endif
