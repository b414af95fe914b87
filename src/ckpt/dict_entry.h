// SPDX-License-Identifier: Apache-2.0
// The values of a dict. Private to `ckpt`.
#ifndef OT_CKPT_DICT_ENTRY_H
#define OT_CKPT_DICT_ENTRY_H

#include "ckpt/ckpt.h"
#include "onnxtrain/dict.h"

typedef struct dict_entry {
    char *name;
    ot_dict_kind kind;
    ot__stamp *stamp; // of the checkpoint whose memory it is; NULL: it is its own
    uint64_t stamped; // what that was
    union {
        int64_t i; // bool and int
        double f;
        char *s;
        struct {
            int64_t *values;
            int n;
        } ints;
        struct {
            void *data;
            size_t n_bytes;
        } bytes;
        ot_tensor *tensor;
        ot_shards *shards;
        ot_dict *dict; // and list
    } value;
} dict_entry;

// Entries stand in the order in which they were set; the map has each one's place + 1.
struct ot_dict {
    dict_entry *entries;
    int n_entries, capacity;
    bool is_list;
    ot__map places;
    ot_dict *parent;
};

// The value that a public function wants to hand out into `out`, which must not be NULL.
ot_status ot__dict_get(const ot_dict *dict, const char *name, const void *out, ot_dict_kind kind,
                       const dict_entry **found);
ot_status ot__dict_check_name(const ot_dict *dict, const char *name);
// Takes the value over unless it fails.
ot_status ot__dict_put(ot_dict *dict, const char *name, dict_entry value);
// Takes over what was made; frees it on failure.
ot_status ot__dict_put_made(ot_dict *dict, const char *name, dict_entry value, bool made);
void ot__dict_shards_free(ot_shards *shards);            // with its parts
void ot__stamp_release(ot__stamp *stamp);                // NULL is fine
ot_status ot__dict_check_entry(const dict_entry *entry); // OT_ERR_STATE: it is out of date

#endif
