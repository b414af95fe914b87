// SPDX-License-Identifier: Apache-2.0
// Interface of `dist`: communicators over a transport, agreement, collectives.
#ifndef OT_DIST_DIST_H
#define OT_DIST_DIST_H

#include <pthread.h>

#include "base/base.h"
#include "onnxtrain/comm.h"
#include "tensor/tensor.h"

// Which processors a rank may use, and on which machine (cores.c).
enum { OT_CORE_WORDS = 16 };
typedef struct ot__processors {
    int64_t node; // the lowest rank there
    uint64_t cores[OT_CORE_WORDS];
} ot__processors;

// ---- what the groups of one transport share (comm.c) ----

enum { OT_COMM_TEXT_MAX = OT_MESSAGE_MAX };

typedef struct ot__job {
    ot_transport transport;
    pthread_t thread;       // that makes all calls
    int n_users;            // communicators
    int next_group;         // the number of the next group: tags of groups that share ranks differ
    double timeout;         // in seconds; 0: none
    int n_threads;          // for this rank
    bool is_crowded;        // more ranks than processors: who waits gives its processor away
    ot__processors *places; // of all ranks
    void *notes;            // lent to the transport for good (silent.c)
    ot_status broken;       // OT_OK, or what every call returns from now on
    char broken_message[OT_COMM_TEXT_MAX];
} ot__job;

struct ot_comm {
    ot__job *job;
    int group; // its messages' tags
    int rank, world_size;
    int local_rank, local_size;
    int *members; // their ranks in the transport; NULL: all
    ot_comm_counters counters;
    struct ot__reducer *reducer; // NULL: nothing was ever reduced (reduce.c)
};

// What a message is for: the lower bits of its tag.
enum {
    OT_TAG_AGREE,
    OT_TAG_TEXT,
    OT_TAG_BROADCAST,
    OT_TAG_GATHER,
    OT_TAG_NOTE,
    OT_TAG_SHARDS,
    OT_TAG_REDUCE,    // and those behind it
    OT_TAG_BITS = 10, // the group's number is above
};

// The caller may use it here and now: it is one, is not broken, and belongs to this thread.
ot_status ot__comm_check(const ot_comm *comm);
// Rank in the transport, by which messages name it.
int ot__comm_member(const ot_comm *comm, int rank);

// ---- processors (cores.c) ----

void ot__processors_here(ot__processors *place);
// Threads for a rank of a job: its processors over the ranks that share some.
int ot__processors_threads(const ot__processors *places, int n, int rank);
// More ranks than processors.
bool ot__processors_are_crowded(const ot__processors *places, int n, int rank);

// ---- messages (wait.c) ----

// Of no bytes there is no message: the request is done at once. A failure breaks the communicator.
ot_status ot__comm_send(ot_comm *comm, int to, int kind, const void *bytes, size_t n_bytes,
                        ot_request *out);
ot_status ot__comm_receive(ot_comm *comm, int from, int kind, void *bytes, size_t n_bytes,
                           ot_request *out);
ot_status ot__comm_test(ot_comm *comm, ot_request *requests, int n, int *n_done);
bool ot__comm_is_done(ot_comm *comm, ot_request *request);
void ot__comm_cancel(ot_comm *comm, ot_request *requests, int n);
// peers[i]: the rank that the i-th one depends on.
ot_status ot__comm_await(ot_comm *comm, ot_request *requests, const int *peers, int n,
                         const char *what);
// To one rank and from another at once; of either there may be nothing.
ot_status ot__comm_exchange(ot_comm *comm, int kind, int to, const void *sent, size_t n_sent,
                            int from, void *received, size_t n_received, const char *what);

// Somebody who polls: start with {0}. False when the time limit is over.
typedef struct ot__patience {
    double began;
    int64_t n_polls;
} ot__patience;
bool ot__comm_wait_on(const ot_comm *comm, ot__patience *patience);
void ot__comm_waited(ot_comm *comm, const ot__patience *patience); // the counter

// What broke it, if anything has.
ot_status ot__comm_check_unbroken(const ot_comm *comm);
// From now on every call fails, with the present message.
ot_status ot__comm_break(ot_comm *comm, ot_status status);
// The time limit is over, in a wait for `peer`: finds out which ranks are silent (silent.c).
ot_status ot__comm_silent(ot_comm *comm, int peer, const char *what);

// ---- collectives without an agreement (agree.c, collect.c) ----

// Broadcast of what may be large, and of blocks of `n_bytes` from each, which lie in `all` already.
ot_status ot__comm_spread(ot_comm *comm, int kind, int root, void *bytes, size_t n_bytes,
                          const char *what);
