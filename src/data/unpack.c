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

enum { CHUNK = 1 << 14 };

static const uint64_t default_max = UINT64_C(64) << 30, kept_free = UINT64_C(1) << 30;
// What grows more than this is made to fill disks: gzip's own limit is little above it.
static const uint64_t max_growth = 1000, harmless = UINT64_C(64) << 20;

static uint64_t max_of_size(uint64_t packed)
{
    return OT_MAX(packed > UINT64_MAX / max_growth ? UINT64_MAX : packed * max_growth, harmless);
}

static const char *folder_of(const ot_dataset_options *options)
{
    const char *folder = options->temp_dir ? options->temp_dir : getenv("TMPDIR");

    return folder && folder[0] ? folder : "/tmp";
}

ot_status ot__spill_open(ot__spill *spill, const ot__source *source,
                         const ot_dataset_options *options)
{
    char *name = ot__path_join(folder_of(options), "onnxtrain.XXXXXX");
    struct statvfs space;
    ot_status st = OT_OK;

    *spill = (ot__spill){.fd = -1, .source = source};
    OT_TRY(ot__made(name));
    spill->max = options->max_unpacked ? options->max_unpacked : default_max;
    spill->max_of_size = options->max_unpacked ? UINT64_MAX : max_of_size(source->input.size);
    if (statvfs(folder_of(options), &space) == 0) {
        const uint64_t free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
        spill->max = OT_MIN(spill->max, free_bytes > kept_free ? free_bytes - kept_free : 0);
    }
    spill->fd = mkstemp(name);
    if (spill->fd < 0)
        st = ot__error_errno(name, "cannot be made");
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
                         spill->source->path, spill->max);
    if (n_bytes > spill->max_of_size - OT_MIN(spill->size, spill->max_of_size))
        return ot__error(OT_ERR_NO_MEMORY,
                         "%s: unpacks to more than %" PRIu64 " times its %" PRIu64
                         " bytes, as files made to fill disks do; max_unpacked allows more",
                         spill->source->path, max_growth, spill->source->input.size);
    spill->size += n_bytes;
    while (n_bytes > 0) {
        ssize_t n = write(spill->fd, next, n_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ot__error_errno(spill->source->path, "cannot be unpacked");
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
        return ot__error_errno(spill->source->path, "cannot be mapped");
    *map = (ot__file_map){.data = data, .size = (size_t)spill->size, .is_mapped = true};
    return OT_OK;
}

void ot__spill_close(ot__spill *spill)
{
    if (spill->fd >= 0)
        close(spill->fd);
    spill->fd = -1;
}

static ot_status copy_to(ot__spill *spill, const ot__source *source)
{
    char chunk[CHUNK];

    for (uint64_t at = 0; at < source->input.size;) {
        const size_t n = (size_t)OT_MIN(source->input.size - at, (uint64_t)sizeof(chunk));

        OT_TRY(ot__file_input_read(&source->input, source->path, at, chunk, n));
        OT_TRY(ot__spill_write(spill, chunk, n));
        at += n;
    }
    return OT_OK;
}

ot_status ot__spill_replace(ot__spill *spill, ot__source *source)
{
    ot__file_map map;

    OT_TRY(ot__spill_map(spill, &map));
    ot__file_input_close(&source->input);
    ot__file_input_of(&source->input, &map);
    return OT_OK;
}

ot_status ot__spill_source(ot__source *source, const ot_dataset_options *options)
{
    ot__spill spill;
    ot_status st;

    OT_TRY(ot__spill_open(&spill, source, options));
    st = copy_to(&spill, source);
    OT_THEN(st, ot__spill_replace(&spill, source));
    ot__spill_close(&spill);
    return st;
}

// ---- gzip ----

typedef struct packed {
    const ot__source *source;
    uint64_t read; // bytes of it
    unsigned char chunk[CHUNK];
} packed;

static ot_status refill(z_stream *stream, packed *from)
{
    const uint64_t left = from->source->input.size - from->read;
    const size_t n = (size_t)OT_MIN(left, (uint64_t)sizeof(from->chunk));

    if (stream->avail_in > 0)
        return OT_OK;
    OT_TRY(
        ot__file_input_read(&from->source->input, from->source->path, from->read, from->chunk, n));
    stream->next_in = from->chunk;
    stream->avail_in = (uInt)n;
    from->read += n;
    return OT_OK;
}

static ot_status inflate_all(z_stream *stream, packed *from, ot__spill *spill)
{
    const char *path = from->source->path;
    unsigned char chunk[CHUNK];
    int result = Z_OK;

    for (;;) {
        OT_TRY(refill(stream, from));
        if (stream->avail_in == 0)
            return result == Z_STREAM_END
                       ? OT_OK
                       : ot__error(OT_ERR_FORMAT, "%s: ends inside its compressed data", path);
        if (result == Z_STREAM_END) {
            if (stream->next_in[0] != 0x1f) // padding behind the last member
                return OT_OK;
            inflateReset(stream);
        }
        stream->next_out = chunk;
        stream->avail_out = sizeof(chunk);
        result = inflate(stream, Z_NO_FLUSH);
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return ot__error(OT_ERR_FORMAT, "%s: compressed data is damaged: %s", path,
                             stream->msg ? stream->msg : "no detail");
        OT_TRY(ot__spill_write(spill, chunk, sizeof(chunk) - stream->avail_out));
    }
}

ot_status ot__unpack_gzip(ot__source *source, const ot_dataset_options *options)
{
    packed from = {.source = source};
    z_stream stream = {0};
    ot__spill spill;
    ot_status st;

    OT_TRY(ot__spill_open(&spill, source, options));
    if (inflateInit2(&stream, 15 + 16) != Z_OK) {
        ot__spill_close(&spill);
        return ot__error_memory(0);
    }
    st = inflate_all(&stream, &from, &spill);
    inflateEnd(&stream);
    OT_THEN(st, ot__spill_replace(&spill, source));
    ot__spill_close(&spill);
    return st;
}
