// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE // syscall(), sync_file_range()
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "base/file_calls.h"

struct ot__file_watch {
    int64_t fault_at, n_calls;
    ot__file_call counted;
    ot__file_fault fault;
    bool has_come, has_filled_up, has_no_exchange;
    ot__file_log log;
    void *context;
};
static _Thread_local ot__file_watch own_watch = {.fault_at = -1};
static _Thread_local ot__file_watch *other_watch; // of the thread that this one works for

static ot__file_watch *watch(void)
{
    return other_watch != NULL ? other_watch : &own_watch;
}

ot__file_watch *ot__file_watch_get(void)
{
    ot__file_watch *w = watch();

    return w->fault_at >= 0 || w->log != NULL || w->has_no_exchange ? w : NULL;
}

void ot__file_watch_set(ot__file_watch *w)
{
    other_watch = w;
}

int64_t ot__file_fault_at(ot__file_call call, int64_t n, ot__file_fault fault)
{
    const int64_t n_calls = watch()->n_calls;

    watch()->fault_at = n;
    watch()->n_calls = 0;
    watch()->counted = call;
    watch()->fault = fault;
    watch()->has_come = watch()->has_filled_up = false;
    return n_calls;
}

int64_t ot__file_fault_after(int64_t n, ot__file_fault fault)
{
    return ot__file_fault_at(OT_FILE_CALL_ANY, n, fault);
}

void ot__file_log_to(ot__file_log log, void *context)
{
    watch()->log = log;
    watch()->context = context;
}

void ot__file_no_exchange(bool none)
{
    watch()->has_no_exchange = none;
}

static void log_call(ot__file_event event)
{
    if (watch()->log != NULL)
        watch()->log(watch()->context, &event);
}

static bool needs_space(ot__file_call call, int flags)
{
    return call == OT_FILE_CALL_WRITE || call == OT_FILE_CALL_LINK || call == OT_FILE_CALL_MKDIR ||
           (call == OT_FILE_CALL_OPEN && (flags & O_CREAT) != 0);
}

// From the call that is due on, those that need room have none. Half of the first write is still
// taken, as by a disk that has a little left.
static bool has_no_room(ot__file_call call, int flags, size_t *n_bytes)
{
    if (watch()->fault == OT_FILE_FULL ? !needs_space(call, flags) : call != OT_FILE_CALL_WRITE)
        return false;
    if (n_bytes != NULL && *n_bytes > 1 && !watch()->has_filled_up) {
        *n_bytes /= 2;
        watch()->has_filled_up = true;
        return false;
    }
    errno = watch()->fault == OT_FILE_FULL ? ENOSPC : EFBIG;
    return true;
}

static bool is_due(ot__file_call call)
{
    const bool is_counted = watch()->counted == OT_FILE_CALL_ANY || watch()->counted == call;
    const bool is_now = is_counted && watch()->n_calls++ == watch()->fault_at;

    watch()->has_come = watch()->has_come || is_now;
    return is_now || (watch()->has_come &&
                      (watch()->fault == OT_FILE_FULL || watch()->fault == OT_FILE_TOO_LARGE));
}

// True: behave as if the call had failed. Less of a write may be taken instead.
static bool has_fault(ot__file_call call, int flags, size_t *n_bytes)
{
    if (!is_due(call))
        return false;
    switch (watch()->fault) {
    case OT_FILE_KILL:
        kill(getpid(), SIGKILL);
        return true;
    case OT_FILE_INTERRUPT:
        errno = EINTR;
        return true;
    case OT_FILE_SHORT:
        if (n_bytes != NULL)
            *n_bytes = 1;
        return false;
    case OT_FILE_FULL:
    case OT_FILE_TOO_LARGE:
        return has_no_room(call, flags, n_bytes);
    default:
        errno = EIO;
        return true;
    }
}

