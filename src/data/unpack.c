// SPDX-License-Identifier: Apache-2.0
// Packed files are unpacked once, into a temporary file that has no name any more and goes with its
// mapping.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>

#include "data/data.h"

static const uint64_t default_max = UINT64_C(64) << 30, kept_free = UINT64_C(1) << 30;

static const char *folder_of(const ot_dataset_options *options)
{
    const char *folder = options->temp_folder ? options->temp_folder : getenv("TMPDIR");

    return folder && folder[0] ? folder : "/tmp";
}

ot_status ot__spill_open(ot__spill *spill, const char *path, const ot_dataset_options *options)
{
    char *name = ot__path_join(folder_of(options), "onnxtrain.XXXXXX");
    struct statvfs space;
    ot_status st = OT_OK;

    *spill = (ot__spill){.fd = -1, .path = path};
    if (!name)
        return OT_ERR_NO_MEMORY;
    spill->max = options->max_unpacked ? options->max_unpacked : default_max;
    if (statvfs(folder_of(options), &space) == 0) {
        const uint64_t free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
        spill->max = OT_MIN(spill->max, free_bytes > kept_free ? free_bytes - kept_free : 0);
    }
    spill->fd = mkstemp(name);
    if (spill->fd < 0)
        st = ot__error(OT_ERR_IO, "%s: cannot be made: %s", name, strerror(errno));
    else
        unlink(name);
    ot__free(name);
    return st;
}

ot_status ot__spill_write(ot__spill *spill, const void *bytes, size_t n_bytes)
{
    const char *next = bytes;

    if (n_bytes > spill->max - spill->size)
        return ot__error(OT_ERR_NO_MEMORY, "%s: unpacks to more than the %" PRIu64 " bytes allowed",
                         spill->path, spill->max);
    spill->size += n_bytes;
    while (n_bytes > 0) {
        ssize_t n = write(spill->fd, next, n_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ot__error(OT_ERR_IO, "%s: cannot be unpacked: %s", spill->path, strerror(errno));
        next += n;
        n_bytes -= (size_t)n;
    }
    return OT_OK;
}

ot_status ot__spill_map(ot__spill *spill, ot__file_map *map)
{
    void *data;

    *map = (ot__file_map){0};
    if (spill->size == 0) {
        ot__spill_close(spill);
        return OT_OK;
    }
    data = mmap(NULL, (size_t)spill->size, PROT_READ, MAP_PRIVATE, spill->fd, 0);
    ot__spill_close(spill);
    if (data == MAP_FAILED)
        return ot__error(OT_ERR_IO, "%s: cannot be mapped: %s", spill->path, strerror(errno));
    *map = (ot__file_map){.data = data, .size = (size_t)spill->size, .is_mapped = true};
    return OT_OK;
}

void ot__spill_close(ot__spill *spill)
{
    if (spill->fd >= 0)
        close(spill->fd);
    spill->fd = -1;
}

bool ot__is_gzip(const ot__file_map *map)
{
    return map->size >= 2 && map->data[0] == 0x1f && map->data[1] == 0x8b;
}

// zlib takes at most 4 GiB at a time.
static void refill(z_stream *stream, const ot__file_map *map, size_t *read)
{
    size_t n = OT_MIN(map->size - *read, (size_t)1 << 30);

    if (stream->avail_in == 0) {
        stream->next_in = (Bytef *)(uintptr_t)(map->data + *read);
        stream->avail_in = (uInt)n;
        *read += n;
    }
}

static ot_status inflate_all(z_stream *stream, const ot__file_map *map, ot__spill *spill)
{
    unsigned char chunk[1 << 16];
    size_t read = 0;
    int result = Z_OK;

    for (;;) {
        refill(stream, map, &read);
        if (stream->avail_in == 0)
            return result == Z_STREAM_END
                       ? OT_OK
                       : ot__error(OT_ERR_FORMAT, "%s: ends inside its compressed data",
                                   spill->path);
        if (result == Z_STREAM_END) {
            if (stream->next_in[0] != 0x1f) // padding behind the last member
                return OT_OK;
            inflateReset(stream);
        }
        stream->next_out = chunk;
        stream->avail_out = sizeof(chunk);
        result = inflate(stream, Z_NO_FLUSH);
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return ot__error(OT_ERR_FORMAT, "%s: compressed data is damaged: %s", spill->path,
                             stream->msg ? stream->msg : "no detail");
        OT_TRY(ot__spill_write(spill, chunk, sizeof(chunk) - stream->avail_out));
    }
}

ot_status ot__unpack_gzip(ot__source *source, const ot_dataset_options *options)
{
    z_stream stream = {0};
    ot__spill spill;
    ot__file_map unpacked;
    ot_status st;

    OT_TRY(ot__spill_open(&spill, source->path, options));
    if (inflateInit2(&stream, 15 + 16) != Z_OK) {
        ot__spill_close(&spill);
        return ot__error_memory(0);
    }
    st = inflate_all(&stream, &source->map, &spill);
    inflateEnd(&stream);
    if (st == OT_OK)
        st = ot__spill_map(&spill, &unpacked);
    else
        ot__spill_close(&spill);
    if (st == OT_OK) {
        ot__file_map_close(&source->map);
        source->map = unpacked;
    }
    return st;
}
