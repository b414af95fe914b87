// SPDX-License-Identifier: Apache-2.0
// metadata_props of nodes, values and tensors, for looking up. The bytes are passed through with
// the message's other fields, so what is left out here is lost to nobody.
#include <string.h>

#include "onnx/protobuf/read.h"

enum { KEY = 1, VALUE = 2, MAX_ENTRIES = 1024 };

// *out: NULL when the entry has none. The guard has seen to it that strings have no zero bytes.
static ot_status read_text(ot__reader *reader, ot__bytes entry, uint32_t number, const char **out)
{
    ot__walk walk = ot__walk_over(entry);
    ot__string copy = {0};
    ot__bytes text = {0};
    ot_status st = OT_OK;

    while (ot__wire_next_of(&walk, number, &text))
        continue; // the last one counts
    if (text.data)
        st = ot__read_string(reader, text.data, text.size, &copy);
    *out = (const char *)copy.data;
    return st;
}

static bool is_entry(const ot__field *field, uint32_t number)
{
    return field->number == number && field->wire_type == OT_WIRE_BYTES;
}

static int pb_count_entries(ot__bytes message, uint32_t number)
{
    ot__walk walk = ot__walk_over(message);
    int n = 0;
    ot__field field;

    while (n < MAX_ENTRIES && ot__wire_next(&walk, &field))
        n += is_entry(&field, number);
    return n;
}

ot_status ot__read_metadata(ot__reader *reader, ot__bytes message, uint32_t number,
                            ot__metadata *out)
{
    const int n = pb_count_entries(message, number);
    ot__walk walk = ot__walk_over(message);
    const char **pairs;
    ot__field field;

    *out = (ot__metadata){0};
    if (n == 0)
        return OT_OK;
    pairs = ot__arena_alloc(reader->model->arena, (size_t)n * 2 * sizeof *pairs);
    OT_TRY(ot__made(pairs));
    out->pairs = pairs;
    for (int i = 0; i < n && ot__wire_next(&walk, &field);) {
        const ot__bytes entry = {field.data, field.size};
        const char **pair = &pairs[2 * out->n];

        if (!is_entry(&field, number))
            continue;
        i++;
        OT_TRY(read_text(reader, entry, KEY, &pair[0]));
        OT_TRY(read_text(reader, entry, VALUE, &pair[1]));
        out->n += pair[0] && pair[1];
    }
    return OT_OK;
}

ot_status ot__add_metadata(ot__reader *reader, const ot__metadata *metadata, ot_value *value)
{
    const size_t n = (size_t)value->metadata.n, n_more = (size_t)metadata->n;
    const char **pairs;

    // Many descriptions of one value would be copied again and again.
    if (n_more == 0 || n + n_more > MAX_ENTRIES)
        return OT_OK;
    pairs = ot__arena_alloc(reader->model->arena, (n + n_more) * 2 * sizeof *pairs);
    OT_TRY(ot__made(pairs));
    if (n > 0)
        memcpy(pairs, value->metadata.pairs, n * 2 * sizeof *pairs);
    memcpy(pairs + 2 * n, metadata->pairs, n_more * 2 * sizeof *pairs);
    value->metadata = (ot__metadata){pairs, (int)(n + n_more)};
    return OT_OK;
}
