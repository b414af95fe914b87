// SPDX-License-Identifier: Apache-2.0
// Files that the command writes: known to be writable before the work, and never an input.
#ifndef CLI_OUTPUT_FILES_H
#define CLI_OUTPUT_FILES_H

#include "options.h"

// A program may be started with its standard files closed: the next ones that are opened would take
// their places, and messages would land in them. /dev/null takes them instead; before anything
// else.
void open_standard_files(void);

// "FOLDER/PREFIXNAME", for free(); NULL: no memory, after a message.
char *path_in(const char *folder, const char *prefix, const char *name);

// What the names alone show to be wrong: EXIT_SUCCESS, or EXIT_USAGE after a message. `inputs` are
// paths, "NAME=PATH" too.
int check_output_name(const char *option, const char *path, const char *const *inputs,
                      int n_inputs);
// What the files show: EXIT_SUCCESS, or EXIT_FAILED after a message. Inputs that do not exist do
// not matter.
int check_output(const char *option, const char *path, const char *const *inputs, int n_inputs);
// The same of the files of artifacts in a folder, each with the prefix: none may be among the
// paths.
int check_artifact_files(const char *folder, const char *prefix, const char *const *paths,
                         int n_paths);

#endif
