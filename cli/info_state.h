// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_INFO_STATE_H
#define CLI_INFO_STATE_H

#include <stdbool.h>

// What is in a state in an HDF5 file: a line a value, or one JSON object. Untrusted: read in a
// process of its own.
int info_state(const char *path, bool is_untrusted, bool json);

#endif
