// SPDX-License-Identifier: Apache-2.0
// The bytes of a file to be written, of which the large ones stay where they are.
#include <string.h>

#include "ckpt/ckpt.h"

static const size_t large_from = 4096; // bytes; copying less is cheaper than a call of the system

// As many bytes of a large one are referred to as make positions in `own` congruent to those in the
// file, so that whoever aligns one aligns the other.
enum { UNIT = 16 };

void ot__pieces_append(ot__pieces *pieces, const void *bytes, size_t n_bytes)
{
    const size_t n_referred = n_bytes < large_from ? 0 : n_bytes / UNIT * UNIT;

    if (pieces->own.failed)
        return;
    if (n_referred > 0) {
        if (!ot__grow(&pieces->large, &pieces->capacity, pieces->n_large, sizeof *pieces->large)) {
            pieces->own.failed = true;
            return;
        }
        pieces->n_referred += n_referred;
        pieces->large[pieces->n_large++] = (ot__piece){
            .position = pieces->own.length,
            .bytes = bytes,
            .n_bytes = n_referred,
            .n_until = pieces->n_referred,
        };
    }
    if (n_bytes > n_referred)
        ot__buf_append(&pieces->own, (const char *)bytes + n_referred, n_bytes - n_referred);
}

size_t ot__pieces_size(const ot__pieces *pieces)
{
    return pieces->own.length + pieces->n_referred;
}

size_t ot__pieces_place(const ot__pieces *pieces, size_t position)
{
    int first = 0, last = pieces->n_large;

    while (first < last) { // the first one behind the position
        const int middle = first + (last - first) / 2;

        if (pieces->large[middle].position <= position)
            first = middle + 1;
        else
            last = middle;
    }
    return position + (first > 0 ? pieces->large[first - 1].n_until : 0);
}

ot_status ot__pieces_each(const ot__pieces *pieces, ot__pieces_sink sink, void *context)
{
    size_t at = 0;

    OT_TRY(ot__buf_status(&pieces->own));
    for (int i = 0; i < pieces->n_large; i++) {
        const ot__piece *piece = &pieces->large[i];

        if (piece->position > at)
            OT_TRY(sink(context, pieces->own.data + at, piece->position - at));
        OT_TRY(sink(context, piece->bytes, piece->n_bytes));
        at = piece->position;
    }
    return pieces->own.length > at ? sink(context, pieces->own.data + at, pieces->own.length - at)
                                   : OT_OK;
}

static ot_status to_file(void *context, const void *bytes, size_t n_bytes)
{
    return ot__file_writer_write(context, bytes, n_bytes);
}

ot_status ot__pieces_write(const ot__pieces *pieces, ot__file_writer *file)
{
    return ot__pieces_each(pieces, to_file, file);
}

void ot__pieces_deinit(ot__pieces *pieces)
{
    ot__buf_deinit(&pieces->own);
    ot__free(pieces->large);
    *pieces = (ot__pieces){0};
}
