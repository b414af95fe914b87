// SPDX-License-Identifier: Apache-2.0
// The file beside a model that holds elements, by the path that the model gives. The path is walked
// step by step from the folder's descriptor: what has been checked is what gets opened, whatever
// others rename meanwhile.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/onnx.h"

enum {
    LINKS_MAX = 40, // as many as the kernel follows
    DEPTH_MAX = 64,
};

typedef struct walk {
    const char *path;       // as given, for messages
    int folders[DEPTH_MAX]; // from the top to where the walk is
    int n_folders, n_links;
    char rest[PATH_MAX]; // still to go
} walk;

static ot_status leaves(const walk *w)
{
    return ot__error(OT_ERR_FORMAT, "external data file '%s' %s the model's directory", w->path,
                     w->n_links > 0 ? "is a link that leaves" : "leaves");
}

static ot_status not_there(const walk *w, int cause)
{
    if (cause == ENOENT || cause == ENOTDIR)
        return ot__error(OT_ERR_IO, "external data file '%s' is not there", w->path);
    return ot__error(OT_ERR_IO, "external data file '%s' cannot be opened: %s", w->path,
                     strerror(cause));
}

// The next step's name leaves w->rest for `name`; false when none is left.
static bool next_name(walk *w, char name[PATH_MAX])
{
    const char *at = w->rest + strspn(w->rest, "/");
    const size_t n = strcspn(at, "/");

    memcpy(name, at, n);
    name[n] = '\0';
    memmove(w->rest, at + n, strlen(at + n) + 1);
    return n > 0;
}

// The link's target stands before what is left of the path.
static ot_status follow_path(walk *w, const char *target)
{
    const size_t n = strlen(target), n_rest = strlen(w->rest);

    if (n + 1 + n_rest >= sizeof w->rest)
        return not_there(w, ENAMETOOLONG);
    if (++w->n_links > LINKS_MAX)
        return not_there(w, ELOOP);
    if (target[0] == '/')
        return leaves(w);
    memmove(w->rest + n + 1, w->rest, n_rest + 1);
    memcpy(w->rest, target, n);
    w->rest[n] = '/';
    return OT_OK;
}

// *fd: what is called `name` where the walk is; below 0: it was a link, whose target comes next.
static ot_status open_step(walk *w, const char *name, bool is_last, int *fd)
{
    const int at = w->folders[w->n_folders - 1];
    // Without O_NONBLOCK a pipe would wait for its writer.
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    char target[PATH_MAX];
    ssize_t n;
    int cause;

    do {
        *fd = openat(at, name, is_last ? flags : flags | O_DIRECTORY);
    } while (*fd < 0 && errno == EINTR);
    if (*fd >= 0)
        return OT_OK;
    cause = errno; // systems differ in what they say of a link
    n = readlinkat(at, name, target, sizeof target - 1);
    if (n < 0)
        return not_there(w, cause);
    target[n] = '\0';
    return follow_path(w, target);
}

static ot_status go_up(walk *w)
{
    if (w->n_folders == 1)
        return leaves(w);
    close(w->folders[--w->n_folders]);
    return OT_OK;
}

static ot_status go_down(walk *w, int fd)
{
    if (w->n_folders < DEPTH_MAX) {
        w->folders[w->n_folders++] = fd;
        return OT_OK;
    }
    close(fd);
    return ot__error(OT_ERR_UNSUPPORTED,
                     "external data file '%s' goes through more than %d directories", w->path,
                     DEPTH_MAX);
}

// Walks to the end of the path; *out is the file there.
static ot_status walk_down(walk *w, int *out)
{
    char name[PATH_MAX];

    *out = -1;
    while (*out < 0) {
        bool is_last;
        int fd;

        if (!next_name(w, name))
            return not_there(w, EISDIR);
        is_last = w->rest[strspn(w->rest, "/")] == '\0';
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0) {
            OT_TRY(go_up(w));
            continue;
        }
        OT_TRY(open_step(w, name, is_last, &fd));
        if (fd >= 0 && is_last)
            *out = fd;
        else if (fd >= 0)
            OT_TRY(go_down(w, fd));
    }
    return OT_OK;
}

static ot_status map_regular(int fd, const char *path, ot__file_map *map)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return ot__error_errno(path, "cannot be read");
    if (!S_ISREG(info.st_mode))
        return ot__error(OT_ERR_IO, "external data file '%s' is %s, expected a regular file", path,
                         S_ISDIR(info.st_mode) ? "a directory" : "a device, pipe or socket");
    // By another name it may be any file of this user's that who made the model cannot read.
    if (info.st_nlink > 1)
        return ot__error(
            OT_ERR_FORMAT,
            "external data file '%s' has %ju names (hard links), expected one: copy it", path,
            (uintmax_t)info.st_nlink);
    return ot__file_map_fd(map, fd, path, OT_STREAM_MAX);
}

ot_status ot__external_open(ot__file_map *map, const char *folder, const char *path)
{
    walk w = {.path = path};
    ot_status st;
    int fd = -1;

    *map = (ot__file_map){0};
    if (!path[0] || path[0] == '/')
        return leaves(&w);
    if (strlen(path) >= sizeof w.rest)
        return not_there(&w, ENAMETOOLONG);
    strcpy(w.rest, path);
    w.folders[0] = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w.folders[0] < 0)
        return ot__error_errno(folder, "cannot be opened");
    w.n_folders = 1;
    st = walk_down(&w, &fd);
    OT_THEN(st, map_regular(fd, path, map));
    if (fd >= 0)
        close(fd);
    while (w.n_folders > 0)
        close(w.folders[--w.n_folders]);
    return st;
}
