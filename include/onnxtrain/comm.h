// SPDX-License-Identifier: Apache-2.0
// Communicators: the processes of one job, what they agree on and exchange. docs/distributed.md.
#ifndef ONNXTRAIN_COMM_H
#define ONNXTRAIN_COMM_H

#include "onnxtrain/base.h"
#include "onnxtrain/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The ranks of a job, or a group of them. The thread that makes one uses it, and no other. */
typedef struct ot_comm ot_comm;

typedef struct ot_comm_options {
    size_t size; ///< sizeof(ot_comm_options)
    /** Seconds that a rank waits for another before OT_ERR_TIMEOUT; 0: for ever; below 0: what the
     * environment variable OT_COMM_TIMEOUT says, else 1800 */
    double timeout;
    /** "mpi": the ranks of a communicator of the program's, as the number that MPI_Comm_c2f() gives
     * for it (mpi4py: py2f()). Borrowed for the call, which duplicates it. NULL: MPI_COMM_WORLD */
    const int *mpi_comm;
    /** What MPI_Get_library_version() says where that number is from: the plugin must be of the
     * same MPI. NULL: nobody compares */
    const char *mpi_library;
} ot_comm_options;
#define OT_COMM_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(ot_comm_options), -1.0, NULL, NULL                                                  \
    }

/**
 * Collective: join the processes of this job.
 *
 * @param kind "self": this process alone; "mpi": those that mpirun has started, by the plugin
 * libonnxtrain_mpi.so; "auto": "mpi" where the environment says that mpirun has started more than
 * one process, else "self"
 * @param out the caller destroys it, after all that uses it
 * @return OT_ERR_NOT_FOUND when there is no plugin; OT_ERR_STATE when mpirun, or the program's
 * communicator, belongs to another MPI than the plugin; OT_ERR_MISMATCH naming ranks with another
 * version of the library
 */
OT_API ot_status ot_comm_open(const char *kind, const ot_comm_options *options, ot_comm **out);
/** Seconds that a rank waits for another with these options (NULL: the defaults); 0: for ever. Of a
 * value that ot_comm_open() refuses: the default. MPI itself waits without limit, in
 * ot_comm_open(), for a process that has ended before. */
OT_API double ot_comm_timeout(const ot_comm_options *options);
/** NULL is fine. Groups of it stay usable. */
OT_API void ot_comm_destroy(ot_comm *comm);

/** From 0. */
OT_API int ot_comm_rank(const ot_comm *comm);
OT_API int ot_comm_world_size(const ot_comm *comm);
/** Among the ranks on this machine, from 0. */
OT_API int ot_comm_local_rank(const ot_comm *comm);
OT_API int ot_comm_local_size(const ot_comm *comm);
/** Threads for this rank: the processors that it may run on, divided by the ranks of the job that
 * may run on some of them; at least 1. */
OT_API int ot_comm_threads(const ot_comm *comm);

/**
 * Collective: a communicator of the ranks that give the same colour, in the order of their keys,
 * then of their ranks here. Costs no connection.
 *
 * @param color below 0: this rank is in none, and *out is NULL
 */
OT_API ot_status ot_comm_split(ot_comm *comm, int color, int key, ot_comm **out);

// ---- agreement: a call ends in the same way on all ranks ----

/** A number that is the same on all ranks. */
typedef struct ot_agree_field {
    const char *name; ///< as in "the batch size"
    uint64_t value;   ///< or a hash of what must be the same
} ot_agree_field;

typedef struct ot_agreement {
    size_t size;                  ///< sizeof(ot_agreement)
    const char *call;             ///< what all ranks are doing: "train step"
    int64_t status;               ///< an ot_status. In: of this rank; out: the worst
    int64_t rank;                 ///< out: the rank that has it; -1 when all is well
    uint64_t any;                 ///< in: bits; out: those that any rank has set
    uint64_t all;                 ///< in: bits; out: those that all ranks have set
    const ot_agree_field *fields; ///< may be NULL
    int64_t n_fields;             ///< at most OT_AGREE_FIELDS_MAX
} ot_agreement;
#define OT_AGREEMENT_INIT                                                                          \
    {                                                                                              \
        sizeof(ot_agreement), "agree", OT_OK, -1, 0, 0, NULL, 0                                    \
    }
#define OT_AGREE_FIELDS_MAX 24

