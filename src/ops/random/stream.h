// SPDX-License-Identifier: Apache-2.0
// What nodes with OT_OP_RANDOM draw from. Private to `ops`.
#ifndef OT_OPS_STREAM_H
#define OT_OPS_STREAM_H

#include "op/op.h"

// The step's generator, or that of the node's own seed, keyed by the name of output 0, so that
// neither recomputation nor other nodes change what is drawn.
typedef struct ot__stream {
    bool has_seed;
    uint64_t seed;
    const char *name; // behind the state
} ot__stream;

// A state of `size` bytes, whose first member is an ot__stream.
void *ot__prep_stream(ot_prep *p, size_t size);
ot__rng_key ot__run_key(const ot_run *r); // of this run

#endif
