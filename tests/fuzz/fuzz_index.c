// SPDX-License-Identifier: Apache-2.0
// An index that is read can be written, and is then read the same. What is after a line "---" is a
// further file of it.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shards/shards.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void must(bool is_so)
{
    if (!is_so)
        abort();
}

static void write_and_read_index(ot__index *index)
{
    ot__buf out = {0};
    ot__index again;

    index->n_parts = 0; // all tensors are in the first file then
    ot__index_write(index, index->n_tensors, &out);
    must(ot__buf_status(&out) == OT_OK);
    must(ot__index_read(out.data, out.length, &again) == OT_OK);
    must(ot__index_check(&again) == OT_OK);
    must(again.n_tensors == index->n_tensors && again.n_chunks == index->n_chunks);
    must(again.n_files == index->n_files && again.n_items == index->n_items);
    for (int i = 0; i < again.n_tensors; i++)
        must(strcmp(again.tensors[i].key, index->tensors[i].key) == 0);
    ot__index_deinit(&again);
    ot__buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static const char mark[] = "\n---\n";
    const size_t n_mark = sizeof mark - 1;
    size_t first = 0;
    ot__index index;
    ot_status st;

    ot_set_memory_max((size_t)256 << 20);
    while (first < n_bytes &&
           (n_bytes - first < n_mark || memcmp(bytes + first, mark, n_mark) != 0))
        first++;
    if (ot__index_read((const char *)bytes, first, &index) != OT_OK)
        return 0;
    st = first + n_mark <= n_bytes
             ? ot__index_read_part(&index, (const char *)bytes + first + n_mark,
                                   n_bytes - first - n_mark)
             : OT_OK;
    OT_THEN(st, ot__index_check(&index));
    if (st == OT_OK)
        write_and_read_index(&index);
    ot__index_deinit(&index);
    return 0;
}
