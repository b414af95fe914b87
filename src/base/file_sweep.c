// SPDX-License-Identifier: Apache-2.0
// What killed writers have left in a folder. A writer holds a lock on its temporary file, and locks
// go with their process: what nobody holds is a leftover.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_temporary.h"

bool ot__file_hold(int fd)
{
    struct stat info;

    // Where locks are not supported nothing is ever taken for a leftover.
    while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
        continue;
    return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

void ot__directory_list(const char *folder, const ot__file_names *names, ot__buf *out)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;

    while (entries && (entry = readdir(entries)))
        if (names->match(names->context, entry->d_name))
            ot__buf_append(out, entry->d_name, strlen(entry->d_name) + 1);
    if (entries)
        closedir(entries);
}

void ot__file_remove_listed(const char *folder, const ot__buf *list)
{
    for (size_t at = 0; !list->failed && at < list->length; at += strlen(list->data + at) + 1) {
        char *path = ot__path_join(folder, list->data + at);

        if (path)
            ot__file_remove(path);
        ot__free(path);
    }
}

static bool is_temporary(const void *context, const char *name)
{
    const ot__file_names *targets = context;
    const size_t n = strlen(name), n_end = 1 + OT_HEX_ID_LENGTH + strlen(OT_TEMPORARY_SUFFIX);
    char target[OT_TEMPORARY_KEPT + 1];

    if (name[0] != '.' || n <= 1 + n_end || n > 1 + OT_TEMPORARY_KEPT + n_end)
        return false;
    memcpy(target, name + 1, n - 1 - n_end);
    target[n - 1 - n_end] = '\0';
    name += n - n_end;
    return name[0] == '.' && ot__is_hex_id(name + 1) &&
           strcmp(name + 1 + OT_HEX_ID_LENGTH, OT_TEMPORARY_SUFFIX) == 0 &&
           targets->match(targets->context, target);
}

// False when a living process holds the file, or may hold it.
static bool remove_leftover(const char *path)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_leftover;

    if (fd < 0)
        return errno == ENOENT;
    is_leftover =
        fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (is_leftover)
        ot__file_remove(path);
    close(fd);
    return is_leftover;
}

int ot__file_sweep(const char *folder, const ot__file_names *targets)
{
    const ot__file_names temporaries = {is_temporary, targets};
    ot__buf list = {0};
    int n_held = 0;

    ot__directory_list(folder, &temporaries, &list);
    n_held += list.failed; // not all are known
    for (size_t at = 0; !list.failed && at < list.length; at += strlen(list.data + at) + 1) {
        char *path = ot__path_join(folder, list.data + at);

        n_held += !path || !remove_leftover(path);
        ot__free(path);
    }
    ot__buf_deinit(&list);
    return n_held;
}
