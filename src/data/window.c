// SPDX-License-Identifier: Apache-2.0
// The part of a source that is looked at: of a file, blocks that are read when rows follow each
// other, else just the row; of what lies in memory, all that is left.
#include "data/data.h"

enum { BLOCK = 1 << 18 };

static bool has(const ot__window *window, uint64_t offset, size_t n_bytes)
{
    return window->data && offset >= window->start && offset - window->start <= window->n_bytes &&
           n_bytes <= window->n_bytes - (offset - window->start);
}

static ot_status make_window_room(ot__window *window, size_t n_bytes)
{
    uint8_t *buffer;

    if (n_bytes <= window->capacity)
        return OT_OK;
    window->n_bytes = 0;
    window->data = NULL;
    buffer = ot__realloc(window->buffer, n_bytes);
    OT_TRY(ot__made(buffer));
    window->buffer = buffer;
    window->capacity = n_bytes;
    return OT_OK;
}

static ot_status read_window(ot__window *window, const ot__source *source, uint64_t offset,
                             size_t n_bytes)
{
    ot_status st;

    OT_TRY(make_window_room(window, n_bytes));
    st = ot__file_input_read(&source->input, source->path, offset, window->buffer, n_bytes);
    window->data = st == OT_OK ? window->buffer : NULL;
    window->start = offset;
    window->n_bytes = st == OT_OK ? n_bytes : 0;
    return st;
}

ot_status ot__window_move(ot__window *window, const ot__source *source, uint64_t offset,
                          size_t n_bytes)
{
    const ot__file_input *input = &source->input;
    const uint64_t left = input->size - offset;
    const bool follows =
        !window->data || (offset >= window->start && offset - window->start <= window->n_bytes);

    if (has(window, offset, n_bytes))
        return OT_OK;
    if (!input->is_file) {
        *window = (ot__window){
            .data = input->memory.data + offset, .start = offset, .n_bytes = (size_t)left};
        return OT_OK;
    }
    // When the file has become shorter, what is wanted may still be there.
    if (follows && n_bytes < BLOCK &&
        read_window(window, source, offset, (size_t)OT_MIN(left, (uint64_t)BLOCK)) == OT_OK)
        return OT_OK;
    return read_window(window, source, offset, n_bytes);
}

ot_status ot__window_move_to_row(ot__window *window, const ot__source *source, int64_t row,
                                 uint64_t offset, size_t n_bytes)
{
    const ot_status st = ot__window_move(window, source, offset, n_bytes);

    return st == OT_ERR_IO ? ot__error_prefix(st, "row %" PRId64, row + 1) : st;
}

void ot__window_deinit(ot__window *window)
{
    ot__free(window->buffer);
    *window = (ot__window){0};
}
