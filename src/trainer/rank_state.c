// SPDX-License-Identifier: Apache-2.0
// What one rank has of a state that ZeRO deals out as ONNX Runtime does: moments and averages of
// its weights, in mixed precision these weights alone. Values are gathered one by one, of which a
// rank keeps its own.
#include <string.h>

#include "trainer/state.h"

// ---- parts ----

typedef struct own_values {
    const ot_checkpoint *checkpoint;
    const ot__deal *deal;
    bool deals_weights;
    ot_dict *model, *state; // of a state dict: to be filled
} own_values;

static ot_status cut_dealt(const ot_tensor *whole, const ot__dealt *dealt, ot_tensor **out)
{
    const size_t size = ot_dtype_size(whole->dtype);

    if (!dealt->is_cut)
        return ot_tensor_clone(whole, out);
    OT_TRY(ot_tensor_create(whole->dtype, &OT_SHAPE(dealt->count), out));
    memcpy((*out)->data, (const char *)whole->data + (size_t)dealt->first * size,
           (size_t)dealt->count * size);
    return OT_OK;
}

static ot_status keep_dealt(const own_values *own, const char *name, const ot_tensor *whole,
                            ot_dict *to, const char *key)
{
    const ot__dealt *dealt = ot__deal_find(own->deal, name);
    ot_tensor *part;
    ot_status st;

    if (dealt == NULL || !dealt->is_mine)
        return OT_OK;
    OT_TRY(cut_dealt(whole, dealt, &part));
    st = ot_dict_take_tensor(to, key, part);
    if (st != OT_OK)
        ot_tensor_destroy(part);
    return st;
}

static ot_status keep_slot(const own_values *own, const char *name, const char *key,
                           const ot_tensor *whole)
{
    ot_dict *slots;

    OT_TRY(ot__state_has(own->state, name) ? ot_dict_get_dict(own->state, name, &slots)
                                           : ot_dict_set_dict(own->state, name, &slots));
    return keep_dealt(own, name, whole, slots, key);
}

// Whole values that are here are taken from the checkpoint.
static ot_status keep_value(const own_values *own, const char *name, const ot_dict *leaf,
                            const ot_tensor *whole)
{
    const ot__parameter *p = ot__ckpt_find(own->checkpoint, name);

    if (own->deals_weights && p->trainable)
        return keep_dealt(own, name, whole, own->model, name);
    return p->value_sharding != NULL ? ot__dict_copy(leaf, name, own->model, name) : OT_OK;
}

// One value of a state dict, whole. Numbers are on all ranks anyway.
static ot_status keep_own_values(void *context, const char *const *path, int n_path,
                                 const ot_dict *leaf)
{
    enum { VALUE = 2, SLOT = 4 }; // names on the way: "model", name; "optim", "state", name, key
    const ot_tensor *whole = ot__state_tensor(leaf, path[n_path - 1]);

    if (whole == NULL)
        return OT_OK;
    return n_path == VALUE  ? keep_value(context, path[1], leaf, whole)
           : n_path == SLOT ? keep_slot(context, path[2], path[3], whole)
                            : OT_OK;
}

static ot_status make_places(own_values *own, ot_dict *whole)
{
    ot_dict *optimizer;

    OT_TRY(ot_dict_set_dict(whole, "model", &own->model));
    OT_TRY(ot_dict_set_dict(whole, "optim", &optimizer));
    return ot_dict_set_dict(optimizer, "state", &own->state);
}

static ot_status gather_own_values(const ot_trainer *trainer, bool has_optimizer, own_values *own,
                                   ot_dict **out)
{
    const unsigned sections = OT_STATE_MODEL | (has_optimizer ? OT_STATE_OPTIMIZER : 0);
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *whole = NULL;
    ot_status st = ot_dict_create(&whole);

    OT_THEN(st, make_places(own, whole));
    st = ot__session_agree(trainer->session, st, "ot_trainer_save");
    options.gather = OT_GATHER_ALL;
    options.copy = 0;
    OT_THEN(st, ot__session_stream_shards(trainer->session, sections, &options, OT_GATHER_ALL,
                                          keep_own_values, own));
    return OT_HAND_OUT(st, out, whole, ot_dict_destroy);
}

ot_status ot__state_of_rank(ot_trainer *trainer, bool has_optimizer, ot__state_source *out)
{
    const ot_comm *comm = ot__session_comm(trainer->session);
    own_values own = {.checkpoint = ot_session_checkpoint(trainer->session),
                      .deals_weights = trainer->recorded.mixed_precision};
    ot_dict *whole = NULL;
    ot__deal deal;
    ot_status st =
        ot__deal_make(own.checkpoint, ot_comm_rank(comm), ot_comm_world_size(comm), &deal);

    *out = (ot__state_source){0};
    OT_TRY(ot__session_agree(trainer->session, st, "ot_trainer_save"));
    own.deal = &deal;
    st = gather_own_values(trainer, has_optimizer, &own, &whole);
    if (st != OT_OK) {
        ot__deal_drop(&deal);
        return st;
    }
    ot__state_source_begin(trainer, whole, true, out);
    out->is_dealt = true;
    out->deals_weights = own.deals_weights;
    out->deal = deal;
    return OT_OK;
}

// ---- means ----

enum { WINDOW = 1 << 14 }; // elements that are sent at once

static ot_status make_means(const ot_checkpoint *checkpoint, ot_dict **out)
{
    ot_dict *means;
    ot_status st;

    OT_TRY(ot_dict_create(&means));
    st = OT_OK;
    for (int i = 0; st == OT_OK && i < checkpoint->n_parameters; i++) {
        const ot__parameter *p = checkpoint->parameters[i];
        ot_tensor *copy = NULL;

        if (!p->is_undone || !ot__dtype_is_float(p->value->dtype))
            continue;
        st = ot_tensor_clone(p->value, &copy);
        OT_THEN(st, ot_dict_take_tensor(means, p->name, copy));
        if (st != OT_OK)
            ot_tensor_destroy(copy);
    }
    return OT_HAND_OUT(st, out, means, ot_dict_destroy);
}

// In f64 and in the order of the ranks, so that all have the same bits.
static ot_status average_over_ranks(ot_comm *comm, double *window, const ot_tensor *tensor)
{
    const int64_t count = ot_tensor_count(tensor);
    const size_t size = ot_dtype_size(tensor->dtype);

    for (int64_t at = 0; at < count; at += WINDOW) {
        const int64_t n = OT_MIN(count - at, (int64_t)WINDOW);
        char *data = (char *)tensor->data + (size_t)at * size;

        (void)ot__convert(window, OT_F64, data, tensor->dtype, n);
        OT_TRY(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_F64, window, n));
        for (int64_t i = 0; i < n; i++)
            window[i] /= ot_comm_world_size(comm);
        (void)ot__convert(data, tensor->dtype, window, OT_F64, n);
    }
    return OT_OK;
}

ot_status ot__state_add_means(ot__state_source *source)
{
    ot_session *session = source->trainer->session;
    double *window;
    ot_status st;

    if (source->position.n_accumulated == 0)
        return OT_OK;
    window = ot__alloc(WINDOW * sizeof *window);
    st = ot__made(window != NULL);
    OT_THEN(st, make_means(source->checkpoint, &source->means));
    st = ot__session_agree(session, st, "ot_trainer_save");
    for (int i = 0; st == OT_OK && i < ot_dict_count(source->means); i++)
        st = average_over_ranks(ot__session_comm(session), window,
                                ot__state_tensor(source->means, ot_dict_name(source->means, i)));
    ot__free(window);
    return st;
}