int ot__call_open(const char *path, int flags, mode_t mode)
{
    int fd;

    do {
        fd = has_fault(OT_FILE_CALL_OPEN, flags, NULL) ? -1 : open(path, flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    if (fd >= 0)
        log_call((ot__file_event){OT_FILE_CALL_OPEN, .path = path, .flags = flags, .fd = fd});
    return fd;
}

int ot__call_chmod(int fd, mode_t mode)
{
    const int result = has_fault(OT_FILE_CALL_CHMOD, 0, NULL) ? -1 : fchmod(fd, mode);

    if (result == 0)
        log_call((ot__file_event){OT_FILE_CALL_CHMOD, .fd = fd});
    return result;
}

ssize_t ot__call_write(int fd, const void *bytes, size_t n_bytes)
{
    const ssize_t n = has_fault(OT_FILE_CALL_WRITE, 0, &n_bytes) ? -1 : write(fd, bytes, n_bytes);

    if (n > 0)
        log_call(
            (ot__file_event){OT_FILE_CALL_WRITE, .fd = fd, .bytes = bytes, .n_bytes = (size_t)n});
    return n;
}

int ot__call_sync(int fd)
{
    int result;

    do {
        result = has_fault(OT_FILE_CALL_SYNC, 0, NULL) ? -1 : fsync(fd);
    } while (result != 0 && errno == EINTR);
    if (result == 0)
        log_call((ot__file_event){OT_FILE_CALL_SYNC, .fd = fd});
    return result;
}

// When interrupted nothing was lost.
void ot__begin_sync(int fd, int64_t at, int64_t n_bytes)
{
#ifdef SYNC_FILE_RANGE_WRITE
    (void)sync_file_range(fd, at, n_bytes, SYNC_FILE_RANGE_WRITE);
#else
    (void)fd, (void)at, (void)n_bytes;
#endif
}

int ot__call_close(int fd)
{
    int result = close(fd);

    log_call((ot__file_event){OT_FILE_CALL_CLOSE, .fd = fd});
    if (has_fault(OT_FILE_CALL_CLOSE, 0, NULL))
        result = -1;
    return result != 0 && errno == EINTR ? 0 : result;
}

int ot__call_rename(const char *from, const char *to)
{
    const int result = has_fault(OT_FILE_CALL_RENAME, 0, NULL) ? -1 : rename(from, to);

    if (result == 0)
        log_call((ot__file_event){OT_FILE_CALL_RENAME, .path = from, .to = to, .fd = -1});
    return result;
}

int ot__call_link(const char *from, const char *to)
{
    const int result = has_fault(OT_FILE_CALL_LINK, 0, NULL) ? -1 : link(from, to);

    if (result == 0)
        log_call((ot__file_event){OT_FILE_CALL_LINK, .path = from, .to = to, .fd = -1});
    return result;
}

int ot__call_remove(const char *path)
{
    const int result = has_fault(OT_FILE_CALL_REMOVE, 0, NULL) ? -1 : unlink(path);

    if (result == 0)
        log_call((ot__file_event){OT_FILE_CALL_REMOVE, .path = path, .fd = -1});
    return result;
}

int ot__call_mkdir(const char *path, mode_t mode)
{
    const int result = has_fault(OT_FILE_CALL_MKDIR, 0, NULL) ? -1 : mkdir(path, mode);

    if (result == 0)
        log_call((ot__file_event){OT_FILE_CALL_MKDIR, .path = path, .fd = -1});
    return result;
}

int ot__call_rmdir(const char *path)
{
    const int result = has_fault(OT_FILE_CALL_RMDIR, 0, NULL) ? -1 : rmdir(path);

    if (result == 0)
        log_call((ot__file_event){OT_FILE_CALL_RMDIR, .path = path, .fd = -1});
    return result;
}

static int exchange_names(const char *a, const char *b)
{
#ifdef SYS_renameat2
    enum { EXCHANGE = 2 }; // RENAME_EXCHANGE, which old headers lack
    return (int)syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, EXCHANGE);
#else
    (void)a;
    (void)b;
    errno = ENOSYS;
    return -1;
#endif
}

int ot__call_exchange(const char *a, const char *b)
{
    int result = -1;

    if (watch()->has_no_exchange)
        errno = ENOSYS;
    else if (!has_fault(OT_FILE_CALL_EXCHANGE, 0, NULL))
        result = exchange_names(a, b);
    if (result == 0)
        log_call((ot__file_event){OT_FILE_CALL_EXCHANGE, .path = a, .to = b, .fd = -1});
    return result;
}
