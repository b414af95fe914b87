// SPDX-License-Identifier: Apache-2.0
#include "read_dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    ot_dataset_options options = OT_DATASET_OPTIONS_INIT;

    options.max_unpacked = 4 << 20;
    return read_dataset(bytes, n_bytes, &options);
}
