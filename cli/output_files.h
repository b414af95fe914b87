// SPDX-License-Identifier: Apache-2.0
// Files that the command writes: known to be writable before the work, and never an input.
#ifndef CLI_OUTPUT_FILES_H
#define CLI_OUTPUT_FILES_H

#include "options.h"

// The exit code. `inputs` are paths, "NAME=PATH" too; those that do not exist do not matter.
int check_output(const char *option, const char *path, const char *const *inputs, int n_inputs);

#endif
