// SPDX-License-Identifier: Apache-2.0
// Opening files for reading, and reading pipes to their end: without waiting for ever for somebody
// who writes into them.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_open.h"

enum {
    WRITER_SECONDS = 2, // so long what writes into a named pipe may take to open it
    WRITER_LOOKS_MS = 20,
};

const char *ot__file_label(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static ot_status cannot_open(const char *path)
{
    const int cause = errno;
    struct stat info;

    if (stat(path, &info) == 0 && S_ISSOCK(info.st_mode))
        return ot__error(OT_ERR_IO, "%s: is a socket, expected a file", path);
    if (path[0] == '\0')
        return ot__error(OT_ERR_IO, "the name of a file is empty");
    errno = cause;
    return ot__error_errno(ot__file_label(path), "cannot be opened");
}

ot_status ot__file_open(const char *path, int *fd)
{
    do {
        // Without O_NONBLOCK a named pipe would wait here for a writer.
        *fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                     : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    } while (*fd < 0 && errno == EINTR);
    return *fd < 0 ? cannot_open(path) : OT_OK;
}

bool ot__file_has_size(int fd, const struct stat *info)
{
    return S_ISREG(info->st_mode) && info->st_size > 0 && lseek(fd, 0, SEEK_CUR) == 0;
}

// A pipe of the shell (/dev/fd/63) has no place in the file system; who writes into it has it open
// already, or is done.
static bool is_named_pipe(int fd, const char *path)
{
    struct stat info;
    const bool is_pipe = fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
    char *place = is_pipe ? realpath(path, NULL) : NULL;

    free(place);
    return place != NULL;
}

// A read that takes part in waiting: of bytes, or for a writer until `end`.
typedef struct pipe_reader {
    int fd;
    bool needs_writer; // nobody has been seen to write into it, and it has a name
    double end;
} pipe_reader;

// As read(), but a pipe that nobody has opened for writing yet has not ended.
static ssize_t read_some(pipe_reader *r, void *to, size_t size)
{
    struct pollfd readable = {.fd = r->fd, .events = POLLIN};

    for (;;) {
        const ssize_t n = read(r->fd, to, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            r->needs_writer = false; // it is there, and has written nothing
            (void)poll(&readable, 1, -1);
            continue;
        }
        if (n != 0 || !r->needs_writer || ot__clock_seconds() > r->end)
            return n;
        // Somebody who opens it and writes nothing does not end the wait.
        if (poll(&readable, 1, WRITER_LOOKS_MS) > 0)
            r->needs_writer = false; // bytes, or a writer that is gone again
    }
}

ot_status ot__file_read_all(int fd, const char *path, size_t max, ot__file_map *map)
{
    pipe_reader reader = {.fd = fd,
                          .needs_writer = is_named_pipe(fd, path),
                          .end = ot__clock_seconds() + WRITER_SECONDS};
    ot__buf buf = {0};
    char chunk[1 << 14];
    ot_status st = OT_OK;
    ssize_t n;

    ot__buf_text(&buf, ""); // nothing that was read is not NULL, either
    while (st == OT_OK && (n = read_some(&reader, chunk, sizeof(chunk))) != 0) {
        reader.needs_writer = false;
        if (n > 0 && (size_t)n > max - buf.length)
            st = ot__error(OT_ERR_NO_MEMORY,
                           "%s: has no end within %zu bytes, the most that is read of what is no "
                           "regular file",
                           path, max);
        else if (n > 0)
            ot__buf_append(&buf, chunk, (size_t)n);
        else
            st = ot__error_errno(path, "cannot be read");
        if (buf.failed)
            st = ot__error_prefix(ot__buf_status(&buf), "%s", path);
    }
    if (st == OT_OK && reader.needs_writer)
        st = ot__error(OT_ERR_IO, "%s: is a pipe that nobody writes into", path);
    if (st == OT_OK && buf.failed)
        st = ot__error_prefix(ot__buf_status(&buf), "%s", path);
    if (st == OT_OK)
        *map = (ot__file_map){.data = (uint8_t *)buf.data, .size = buf.length};
    else
        ot__buf_deinit(&buf);
    return st;
}
