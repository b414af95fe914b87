// SPDX-License-Identifier: Apache-2.0
// A fresh folder for one test, removed with everything in it at the end.
#ifndef OT_TESTS_UNIT_BASE_TEMPORARY_FOLDER_H
#define OT_TESTS_UNIT_BASE_TEMPORARY_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_MAX = 64, PATH_LENGTH_MAX = 512 };

static inline int temporary_folder_make(void **state)
{
    char *folder = malloc(FOLDER_MAX);

    if (!folder)
        return -1;
    snprintf(folder, FOLDER_MAX, "temporary-XXXXXX");
    *state = folder;
    return mkdtemp(folder) ? 0 : -1;
}

static inline void remove_below(const char *folder)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;

    while (entries && (entry = readdir(entries))) {
        char path[PATH_LENGTH_MAX];
        struct stat info;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof(path), "%.200s/%s", folder, entry->d_name);
        if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode))
            remove_below(path);
        else
            unlink(path);
    }
    if (entries)
        closedir(entries);
    rmdir(folder);
}

static inline int temporary_folder_remove(void **state)
{
    remove_below(*state);
    free(*state);
    return 0;
}

// "<folder>/<name>" in one of a few static buffers: enough for one statement.
static inline const char *in_folder(void **state, const char *name)
{
    static char paths[4][PATH_LENGTH_MAX];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, PATH_LENGTH_MAX, "%s/%s", (const char *)*state, name);
    return path;
}

static inline int count_entries(const char *folder)
{
    DIR *entries = opendir(folder);
    int n = 0;

    while (entries && readdir(entries))
        n++;
    if (entries)
        closedir(entries);
    return n - 2; // "." and ".."
}

#define TEST_IN_FOLDER(test)                                                                       \
    cmocka_unit_test_setup_teardown(test, temporary_folder_make, temporary_folder_remove)

#endif
