// SPDX-License-Identifier: Apache-2.0
// What a power cut leaves: file calls are recorded, and any beginning of them is done again in
// another folder, with or without what was not synchronised by then.
#ifndef OT_TESTS_UNIT_BASE_POWER_CUT_H
#define OT_TESTS_UNIT_BASE_POWER_CUT_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/file_calls.h"
#include "temporary_folder.h"

enum { CUT_EVENTS_MAX = 256, CUT_FILES_MAX = 64, CUT_FDS_MAX = 1024 };

typedef struct cut_log {
    ot__file_event events[CUT_EVENTS_MAX]; // with copies of their names and bytes
    int n;
} cut_log;

static inline void cut_record(void *context, const ot__file_event *event)
{
    cut_log *log = context;
    ot__file_event *own = &log->events[log->n++];

    assert_true(log->n <= CUT_EVENTS_MAX);
    *own = *event;
    own->path = event->path != NULL ? ot__strdup(event->path) : NULL;
    own->to = event->to != NULL ? ot__strdup(event->to) : NULL;
    own->bytes = ot__alloc(event->n_bytes);
    assert_non_null(own->bytes);
    if (event->n_bytes > 0)
        memcpy((void *)(uintptr_t)own->bytes, event->bytes, event->n_bytes);
}

static inline void cut_forget(cut_log *log)
{
    for (int i = 0; i < log->n; i++) {
        ot__free((void *)(uintptr_t)log->events[i].path);
        ot__free((void *)(uintptr_t)log->events[i].to);
        ot__free((void *)(uintptr_t)log->events[i].bytes);
    }
    log->n = 0;
}

// What of the things that were not synchronised is there afterwards: names (new files, renames,
// removals), and bytes of files.
typedef struct cut_kept {
    bool names, bytes;
} cut_kept;

typedef struct cut_name {
    const char *path;
    int file;
} cut_name;

typedef struct cut_disk {
    ot__buf files[CUT_FILES_MAX];
    size_t synced[CUT_FILES_MAX];
    int n_files;
    cut_name now[CUT_FILES_MAX], durable[CUT_FILES_MAX]; // file < 0: no entry
    const char *folders[CUT_FDS_MAX];                    // by descriptor; NULL: a file
    int open_files[CUT_FDS_MAX];
} cut_disk;

static inline cut_name *cut_find(cut_name *names, const char *path)
{
    cut_name *free_entry = NULL;

    for (int i = 0; i < CUT_FILES_MAX; i++) {
        if (names[i].file >= 0 && strcmp(names[i].path, path) == 0)
            return &names[i];
        if (names[i].file < 0 && free_entry == NULL)
            free_entry = &names[i];
    }
    assert_non_null(free_entry);
    free_entry->path = path;
    return free_entry;
}

static inline bool cut_is_in(const char *path, const char *folder)
{
    const size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && path[n] == '/' && strchr(path + n + 1, '/') == NULL;
}

static inline void cut_sync(cut_disk *disk, int fd)
{
    const char *folder = disk->folders[fd];

    if (folder == NULL) {
        disk->synced[disk->open_files[fd]] = disk->files[disk->open_files[fd]].length;
        return;
    }
    for (int i = 0; i < CUT_FILES_MAX; i++)
        if (disk->durable[i].file >= 0 && cut_is_in(disk->durable[i].path, folder))
            disk->durable[i].file = -1;
    for (int i = 0; i < CUT_FILES_MAX; i++)
        if (disk->now[i].file >= 0 && cut_is_in(disk->now[i].path, folder))
            cut_find(disk->durable, disk->now[i].path)->file = disk->now[i].file;
}

static inline void cut_open(cut_disk *disk, const ot__file_event *event)
{
    cut_name *name;

    assert_in_range(event->fd, 0, CUT_FDS_MAX - 1);
    disk->folders[event->fd] = (event->flags & O_DIRECTORY) != 0 ? event->path : NULL;
    if (disk->folders[event->fd] != NULL)
        return;
    name = cut_find(disk->now, event->path);
    if (name->file < 0)
        name->file = disk->n_files++;
    assert_true(disk->n_files <= CUT_FILES_MAX);
    disk->open_files[event->fd] = name->file;
    if ((event->flags & O_TRUNC) != 0)
        disk->files[name->file].length = disk->synced[name->file] = 0;
}

static inline void cut_do(cut_disk *disk, const ot__file_event *event)
{
    cut_name *from;

    switch (event->call) {
    case OT_FILE_CALL_OPEN:
        cut_open(disk, event);
        break;
    case OT_FILE_CALL_WRITE:
        ot__buf_append(&disk->files[disk->open_files[event->fd]], event->bytes, event->n_bytes);
        break;
    case OT_FILE_CALL_SYNC:
        cut_sync(disk, event->fd);
        break;
    case OT_FILE_CALL_RENAME:
    case OT_FILE_CALL_LINK:
    case OT_FILE_CALL_REMOVE:
        from = cut_find(disk->now, event->path);
        assert_true(from->file >= 0);
        if (event->to != NULL)
            cut_find(disk->now, event->to)->file = from->file;
        if (event->call != OT_FILE_CALL_LINK)
            from->file = -1;
        break;
    default:
        break;
    }
}

// The folder `to`, which is emptied, becomes what `from` is after the first `n` calls and a power
// cut.
static inline void cut_build(const cut_log *log, int n, cut_kept kept, const char *from,
                             const char *to)
{
    cut_disk *disk = ot__alloc_zero(1, sizeof *disk);
    const cut_name *names;

    assert_non_null(disk);
    for (int i = 0; i < CUT_FILES_MAX; i++)
        disk->now[i].file = disk->durable[i].file = -1;
    for (int i = 0; i < n; i++)
        cut_do(disk, &log->events[i]);
    remove_below(to);
    names = kept.names ? disk->now : disk->durable;
    for (int i = 0; i < CUT_FILES_MAX; i++) {
        const ot__buf *file = &disk->files[OT_MAX(names[i].file, 0)];
        const size_t n_bytes = kept.bytes ? file->length : disk->synced[OT_MAX(names[i].file, 0)];
        char path[PATH_LENGTH_MAX], *folder;
        FILE *out;

        if (names[i].file < 0)
            continue;
        assert_memory_equal(names[i].path, from, strlen(from));
        snprintf(path, sizeof path, "%s%s", to, names[i].path + strlen(from));
        folder = ot__path_folder(path);
        assert_int_equal(ot__path_make_folder(folder), OT_OK);
        ot__free(folder);
        out = fopen(path, "wb");
        assert_non_null(out);
        if (n_bytes > 0)
            assert_int_equal(fwrite(file->data, 1, n_bytes, out), n_bytes);
        fclose(out);
    }
    for (int i = 0; i < disk->n_files; i++)
        ot__buf_deinit(&disk->files[i]);
    ot__free(disk);
}

#endif
