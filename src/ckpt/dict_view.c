// SPDX-License-Identifier: Apache-2.0
// Tensors in a dict that are memory of a checkpoint. They are given out until the checkpoint
// changes, or how its parameters lie in memory does.
#include "ckpt/dict_entry.h"

void ot__stamp_release(ot__stamp *stamp)
{
    if (stamp != NULL && atomic_fetch_sub(&stamp->n_users, 1) == 1)
        ot__free(stamp);
}

void ot__ckpt_outdate(ot_checkpoint *checkpoint)
{
    if (checkpoint->stamp != NULL)
        atomic_fetch_add(&checkpoint->stamp->now, 1);
}

ot_status ot__dict_mark_view(ot_dict *dict, const char *name, ot_checkpoint *checkpoint)
{
    dict_entry *entry = &dict->entries[(uintptr_t)ot__map_get(&dict->places, name) - 1];

    if (checkpoint->stamp == NULL) {
        checkpoint->stamp = ot__alloc_zero(1, sizeof *checkpoint->stamp);
        OT_TRY(ot__made(checkpoint->stamp != NULL));
        atomic_fetch_add(&checkpoint->stamp->n_users, 1);
    }
    atomic_fetch_add(&checkpoint->stamp->n_users, 1);
    entry->stamp = checkpoint->stamp;
    entry->stamped = atomic_load(&entry->stamp->now);
    return OT_OK;
}

ot_status ot__dict_check_entry(const dict_entry *entry)
{
    if (entry->stamp == NULL || atomic_load(&entry->stamp->now) == entry->stamped)
        return OT_OK;
    return ot__error(OT_ERR_STATE,
                     "'%s' of the dict is the session's own, which has changed since: get the "
                     "state again, or with copy",
                     entry->name);
}
