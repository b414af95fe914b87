// SPDX-License-Identifier: Apache-2.0
// Part of base.h: files, directories, paths, locks.
#ifndef OT_BASE_BASE_FILES_H
#define OT_BASE_BASE_FILES_H

// ---- files (file_map.c and file_input.c read, file.c writes, path.c, lock.c) ----

typedef struct ot__file_map {
    const uint8_t *data;
    size_t size;
    bool is_mapped; // false: allocated (standard input, pipes, empty files)
} ot__file_map;
// Read-only view of a whole file; "-" is standard input. Folders, sockets, named pipes that nobody
// writes into and missing files are OT_ERR_IO naming the path. The file must not become shorter
// while the view is used: the system ends the process (SIGBUS) that then looks at what is gone.
// What has no size (pipes, devices) is read to its end, which must come within OT_STREAM_MAX bytes,
// or `max_stream`, else OT_ERR_NO_MEMORY.
#define OT_STREAM_MAX ((size_t)2 << 30) // as much as one message of protobuf can hold
ot_status ot__file_map_open(ot__file_map *map, const char *path);
ot_status ot__file_map_open_within(ot__file_map *map, const char *path, size_t max_stream);
// The same of an open file, which the caller closes; `path` is for messages.
ot_status ot__file_map_fd(ot__file_map *map, int fd, const char *path, size_t max_stream);
void ot__file_map_close(ot__file_map *map);
// Gives back the memory of pages that were read; reading them again fetches them from the file.
void ot__file_map_forget(const ot__file_map *map, size_t offset, size_t n_bytes);
// Reads all of it once, so that what the disk has lost is OT_ERR_IO naming the path; where the
// system cannot tell (before Linux 5.14) all is well.
ot_status ot__file_map_check(const ot__file_map *map, const char *path);
// Copies without ever having much of the map in memory besides the copy.
void ot__file_map_copy(const ot__file_map *map, void *to, size_t offset, size_t n_bytes);

// A file that is read by position, for those that others may shorten meanwhile. All {0}: nothing.
typedef struct ot__file_input {
    ot__file_map memory; // all bytes, when it is no file: of pipes, or what was put here
    bool is_file;
    int fd;
    uint64_t size; // when it was opened
} ot__file_input;
ot_status ot__file_input_open(ot__file_input *input, const char *path); // as ot__file_map_open()
void ot__file_input_of(ot__file_input *input, ot__file_map *memory);    // takes it over
void ot__file_input_close(ot__file_input *input);
// Bytes within `size`; OT_ERR_IO naming `path` when the file has become shorter.
ot_status ot__file_input_read(const ot__file_input *input, const char *path, uint64_t offset,
                              void *to, size_t n_bytes);

// What a file is by its first bytes (file_kind.c).
typedef enum ot__file_kind {
    OT_FILE_UNKNOWN,
    OT_FILE_MODEL,
    OT_FILE_CHECKPOINT,
    OT_FILE_DATA,
    OT_FILE_HDF5,
    OT_FILE_OTHER, // known, and none of these
} ot__file_kind;
// OT_ERR_FORMAT, "path: is a checkpoint, not a model", when it is known to be something else than
// what was wanted.
ot_status ot__file_kind_check(const void *data, size_t size, const char *path,
                              ot__file_kind wanted);

// Write a file so that a kill at any moment leaves the old or the new one: temporary file in the
// same folder, fsync, rename, fsync of the folder. The old file's permissions are kept; of a
// symbolic link the file it points to is replaced. "-" writes to standard output; devices and pipes
// are written to in place. A commit removes the temporary files that killed writers of the same
// file have left.
typedef struct ot__file_writer ot__file_writer;
ot_status ot__file_writer_open(ot__file_writer **out, const char *path);
ot_status ot__file_writer_write(ot__file_writer *writer, const void *bytes, size_t n_bytes);
// The same for a file of which there is none yet: what stands at the path, or comes to stand there
// before the commit, stays, and the writer fails. Where it is written, for libraries that write
// files themselves, is its place; the commit makes it durable.
ot_status ot__file_writer_open_new(ot__file_writer **out, const char *path);
const char *ot__file_writer_place(const ot__file_writer *writer);
// What was written is on the disk, before there is a name for it.
ot_status ot__file_writer_sync(ot__file_writer *writer);
// Frees the writer, whatever happens. An error when any write before has failed.
ot_status ot__file_writer_commit(ot__file_writer *writer);
void ot__file_writer_abort(ot__file_writer *writer); // removes the temporary file; NULL is fine
// A file in a directory that nobody looks into yet: written in place, synchronised by the commit.
ot_status ot__file_writer_open_within(ot__file_writer **out, const char *path);
// A file that is written to as it grows, whatever becomes of the process: what is there is kept and
// followed, or dropped.
ot_status ot__file_append_open(ot__file_writer **out, const char *path, bool keeps);
ot_status ot__file_write(const char *path, const void *bytes,
                         size_t n_bytes); // all of the above in one call
