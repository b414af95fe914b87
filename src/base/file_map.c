// SPDX-License-Identifier: Apache-2.0
// Whole files for reading: mapped where that is possible, else read to the end.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file_open.h"

static const size_t piece = (size_t)4 << 20; // of what is read at once; whole pages

ot_status ot__file_map_fd(ot__file_map *map, int fd, const char *path, size_t max_stream)
{
    struct stat info;
    size_t size;
    void *data;

    if (fstat(fd, &info) != 0)
        return ot__error_errno(path, "cannot be read");
    if (S_ISDIR(info.st_mode))
        return ot__error(OT_ERR_IO, "%s: is a directory", path);
    if (!ot__file_has_size(fd, &info))
        return ot__file_read_all(fd, path, max_stream, map);
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

ot_status ot__file_map_open_within(ot__file_map *map, const char *path, size_t max_stream)
{
    ot_status st;
    int fd;

    *map = (ot__file_map){0};
    OT_TRY(ot__file_open(path, &fd));
    st = ot__file_map_fd(map, fd, ot__file_label(path), max_stream);
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

ot_status ot__file_map_check(const ot__file_map *map, const char *path)
{
#ifdef MADV_POPULATE_READ
    for (size_t at = 0; map->is_mapped && at < map->size; at += piece) {
        const size_t n = OT_MIN(piece, map->size - at);
        const bool is_read =
            madvise((void *)(uintptr_t)(map->data + at), n, MADV_POPULATE_READ) == 0;

        if (!is_read && (errno == EFAULT || errno == EIO || errno == EHWPOISON))
            return ot__error(OT_ERR_IO, "%s: bytes %zu to %zu cannot be read", path, at, at + n);
        if (!is_read)
            break;
        ot__file_map_forget(map, at, n);
    }
#else
    (void)map;
    (void)path;
#endif
    return OT_OK;
}

void ot__file_map_copy(const ot__file_map *map, void *to, size_t offset, size_t n_bytes)
{
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
