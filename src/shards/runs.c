// SPDX-License-Identifier: Apache-2.0
// Which bytes of a box are wanted, and where they go.
#include "onnxtrain/sharding.h"
#include "shards/shards.h"

void ot__runs_begin(ot__runs *runs, const ot_box *both, const ot_box *from, const ot_box *to)
{
    int64_t from_stride = 1, to_stride = 1;
    bool is_whole = true; // of all axes behind the one at hand, in both

    *runs = (ot__runs){.length = 1};
    for (int k = both->ndim - 1; k >= 0; k--) {
        runs->from += (both->offset[k] - from->offset[k]) * from_stride;
        runs->to += (both->offset[k] - to->offset[k]) * to_stride;
        if (is_whole) {
            runs->length *= both->size[k];
        } else { // innermost first
            runs->size[runs->n_axes] = both->size[k];
            runs->from_stride[runs->n_axes] = from_stride;
            runs->to_stride[runs->n_axes++] = to_stride;
        }
        is_whole = is_whole && both->size[k] == from->size[k] && both->size[k] == to->size[k];
        from_stride *= from->size[k];
        to_stride *= to->size[k];
    }
}

bool ot__runs_next(ot__runs *runs, int64_t *from, int64_t *to)
{
    int k = 0;

    if (runs->is_done)
        return false;
    *from = runs->from;
    *to = runs->to;
    for (; k < runs->n_axes; k++) {
        runs->from += runs->from_stride[k];
        runs->to += runs->to_stride[k];
        if (++runs->place[k] < runs->size[k])
            break;
        runs->from -= runs->size[k] * runs->from_stride[k];
        runs->to -= runs->size[k] * runs->to_stride[k];
        runs->place[k] = 0;
    }
    runs->is_done = k == runs->n_axes;
    return true;
}
