// SPDX-License-Identifier: Apache-2.0
// Files that are read by position while they are used. Somebody may shorten them meanwhile: then a
// read finds less, where access to a map would end the process.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file_open.h"

enum { READ_MAX = 1 << 30 }; // bytes per call; Linux gives no more than 2 GiB

ot_status ot__file_input_open(ot__file_input *input, const char *path)
{
    struct stat info;
    ot_status st;
    int fd;

    *input = (ot__file_input){0};
    OT_TRY(ot__file_open(path, &fd));
    path = ot__file_label(path);
    if (fstat(fd, &info) == 0 && ot__file_has_size(fd, &info)) {
        *input = (ot__file_input){.is_file = true, .fd = fd, .size = (uint64_t)info.st_size};
        return OT_OK;
    }
    st = ot__file_map_fd(&input->memory, fd, path, OT_STREAM_MAX);
    input->size = input->memory.size;
    close(fd);
    return st;
}

void ot__file_input_of(ot__file_input *input, ot__file_map *memory)
{
    *input = (ot__file_input){.memory = *memory, .size = memory->size};
    *memory = (ot__file_map){0};
}

void ot__file_input_close(ot__file_input *input)
{
    if (input->is_file)
        close(input->fd);
    ot__file_map_close(&input->memory);
    *input = (ot__file_input){0};
}

ot_status ot__file_input_read(const ot__file_input *input, const char *path, uint64_t offset,
                              void *to, size_t n_bytes)
{
    char *next = to;

    if (n_bytes > 0 && !input->is_file) {
        memcpy(to, input->memory.data + offset, n_bytes);
        n_bytes = 0;
    }
    while (n_bytes > 0) {
        const ssize_t n = pread(input->fd, next, OT_MIN(n_bytes, (size_t)READ_MAX), (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ot__error_errno(path, "cannot be read");
        if (n == 0)
            return ot__error(OT_ERR_IO,
                             "%s: had %" PRIu64 " bytes when it was opened, now ends before byte "
                             "%" PRIu64,
                             path, input->size, offset + 1);
        next += n;
        offset += (uint64_t)n;
        n_bytes -= (size_t)n;
    }
    return OT_OK;
}