// A file and the data file that it needs, with the same promise for both: the new data take a place
// where the file that stands there needs nothing, then the file takes its place, then what only the
// old one needed is removed: the names beside `path` that match, unless another writer of the same
// file may need one. `data` NULL: the new file needs none. Frees both writers, whatever happens.
typedef struct ot__file_names {
    bool (*match)(const void *context, const char *name);
    const void *context;
} ot__file_names;
ot_status ot__file_pair_commit(const char *path, ot__file_writer *data, ot__file_writer *file,
                               const ot__file_names *old_data);
// Rename within a folder, durably; what is at `to` is replaced.
ot_status ot__file_rename(const char *from, const char *to);
void ot__file_remove(const char *path); // as far as possible; a missing file is fine

// Files that were removed while they are held: the system takes their pages back when they are let
// go, which takes as long as it is much. What there is no room for is not held. {0}: none.
enum { OT_HELD_FILES = 64 };
typedef struct ot__held_files {
    int fds[OT_HELD_FILES];
    int n;
} ot__held_files;
void ot__held_files_drop(ot__held_files *held);

// A directory that appears with all its files, or not at all (directory.c): they are written into
// one beside its path, which then takes its name. All {0}: none.
typedef struct ot__staging {
    char *path, *parent;
    char *place; // where the files are written; NULL: there is none
    int fd;      // locked, so that it is not taken for what a killed process has left
} ot__staging;
// Its parent is there. Nobody finds it after a power cut before the parent is synchronised.
ot_status ot__staging_open(ot__staging *staging, const char *path);
// A directory that is there is replaced or, unless `replaces`, stays: OT_ERR_IO; an empty one never
// matters. Durable when it is OT_OK; else what was there before is there. `held` gets the files of
// the old one; NULL: nobody does.
ot_status ot__staging_publish(ot__staging *staging, bool replaces, ot__held_files *held);
void ot__staging_close(ot__staging *staging); // removes what was not published
// Removes what processes that have been killed left in a directory: what was not published.
void ot__staging_sweep(const char *parent);
// Where a directory is that a killed process was about to replace, when it is not at its path: a
// name in its parent, which the caller frees; NULL: nowhere.
char *ot__staging_find_old(const char *path);
// Removes a directory and the files in it, under another name first; false: not all of it. `held`
// gets the files; NULL: nobody does.
bool ot__directory_remove(const char *path, ot__held_files *held);
// Names in a directory that match, each with its NUL; those that cannot be had are left out.
void ot__directory_list(const char *path, const ot__file_names *names, ot__buf *out);
bool ot__directory_is_empty(const char *path);
ot_status ot__directory_sync(const char *path); // as far as the file system can

// What tests count, log and make fail of the calls by which a thread changes files (file_calls.h);
// NULL: nothing. A thread that works for another takes over what the other has, which makes no such
// calls meanwhile.
typedef struct ot__file_watch ot__file_watch;
ot__file_watch *ot__file_watch_get(void);
void ot__file_watch_set(ot__file_watch *watch);

// Two processes do not work at the same place (lock.c): who comes second gets OT_ERR_STATE saying
// who is there. Advisory, also over NFS; the death of the process releases it. Where the file
// system has no locks there is a warning instead.
typedef struct ot__lock {
    char *path; // NULL: not taken
    int fd;
} ot__lock;
ot_status ot__lock_take(const char *path, ot__lock *lock);
void ot__lock_leave(ot__lock *lock); // removes the file; of {0} it does nothing

char *ot__path_join(const char *folder,
                    const char *name);   // caller frees; absolute `name` is returned alone
char *ot__path_folder(const char *path); // "." when there is none; caller frees
bool ot__path_exists(const char *path);
bool ot__path_is_folder(const char *path);
// The size of a regular file, which is not opened: OT_ERR_IO naming the path for what is missing,
// and for folders, pipes and the like.
ot_status ot__path_file_size(const char *path, uint64_t *size);
ot_status ot__path_make_folder(const char *path); // parents too; existing is fine

#endif
