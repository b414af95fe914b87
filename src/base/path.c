// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"

char *ot__path_join(const char *folder, const char *name)
{
    size_t n = strlen(folder), m = strlen(name) + 1;
    bool needs_slash = n > 0 && folder[n - 1] != '/';
    char *path;

    if (name[0] == '/' || n == 0)
        return ot__strdup(name);
    path = ot__alloc(n + needs_slash + m);
    if (!path)
        return NULL;
    memcpy(path, folder, n);
    if (needs_slash)
        path[n] = '/';
    memcpy(path + n + needs_slash, name, m);
    return path;
}

char *ot__path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder;

    if (!slash)
        return ot__strdup(".");
    if (slash == path)
        return ot__strdup("/");
    folder = ot__strdup(path);
    if (folder)
        folder[slash - path] = '\0';
    return folder;
}

bool ot__path_exists(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0;
}

bool ot__path_is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "directory"
           : S_ISFIFO(mode) ? "pipe"
           : S_ISSOCK(mode) ? "socket"
                            : "device";
}

ot_status ot__path_file_size(const char *path, uint64_t *size)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return ot__error_errno(path, "cannot be read");
    if (!S_ISREG(info.st_mode))
        return ot__error(OT_ERR_IO, "%s: is a %s, expected a file", path, kind_of(info.st_mode));
    *size = (uint64_t)info.st_size;
    return OT_OK;
}

ot_status ot__path_make_folder(const char *path)
{
    char *copy = ot__strdup(path);
    ot_status st = OT_OK;

    OT_TRY(ot__made(copy));
    for (char *p = copy + 1; st == OT_OK && copy[0]; p++) {
        char c = *p;
        if (c != '/' && c != '\0')
            continue;
        *p = '\0';
        if (mkdir(copy, 0777) != 0) {
            int cause = errno;
            if (ot__path_exists(copy) && !ot__path_is_folder(copy))
                st = ot__error(OT_ERR_IO, "%s: is a file, expected a directory", copy);
            else if (!ot__path_is_folder(copy))
                st = ot__error(OT_ERR_IO, "%s: cannot be made: %s", copy, strerror(cause));
        }
        *p = c;
        if (c == '\0')
            break;
    }
    ot__free(copy);
    return st;
}
