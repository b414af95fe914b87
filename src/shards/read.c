// SPDX-License-Identifier: Apache-2.0
// Reads pieces of chunks to where they are wanted: what lies near together in a file is read at
// once, and where it is much by several threads.
#include <stdatomic.h>
#include <string.h>

#include "onnxtrain/sharding.h"
#include "shards/shards.h"

enum {
    GAP_MAX = 64 * 1024,        // bytes that are read along
    WINDOW_BYTES = 1024 * 1024, // of one read
    SEGMENTS_MAX = 4096,        // in a window
    TASK_BYTES = 4 << 20,       // that a thread reads one after the other
    MUCH_BYTES = 16 << 20,
    THREADS_MAX = 4,
};

// Of a piece all, or of one that is in one stretch in the file and in memory a part.
typedef struct part {
    const ot__portion *piece;
    int64_t first, count; // elements of the piece
    bool is_cut;
    uint32_t crc; // of a part whose chunk is read whole
} part;

// Elements in one piece, in the file and in memory.
typedef struct segment {
    uint64_t at; // in the file
    int64_t count;
    char *to;
    part *of;
    bool is_checked; // its chunk is read whole, one segment after the other
} segment;

typedef struct reading {
    const ot__index *index;
    const char *folder;
    ot_shards_verify_mode verify;
    ot__read_counts counts;
    int i_file; // that is open; -1: none
    char *path;
    ot__file_input input;
    char *buffer;
    segment segments[SEGMENTS_MAX];
    int n;
    uint64_t begin, end; // of the window
    uint32_t crc;        // of the part at hand, so far
    uint64_t n_in_crc;
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

static ot_status add_to_crc(reading *r, part *of, const void *bytes, size_t n)
{
    const ot__portion *piece = of->piece;

    r->crc = ot__crc32c(r->n_in_crc == 0 ? 0 : r->crc, bytes, n);
    r->n_in_crc += n;
    if (r->n_in_crc < (uint64_t)of->count * ot_dtype_size(piece->tensor->dtype))
        return OT_OK;
    r->n_in_crc = 0;
    of->crc = r->crc;
    return of->is_cut || r->crc == piece->chunk->crc ? OT_OK : wrong_checksum(r, piece);
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
        r->counts.read += n;
    }
    r->all_checked = c;
    return crc == c->crc ? OT_OK : wrong_checksum(r, piece);
}

// ---- windows ----

static ot_status take_segment(reading *r, const segment *s, const char *bytes)
{
    const ot_dtype from = s->of->piece->tensor->dtype, to = s->of->piece->leaf->dtype;
    const size_t n_bytes = (size_t)s->count * ot_dtype_size(from);

    if (s->is_checked)
        OT_TRY(add_to_crc(r, s->of, bytes, n_bytes));
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
    const bool is_direct =
        r->n == 1 && first->of->piece->tensor->dtype == first->of->piece->leaf->dtype;
    char *to = is_direct ? first->to : r->buffer;
    const int n = r->n;

    if (n == 0)
        return OT_OK;
    r->n = 0;
    OT_TRY(ot__file_input_read(&r->input, r->path, r->begin, to, n_bytes));
    r->counts.read += n_bytes;
    for (int i = 0; i < n; i++) {
        const segment *s = &r->segments[i];

        OT_TRY(take_segment(r, s, to + (s->at - r->begin)));
    }
    return OT_OK;
}

