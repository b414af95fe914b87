// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_CKPT_CONVERT_H
#define CLI_CKPT_CONVERT_H

#include <stdbool.h>

// A checkpoint file to a checkpoint directory, or back, for the models of artifacts; the exit code.
int convert_checkpoint(const char *from, const char *to, const char *artifacts, bool replaces);

#endif
