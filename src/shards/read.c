// SPDX-License-Identifier: Apache-2.0
// Reads pieces of chunks to where they are wanted: what lies near together in a file is read at
// once. Checksums of large chunks are made by a second thread while more is read, where there is
// one and it is much.
#include <string.h>

#include "onnxtrain/sharding.h"
#include "shards/shards.h"

enum {
    GAP_MAX = 64 * 1024,        // bytes that are read along
    WINDOW_BYTES = 1024 * 1024, // of one read
    SEGMENTS_MAX = 4096,        // in a window
    MUCH_BYTES = 16 << 20,
    LARGE_BYTES = 1 << 20, // of a chunk
};

// Elements in one piece, in the file and in memory.
typedef struct segment {
    uint64_t at; // in the file
    int64_t count;
    char *to;
    const ot__portion *piece;
    bool is_checked;   // its chunk is read whole, one segment after the other
    bool is_announced; // and checked elsewhere
} segment;

typedef struct reading {
    const ot__index *index;
    const char *folder;
    ot_shards_verify_mode verify;
    ot__read_counts *counts;
    int i_file; // that is open; -1: none
    char *path;
    ot__file_input input;
    char *buffer;
    segment segments[SEGMENTS_MAX];
    int n;
    uint64_t begin, end; // of the window
    uint32_t crc;        // of the chunk at hand, so far
    uint64_t n_in_crc;
    ot__checks *checks;                 // NULL: nobody else checks
    const ot__index_chunk *all_checked; // the last one that was read whole for its checksum alone
} reading;

// ---- checksums ----

static ot_status wrong_checksum(const reading *r, const ot__portion *piece)
{
    const ot__index_tensor *t = piece->tensor;

    return ot__error(
        OT_ERR_FORMAT, "%s/%s: '%s': chunk %d has another checksum than the index says", r->folder,
        r->index->files[piece->chunk->file].name, t->key, (int)(piece->chunk - t->chunks));
}

static ot_status add_to_crc(reading *r, const ot__portion *piece, const void *bytes, size_t n)
{
    r->crc = ot__crc32c(r->n_in_crc == 0 ? 0 : r->crc, bytes, n);
    r->n_in_crc += n;
    if (r->n_in_crc < ot__index_chunk_bytes(piece->tensor, piece->chunk))
        return OT_OK;
    r->n_in_crc = 0;
    return r->crc == piece->chunk->crc ? OT_OK : wrong_checksum(r, piece);
}

// A chunk of which a part is wanted, read whole for its checksum.
static ot_status check_whole_chunk(reading *r, const ot__portion *piece)
{
    const ot__index_chunk *c = piece->chunk;
    const uint64_t n_bytes = ot__index_chunk_bytes(piece->tensor, c);
    const uint64_t start = r->index->files[c->file].data_start + c->begin;
    uint32_t crc = 0;

    if (r->all_checked == c)
        return OT_OK;
    for (uint64_t at = 0; at < n_bytes; at += WINDOW_BYTES) {
        const size_t n = (size_t)OT_MIN(n_bytes - at, (uint64_t)WINDOW_BYTES);

        OT_TRY(ot__file_input_read(&r->input, r->path, start + at, r->buffer, n));
        crc = ot__crc32c(crc, r->buffer, n);
        r->counts->read += n;
    }
    r->all_checked = c;
    return crc == c->crc ? OT_OK : wrong_checksum(r, piece);
}

// ---- windows ----

static ot_status take_segment(reading *r, const segment *s, const char *bytes)
{
    const ot_dtype from = s->piece->tensor->dtype, to = s->piece->leaf->dtype;
    const size_t n_bytes = (size_t)s->count * ot_dtype_size(from);

    if (s->is_checked)
        OT_TRY(add_to_crc(r, s->piece, bytes, n_bytes));
    if (from != to)
        (void)ot__convert(s->to, to, bytes, from, s->count); // ot__may_cast()
    else if (bytes != s->to)
        memcpy(s->to, bytes, n_bytes);
    return OT_OK;
}

