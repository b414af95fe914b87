// SPDX-License-Identifier: Apache-2.0
// Training over several processes: docs/distributed.md.
#ifndef ONNXTRAIN_PARALLEL_H
#define ONNXTRAIN_PARALLEL_H

#include "onnxtrain/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a session shares its work with the other ranks of a communicator. */
typedef struct ot_parallel_options {
    size_t size; ///< sizeof(ot_parallel_options)
    /** Each rank trains on batches of its own, and an update is made of the mean of all their
     * gradients. Borrowed: it is destroyed after the session. NULL: this process alone. */
    ot_comm *comm;
    /** Gradients are summed in buckets of about so many bytes, each as soon as it is complete. 0: a
     * sixteenth of all of them, but from 1 to 4 MiB, or 64 KiB for each rank where that is more. */
    size_t bucket_bytes;
    /** What is not kept whole on every rank (ZeRO). 0: nothing; 1: what the optimizer keeps of the
     * parameters (moments, averages): each rank has a share of it, and updates that share of the
     * parameters; 2: gradients, too, which are summed in every train step; they stay whole with
     * `reproducible`; 3: values, too, which steps gather as they need them: eval steps and exports
     * are collective then, and rank 0 alone gets exported models */
    int zero;
    /** 1: batch normalisations take mean and variance of the batches of all ranks together, which
     * then make every train step together and have a slice each. 0: each rank of its own batch;
     * running statistics become the mean of what the ranks have made of them */
    int sync_batch_norm;
} ot_parallel_options;
#define OT_PARALLEL_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(ot_parallel_options), NULL, 0, 0, 0                                                 \
    }

/** Ranks that need not be there, for ot_trainer_predict(). */
typedef struct ot_parallel_ranks {
    size_t size; ///< sizeof(ot_parallel_ranks)
    int n_ranks; ///< at least 1
    int zero;    ///< as in ot_parallel_options
    size_t bucket_bytes;
    int slices;          ///< of a batch, at least n_ranks; 0: n_ranks
    int accumulation;    ///< batches of an update, at least 1
    int sync_batch_norm; ///< as in ot_parallel_options
    int reproducible;    ///< as in ot_session_options, besides what the trainer's session has
} ot_parallel_ranks;
#define OT_PARALLEL_RANKS_INIT                                                                     \
    {                                                                                              \
        sizeof(ot_parallel_ranks), 1, 0, 0, 0, 1, 0, 0                                             \
    }

#ifdef __cplusplus
}
#endif
#endif
