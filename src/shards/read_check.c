// SPDX-License-Identifier: Apache-2.0
// Checksums of chunks that come to lie in one piece in memory, made by one thread while another one
// reads on. Bytes arrive in the order in which chunks were announced.
#include "shards/shards.h"

void ot__checks_init(ot__checks *a)
{
    *a = (ot__checks){0};
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->changed, NULL);
}

void ot__checks_deinit(ot__checks *a)
{
    pthread_mutex_destroy(&a->mutex);
    pthread_cond_destroy(&a->changed);
    ot__free(a->items);
}

bool ot__checks_announce(ot__checks *a, const ot__portion *portion, const void *bytes)
{
    enum { LATE_BYTES = 4 << 20 };
    bool is_kept;

    pthread_mutex_lock(&a->mutex);
    is_kept = a->n_announced - a->n_checked <= LATE_BYTES &&
              ot__grow(&a->items, &a->capacity, a->n, sizeof *a->items);
    if (is_kept)
        a->items[a->n++] = (ot__checked_chunk){portion, bytes, a->n_announced};
    pthread_mutex_unlock(&a->mutex);
    if (is_kept)
        a->n_announced += ot__index_chunk_bytes(portion->tensor, portion->chunk);
    return is_kept;
}

void ot__checks_tell(ot__checks *a, uint64_t n_bytes, bool is_over)
{
    pthread_mutex_lock(&a->mutex);
    a->n_arrived += n_bytes;
    a->is_over = is_over;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

// What has arrived of chunk i from its byte `at` on; waits for some. 0: no more comes.
static size_t await_bytes(ot__checks *a, int i, uint64_t at, uint64_t n_checked,
                          ot__checked_chunk *out)
{
    enum { PIECE_BYTES = 1 << 20 };
    uint64_t n = 0;

    pthread_mutex_lock(&a->mutex);
    a->n_checked = n_checked;
    for (;;) {
        if (i < a->n && a->n_arrived > a->items[i].begin + at) {
            *out = a->items[i];
            n = OT_MIN(a->n_arrived - out->begin - at, (uint64_t)PIECE_BYTES);
        }
        if (n > 0 || a->is_over)
            break;
        pthread_cond_wait(&a->changed, &a->mutex);
    }
    pthread_mutex_unlock(&a->mutex);
    return (size_t)n;
}

const ot__portion *ot__checks_check(ot__checks *a)
{
    ot__checked_chunk chunk = {0};
    uint64_t at = 0, n_checked = 0;
    uint32_t crc = 0;
    size_t n;

    for (int i = 0; (n = await_bytes(a, i, at, n_checked, &chunk)) > 0;) {
        const uint64_t n_bytes = ot__index_chunk_bytes(chunk.portion->tensor, chunk.portion->chunk);

        n = OT_MIN(n, (size_t)(n_bytes - at));
        crc = ot__crc32c(at == 0 ? 0 : crc, chunk.bytes + at, n);
        at += n;
        n_checked += n;
        if (at < n_bytes)
            continue;
        if (crc != chunk.portion->chunk->crc)
            return chunk.portion;
        at = 0;
        i++;
    }
    return NULL;
}