static ot_status flush_window(reading *r)
{
    const size_t n_bytes = (size_t)(r->end - r->begin);
    const segment *first = &r->segments[0];
    const bool is_direct = r->n == 1 && first->piece->tensor->dtype == first->piece->leaf->dtype;
    char *to = is_direct ? first->to : r->buffer;
    const int n = r->n;
    uint64_t n_arrived = 0;

    if (n == 0)
        return OT_OK;
    r->n = 0;
    OT_TRY(ot__file_input_read(&r->input, r->path, r->begin, to, n_bytes));
    r->counts->read += n_bytes;
    for (int i = 0; i < n; i++) {
        const segment *s = &r->segments[i];

        OT_TRY(take_segment(r, s, to + (s->at - r->begin)));
        if (s->is_announced)
            n_arrived += (uint64_t)s->count * ot_dtype_size(s->piece->tensor->dtype);
    }
    if (n_arrived > 0)
        ot__checks_tell(r->checks, n_arrived, false);
    return OT_OK;
}

static ot_status add_segment(reading *r, segment s)
{
    const size_t size = ot_dtype_size(s.piece->tensor->dtype);
    const size_t to_size = ot_dtype_size(s.piece->leaf->dtype);
    const int64_t most = WINDOW_BYTES / (int64_t)size;

    while (s.count > 0) {
        segment part = s;
        uint64_t end;

        part.count = OT_MIN(s.count, most);
        end = part.at + (uint64_t)part.count * size;
        if (r->n > 0 && (part.at < r->end || part.at - r->end > GAP_MAX ||
                         end - r->begin > WINDOW_BYTES || r->n == SEGMENTS_MAX))
            OT_TRY(flush_window(r));
        if (r->n == 0)
            r->begin = part.at;
        r->end = end;
        r->segments[r->n++] = part;
        s.count -= part.count;
        s.at = end;
        s.to += (size_t)part.count * to_size;
    }
    return OT_OK;
}

// ---- files and pieces ----

static void close_file(reading *r)
{
    if (r->i_file >= 0)
        ot__file_input_close(&r->input);
    ot__free(r->path);
    r->path = NULL;
    r->i_file = -1;
}

static ot_status open_shard_file(reading *r, int i_file)
{
    const ot__index_file *f = &r->index->files[i_file];

    OT_TRY(flush_window(r));
    close_file(r);
    r->path = ot__path_join(r->folder, f->name);
    OT_TRY(ot__made(r->path != NULL));
    OT_TRY(ot__file_input_open(&r->input, r->path));
    r->i_file = i_file;
    r->all_checked = NULL;
    return r->input.size == f->size
               ? OT_OK
               : ot__error(OT_ERR_FORMAT, "%s: has %" PRIu64 " bytes, expected %" PRIu64, r->path,
                           r->input.size, f->size);
}

static ot_status read_portion(reading *r, const ot__portion *p)
{
    const ot_box chunk = ot__index_chunk_box(p->tensor, p->chunk);
    const ot_box *wanted = &p->leaf->boxes[p->part];
    const size_t size = ot_dtype_size(p->tensor->dtype), to_size = ot_dtype_size(p->leaf->dtype);
    const uint64_t start = r->index->files[p->chunk->file].data_start + p->chunk->begin;
    char *data = p->leaf->parts[p->part]->data;
    bool is_whole, is_announced, is_checked;
    ot__runs runs;
    ot_box both;
    int64_t from, to, count;

    (void)ot_box_intersect(&chunk, wanted, &both);
    count = ot__box_count(&both);
    is_whole = count == ot__box_count(&chunk);
    r->counts->wanted += (uint64_t)count * size;
    if (r->verify == OT_SHARDS_VERIFY_ALL && !is_whole) {
        OT_TRY(flush_window(r));
        OT_TRY(check_whole_chunk(r, p));
    } else if (r->verify == OT_SHARDS_VERIFY_NONE || !is_whole) {
        r->counts->unchecked += (uint64_t)count * size;
    }
    ot__runs_begin(&runs, &both, &chunk, wanted);
    is_checked = is_whole && r->verify != OT_SHARDS_VERIFY_NONE;
    is_announced = is_checked && r->checks != NULL && runs.length == count &&
                   p->leaf->dtype == p->tensor->dtype && (uint64_t)count * size >= LARGE_BYTES;
    while (ot__runs_next(&runs, &from, &to)) {
        segment s = {.at = start + (uint64_t)from * size,
                     .count = runs.length,
                     .to = data + (size_t)to * to_size,
                     .piece = p};

        s.is_announced = is_announced && ot__checks_announce(r->checks, p, s.to);
        s.is_checked = is_checked && !s.is_announced;
        OT_TRY(add_segment(r, s));
    }
    return OT_OK;
}

