// SPDX-License-Identifier: Apache-2.0
// Dealing out the weights of a training to its ranks.
#include "trainer/deal.h"

enum { SHARE_UNIT = 32 }; // elements

// A total that needs nothing filled in gets a whole unit for every rank all the same.
int64_t ot__deal_share(int64_t total, int n_ranks)
{
    return (total / ((int64_t)SHARE_UNIT * n_ranks) + 1) * SHARE_UNIT;
}

ot__dealt ot__deal_one(int64_t at, int64_t count, int64_t share, int rank)
{
    const int64_t begin = share * rank, end = begin + share;
    const bool is_all = at >= begin && at + count <= end;
    const bool is_some = at < end && at + count > begin;
    const int64_t first = OT_MAX(begin - at, 0);

    if (!is_all && !is_some)
        return (ot__dealt){0};
    return (ot__dealt){.is_mine = true,
                       .is_cut = !is_all,
                       .first = first,
                       .count = OT_MIN(end - at, count) - first};
}

static int64_t count_of_weight(const ot__parameter *p)
{
    int64_t count = 0;

    (void)ot__shape_count(ot__parameter_shape(p), &count); // it has been counted
    return p->trainable ? count : 0;
}

ot_status ot__deal_make(const ot_checkpoint *checkpoint, int rank, int n_ranks, ot__deal *out)
{
    int64_t total = 0, share, at = 0;
    ot_status st;

    *out = (ot__deal){.items =
                          ot__alloc_zero((size_t)checkpoint->n_parameters + 1, sizeof *out->items)};
    st = ot__made(out->items != NULL);
    for (int i = 0; i < checkpoint->n_parameters; i++)
        total += count_of_weight(checkpoint->parameters[i]);
    share = ot__deal_share(total, n_ranks);
    for (int i = 0; st == OT_OK && i < checkpoint->n_parameters; i++) { // in the order of names
        const ot__parameter *p = checkpoint->parameters[i];
        const int64_t count = count_of_weight(p);

        if (!p->trainable)
            continue;
        out->items[i] = ot__deal_one(at, count, share, rank);
        at += count;
        st = ot__made(ot__map_put(&out->by_name, p->name, &out->items[i]));
    }
    if (st != OT_OK)
        ot__deal_drop(out);
    return st;
}

void ot__deal_drop(ot__deal *deal)
{
    ot__map_deinit(&deal->by_name);
    ot__free(deal->items);
    *deal = (ot__deal){0};
}

const ot__dealt *ot__deal_find(const ot__deal *deal, const char *name)
{
    return ot__map_get(&deal->by_name, name);
}
