// SPDX-License-Identifier: Apache-2.0
// What comes through the pipe from a process that has read a hostile HDF5 file.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ckpt/dict_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

typedef struct rest {
    const uint8_t *bytes;
    size_t n_bytes;
} rest;

static ot_status take_rest(void *context, void *bytes, size_t n_bytes)
{
    rest *r = context;

    if (n_bytes > r->n_bytes)
        return ot__error(OT_ERR_FORMAT, "the end");
    if (n_bytes > 0)
        memcpy(bytes, r->bytes, n_bytes);
    r->bytes += n_bytes;
    r->n_bytes -= n_bytes;
    return OT_OK;
}

static ot_status drop(void *context, const void *bytes, size_t n_bytes)
{
    (void)context;
    (void)bytes;
    (void)n_bytes;
    return OT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    rest r = {bytes, n_bytes};
    ot_dict *dict = NULL;

    ot_set_memory_max((size_t)64 << 20);
    if (ot__dict_stream_read(take_rest, &r, &dict) == OT_OK)
        (void)ot__dict_stream_write(dict, OT_OK, drop, NULL);
    ot_dict_destroy(dict);
    return 0;
}
