// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "base/base.h"

// The OpenMP runtime ends the process when it cannot start a thread, so a wish has a bound.
enum { N_THREADS_MAX = 256 };

int ot__parallel_max(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

void ot__parallel_set(int n_threads)
{
#ifdef _OPENMP
    int hardware = ot__parallel_hardware();

    omp_set_num_threads(n_threads > 0 ? OT_MIN(n_threads, OT_MAX(hardware, N_THREADS_MAX))
                                      : hardware);
#else
    (void)n_threads;
#endif
}

int ot__parallel_hardware(void)
{
#ifdef _OPENMP
    return omp_get_num_procs();
#else
    return 1;
#endif
}

void ot__parallel_for(int64_t count, int64_t min_per_thread,
                      void (*run)(void *context, int64_t first, int64_t last), void *context)
{
    int64_t n = ot__parallel_max();

    if (min_per_thread > 0)
        n = OT_MIN(n, count / min_per_thread);
    if (n <= 1) {
        if (count > 0)
            run(context, 0, count);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads((int)n)
#endif
    for (int64_t i = 0; i < n; i++)
        run(context, count / n * i + OT_MIN(i, count % n),
            count / n * (i + 1) + OT_MIN(i + 1, count % n));
}

// ---- fork ----

// Of all threads a child has only the one that called fork(). GCC's OpenMP runtime would wait there
// for the pool's threads, which do not exist: so they end before the fork, and both processes start
// new ones when they need any. LLVM's runtime sees to that itself.
static pthread_rwlock_t no_forks = PTHREAD_RWLOCK_INITIALIZER;

static void workers_before_fork(void)
{
    pthread_rwlock_wrlock(&no_forks);
#ifdef _OPENMP
    omp_pause_resource_all(omp_pause_soft);
#endif
}

static void after_fork_in_parent(void)
{
    pthread_rwlock_unlock(&no_forks);
}

// The lock has the parent's thread as its owner.
static void after_fork_in_child(void)
{
    no_forks = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
}

// When the library is loaded, which is before anything in it can use threads.
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(workers_before_fork, after_fork_in_parent, after_fork_in_child);
}

void ot__forks_hold(void)
{
    pthread_rwlock_rdlock(&no_forks);
}

void ot__forks_release(void)
{
    pthread_rwlock_unlock(&no_forks);
}