static ot_status add_segment(reading *r, segment s)
{
    const size_t size = ot_dtype_size(s.of->piece->tensor->dtype);
    const size_t to_size = ot_dtype_size(s.of->piece->leaf->dtype);
    const int64_t most = WINDOW_BYTES / (int64_t)size;

    while (s.count > 0) {
        segment next = s;
        uint64_t end;

        next.count = OT_MIN(s.count, most);
        end = next.at + (uint64_t)next.count * size;
        if (r->n > 0 && (next.at < r->end || next.at - r->end > GAP_MAX ||
                         end - r->begin > WINDOW_BYTES || r->n == SEGMENTS_MAX))
            OT_TRY(flush_window(r));
        if (r->n == 0)
            r->begin = next.at;
        r->end = end;
        r->segments[r->n++] = next;
        s.count -= next.count;
        s.at = end;
        s.to += (size_t)next.count * to_size;
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

static ot_status read_chunk_part(reading *r, part *of)
{
    const ot__portion *p = of->piece;
    const ot_box chunk = ot__index_chunk_box(p->tensor, p->chunk);
    const ot_box *wanted = &p->leaf->boxes[p->part];
    const size_t size = ot_dtype_size(p->tensor->dtype), to_size = ot_dtype_size(p->leaf->dtype);
    const uint64_t start = r->index->files[p->chunk->file].data_start + p->chunk->begin;
    char *data = p->leaf->parts[p->part]->data;
    ot__runs runs;
    ot_box both;
    int64_t from, to;
    bool is_whole;

    (void)ot_box_intersect(&chunk, wanted, &both);
    is_whole = ot__box_count(&both) == ot__box_count(&chunk);
    r->counts.wanted += (uint64_t)of->count * size;
    if (r->verify == OT_SHARDS_VERIFY_ALL && !is_whole) {
        OT_TRY(flush_window(r));
        OT_TRY(check_whole_chunk(r, p));
    } else if (r->verify == OT_SHARDS_VERIFY_NONE || !is_whole) {
        r->counts.unchecked += (uint64_t)of->count * size;
    }
    ot__runs_begin(&runs, &both, &chunk, wanted);
    while (ot__runs_next(&runs, &from, &to))
        OT_TRY(add_segment(
            r, (segment){.at = start + (uint64_t)(from + of->first) * size,
                         .count = of->is_cut ? of->count : runs.length,
                         .to = data + (size_t)(to + of->first) * to_size,
                         .of = of,
                         .is_checked = is_whole && r->verify != OT_SHARDS_VERIFY_NONE}));
    return OT_OK;
}

static ot_status read_chunk_parts(reading *r, part *parts, int n)
{
    ot_status st = OT_OK;

    for (int i = 0; i < n && st == OT_OK; i++) {
        if (parts[i].piece->chunk->file != r->i_file)
            st = open_shard_file(r, parts[i].piece->chunk->file);
        OT_THEN(st, read_chunk_part(r, &parts[i]));
    }
    OT_THEN(st, flush_window(r));
    return st;
}

// ---- tasks ----

typedef struct task {
    int first, n; // parts
    bool is_done;
} task;

typedef struct work {
    const ot__index *index;
    const char *folder;
    ot_shards_verify_mode verify;
    part *parts;
    int n_parts, parts_capacity;
    task *tasks;
    int n_tasks, tasks_capacity;
    uint64_t n_bytes, n_in_task; // of all, and of the last task
    reading *readings;           // one for each thread
    int n_threads;
    atomic_int next;         // task
    atomic_bool is_given_up; // by one thread; the others begin nothing more
} work;

// Tasks end with a chunk, or within one that is cut.
static ot_status queue_part(work *w, part next, uint64_t n_bytes, bool may_begin)
{
    if (w->n_tasks == 0 || (may_begin && w->n_in_task >= TASK_BYTES)) {
        OT_TRY(ot__made(ot__grow(&w->tasks, &w->tasks_capacity, w->n_tasks, sizeof *w->tasks)));
        w->tasks[w->n_tasks++] = (task){.first = w->n_parts};
        w->n_in_task = 0;
    }
    OT_TRY(ot__made(ot__grow(&w->parts, &w->parts_capacity, w->n_parts, sizeof *w->parts)));
    w->parts[w->n_parts++] = next;
    w->tasks[w->n_tasks - 1].n++;
    w->n_in_task += n_bytes;
    w->n_bytes += n_bytes;
    return OT_OK;
}

static ot_status queue_piece(work *w, const ot__portion *p, bool is_same_chunk)
{
    const ot_box chunk = ot__index_chunk_box(p->tensor, p->chunk);
    const ot_box *wanted = &p->leaf->boxes[p->part];
    const int64_t size = (int64_t)ot_dtype_size(p->tensor->dtype), at_once = TASK_BYTES / size;
    ot__runs runs;
    ot_box both;
    int64_t count, n;
    bool is_cut;

    (void)ot_box_intersect(&chunk, wanted, &both);
    count = ot__box_count(&both);
    ot__runs_begin(&runs, &both, &chunk, wanted);
    // What is checked by more than what is wanted is not cut.
    is_cut = count > at_once && runs.length == count &&
             (w->verify != OT_SHARDS_VERIFY_ALL || count == ot__box_count(&chunk));
    for (int64_t first = 0; first == 0 || first < count; first += n) {
        n = is_cut ? OT_MIN(at_once, count - first) : count;
        OT_TRY(queue_part(w, (part){.piece = p, .first = first, .count = n, .is_cut = is_cut},
                          (uint64_t)(n * size), is_cut || !is_same_chunk));
        if (!is_cut)
            break;
    }
    return OT_OK;
}

static ot_status read_task(reading *r, const work *w, task *t)
{
    const ot_status st = read_chunk_parts(r, w->parts + t->first, t->n);

    t->is_done = st == OT_OK;
    return st;
}

// Messages are those of a thread: what fails here the caller's thread reads again.
static void run_reader(void *context, int64_t first, int64_t last)
{
    work *w = context;

    for (int64_t i = first; i < last; i++) {
        reading *r = &w->readings[i];
        int k;

        while (!atomic_load(&w->is_given_up) && (k = atomic_fetch_add(&w->next, 1)) < w->n_tasks) {
            const ot__read_counts before = r->counts;

            if (read_task(r, w, &w->tasks[k]) == OT_OK)
                continue;
            atomic_store(&w->is_given_up, true);
            r->counts = before;
            r->n = 0;
            r->n_in_crc = 0;
        }
    }
}

// Of chunks that were cut.
static ot_status check_cut_chunks(const work *w)
{
    uint32_t crc = 0;

    for (int i = 0; i < w->n_parts; i++) {
        const part *p = &w->parts[i];
        const uint64_t size = ot_dtype_size(p->piece->tensor->dtype);
        const uint64_t n_chunk = ot__index_chunk_bytes(p->piece->tensor, p->piece->chunk);

        if (!p->is_cut)
            continue;
        crc = p->first == 0 ? p->crc : ot__crc32c_join(crc, p->crc, (uint64_t)p->count * size);
        if ((uint64_t)(p->first + p->count) * size == n_chunk && crc != p->piece->chunk->crc)
            return wrong_checksum(&w->readings[0], p->piece);
    }
    return OT_OK;
}

static ot_status read_tasks(work *w, ot__read_counts *counts)
{
    ot_status st = OT_OK;

    if (w->n_threads > 1)
        ot__parallel_for(w->n_threads, 1, run_reader, w);
    for (int i = 0; i < w->n_tasks && st == OT_OK; i++)
        if (!w->tasks[i].is_done)
            st = read_task(&w->readings[0], w, &w->tasks[i]);
    if (w->verify != OT_SHARDS_VERIFY_NONE)
        OT_THEN(st, check_cut_chunks(w));
    for (int i = 0; i < w->n_threads; i++) {
        counts->wanted += w->readings[i].counts.wanted;
        counts->read += w->readings[i].counts.read;
        counts->unchecked += w->readings[i].counts.unchecked;
    }
    return st;
}

static ot_status make_readings(work *w)
{
    w->n_threads = w->n_bytes >= MUCH_BYTES ? OT_MIN(ot__parallel_max(), THREADS_MAX) : 1;
    w->readings = ot__alloc_zero((size_t)w->n_threads, sizeof *w->readings);
    OT_TRY(ot__made(w->readings != NULL));
    for (int i = 0; i < w->n_threads; i++) {
        reading *r = &w->readings[i];

        r->index = w->index;
        r->folder = w->folder;
        r->verify = w->verify;
        r->i_file = -1;
        r->buffer = ot__alloc(WINDOW_BYTES);
        OT_TRY(ot__made(r->buffer != NULL));
    }
    return OT_OK;
}

ot_status ot__portions_read(const ot__index *index, const char *folder, const ot__portions *pieces,
                            ot_shards_verify_mode verify, ot__read_counts *counts)
{
    work w = {.index = index,
              .folder = folder,
              .verify = index->is_foreign ? OT_SHARDS_VERIFY_NONE : verify};
    ot_status st = OT_OK;

    for (int i = 0; i < pieces->n && st == OT_OK; i++)
        st = queue_piece(&w, &pieces->items[i],
                         i > 0 && pieces->items[i].chunk == pieces->items[i - 1].chunk);
    OT_THEN(st, make_readings(&w));
    OT_THEN(st, read_tasks(&w, counts));
    for (int i = 0; i < w.n_threads && w.readings != NULL; i++) {
        close_file(&w.readings[i]);
        ot__free(w.readings[i].buffer);
    }
    ot__free(w.readings);
    ot__free(w.parts);
    ot__free(w.tasks);
    return st;
}
