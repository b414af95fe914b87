// SPDX-License-Identifier: Apache-2.0
#include <zip.h>

#include "read_dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

// An archive with right checksums of two arrays, which no change of an archive's bytes would leave;
// the first two bytes are the length of the first. False when libzip has no memory.
static bool pack(const uint8_t *bytes, size_t n_bytes, uint8_t **out, size_t *n_out)
{
    size_t n_first = OT_MIN((size_t)bytes[0] << 8 | bytes[1], n_bytes - 2);
    zip_source_t *buffer = zip_source_buffer_create(NULL, 0, 0, NULL);
    zip_t *archive;
    zip_stat_t info;
    bool is_packed;

    if (!buffer)
        return false;
    zip_source_keep(buffer);
    archive = zip_open_from_source(buffer, ZIP_TRUNCATE, NULL);
    if (!archive)
        return false;
    zip_file_add(archive, "a.npy", zip_source_buffer(archive, bytes + 2, n_first, 0), 0);
    zip_file_add(archive, "b.npy",
                 zip_source_buffer(archive, bytes + 2 + n_first, n_bytes - 2 - n_first, 0), 0);
    is_packed = zip_close(archive) == 0 && zip_source_open(buffer) == 0;
    if (is_packed) {
        is_packed = zip_source_stat(buffer, &info) == 0 && (*out = malloc(info.size + 1)) != NULL;
        *n_out = info.size;
        is_packed = is_packed && zip_source_read(buffer, *out, info.size) == (zip_int64_t)info.size;
        zip_source_close(buffer);
    }
    zip_source_free(buffer);
    return is_packed;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    ot_dataset_options options = OT_DATASET_OPTIONS_INIT;
    uint8_t *packed = NULL;
    size_t n_packed = 0;

    options.max_unpacked = 4 << 20;
    read_dataset(bytes, n_bytes, &options);
    if (n_bytes > 2 && bytes[0] != 'P' && pack(bytes, n_bytes, &packed, &n_packed))
        read_dataset(packed, n_packed, &options);
    free(packed);
    return 0;
}
