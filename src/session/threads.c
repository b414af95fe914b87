// SPDX-License-Identifier: Apache-2.0
// The session's number of threads, for what runs in no plan.
#include "session/session_internal.h"

int ot__session_take_threads(const ot_session *session)
{
    const int before = ot__parallel_max();

    if (session->plan_options.n_threads > 0)
        ot__parallel_set(session->plan_options.n_threads);
    return before;
}

void ot__session_for(const ot_session *session, int64_t count,
                     void (*run)(void *context, int64_t first, int64_t last), void *context)
{
    enum { MIN_PER_THREAD = 1 << 15 };
    const int before = ot__session_take_threads(session);

    ot__parallel_for(count, MIN_PER_THREAD, run, context);
    ot__parallel_set(before);
}
