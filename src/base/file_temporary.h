// SPDX-License-Identifier: Apache-2.0
// Shared by the files that write files: temporary ones and what they are called. Private to `base`.
#ifndef OT_BASE_FILE_TEMPORARY_H
#define OT_BASE_FILE_TEMPORARY_H

#include "base/base.h"

#define OT_TEMPORARY_SUFFIX ".tmp"
enum { OT_TEMPORARY_KEPT = 200 }; // bytes of the target's name in that of the temporary file,
// ".<target>.<id>.tmp"

// Lock a new temporary file. False when it was taken for a leftover meanwhile: another is needed.
bool ot__file_hold(int fd);
// Remove the temporary files of targets (the kept part of their names) that match, unless somebody
// holds them. Returns how many are held.
int ot__file_sweep(const char *folder, const ot__file_names *targets);

// Names in a folder that match, each with its NUL; those that cannot be had are left out.
void ot__file_list(const char *folder, const ot__file_names *names, ot__buf *out);
void ot__file_remove_listed(const char *folder, const ot__buf *list);

#endif