static ot_status read_portions(reading *r, const ot__portions *pieces)
{
    ot_status st = OT_OK;

    for (int i = 0; i < pieces->n && st == OT_OK; i++) {
        if (pieces->items[i].chunk->file != r->i_file)
            st = open_shard_file(r, pieces->items[i].chunk->file);
        OT_THEN(st, read_portion(r, &pieces->items[i]));
    }
    OT_THEN(st, flush_window(r));
    close_file(r);
    return st;
}

// ---- two threads ----

typedef struct shared_reading {
    reading *r;
    const ot__portions *pieces;
    ot_status st;
    const ot__portion *damaged;
} shared_reading;

// The first task, which the caller's thread has, reads: messages are those of a thread.
static void run_read_task(void *context, int64_t first, int64_t last)
{
    shared_reading *s = context;

    for (int64_t i = first; i < last; i++) {
        if (i == 0) {
            s->st = read_portions(s->r, s->pieces);
            ot__checks_tell(s->r->checks, 0, true);
        } else {
            s->damaged = ot__checks_check(s->r->checks);
        }
    }
}

static ot_status read_by_two(reading *r, const ot__portions *pieces)
{
    shared_reading s = {.r = r, .pieces = pieces};
    ot__checks checks;

    ot__checks_init(&checks);
    r->checks = &checks;
    ot__parallel_for(2, 1, run_read_task, &s);
    ot__checks_deinit(&checks);
    return s.st == OT_OK && s.damaged != NULL ? wrong_checksum(r, s.damaged) : s.st;
}

static bool is_much(const ot__portions *pieces)
{
    uint64_t n_bytes = 0;

    for (int i = 0; i < pieces->n && n_bytes < MUCH_BYTES; i++) {
        const ot__portion *p = &pieces->items[i];
        const ot_box chunk = ot__index_chunk_box(p->tensor, p->chunk);
        ot_box both;

        if (ot_box_intersect(&chunk, &p->leaf->boxes[p->part], &both))
            n_bytes += (uint64_t)ot__box_count(&both) * ot_dtype_size(p->tensor->dtype);
    }
    return n_bytes >= MUCH_BYTES;
}

ot_status ot__portions_read(const ot__index *index, const char *folder, const ot__portions *pieces,
                            ot_shards_verify_mode verify, ot__read_counts *counts)
{
    const bool by_two = !index->is_foreign && verify != OT_SHARDS_VERIFY_NONE &&
                        ot__parallel_max() > 1 && is_much(pieces);
    reading *r = ot__alloc_zero(1, sizeof *r);
    ot_status st = ot__made(r != NULL);

    OT_TRY(st);
    r->index = index;
    r->folder = folder;
    r->verify = index->is_foreign ? OT_SHARDS_VERIFY_NONE : verify;
    r->counts = counts;
    r->i_file = -1;
    r->buffer = ot__alloc(WINDOW_BYTES);
    st = ot__made(r->buffer != NULL);
    OT_THEN(st, by_two ? read_by_two(r, pieces) : read_portions(r, pieces));
    ot__free(r->buffer);
    ot__free(r);
    return st;
}
