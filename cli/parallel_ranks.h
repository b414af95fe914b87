// SPDX-License-Identifier: Apache-2.0
// Ranks that need not be there, as text.
#ifndef CLI_PARALLEL_RANKS_H
#define CLI_PARALLEL_RANKS_H

#include "onnxtrain/parallel.h"

// "D=8 zero=3 slices=8 accumulate=4", of which only D must be given; EXIT_SUCCESS, or EXIT_USAGE
// after a message.
int parallel_ranks_parse(const char *text, ot_parallel_ranks *out);

#endif
