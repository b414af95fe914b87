// SPDX-License-Identifier: Apache-2.0
// A reduction: what was made once (reduce_create.c), and what is under way of it (reduce.c).
#ifndef OT_DIST_REDUCE_H
#define OT_DIST_REDUCE_H

#include "dist/dist.h"

enum {
    OT_LANES = 2,        // pieces of a reduction that are under way
    OT_REDUCE_SLOTS = 4, // reductions that are; more wait for a slot
};

typedef enum ot__lane_phase {
    OT_LANE_DONE,
    OT_LANE_SCATTER,
    OT_LANE_GATHER,
} ot__lane_phase;

typedef struct ot__lane {
    ot__lane_phase phase;
    int64_t piece;
    int n_requests;
    ot_request *requests;
    int *peers;    // of the requests
    char *staging; // a piece of every contribution of others
} ot__lane;

typedef struct ot__slot {
    ot__reduce *user;
    ot__lane lanes[OT_LANES];
    void *memory; // of the lanes, while there is a user
} ot__slot;

// Of a communicator: the reductions that were started and have not ended, in that order.
struct ot__reducer {
    ot__reduce *first;
    int64_t n_started;
    ot__slot slots[OT_REDUCE_SLOTS];
    size_t lane_bytes; // of every lane
    // For the lanes of slots with users, who have the first ones: the next one was used last.
    void *memory[OT_REDUCE_SLOTS];
    int n_taken;
};

struct ot__reduce {
    ot_comm *comm;
    ot_dtype dtype;
    int64_t element, piece; // bytes of an element, elements of a piece
    int64_t n_pieces;       // of the largest share
    int64_t *starts;        // of the shares of all ranks, and the end
    // The contributions to every sum, in the order of their slices.
    int n_parts;
    int *owners;  // of the parts: ranks
    void **parts; // where those of a piece are
    ot__tree_add *adds;
    int n_adds, n_own, first_own; // own parts come one after the other
    // while it is under way
    ot__reduce *next;
    void *buffers[OT_TREE_COVER_MAX];
    int phases, slot;
    bool is_started;
};

// Its user has come: the lanes of a slot lie in its memory as this one needs them.
void ot__reduce_cut_lanes(const ot__reduce *r, ot__slot *slot);
// Out of the list; its slot is free.
void ot__reduce_leave(ot__reduce *r);

#endif
