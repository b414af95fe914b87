// SPDX-License-Identifier: Apache-2.0
// Tensors that are cut over ranks, between these and the whole on rank 0: piece by piece, so that
// no rank needs more memory for it than the window.
#include <string.h>

#include "session/state_dict.h"

bool ot__sharding_cuts(const ot_sharding *sharding)
{
    for (int g = 0; sharding != NULL && g < OT_MAX_CUT_GROUPS; g++)
        if (ot_sharding_parts(sharding, g) > 1)
            return true;
    return false;
}

// ---- who has what ----

static bool has_same_part(const ot_sharding *sharding, const int *a, const int *b)
{
    for (int g = 0; g < OT_MAX_CUT_GROUPS; g++)
        if (ot_sharding_parts(sharding, g) > 1 && a[g] != b[g])
            return false;
    return true;
}

// That of the rank with the lowest number is sent to rank 0.
static bool is_copy(const ot__state_call *call, const ot_sharding *sharding, int rank)
{
    for (int r = 0; r < rank; r++)
        if (has_same_part(sharding, call->places[r], call->places[rank]))
            return true;
    return false;
}

static ot_status add_rank(const ot__state_call *call, ot__parts_of_ranks *parts, int rank)
{
    const int *places = call->places[rank];
    ot_shard_box **boxes = &parts->boxes[rank];
    int64_t n;

    OT_TRY(ot_sharding_local_shape(parts->sharding, places, &parts->local[rank]));
    OT_TRY(ot_sharding_boxes(parts->sharding, places, 0, NULL, &n));
    if (n == 0)
        return OT_OK;
    *boxes = ot__alloc_zero((size_t)n, sizeof **boxes);
    OT_TRY(ot__made(*boxes != NULL));
    return ot_sharding_boxes(parts->sharding, places, n, *boxes, &parts->n_boxes[rank]);
}

ot_status ot__parts_make(const ot__state_call *call, const ot_sharding *sharding, ot_dtype dtype,
                         bool has_copies, ot__parts_of_ranks *out)
{
    const int n = call->options.comm == NULL ? 1 : ot_comm_world_size(call->options.comm);
    const int own = call->options.comm == NULL ? 0 : ot_comm_rank(call->options.comm);
    ot_status st;

    *out = (ot__parts_of_ranks){.sharding = sharding,
                                .dtype = dtype,
                                .n_ranks = n,
                                .local = ot__alloc_zero((size_t)n, sizeof(ot_shape)),
                                .boxes = ot__alloc_zero((size_t)n, sizeof(ot_shard_box *)),
                                .n_boxes = ot__alloc_zero((size_t)n, sizeof(int64_t)),
                                .piece_bytes = call->options.window_bytes};
    st = ot__made(out->local != NULL && out->boxes != NULL && out->n_boxes != NULL);
    for (int r = own; r < (own == 0 ? n : own + 1) && st == OT_OK; r++)
        if (has_copies || !is_copy(call, sharding, r))
            st = add_rank(call, out, r);
    if (st != OT_OK)
        ot__parts_free(out);
    return st;
}

void ot__parts_free(ot__parts_of_ranks *parts)
{
    for (int r = 0; r < parts->n_ranks && parts->boxes != NULL; r++)
        ot__free(parts->boxes[r]);
    ot__free(parts->local);
    ot__free(parts->boxes);
    ot__free(parts->n_boxes);
    *parts = (ot__parts_of_ranks){0};
}

// ---- pieces ----

// Rows of a box that fit the window: the axes before `axis` at one place, some of it, and all of
// those behind it. All ranks cut alike.
typedef struct walk {
    const ot_shard_box *box;
    int axis;
    int64_t step;              // of that axis
    int64_t at[OT_MAX_NDIM];   // in the box
    int64_t size[OT_MAX_NDIM]; // of the present piece
    size_t n_bytes;
} walk;

static void fit_piece(walk *w, size_t element_size)
{
    const int n = w->box->box.ndim;

    w->n_bytes = element_size;
    for (int k = 0; k < n; k++) {
        w->size[k] = k < w->axis ? 1 : w->box->box.size[k];
        if (k == w->axis)
            w->size[k] = OT_MIN(w->step, w->box->box.size[k] - w->at[k]);
        w->n_bytes *= (size_t)w->size[k];
    }
}

static void begin_walk(walk *w, const ot_shard_box *box, size_t element_size, size_t window)
{
    size_t row = element_size;

    *w = (walk){.box = box, .axis = box->box.ndim, .step = 1};
    while (w->axis > 0) {
        const size_t all = row * (size_t)box->box.size[w->axis - 1];

        w->axis--;
        w->step = OT_MIN((int64_t)OT_MAX(window / row, (size_t)1), box->box.size[w->axis]);
        if (all > window)
            break;
        row = all;
    }
    fit_piece(w, element_size);
}

