// SPDX-License-Identifier: Apache-2.0
// Over how many processes a trainer is: what its options say, and what its communicator has.
#include <inttypes.h>

#include "session/session.h"
#include "trainer/options.h"
#include "trainer/trainer.h"

ot_status ot__trainer_open_ranks(const ot_trainer_options *options, ot_session_options *session,
                                 ot_parallel_options *parallel, ot_comm **own)
{
    *own = NULL;
    OT_TRY(OT_OPTIONS_READ(ot_parallel_options, OT_PARALLEL_OPTIONS_INIT, session->parallel,
                           parallel));
    if (parallel->comm == NULL && options->world_size > 1) {
        OT_TRY(ot_comm_open("auto", NULL, own));
        parallel->comm = *own;
    }
    if (options->zero_stage > 0)
        parallel->zero = (int)options->zero_stage;
    session->parallel = parallel;
    return OT_OK;
}

static ot_status compare_size(const ot_trainer_options *options, int n)
{
    if (options->world_size > 1 && options->world_size != n)
        return ot__error(
            OT_ERR_INVALID, "options.distributed.world_size is %" PRId64 ", found %d process%s",
            options->world_size, n, n > 1 ? "es" : ": mpirun has not started this one");
    if (options->enable_adasum && options->zero_stage == 0 && n > 1)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "not supported: options.distributed.enable_adasum is true, expected "
                         "false for %d processes",
                         n);
    return OT_OK;
}

// 0, the default, says nothing: one configuration does for all processes.
static ot_status compare_rank(const char *name, int64_t given, int found)
{
    if (given == 0 || given == found)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "options.distributed.%s is %" PRId64 ", expected %d", name,
                     given, found);
}

static ot_status compare_ranks(const ot_trainer_options *options, const ot_comm *comm)
{
    const int n = comm != NULL ? ot_comm_world_size(comm) : 1;

    OT_TRY(compare_size(options, n));
    OT_TRY(compare_rank("world_rank", options->world_rank, comm != NULL ? ot_comm_rank(comm) : 0));
    return compare_rank("local_rank", options->local_rank,
                        comm != NULL ? ot_comm_local_rank(comm) : 0);
}

// How many replicas there are follows from the other sizes.
static void note_ranks(ot_trainer *trainer, const ot_trainer_options *options, const ot_comm *comm)
{
    ot__recorded_options *r = &trainer->recorded;

    if (comm == NULL)
        return;
    r->world_rank = ot_comm_rank(comm);
    r->world_size = r->data_parallel_size = ot_comm_world_size(comm);
    if (r->world_size > 1)
        r->zero_stage = 0; // states are whole, where ONNX Runtime has one of each process
    if (options->data_parallel_size > 1 && options->data_parallel_size != r->data_parallel_size &&
        r->world_rank == 0)
        ot__log(OT_LOG_WARNING,
                "options.distributed.data_parallel_size is %" PRId64 ": %" PRId64
                " processes are as many replicas",
                options->data_parallel_size, r->data_parallel_size);
}

ot_status ot__trainer_join(ot_trainer *trainer, const ot_trainer_options *options, ot_status st)
{
    ot_comm *comm = ot__session_comm(trainer->session);
    ot_agreement a = OT_AGREEMENT_INIT;

    OT_THEN(st, compare_ranks(options, comm));
    if (comm != NULL) {
        a.call = "ot_trainer_create";
        a.status = st;
        st = ot_comm_agree(comm, &a);
    }
    if (st == OT_OK)
        note_ranks(trainer, options, comm);
    return st;
}
