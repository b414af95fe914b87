// SPDX-License-Identifier: Apache-2.0
#include "read_dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    return read_dataset(bytes, n_bytes, NULL);
}
