// Files for writing: a complete new file takes the place of the old one, or nothing happens.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

enum {
    LINKS_MAX = 40,      // symbolic links followed, as many as the kernel does
    NAMES_MAX = 1000,    // names tried for the temporary file
    NAME_KEPT = 200,     // bytes of the target's name in that of the temporary file
    NAME_ADDED = 48,     // bytes for the rest of that name
    WRITE_MAX = 1 << 30, // bytes per call; Linux takes no more than 2 GiB
};

// ---- faults for tests: every system call that changes something passes here first ----

static _Atomic int64_t fault_at = -1, n_calls;
static _Atomic int fault_kind;

int64_t ot__file_fault_after(int64_t n, ot__file_fault kind)
{
    atomic_store(&fault_at, n);
    atomic_store(&fault_kind, (int)kind);
    return atomic_exchange(&n_calls, 0);
}

// True: behave as if the call had failed. A short write shortens *n_bytes instead.
static bool fault(size_t *n_bytes)
{
    if (atomic_fetch_add(&n_calls, 1) != atomic_load(&fault_at))
        return false;
    switch ((ot__file_fault)atomic_load(&fault_kind)) {
    case OT_FILE_KILL:
        kill(getpid(), SIGKILL);
        return true;
    case OT_FILE_INTERRUPT:
        errno = EINTR;
        return true;
    case OT_FILE_SHORT:
        if (n_bytes)
            *n_bytes = 1;
        return false;
    default:
        errno = EIO;
        return true;
    }
}

