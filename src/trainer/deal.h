// SPDX-License-Identifier: Apache-2.0
// Which elements of the weights each rank updates, and saves the state of, with ZeRO in ONNX
// Runtime: the weights that train lie one after the other in the order of their names, and every
// rank has as many elements of them, up to what is filled in at the end.
#ifndef OT_TRAINER_DEAL_H
#define OT_TRAINER_DEAL_H

#include "ckpt/ckpt.h"

// What a rank has of a weight.
typedef struct ot__dealt {
    bool is_mine; // some of it, or all
    bool is_cut;  // not all
    int64_t first, count;
} ot__dealt;

// What one rank has of all weights of a checkpoint. All {0}: nothing is dealt out.
typedef struct ot__deal {
    ot__map by_name;
    ot__dealt *items;
} ot__deal;

int64_t ot__deal_share(int64_t total, int n_ranks);
// Of a weight of `count` elements, with `at` of others before it.
ot__dealt ot__deal_one(int64_t at, int64_t count, int64_t share, int rank);
ot_status ot__deal_make(const ot_checkpoint *checkpoint, int rank, int n_ranks, ot__deal *out);
void ot__deal_drop(ot__deal *deal);
// NULL: it does not train, so all ranks have all of it.
const ot__dealt *ot__deal_find(const ot__deal *deal, const char *name);

#endif