/**
 * Collective: how it went on all ranks. When one has failed, all get its status and its message,
 * "rank 3: ...".
 *
 * @return the worst status; OT_ERR_MISMATCH when ranks make different calls or differ in a field,
 * naming it and two ranks; OT_ERR_TIMEOUT naming the rank that is silent, after which the
 * communicator can only be destroyed
 */
OT_API ot_status ot_comm_agree(ot_comm *comm, ot_agreement *agreement);

// ---- small collectives: each begins with an agreement on what is exchanged ----

typedef enum ot_comm_op {
    OT_COMM_SUM,
    OT_COMM_MIN,
    OT_COMM_MAX,
} ot_comm_op;

/** Collective: what `root` has. */
OT_API ot_status ot_comm_broadcast(ot_comm *comm, int root, void *bytes, size_t n_bytes);
/** Collective: combine arrays of OT_I64 or OT_F64 element by element, in the order of the ranks:
 * all get the same bits. */
OT_API ot_status ot_comm_all_reduce(ot_comm *comm, ot_comm_op op, ot_dtype dtype, void *values,
                                    int64_t count);
/** Collective: `n_bytes` of every rank, one after the other, into `all`. */
OT_API ot_status ot_comm_all_gather(ot_comm *comm, const void *bytes, size_t n_bytes, void *all);
/** Collective: nobody goes on before all have come. */
OT_API ot_status ot_comm_barrier(ot_comm *comm);

/** What went through a communicator on this rank; its groups count for themselves. */
typedef struct ot_comm_counters {
    size_t size; ///< sizeof(ot_comm_counters)
    int64_t messages_sent, bytes_sent;
    double seconds_waited; ///< for messages of others
    int64_t agreements;    ///< of ot_comm_agree(), and of calls that all ranks make together
} ot_comm_counters;
#define OT_COMM_COUNTERS_INIT                                                                      \
    {                                                                                              \
        sizeof(ot_comm_counters), 0, 0, 0.0, 0                                                     \
    }
OT_API ot_status ot_comm_get_counters(const ot_comm *comm, ot_comm_counters *counters);

/** End all processes of the job. Returns where there are no others. */
OT_API void ot_comm_abort(ot_comm *comm, int code);

// ---- transports: what carries the messages; experimental ----

/** What the functions of an ot_transport look like: plugins compare it. */
#define OT_TRANSPORT_ABI 1

/** A message under way, which stays where it is until it is done; all 0: done, or none. */
typedef struct ot_request {
    uint64_t word[8]; ///< the transport's
} ot_request;

/**
 * Messages between the ranks of a job. Between two ranks those with the same tag arrive in the
 * order in which they were started; the receiver knows their size. One thread makes all calls.
 * Another status than OT_OK is final.
 */
typedef struct ot_transport {
    size_t size; ///< sizeof(ot_transport)
    void *context;
    const char *name; ///< of the library: "Open MPI v4.1.4"
    int rank, world_size;
    int node;    ///< the lowest rank on this rank's machine
    int tag_max; ///< tags are 0 to tag_max
    /** Start; the bytes are borrowed until the request is done. At most 1 GiB, at least 1 byte. */
    ot_status (*send)(void *context, int to, int tag, const void *bytes, size_t n_bytes,
                      ot_request *out);
    ot_status (*receive)(void *context, int from, int tag, void *bytes, size_t n_bytes,
                         ot_request *out);
    /** Makes progress and never blocks; *n_done: how many of these requests are all 0 now. */
    ot_status (*test)(void *context, ot_request *requests, int n, int *n_done);
    /** Bytes that were lent are not touched any more, as far as the transport can. */
    void (*cancel)(void *context, ot_request *requests, int n);
    const char *(*message)(void *context);  ///< of the call that failed
    void (*abort)(void *context, int code); ///< ends all processes; NULL: there is only this one
    void (*destroy)(void *context);         ///< does not wait for others
} ot_transport;
#define OT_TRANSPORT_INIT                                                                          \
    {                                                                                              \
        sizeof(ot_transport), NULL, NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL     \
    }

/** Collective: a communicator over the caller's transport, which it owns from then on; on failure
 * it stays the caller's. */
OT_API ot_status ot_comm_create(const ot_transport *transport, const ot_comm_options *options,
                                ot_comm **out);

#ifdef __cplusplus
}
#endif
#endif
