// SPDX-License-Identifier: Apache-2.0
// A file that is not to be trusted is read in a process of its own, with limits on its memory and
// its time: what harms libhdf5 ends that process.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt/dict_stream.h"
#include "ckpt/hdf5.h"
#include "ckpt/hdf5_library.h"

enum { CHILD_SECONDS = 60 };
static const size_t child_spare = (size_t)64 << 20; // bytes besides those of tensors

// ---- the child ----

static void limit(__rlimit_resource_t resource, rlim_t most)
{
    struct rlimit now;

    if (getrlimit(resource, &now) == 0 && (now.rlim_max == RLIM_INFINITY || most < now.rlim_max))
        (void)setrlimit(resource, &(struct rlimit){most, most});
}

// All that this process has mapped is counted, so the limit is above what it has now.
static void limit_memory(void)
{
    const size_t left = ot__memory_left(0);
    uint64_t n_pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    size_t most;

    if (file == NULL)
        return;
    if (fscanf(file, "%" SCNu64, &n_pages) == 1 &&
        !ot__size_add_overflows((size_t)n_pages * (size_t)sysconf(_SC_PAGESIZE), child_spare,
                                &most) &&
        !ot__size_add_overflows(most, left, &most))
        limit(RLIMIT_AS, (rlim_t)most);
    (void)fclose(file);
}

static ot_status send_bytes(void *context, const void *bytes, size_t n_bytes)
{
    const int fd = *(const int *)context;
    const char *next = bytes;

    while (n_bytes > 0) {
        const ssize_t n = write(fd, next, n_bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return OT_ERR_IO; // nobody reads any more
        next += n;
        n_bytes -= (size_t)n;
    }
    return OT_OK;
}

static void be_child(const char *path, const char *key, int fd)
{
    static const int defaults[] = {SIGALRM, SIGXCPU, SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    ot_dict *dict = NULL;
    ot_status st;

    for (size_t i = 0; i < OT_COUNT(defaults); i++)
        (void)signal(defaults[i], SIG_DFL);
    limit_memory();
    limit(RLIMIT_CPU, CHILD_SECONDS);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    (void)alarm(2 * CHILD_SECONDS);
    st = ot__hdf5_load(path, key, &dict);
    _exit(ot__dict_stream_write(dict, st, send_bytes, &fd) == OT_OK ? 0 : 1);
}

// ---- the parent ----

typedef struct child_pipe {
    int fd;
    bool has_ended;
} child_pipe;

static ot_status receive_bytes(void *context, void *bytes, size_t n_bytes)
{
    child_pipe *from = context;
    char *next = bytes;

    while (n_bytes > 0) {
        const ssize_t n = read(from->fd, next, n_bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ot__error_errno("the process that reads the file", "cannot be read from");
        if (n == 0) {
            from->has_ended = true;
            return ot__error(OT_ERR_FORMAT, "the process that read the file ended too early");
        }
        next += n;
        n_bytes -= (size_t)n;
    }
    return OT_OK;
}

static ot_status explain_end(const char *path, int status)
{
    const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    if (number == SIGALRM || number == SIGXCPU || number == SIGKILL)
        return ot__error(OT_ERR_FORMAT, "%s: the process that read it was stopped after %d seconds",
                         path, (int)CHILD_SECONDS);
    if (number != 0)
        return ot__error(OT_ERR_FORMAT, "%s: libhdf5 broke down on it: %s", path,
                         strsignal(number));
    return ot__error(OT_ERR_FORMAT, "%s: the process that read it ended with %d", path,
                     WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static ot_status receive(const char *path, pid_t child, int fd, ot_dict **out)
{
    child_pipe from = {.fd = fd};
    ot_status st = ot__dict_stream_read(receive_bytes, &from, out);
    int status = 0;

    (void)close(fd);
    if (st != OT_OK && !from.has_ended)
        (void)kill(child, SIGKILL); // what it has to say more is not asked for
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return from.has_ended ? explain_end(path, status) : st;
}

ot_status ot__hdf5_load_apart(const char *path, const char *key, ot_dict **out)
{
    ot__h5_visit visit;
    int ends[2];
    pid_t child;

    OT_TRY(ot__h5_enter(&visit)); // so that the child need not load it
    ot__h5_leave(&visit);
    if (pipe(ends) != 0)
        return ot__error_errno(path, "no pipe for the process that reads it");
    for (int i = 0; i < 2; i++) // a program that another thread starts would keep it open
        (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    child = fork();
    if (child < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return ot__error_errno(path, "no process to read it");
    }
    if (child == 0) {
        (void)close(ends[0]);
        be_child(path, key, ends[1]);
    }
    (void)close(ends[1]);
    return receive(path, child, ends[0], out);
}
