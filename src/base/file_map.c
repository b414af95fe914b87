// SPDX-License-Identifier: Apache-2.0
// Whole files for reading: mapped where that is possible, else read to the end.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

// Pipes and the like have no size: read to the end.
static ot_status read_all(int fd, const char *path, size_t max, ot__file_map *map)
{
    ot__buf buf = {0};
    char chunk[1 << 16];
    ot_status st = OT_OK;
    ssize_t n;

    while (st == OT_OK && (n = read(fd, chunk, sizeof(chunk))) != 0) {
        if (n > 0 && (size_t)n > max - buf.length)
            st = ot__error(OT_ERR_NO_MEMORY,
                           "%s: has no end within %zu bytes, the most that is read of what is no "
                           "regular file",
                           path, max);
        else if (n > 0)
            ot__buf_append(&buf, chunk, (size_t)n);
        else if (errno != EINTR)
            st = ot__error_errno(path, "cannot be read");
        if (buf.failed)
            st = ot__error_prefix(ot__buf_status(&buf), "%s", path);
    }
    if (st == OT_OK)
        *map = (ot__file_map){.data = (uint8_t *)buf.data, .size = buf.length};
    else
        ot__buf_deinit(&buf);
    return st;
}

ot_status ot__file_map_fd(ot__file_map *map, int fd, const char *path, size_t max_stream)
{
    struct stat info;
    size_t size;
    void *data;

    if (fstat(fd, &info) != 0)
        return ot__error_errno(path, "cannot be read");
    if (S_ISDIR(info.st_mode))
        return ot__error(OT_ERR_IO, "%s: is a folder", path);
    // A file that somebody has begun to read (standard input) goes on from there. Some regular
    // files say 0 and have content (/proc).
    if (!S_ISREG(info.st_mode) || info.st_size == 0 || lseek(fd, 0, SEEK_CUR) != 0)
        return read_all(fd, path, max_stream, map);
    size = (size_t)info.st_size;
    if ((intmax_t)size != (intmax_t)info.st_size)
        return ot__error(OT_ERR_IO, "%s: has %jd bytes, more than can be addressed", path,
                         (intmax_t)info.st_size);
    data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return ot__error_errno(path, "cannot be mapped");
    *map = (ot__file_map){.data = data, .size = size, .is_mapped = true};
    return OT_OK;
}

static ot_status cannot_open(const char *path)
{
    const int cause = errno;
    struct stat info;

    if (stat(path, &info) == 0 && S_ISSOCK(info.st_mode))
        return ot__error(OT_ERR_IO, "%s: is a socket, expected a file", path);
    errno = cause;
    return ot__error_errno(path, "cannot be opened");
}

ot_status ot__file_map_open_within(ot__file_map *map, const char *path, size_t max_stream)
{
    ot_status st;
    int fd;

    *map = (ot__file_map){0};
    if (strcmp(path, "-") == 0)
        return ot__file_map_fd(map, STDIN_FILENO, "standard input", max_stream);
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return cannot_open(path);
    st = ot__file_map_fd(map, fd, path, max_stream);
    close(fd);
    return st;
}

ot_status ot__file_map_open(ot__file_map *map, const char *path)
{
    return ot__file_map_open_within(map, path, OT_STREAM_MAX);
}

void ot__file_map_close(ot__file_map *map)
{
    if (map->is_mapped)
        munmap((void *)(uintptr_t)map->data, map->size);
    else
        ot__free((void *)(uintptr_t)map->data);
    *map = (ot__file_map){0};
}

void ot__file_map_forget(const ot__file_map *map, size_t offset, size_t n_bytes)
{
#ifdef MADV_DONTNEED // POSIX's own call may do nothing
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t first = offset / page * page; // maps begin at a page

    if (map->is_mapped && n_bytes > 0)
        (void)madvise((void *)(uintptr_t)(map->data + first), offset - first + n_bytes,
                      MADV_DONTNEED);
#else
    (void)map;
    (void)offset;
    (void)n_bytes;
#endif
}

void ot__file_map_copy(const ot__file_map *map, void *to, size_t offset, size_t n_bytes)
{
    const size_t piece = (size_t)4 << 20;
    char *next = to;

    while (n_bytes > 0) {
        const size_t n = OT_MIN(n_bytes, piece);

        memcpy(next, map->data + offset, n);
        if (n >= piece / 64) // below, the call costs more than the memory
            ot__file_map_forget(map, offset, n);
        next += n;
        offset += n;
        n_bytes -= n;
    }
}
