// SPDX-License-Identifier: Apache-2.0
// Element types of safetensors files. Private to `shards`.
#ifndef OT_SHARDS_SAFETENSORS_H
#define OT_SHARDS_SAFETENSORS_H

#include "shards/shards.h"

// The place of a type in the order of the format's makers, whose files have the last ones first;
// -1: files have no such type.
int ot__safetensors_rank(ot_dtype dtype);

#endif
