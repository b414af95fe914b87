// SPDX-License-Identifier: Apache-2.0
// A file that says that somebody works here. The lock on it is the system's, which releases it when
// the process ends, however that comes about; what is in the file is only for the message.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

enum { NOTE_MAX = 160, TRIES_MAX = 100 };

static ot_status refuse_lock(int fd, const char *path)
{
    char note[NOTE_MAX];
    const ssize_t n = pread(fd, note, sizeof note - 1, 0);

    note[n > 0 ? n : 0] = '\0';
    note[strcspn(note, "\n")] = '\0';
    return ot__error(OT_ERR_STATE, "%s: locked by %s", path, note[0] ? note : "another process");
}

// Whether `path` still leads to the file that is locked: the last owner removes it.
static bool is_at(int fd, const char *path)
{
    struct stat here, there;

    return fstat(fd, &here) == 0 && lstat(path, &there) == 0 && here.st_ino == there.st_ino &&
           here.st_dev == there.st_dev;
}

static void sign(int fd)
{
    char host[64] = "", note[NOTE_MAX];
    int n;

    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    n = snprintf(note, sizeof note, "process %ld on %s\n", (long)getpid(), host);
    if (n > 0 && ftruncate(fd, 0) == 0 && pwrite(fd, note, (size_t)n, 0) < 0)
        ot__log(OT_LOG_DEBUG, "a lock could not be signed");
}

// OT_OK with *fd -1: the file is not the one that is at `path` any more.
static ot_status try(const char *path, int *fd)
{
    ot_status st;

    // It is written to: never somebody's file behind a link.
    *fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (*fd < 0)
        return ot__error_errno(path, "cannot be opened");
    if (flock(*fd, LOCK_EX | LOCK_NB) == 0) {
        if (is_at(*fd, path))
            return OT_OK;
        st = OT_OK;
    } else if (errno == EWOULDBLOCK) {
        st = refuse_lock(*fd, path);
    } else { // a file system without locks
        ot__log(OT_LOG_WARNING, "%s: no lock: %s", path, strerror(errno));
        return OT_OK;
    }
    close(*fd);
    *fd = -1;
    return st;
}

ot_status ot__lock_take(const char *path, ot__lock *lock)
{
    *lock = (ot__lock){.fd = -1};
    for (int i = 0; i < TRIES_MAX && lock->fd < 0; i++)
        OT_TRY(try(path, &lock->fd));
    if (lock->fd < 0)
        return ot__error(OT_ERR_STATE, "%s: others take and leave the lock all the time", path);
    sign(lock->fd);
    lock->path = ot__strdup(path);
    if (lock->path != NULL)
        return OT_OK;
    close(lock->fd);
    lock->fd = -1;
    return OT_ERR_NO_MEMORY;
}

void ot__lock_leave(ot__lock *lock)
{
    if (lock->path == NULL)
        return;
    unlink(lock->path); // while it is still locked, so that it is this one
    close(lock->fd);
    ot__free(lock->path);
    *lock = (ot__lock){.fd = -1};
}