static int open_for_writing(const char *path, int flags, mode_t mode)
{
    int fd;

    do {
        fd = fault(NULL) ? -1 : open(path, flags | O_WRONLY | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static int sync_to_disk(int fd)
{
    int result;

    do {
        result = fault(NULL) ? -1 : fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

// The descriptor is gone whatever close says; when interrupted nothing was lost.
static int close_file(int fd)
{
    int result = close(fd);

    if (fault(NULL))
        result = -1;
    return result != 0 && errno == EINTR ? 0 : result;
}

// ---- writing ----

struct ot__file_writer {
    int fd;
    bool owns_fd, has_failed;
    char *path, *folder;
    char *temporary; // NULL: written in place (standard output, devices, pipes) or already renamed
};

// *out: the file that `path` leads to through symbolic links; it need not exist. Links stay what
// they are: what they point to is replaced.
static ot_status follow_links(const char *path, char **out)
{
    char *at = ot__strdup(path);

    *out = NULL;
    for (int i = 0; at && i < LINKS_MAX; i++) {
        char target[PATH_MAX], *folder, *next;
        ssize_t length = readlink(at, target, sizeof(target) - 1);

        if (length < 0) {
            *out = at;
            return OT_OK;
        }
        target[length] = '\0';
        folder = ot__path_folder(at);
        next = folder ? ot__path_join(folder, target) : NULL;
        ot__free(folder);
        ot__free(at);
        at = next;
    }
    if (!at)
        return OT_ERR_NO_MEMORY;
    ot__free(at);
    errno = ELOOP;
    return ot__error_errno(path, "cannot be written");
}

// A number that differs from call to call and from process to process, also on another machine.
static unsigned long long fresh_number(void)
{
    static _Atomic uint64_t n_made;
    struct timespec now;
    ot__rng_key key;
    uint32_t words[4];

    clock_gettime(CLOCK_REALTIME, &now);
    key = ot__rng_key_make((uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, (uint64_t)getpid(), "");
    ot__rng_block(key, atomic_fetch_add(&n_made, 1), words);
    return (unsigned long long)words[0] << 32 | words[1];
}

// `old` is what stands at the path, NULL when nothing does: its permissions are kept.
static ot_status open_temporary(ot__file_writer *w, const struct stat *old)
{
    const char *slash = strrchr(w->path, '/'), *name = slash ? slash + 1 : w->path;
    const size_t size = strlen(w->folder) + NAME_KEPT + NAME_ADDED;
    ot_status st;

    if (!name[0])
        return ot__error(OT_ERR_IO, "%s: names a folder, not a file", w->path);
    w->temporary = ot__alloc(size);
    if (!w->temporary)
        return OT_ERR_NO_MEMORY;
    for (int i = 0; i < NAMES_MAX; i++) {
        snprintf(w->temporary, size, "%s/.%.*s.%llx.tmp", w->folder, NAME_KEPT, name,
                 fresh_number());
        // What was private is never readable for others, not even empty.
        w->fd = open_for_writing(w->temporary, O_CREAT | O_EXCL, old ? 0600 : 0666);
        if (w->fd >= 0 || errno != EEXIST)
            break;
    }
    if (w->fd < 0) {
        st = ot__error_errno(w->path, "cannot be written");
        ot__free(w->temporary);
        w->temporary = NULL;
        return st;
    }
    w->owns_fd = true;
    // Where it is refused (some network and FAT file systems) the content still counts.
    if (old && !fault(NULL))
        (void)fchmod(w->fd, old->st_mode & 0777);
    return OT_OK;
}

static ot_status open_path(ot__file_writer *w, const char *path)
{
    struct stat info;
    bool exists = stat(path, &info) == 0;

    if (exists && S_ISDIR(info.st_mode))
        return ot__error(OT_ERR_IO, "%s: is a folder", path);
    if (exists && !S_ISREG(info.st_mode)) { // a device or pipe is written to, not replaced
        w->path = ot__strdup(path);
        if (!w->path)
            return OT_ERR_NO_MEMORY;
        w->fd = open_for_writing(path, 0, 0);
        w->owns_fd = w->fd >= 0;
        return w->owns_fd ? OT_OK : ot__error_errno(path, "cannot be written");
    }
    OT_TRY(follow_links(path, &w->path));
    w->folder = ot__path_folder(w->path);
    return w->folder ? open_temporary(w, exists ? &info : NULL) : OT_ERR_NO_MEMORY;
}

ot_status ot__file_writer_open(ot__file_writer **out, const char *path)
{
    ot__file_writer *w = ot__alloc_zero(1, sizeof(*w));
    ot_status st = OT_OK;

    *out = NULL;
    if (!w)
        return OT_ERR_NO_MEMORY;
    if (strcmp(path, "-") == 0) {
        w->fd = STDOUT_FILENO;
        w->path = ot__strdup("standard output");
        st = w->path ? OT_OK : OT_ERR_NO_MEMORY;
    } else {
        st = open_path(w, path);
    }
    if (st == OT_OK)
        *out = w;
    else
        ot__file_writer_abort(w);
    return st;
}

ot_status ot__file_writer_write(ot__file_writer *w, const void *bytes, size_t n_bytes)
{
    const char *next = bytes;

    while (n_bytes > 0) {
        size_t wanted = OT_MIN(n_bytes, (size_t)WRITE_MAX);
        ssize_t n = fault(&wanted) ? -1 : write(w->fd, next, wanted);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            w->has_failed = true;
            if (n == 0) // no error and no progress
                errno = EIO;
            return ot__error_errno(w->path, "cannot be written");
        }
        next += n;
        n_bytes -= (size_t)n;
    }
    return OT_OK;
}

static ot_status sync_folder(const char *folder)
{
    ot_status st = OT_OK;
    int fd;

    do {
        fd = fault(NULL) ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0 && errno == EACCES) // writable, but not readable: there is no way to synchronise it
        return OT_OK;
    if (fd < 0)
        return ot__error_errno(folder, "cannot be opened");
    // Some file systems cannot sync a folder; the rename is then as durable as they make it.
    if (sync_to_disk(fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        st = ot__error_errno(folder, "cannot be synchronised");
    (void)close_file(fd); // read only: nothing can be lost here
    return st;
}

static ot_status replace(ot__file_writer *w)
{
    if (fault(NULL) || rename(w->temporary, w->path) != 0)
        return ot__error_errno(w->path, "cannot be replaced");
    ot__free(w->temporary);
    w->temporary = NULL;
    return sync_folder(w->folder);
}

ot_status ot__file_writer_commit(ot__file_writer *w)
{
    ot_status st = OT_OK;

    if (w->has_failed)
        st = ot__error(OT_ERR_IO, "%s: not written: an earlier write failed", w->path);
    else if (w->temporary && sync_to_disk(w->fd) != 0)
        st = ot__error_errno(w->path, "cannot be synchronised");
    if (w->owns_fd && close_file(w->fd) != 0 && st == OT_OK)
        st = ot__error_errno(w->path, "cannot be written");
    w->owns_fd = false;
    if (st == OT_OK && w->temporary)
        st = replace(w);
    ot__file_writer_abort(w);
    return st;
}

void ot__file_writer_abort(ot__file_writer *w)
{
    if (!w)
        return;
    if (w->owns_fd)
        (void)close_file(w->fd);
    if (w->temporary && !fault(NULL))
        unlink(w->temporary);
    ot__free(w->temporary);
    ot__free(w->path);
    ot__free(w->folder);
    ot__free(w);
}

ot_status ot__file_write(const char *path, const void *bytes, size_t n_bytes)
{
    ot__file_writer *w;
    ot_status st;

    OT_TRY(ot__file_writer_open(&w, path));
    st = ot__file_writer_write(w, bytes, n_bytes);
    if (st == OT_OK)
        return ot__file_writer_commit(w);
    ot__file_writer_abort(w);
    return st;
}

ot_status ot__file_rename(const char *from, const char *to)
{
    char *folder = ot__path_folder(to);
    ot_status st = folder ? OT_OK : OT_ERR_NO_MEMORY;

    if (st == OT_OK && (fault(NULL) || rename(from, to) != 0))
        st = ot__error_errno(from, "cannot be renamed");
    if (st == OT_OK)
        st = sync_folder(folder);
    ot__free(folder);
    return st;
}

void ot__file_remove(const char *path)
{
    if (!fault(NULL))
        (void)unlink(path);
}
