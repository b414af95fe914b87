// SPDX-License-Identifier: Apache-2.0
#include "read_dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

// With a header found out, and with one stated.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    ot_dataset_options options = OT_DATASET_OPTIONS_INIT;

    read_dataset(bytes, n_bytes, NULL);
    options.csv_header = 1;
    options.csv_separator = ';';
    return read_dataset(bytes, n_bytes, &options);
}
