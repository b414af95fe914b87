// SPDX-License-Identifier: Apache-2.0
// How long ranks take to agree and to sum, beside the same MPI's MPI_Allreduce, in turn:
//   mpirun -n 2 bench_dist LIBRARY [ROUNDS]
// LIBRARY is made of mpi_all_reduce.c. For every size the median times of both, in microseconds,
// and the ratio of their throughputs: above 1 ours is faster.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "dist/dist.h"

enum { ROUNDS = 100, ROUNDS_MAX = 10000, RANKS_MAX = 1024, AGREES = 200, KIB = 1024 };

typedef void (*mpi_all_reduce)(float *values, int n);

static void must(ot_status st)
{
    if (st == OT_OK)
        return;
    fprintf(stderr, "%s\n", ot_error_message());
    exit(1);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

// They are sorted, so that the least comes first.
static double median(double *times, int n)
{
    qsort(times, (size_t)n, sizeof *times, compare);
    return times[n / 2];
}

// One call, of values that were just written; what counts is when the slowest rank is done.
static double timed(ot_comm *comm, ot__reduce *reduce, mpi_all_reduce theirs, float *values, int n)
{
    double seconds;
    void *buffer = values;

    for (int i = 0; i < n; i++)
        values[i] = 1e-3f;
    must(ot_comm_barrier(comm));
    must(ot_comm_barrier(comm)); // the first wakes up who naps
    seconds = ot__clock_seconds();
    if (theirs) {
        theirs(values, n);
    } else {
        must(ot__reduce_start(reduce, OT_REDUCE_SCATTER | OT_REDUCE_GATHER, &buffer));
        must(ot__reduce_wait(reduce));
    }
    seconds = ot__clock_seconds() - seconds;
    must(ot_comm_all_reduce(comm, OT_COMM_MAX, OT_F64, &seconds, 1));
    return seconds;
}

static void compare_size(ot_comm *comm, mpi_all_reduce theirs, int n_kib, int rounds)
{
    static double ours[ROUNDS_MAX], mpi[ROUNDS_MAX];
    const int world_size = ot_comm_world_size(comm), n = n_kib * KIB / (int)sizeof(float);
    int64_t starts[RANKS_MAX + 1];
    const ot__reduce_options options = {OT_F32, world_size, starts, 0};
    float *values = ot__alloc_aligned((size_t)n_kib * KIB);
    ot__reduce *reduce;

    for (int i = 0; i <= world_size; i++)
        starts[i] = (int64_t)n * i / world_size;
    must(ot__reduce_create(comm, &options, &reduce));
    for (int round = -5; round < rounds; round++) { // the first ones warm up
        for (int k = 0; k < 2; k++)                 // in turn, each as often first
            if ((k + round) % 2 == 0)
                ours[OT_MAX(round, 0)] = timed(comm, reduce, NULL, values, n);
            else
                mpi[OT_MAX(round, 0)] = timed(comm, reduce, theirs, values, n);
    }
    if (ot_comm_rank(comm) == 0) {
        const double own = median(ours, rounds), other = median(mpi, rounds);

        printf("{\"kib\": %d, \"ours\": [%.2f, %.2f], \"mpi\": [%.2f, %.2f]}\n", n_kib, own * 1e6,
               ours[0] * 1e6, other * 1e6, mpi[0] * 1e6);
        fflush(stdout);
    }
    ot__reduce_destroy(reduce);
    ot__free_aligned(values);
}

static void time_agree(ot_comm *comm)
{
    double times[AGREES];

    for (int i = 0; i < AGREES; i++) {
        ot_agreement a = OT_AGREEMENT_INIT;

        times[i] = ot__clock_seconds();
        must(ot_comm_agree(comm, &a));
        times[i] = ot__clock_seconds() - times[i];
    }
    if (ot_comm_rank(comm) == 0) {
        const double usual = median(times, AGREES);

        printf("{\"agree\": [%.2f, %.2f]}\n", usual * 1e6, times[0] * 1e6);
    }
}

int main(int argc, char **argv)
{
    static const int sizes[] = {16, 256, 1024, 4096, 32768}; // KiB
    const int rounds = argc > 2 ? atoi(argv[2]) : ROUNDS;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    mpi_all_reduce theirs;
    void *symbol;
    ot_comm *comm;

    must(ot_comm_open("mpi", NULL, &comm));
    symbol = library ? dlsym(library, "bench_mpi_all_reduce") : NULL;
    if (!symbol || rounds < 1 || rounds > ROUNDS_MAX || ot_comm_world_size(comm) > RANKS_MAX) {
        fprintf(stderr, "usage: mpirun -n 2 bench_dist LIBRARY [ROUNDS]\n");
        return 2;
    }
    memcpy(&theirs, &symbol, sizeof theirs);
    time_agree(comm);
    for (size_t i = 0; i < OT_COUNT(sizes); i++)
        compare_size(comm, theirs, sizes[i], sizes[i] > 4096 ? OT_MAX(rounds / 4, 1) : rounds);
    ot_comm_destroy(comm);
    return 0;
}
