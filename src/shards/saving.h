// SPDX-License-Identifier: Apache-2.0
// A save under way, from step to step (save.c, save_index.c). Private to `shards`.
#ifndef OT_SHARDS_SAVING_H
#define OT_SHARDS_SAVING_H

#include "shards/shards.h"

typedef struct ot__saving {
    ot__team team;
    ot_shards_save_options options;
    char *path;
    // what there is: trees of the items as JSON, and tensors
    int n_items;
    char **names;
    ot__buf *trees;
    ot__leaves leaves;
    int n_own; // parts
    // where it is written
    ot__staging staging; // of rank 0
    ot__buf place;       // the id of the save, then the directory
    const char *folder;
    char save_id[OT_HEX_ID_LENGTH + 1];
    uint64_t unix_ns;
    ot__save_files files;
    // of rank 0: the parts of all ranks, by rank, and the plan made of them
    ot__buf *parts;
    ot__save_record *records;
    int64_t n_records;
    ot__buf *reports;        // and what they have written
    ot__held_files *removed; // gets files of older checkpoints; NULL: nobody does
} ot__saving;

// The steps, in their order; those of files (enter, write, publish) are each rank's own, the others
// are collective. After a failure there is nothing but ot__saving_deinit(), which removes what was
// written.
ot_status ot__saving_look(ot__saving *s, ot_comm *comm, const char *path,
                          const ot_shards_item *items, int n_items,
                          const ot_shards_save_options *options);
ot_status ot__saving_open(ot__saving *s);
ot_status ot__saving_plan(ot__saving *s);
// The directory is there, and known to be: for rank 0, which has made it, on the disk.
ot_status ot__saving_enter(ot__saving *s);
ot_status ot__saving_write(ot__saving *s);
// `st`: how that went here. What all have written, for rank 0.
ot_status ot__saving_collect(ot__saving *s, ot_status st);
ot_status ot__saving_publish(ot__saving *s); // of rank 0: the index, and publishing
void ot__saving_deinit(ot__saving *s);

// What the steps are made of.
ot_status ot__saving_options(ot__saving *s, const ot_shards_save_options *options);
// Of each part its tensor, the entries of its box, and its box; see plan_save.c.
void ot__saving_list_part(int tensor, const ot_box *box, ot__buf *out);
// Of s->parts: the plan, and for each rank a byte for each of its parts, 1: it writes that.
ot_status ot__saving_plan_all(ot__saving *s, ot__buf *marks);
ot_status ot__saving_report(const ot__saving *s, ot__buf *out); // what this rank has written

// Removes checkpoints beside `path` that are not kept any more (retain.c).
void ot__shards_retain(const char *path, int n_kept, ot__held_files *removed);

#endif
