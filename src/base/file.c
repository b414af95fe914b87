// SPDX-License-Identifier: Apache-2.0
// Files for writing: a complete new file takes the place of the old one, or nothing happens.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_calls.h"
#include "base/file_temporary.h"

enum {
    LINKS_MAX = 40,      // symbolic links followed, as many as the kernel does
    NAMES_MAX = 1000,    // names tried for the temporary file
    WRITE_MAX = 1 << 30, // bytes per call; Linux takes no more than 2 GiB
    BEGIN_MAX = 8 << 20, // bytes written whose synchronisation does not begin
};

struct ot__file_writer {
    int fd;
    bool owns_fd, has_failed;
    bool is_within; // written in place, where nobody looks yet
    bool is_new;    // nothing may stand at the path
    char *path, *folder;
    char *temporary; // NULL: written in place (standard output, devices, pipes) or already renamed
    int64_t n_written, n_begun; // bytes; of them, whose synchronisation has begun
    int n_others;               // writers of the same file that there were when it took its place
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
    OT_TRY(ot__made(at));
    ot__free(at);
    errno = ELOOP;
    return ot__error_errno(path, "cannot be written");
}

static const char *file_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

// A new file that is locked; below 0: errno says why there is none.
static int create_temporary(ot__file_writer *w, size_t size, mode_t mode)
{
    char id[OT_HEX_ID_LENGTH + 1];

    errno = EEXIST;
    for (int i = 0; i < NAMES_MAX; i++) {
        int fd;

        ot__id_text(ot__id_fresh(), id);
        snprintf(w->temporary, size, "%s/.%.*s.%s" OT_TEMPORARY_SUFFIX, w->folder,
                 OT_TEMPORARY_KEPT, file_base_name(w->path), id);
        fd = ot__call_open(w->temporary, O_WRONLY | O_CREAT | O_EXCL, mode);
        if (fd < 0 && errno != EEXIST)
            return fd;
        if (fd >= 0 && ot__file_hold(fd))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

// `old` is what stands at the path, NULL when nothing does: its permissions are kept.
static ot_status open_temporary(ot__file_writer *w, const struct stat *old)
{
    const size_t size = strlen(w->folder) + OT_TEMPORARY_KEPT + OT_HEX_ID_LENGTH + 3 +
                        sizeof(OT_TEMPORARY_SUFFIX); // "/", "." and "." between them
    ot_status st;

    if (!file_base_name(w->path)[0])
        return ot__error(OT_ERR_IO, "%s: names a directory, not a file", w->path);
    w->temporary = ot__alloc(size);
    OT_TRY(ot__made(w->temporary));
    // What was private is never readable for others, not even empty.
    w->fd = create_temporary(w, size, old ? 0600 : 0666);
    if (w->fd < 0) {
        st = ot__error_errno(w->path, "cannot be written");
        ot__free(w->temporary);
        w->temporary = NULL;
        return st;
    }
    w->owns_fd = true;
    // Where it is refused (some network and FAT file systems) the content still counts.
    if (old)
        (void)ot__call_chmod(w->fd, old->st_mode & 0777);
    return OT_OK;
}

static ot_status open_path(ot__file_writer *w, const char *path)
{
    struct stat info;
    bool exists = stat(path, &info) == 0;

    if (exists && S_ISDIR(info.st_mode))
        return ot__error(OT_ERR_IO, "%s: is a directory", path);
    if (exists && !S_ISREG(info.st_mode)) { // a device or pipe is written to, not replaced
        w->path = ot__strdup(path);
        OT_TRY(ot__made(w->path));
        w->fd = ot__call_open(path, O_WRONLY, 0);
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
    OT_TRY(ot__made(w));
    if (strcmp(path, "-") == 0) {
        w->fd = STDOUT_FILENO;
        w->path = ot__strdup("standard output");
        st = ot__made(w->path);
    } else {
        st = open_path(w, path);
    }
    return OT_HAND_OUT(st, out, w, ot__file_writer_abort);
}

static ot_status refuse_to_replace(const char *path)
{
    return ot__error(OT_ERR_IO, "%s: exists already, and is not replaced", path);
}

static ot_status open_new(ot__file_writer *w, const char *path)
{
    struct stat info;

    if (lstat(path, &info) == 0)
        return refuse_to_replace(path);
    w->is_new = true;
    w->path = ot__strdup(path);
    OT_TRY(ot__made(w->path));
    w->folder = ot__path_folder(w->path);
    return w->folder ? open_temporary(w, NULL) : OT_ERR_NO_MEMORY;
}

ot_status ot__file_writer_open_new(ot__file_writer **out, const char *path)
{
    ot__file_writer *w = ot__alloc_zero(1, sizeof(*w));
    ot_status st;

    *out = NULL;
    OT_TRY(ot__made(w));
    st = open_new(w, path);
    return OT_HAND_OUT(st, out, w, ot__file_writer_abort);
}

const char *ot__file_writer_place(const ot__file_writer *w)
{
    return w->temporary;
}

ot_status ot__file_writer_open_within(ot__file_writer **out, const char *path)
{
    ot__file_writer *w = ot__alloc_zero(1, sizeof(*w));
    ot_status st;

    *out = NULL;
    OT_TRY(ot__made(w));
    w->is_within = true;
    w->path = ot__strdup(path);
    st = ot__made(w->path);
    if (st == OT_OK) {
        w->fd = ot__call_open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
        w->owns_fd = w->fd >= 0;
        if (!w->owns_fd)
            st = ot__error_errno(path, "cannot be written");
    }
    return OT_HAND_OUT(st, out, w, ot__file_writer_abort);
}

ot_status ot__file_append_open(ot__file_writer **out, const char *path, bool keeps)
{
    ot__file_writer *w = ot__alloc_zero(1, sizeof(*w));
    ot_status st;

    *out = NULL;
    OT_TRY(ot__made(w));
    w->path = ot__strdup(path);
    st = ot__made(w->path);
    if (st == OT_OK) {
        w->fd = ot__call_open(path, O_WRONLY | O_CREAT | (keeps ? O_APPEND : O_TRUNC), 0666);
        w->owns_fd = w->fd >= 0;
        if (!w->owns_fd)
            st = ot__error_errno(path, "cannot be written");
    }
    return OT_HAND_OUT(st, out, w, ot__file_writer_abort);
}

ot_status ot__file_writer_write(ot__file_writer *w, const void *bytes, size_t n_bytes)
{
    const char *next = bytes;

    while (n_bytes > 0) {
        const ssize_t n = ot__call_write(w->fd, next, OT_MIN(n_bytes, (size_t)WRITE_MAX));

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
        w->n_written += n;
        if (w->n_written - w->n_begun >= BEGIN_MAX) { // so that little is left when all is written
            ot__begin_sync(w->fd, w->n_begun, w->n_written - w->n_begun);
            w->n_begun = w->n_written;
        }
    }
    return OT_OK;
}

ot_status ot__file_writer_sync(ot__file_writer *w)
{
    if (ot__call_sync(w->fd) == 0)
        return OT_OK;
    w->has_failed = true;
    return ot__error_errno(w->path, "cannot be synchronised");
}

static bool is_kept_name(const void *context, const char *kept)
{
    const char *name = context;

    return strncmp(name, kept, OT_TEMPORARY_KEPT) == 0;
}

// What has come to stand at the path meanwhile is somebody's, too.
static ot_status link_new(const ot__file_writer *w)
{
    if (ot__call_link(w->temporary, w->path) != 0)
        return errno == EEXIST ? refuse_to_replace(w->path)
                               : ot__error_errno(w->path, "cannot be written");
    ot__file_remove(w->temporary);
    return OT_OK;
}

static ot_status replace_file(ot__file_writer *w)
{
    const ot__file_names mine = {is_kept_name, file_base_name(w->path)};

    if (w->is_new)
        OT_TRY(link_new(w));
    else if (ot__call_rename(w->temporary, w->path) != 0)
        return ot__error_errno(w->path, "cannot be replaced");
    ot__free(w->temporary);
    w->temporary = NULL;
    OT_TRY(ot__directory_sync(w->folder));
    w->n_others = ot__file_sweep(w->folder, &mine);
    return OT_OK;
}

static ot_status finish_file(ot__file_writer *w)
{
    ot_status st = OT_OK;
    int held = -1;

    if (w->has_failed)
        st = ot__error(OT_ERR_IO, "%s: not written: an earlier write failed", w->path);
    else if ((w->temporary || w->is_within) && ot__call_sync(w->fd) != 0)
        st = ot__error_errno(w->path, "cannot be synchronised");
    if (w->temporary) // closing may fail, but must not let go the lock before the file has its name
        held = fcntl(w->fd, F_DUPFD_CLOEXEC, 0);
    if (w->owns_fd && ot__call_close(w->fd) != 0 && st == OT_OK)
        st = ot__error_errno(w->path, "cannot be written");
    w->owns_fd = false;
    if (st == OT_OK && w->temporary)
        st = replace_file(w);
    if (held >= 0)
        close(held);
    return st;
}

ot_status ot__file_writer_commit(ot__file_writer *w)
{
    const ot_status st = finish_file(w);

    ot__file_writer_abort(w);
    return st;
}

// Old data are listed while the lock is held: those that another writer makes for a file that is
// yet to come are listed only if that writer is seen afterwards, among those at work or, having
// come to its end, by the file that stands there now.
ot_status ot__file_pair_commit(const char *path, ot__file_writer *data, ot__file_writer *file,
                               const ot__file_names *old_data)
{
    char *folder = ot__path_folder(path);
    ot__buf list = {0};
    struct stat mine = {0}, now = {0};
    ot_status st = ot__made(folder);

    if (st == OT_OK && data)
        st = finish_file(data);
    if (st == OT_OK) {
        if (file->temporary) // not for devices and pipes
            ot__directory_list(folder, old_data, &list);
        (void)fstat(file->fd, &mine);
        st = finish_file(file);
    }
    if (st == OT_OK)
        (void)ot__file_sweep(folder, old_data);
    if (st == OT_OK && file->n_others == 0 && stat(path, &now) == 0 && now.st_ino == mine.st_ino &&
        now.st_dev == mine.st_dev)
        ot__file_remove_listed(folder, &list); // what stays costs only space
    ot__buf_deinit(&list);
    ot__free(folder);
    ot__file_writer_abort(data);
    ot__file_writer_abort(file);
    return st;
}

void ot__file_writer_abort(ot__file_writer *w)
{
    if (!w)
        return;
    if (w->owns_fd)
        (void)ot__call_close(w->fd);
    if (w->temporary)
        (void)ot__call_remove(w->temporary);
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
    ot_status st = ot__made(folder);

    if (st == OT_OK && ot__call_rename(from, to) != 0)
        st = ot__error_errno(from, "cannot be renamed");
    OT_THEN(st, ot__directory_sync(folder));
    ot__free(folder);
    return st;
}

void ot__file_remove(const char *path)
{
    (void)ot__call_remove(path);
}
