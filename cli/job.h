// SPDX-License-Identifier: Apache-2.0
// The job that a run is part of: the processes that a launcher has started.
#ifndef CLI_JOB_H
#define CLI_JOB_H

#include <stdbool.h>

#include "onnxtrain/comm.h"

typedef struct job {
    ot_comm *comm; // NULL: this process is alone
    int rank;      // 0 speaks for all
} job;

extern const char *const job_kinds[]; // of --comm

// Join it; `timeout` as in ot_comm_options, after which the process ends where others do not come.
// The exit code, as of what follows. What was held before is held on, or said where this process is
// alone.
int job_open(job *j, const char *kind, double timeout);
// How it went on all ranks, `code` on this one: the worst. What they report in between is held, and
// told here once.
int job_agree(const job *j, int code);
// After a silent rank: tells what is held and ends all processes.
int job_abort(const job *j, int code);
void job_close(job *j);

#endif
