// SPDX-License-Identifier: Apache-2.0
// The system calls by which writers change something, as tests count them, log them and make them
// fail. Private to `base` and the tests.
#ifndef OT_BASE_FILE_CALLS_H
#define OT_BASE_FILE_CALLS_H

#include <sys/types.h>

#include "base/base.h"

// As the calls of the system. Open, sync and close go on after a signal.
int ot__call_open(const char *path, int flags, mode_t mode);
int ot__call_chmod(int fd, mode_t mode);
ssize_t ot__call_write(int fd, const void *bytes, size_t n_bytes);
int ot__call_sync(int fd);
// What was written there is on its way, where the system can be told so; nothing is promised, and
// tests do not count it.
void ot__begin_sync(int fd, int64_t at, int64_t n_bytes);
int ot__call_close(int fd); // the descriptor is gone, whatever it answers
int ot__call_rename(const char *from, const char *to);
int ot__call_link(const char *from, const char *to);
int ot__call_remove(const char *path);
int ot__call_mkdir(const char *path, mode_t mode);
int ot__call_rmdir(const char *path);
int ot__call_exchange(const char *a, const char *b); // both names at once; ENOSYS: not here

typedef enum ot__file_call {
    OT_FILE_CALL_ANY,
    OT_FILE_CALL_OPEN,
    OT_FILE_CALL_CHMOD,
    OT_FILE_CALL_WRITE,
    OT_FILE_CALL_SYNC,
    OT_FILE_CALL_CLOSE,
    OT_FILE_CALL_RENAME,
    OT_FILE_CALL_LINK,
    OT_FILE_CALL_REMOVE,
    OT_FILE_CALL_MKDIR,
    OT_FILE_CALL_RMDIR,
    OT_FILE_CALL_EXCHANGE,
} ot__file_call;

typedef enum ot__file_fault {
    OT_FILE_FAIL,      // EIO
    OT_FILE_KILL,      // SIGKILL for the process before the call
    OT_FILE_INTERRUPT, // EINTR
    OT_FILE_SHORT,     // takes one byte, where the call is a write
    OT_FILE_FULL,      // ENOSPC from here on, where the call is a write or makes a name
    OT_FILE_TOO_LARGE, // EFBIG from here on, where the call is a write
} ot__file_fault;

// Of this thread's calls n more succeed, and the next one has the fault; n < 0: none has. Returns
// how many there have been since the last call of either function. Of the first write that finds no
// room half is taken.
int64_t ot__file_fault_after(int64_t n, ot__file_fault fault);
// The same, where only calls of one kind are counted.
int64_t ot__file_fault_at(ot__file_call call, int64_t n, ot__file_fault fault);

// For tests: on this thread names cannot be exchanged, as on systems that have no such call.
void ot__file_no_exchange(bool none);

// A call that this thread has made, and that did what it says.
typedef struct ot__file_event {
    ot__file_call call;
    const char *path, *to; // of open and what changes names; `to` of rename, link and exchange
    int flags;             // of open
    int fd;                // -1 for those by name alone
    const void *bytes;     // of a write: what was taken
    size_t n_bytes;
} ot__file_event;
typedef void (*ot__file_log)(void *context, const ot__file_event *event);
void ot__file_log_to(ot__file_log log, void *context); // of this thread; NULL: to nobody

#endif
