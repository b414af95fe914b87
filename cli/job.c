// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "report.h"

enum { TEXT_MAX = 2048 }; // of what a rank has reported
const char *const job_kinds[] = {"auto", "self", "mpi", NULL};

// Rank 0 logs the same.
static void log_nothing(void *context, ot_log_level level, const char *text)
{
    (void)context;
    (void)level;
    (void)text;
}

int job_open(job *j, const char *kind, double timeout)
{
    ot_comm_options options = OT_COMM_OPTIONS_INIT;

    *j = (job){0};
    options.timeout = timeout;
    if (ot_comm_open(kind, &options, &j->comm) != OT_OK)
        return report_error();
    if (ot_comm_world_size(j->comm) < 2) {
        job_close(j);
        return EXIT_SUCCESS;
    }
    j->rank = ot_comm_rank(j->comm);
    report_hold(true);
    if (j->rank > 0)
        ot_set_log(log_nothing, NULL);
    return EXIT_SUCCESS;
}

void job_close(job *j)
{
    report_hold(false);
    ot_comm_destroy(j->comm);
    *j = (job){0};
}

int job_abort(const job *j, int code)
{
    char text[TEXT_MAX];

    if (!j->comm)
        return code;
    report_take(text, sizeof(text));
    report_told(text, -1);
    ot_comm_abort(j->comm, code);
    return code;
}

// ---- what is told ----

static bool tells_rank(const char *text)
{
    return strncmp(text, "rank ", 5) == 0 || strncmp(text, "ranks ", 6) == 0;
}

// That of the first rank with this exit code, with its number.
static void tell_first(const char *texts, const int64_t *codes, int n_ranks, int64_t code)
{
    int rank = 0;

    while (rank < n_ranks - 1 && codes[rank] != code)
        rank++;
    report_told(texts + (size_t)rank * TEXT_MAX,
                rank > 0 && !tells_rank(texts + (size_t)rank * TEXT_MAX) ? rank : -1);
}

static int exchange_reports(const job *j, int code)
{
    const int n = ot_comm_world_size(j->comm);
    int64_t own = code, worst = code, *codes = calloc((size_t)n, sizeof(*codes));
    char *texts = calloc((size_t)n, TEXT_MAX), mine[TEXT_MAX];
    ot_agreement a = OT_AGREEMENT_INIT;
    ot_status st;

    report_take(mine, sizeof(mine));
    a.call = "report";
    a.status = codes && texts ? OT_OK : OT_ERR_NO_MEMORY;
    st = ot_comm_agree(j->comm, &a);
    if (st == OT_OK)
        st = ot_comm_all_gather(j->comm, &own, sizeof(own), codes);
    if (st == OT_OK)
        st = ot_comm_all_gather(j->comm, mine, sizeof(mine), texts);
    for (int i = 0; st == OT_OK && i < n; i++)
        worst = codes[i] > worst ? codes[i] : worst;
    if (st == OT_OK && j->rank == 0)
        tell_first(texts, codes, n, worst);
    free(codes);
    free(texts);
    if (st != OT_OK) { // somebody is silent
        report_told(mine, -1);
        report_error();
        return job_abort(j, EXIT_FAILED);
    }
    return (int)worst;
}

int job_agree(const job *j, int code)
{
    return j->comm ? exchange_reports(j, code) : code;
}