ot_status ot__comm_gather(ot_comm *comm, void *all, size_t n_bytes, const char *what);
// What ot_comm_all_reduce() takes meanwhile.
size_t ot__all_reduce_bytes(int world_size, int64_t count);
// How it went so far on this rank, and on all; the beginning of a collective call.
ot_status ot__comm_agree_on(ot_comm *comm, ot_status st, const char *call,
                            const ot_agree_field *fields, int n_fields);

// ---- ordered sums (tree.c, reduce.c) ----

// Contributions are of slices, which are numbered; a rank of a world of n has those from
// n_slices * rank / n on. Sums are the same bits for the same slices, whoever has them: they are
// made in the order of a tree over the numbers. A rank contributes one buffer for each node of the
// tree that it has whole: so many slices in a row, in the order of their numbers.
enum { OT_SLICES_MAX = 32768, OT_TREE_COVER_MAX = 32 };

typedef struct ot__tree_node {
    int first, last; // slices, without the last
} ot__tree_node;
typedef struct ot__tree_add {
    int left, right; // parts: the sum takes the place of the left one
} ot__tree_add;
// The nodes that slices [from, to) are whole; returns how many.
int ot__tree_cover(int n_slices, int from, int to, ot__tree_node nodes[OT_TREE_COVER_MAX]);
// The sums by which nodes that cover all slices, in their order, become one; returns how many.
int ot__tree_plan(int n_slices, const ot__tree_node *nodes, ot__tree_add *adds);
// n elements of f32 or f64 of every part; the parts are used up, and `out` may be one of them.
void ot__tree_sum(ot_dtype dtype, const ot__tree_add *adds, int n_adds, void *const *parts,
                  void *out, int64_t n);

// A reduction of buffers of one size, made once and started any number of times, by all ranks in
// the same order.
typedef struct ot__reduce ot__reduce;
typedef struct ot__reduce_options {
    ot_dtype dtype; // OT_F32 or OT_F64
    int n_slices;
    const int64_t *starts; // of the elements that each rank owns, in their order, and the end
    size_t piece_bytes;    // of messages; 0: up to 1 MiB
} ot__reduce_options;
enum {
    OT_REDUCE_SCATTER = 1, // the sum of the own share, in the first own buffer; the others' shares
                           // there stay, own shares of further buffers are used up
    OT_REDUCE_GATHER = 2,  // what the owners have of their shares, in the first buffer of all
};
// Collective; none may be under way.
ot_status ot__reduce_create(ot_comm *comm, const ot__reduce_options *options, ot__reduce **out);
void ot__reduce_destroy(ot__reduce *reduce); // NULL is fine
// What such a reduction takes on a rank of so many, which need not be there.
typedef struct ot__reduce_bytes {
    size_t lanes;     // of the communicator's, where this is the largest reduction
    size_t structure; // of its own
    int n_own;        // buffers that the rank contributes
} ot__reduce_bytes;
ot_status ot__reduce_measure(int n_ranks, int rank, const ot__reduce_options *options,
                             ot__reduce_bytes *out);
// How many buffers a rank contributes; one of a rank without slices receives only.
int ot__reduce_own_parts(const ot__reduce *reduce);
// Never waits. The buffers are lent until it is done.
ot_status ot__reduce_start(ot__reduce *reduce, int phases, void *const *buffers);
bool ot__reduce_is_done(const ot__reduce *reduce);
ot_status ot__reduce_wait(ot__reduce *reduce);
// Makes progress with all that was started, without waiting.
ot_status ot__comm_poke(ot_comm *comm);
void ot__reducer_destroy(struct ot__reducer *reducer); // NULL is fine

// ---- MPI (plugin.c) ----

// Whether a launcher has started this process and others.
bool ot__launched_many(void);
ot_status ot__plugin_open(const ot_comm_options *options, ot_transport *transport);

// ---- threads as ranks (comm_threads.c), over a network that is modelled (comm_model.c) ----

// A message of n bytes takes its sender's line for n * seconds_per_byte, and is there `latency`
// later; rank `slow_rank`'s messages take `slowness` more.
typedef struct ot__network {
    double latency, seconds_per_byte;
    int slow_rank; // -1: none
    double slowness;
    double (*now)(void *context); // NULL: the clock
    void *context;
} ot__network;
typedef struct ot__arrival {
    double sent, there; // when the sender's bytes are free, and when the message is there
} ot__arrival;
double ot__network_now(const ot__network *network);
// *line_free: since when the sender's line is.
ot__arrival ot__network_send(const ot__network *network, int from, size_t n_bytes,
                             double *line_free);

// One transport for each of `n` ranks, all of this process; `network` NULL: messages are there at
// once.
ot_status ot__threads_open(int n, const ot__network *network, ot_transport *transports);

#endif
