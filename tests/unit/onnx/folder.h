// SPDX-License-Identifier: Apache-2.0
// A new folder for a test's files; it goes with everything in it.
#ifndef OT_TESTS_FOLDER_H
#define OT_TESTS_FOLDER_H

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/graph/model_text.h"

static char folder[64];

static inline void remove_all(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        struct stat info;
        char *inner;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        inner = ot__path_join(path, entry->d_name);
        if (lstat(inner, &info) == 0 && S_ISDIR(info.st_mode))
            remove_all(inner);
        else
            unlink(inner);
        ot__free(inner);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

static inline int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/onnxtrain_test_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    remove_all(folder);
    return 0;
}

// Where `name` is in the folder; the last four answers stay.
static inline const char *in_folder(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline void write_file(const char *name, const void *bytes, size_t n)
{
    assert_int_equal(ot__file_write(in_folder(name), bytes, n), OT_OK);
}

#endif
