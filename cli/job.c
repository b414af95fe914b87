// SPDX-License-Identifier: Apache-2.0
#include "job.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "options.h"
#include "report.h"

enum { TEXT_MAX = 2048, MICROSECONDS = 1000000 }; // of what a rank has reported; a second
const char *const job_kinds[] = {"auto", "self", "mpi", NULL};

// Rank 0 logs the same.
static void log_nothing(void *context, ot_log_level level, const char *text)
{
    (void)context;
    (void)level;
    (void)text;
}

// ---- joining ----

// MPI waits without end for a process that has ended before it came.
static char last_words[2 * TEXT_MAX];

static void give_up(int number)
{
    const char *text = last_words;
    size_t n = strlen(text);

    (void)number;
    while (n > 0) {
        const ssize_t written = write(STDERR_FILENO, text, n);

        if (written <= 0)
            break;
        text += written;
        n -= (size_t)written;
    }
    _exit(EXIT_FAILED);
}

// From now on, until it is called with 0, the process ends after so many seconds.
static void limit_joining(double given)
{
    const double most = 1e9, seconds = given < most ? given : most;
    static struct sigaction old;
    struct sigaction action = {.sa_handler = give_up};
    struct itimerval timer = {.it_value = {(time_t)seconds, 0}};

    timer.it_value.tv_usec =
        (suseconds_t)((seconds - (double)timer.it_value.tv_sec) * MICROSECONDS);
    if (seconds > 0) {
        snprintf(last_words, sizeof(last_words),
                 "%sonnxtrain: not all processes of the job have come within %g s (--comm-timeout, "
                 "OT_COMM_TIMEOUT): one has ended before it joined, or hangs\n",
                 report_held(), seconds);
        sigemptyset(&action.sa_mask);
        sigaction(SIGALRM, &action, &old);
    }
    setitimer(ITIMER_REAL, &timer, NULL);
    if (seconds <= 0 && last_words[0])
        sigaction(SIGALRM, &old, NULL);
}

static int open_comm(job *j, const char *kind, const ot_comm_options *options)
{
    ot_status st;

    limit_joining(ot_comm_timeout(options));
    st = ot_comm_open(kind, options, &j->comm);
    limit_joining(0);
    return st == OT_OK ? EXIT_SUCCESS : report_error();
}

int job_open(job *j, const char *kind, double timeout)
{
    ot_comm_options options = OT_COMM_OPTIONS_INIT;
    int code;

    *j = (job){0};
    options.timeout = timeout;
    code = open_comm(j, kind, &options);
    if (code != EXIT_SUCCESS || ot_comm_world_size(j->comm) < 2) {
        job_close(j);
        return code;
    }
    j->rank = ot_comm_rank(j->comm);
    report_hold();
    if (j->rank > 0)
        ot_set_log(log_nothing, NULL);
    return EXIT_SUCCESS;
}

void job_close(job *j)
{
    report_release();
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
