// SPDX-License-Identifier: Apache-2.0
// Opening files for reading, and reading what has no size. Private to `base`.
#ifndef OT_BASE_FILE_OPEN_H
#define OT_BASE_FILE_OPEN_H

#include <sys/stat.h>

#include "base/base.h"

// A descriptor that the caller closes; "-" is a copy of that of standard input.
ot_status ot__file_open(const char *path, int *fd);
// The name for messages.
const char *ot__file_label(const char *path);
// False for what is read to its end instead: pipes and devices, files that somebody has begun to
// read (standard input goes on from there), and regular files that say 0 and have content (/proc).
bool ot__file_has_size(int fd, const struct stat *info);
// All there is until the end, into memory. A named pipe needs somebody who writes into it.
ot_status ot__file_read_all(int fd, const char *path, size_t max, ot__file_map *map);

#endif