static bool next_piece(walk *w, size_t element_size)
{
    for (int k = w->axis; k >= 0 && w->box->box.ndim > 0; k--) {
        w->at[k] += k == w->axis ? w->step : 1;
        if (w->at[k] < w->box->box.size[k]) {
            fit_piece(w, element_size);
            return true;
        }
        w->at[k] = 0;
    }
    return false;
}

// Where the present piece begins, from where its box does.
static void place_of_piece(const walk *w, const int64_t *from, int64_t *out)
{
    for (int k = 0; k < w->box->box.ndim; k++)
        out[k] = from[k] + w->at[k];
}

static ot_shape shape_of_piece(const walk *w)
{
    ot_shape shape = {.ndim = w->box->box.ndim};

    memcpy(shape.dim, w->size, sizeof shape.dim);
    return shape;
}

// Between a tensor and the window, which has the present piece alone.
static void copy_piece_of(const walk *w, void *tensor, const ot_shape *shape, const int64_t *from,
                          void *window, bool is_out, size_t element_size)
{
    static const int64_t zero[OT_MAX_NDIM];
    const ot_shape piece = shape_of_piece(w);
    int64_t at[OT_MAX_NDIM] = {0};

    place_of_piece(w, from, at);
    if (is_out)
        ot__box_copy(window, &piece, zero, tensor, shape, at, w->size, element_size);
    else
        ot__box_copy(tensor, shape, at, window, &piece, zero, w->size, element_size);
}

// One box of a rank goes to rank 0, or comes from there.
static ot_status move_box(const ot__state_call *call, const ot__parts_of_ranks *parts, int rank,
                          const ot_shard_box *box, const ot_tensor *local, void *whole,
                          bool is_gather)
{
    const size_t element_size = ot_dtype_size(parts->dtype);
    const bool is_root = ot_comm_rank(call->options.comm) == 0;
    const ot_shape *shape = is_root ? ot_sharding_shape(parts->sharding) : &parts->local[rank];
    const int64_t *from = is_root ? box->box.offset : box->local;
    void *data = is_root ? whole : local->data;
    walk w;

    begin_walk(&w, box, element_size, parts->piece_bytes);
    do {
        const bool sends = is_root != is_gather;

        if (sends)
            copy_piece_of(&w, data, shape, from, call->window, true, element_size);
        OT_TRY(ot__comm_exchange(call->options.comm, OT_TAG_GATHER, is_root ? rank : 0,
                                 call->window, sends ? w.n_bytes : 0, is_root ? rank : 0,
                                 call->window, sends ? 0 : w.n_bytes, call->what));
        if (!sends)
            copy_piece_of(&w, data, shape, from, call->window, false, element_size);
    } while (next_piece(&w, element_size));
    return OT_OK;
}

static void move_own(const ot__parts_of_ranks *parts, const ot_tensor *local, void *whole,
                     bool is_gather)
{
    const ot_shape *shape = ot_sharding_shape(parts->sharding);
    const size_t element_size = ot_dtype_size(parts->dtype);

    for (int64_t i = 0; i < parts->n_boxes[0]; i++) {
        const ot_shard_box *b = &parts->boxes[0][i];

        if (is_gather)
            ot__box_copy(whole, shape, b->box.offset, local->data, &parts->local[0], b->local,
                         b->box.size, element_size);
        else
            ot__box_copy(local->data, &parts->local[0], b->local, whole, shape, b->box.offset,
                         b->box.size, element_size);
    }
}

static ot_status move_parts(const ot__state_call *call, const ot__parts_of_ranks *parts,
                            const ot_tensor *local, void *whole, bool is_gather)
{
    const int rank = call->options.comm == NULL ? 0 : ot_comm_rank(call->options.comm);

    if (rank == 0)
        move_own(parts, local, whole, is_gather);
    for (int r = 1; r < parts->n_ranks; r++)
        for (int64_t i = 0; i < parts->n_boxes[r] && (rank == 0 || rank == r); i++)
            OT_TRY(move_box(call, parts, r, &parts->boxes[r][i], local, whole, is_gather));
    return OT_OK;
}

ot_status ot__parts_gather(const ot__state_call *call, const ot__parts_of_ranks *parts,
                           const ot_tensor *local, void *whole)
{
    return move_parts(call, parts, local, whole, true);
}

ot_status ot__parts_scatter(const ot__state_call *call, const ot__parts_of_ranks *parts,
                            const void *whole, ot_tensor *local)
{
    return move_parts(call, parts, local, (void *)(uintptr_t)whole, false);
}
