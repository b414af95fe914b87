// SPDX-License-Identifier: Apache-2.0
// Sessions whose parameters are cut over ranks, which are threads. Element i of tensor number k is
// 1000 k + i, so that it says itself whether it is at its place.
#ifndef TESTS_UNIT_DIST_SESSION_SHARDS_H
#define TESTS_UNIT_DIST_SESSION_SHARDS_H

#include "ranks.h"
#include "unit/session/state_dict_fixture.h"

typedef enum scheme {
    WHOLE,   // as with data parallel training
    STATE,   // slots are cut: ZeRO 1 and 2
    VALUES,  // and values: ZeRO 3
    COLUMNS, // by the last axis
    SCHEMES,
} scheme;

typedef struct trial {
    scheme how;
    size_t window;
    ot_dict *whole; // given by rank 0
    int flat;
    int is_turned; // a name is that of a transposed matrix
} trial;

typedef struct rank_session {
    fixture f;
    ot_sharding *shardings[N_PARTS];
} rank_session;

static inline float expected_at(int tensor, int64_t i)
{
    return (float)(1000 * tensor + i);
}

// ---- a session of a rank ----

static inline ot_sharding *cut_for(const ot_shape *shape, scheme how, int n_ranks)
{
    ot_cut cut = OT_CUT_INIT;
    ot_sharding *sharding;

    cut.axis = how == COLUMNS ? shape->ndim - 1 : 0;
    cut.rule = OT_CUT_CEIL;
    cut.n_parts = n_ranks;
    RANK_MUST(ot_sharding_create(OT_F32, shape, &cut, 1, -1, &sharding));
    return sharding;
}

static inline void fill(const rank_session *s, ot_tensor *t, const ot_sharding *sharding,
                        int number, bool is_check)
{
    ot_tensor *whole, *part = NULL;
    const ot_shape *shape = sharding == NULL ? &t->shape : ot_sharding_shape(sharding);

    RANK_MUST(ot_tensor_create(OT_F32, shape, &whole));
    for (int64_t i = 0; i < ot_tensor_count(whole); i++)
        ((float *)whole->data)[i] = expected_at(number, i);
    if (sharding != NULL)
        RANK_MUST(ot__ckpt_cut(s->f.checkpoint, sharding, whole, &part));
    else
        part = whole;
    if (is_check)
        RANK_CHECK(memcmp(t->data, part->data, t->n_bytes) == 0, "tensor %d", number);
    else
        memcpy(t->data, part->data, t->n_bytes);
    if (part != whole)
        ot_tensor_destroy(part);
    ot_tensor_destroy(whole);
}

static inline void visit(rank_session *s, bool is_check)
{
    for (int i = 0; i < N_PARTS; i++) {
        ot__parameter *p = ot__ckpt_find(s->f.checkpoint, mlp_parts[i].name);

        fill(s, p->value, p->value_sharding, 3 * i, is_check);
        fill(s, p->slots[0], p->state_sharding, 3 * i + 1, is_check);
        fill(s, p->slots[1], p->state_sharding, 3 * i + 2, is_check);
    }
}

static inline void clear(rank_session *s)
{
    for (int i = 0; i < N_PARTS; i++) {
        ot__parameter *p = ot__ckpt_find(s->f.checkpoint, mlp_parts[i].name);

        memset(p->value->data, 0, p->value->n_bytes);
        memset(p->slots[0]->data, 0, p->slots[0]->n_bytes);
        memset(p->slots[1]->data, 0, p->slots[1]->n_bytes);
    }
}

static inline void begin_rank(rank_session *s, ot_comm *comm, scheme how)
{
    *s = (rank_session){0};
    make(&s->f, OT_F32, mlp_adamw_text);
    s->f.checkpoint->places[OT_CUT_DATA] = ot_comm_rank(comm);
    for (int i = 0; i < N_PARTS && how != WHOLE; i++) {
        ot__parameter *p = ot__ckpt_find(s->f.checkpoint, mlp_parts[i].name);
        ot_tensor *part;

        s->shardings[i] = cut_for(&p->value->shape, how, ot_comm_world_size(comm));
        p->state_sharding = s->shardings[i];
        if (how == STATE)
            continue;
        RANK_MUST(ot__ckpt_cut(s->f.checkpoint, s->shardings[i], p->value, &part));
        ot_tensor_destroy(p->value);
        p->value = part;
        p->value_sharding = s->shardings[i];
    }
    open_session(&s->f);
    visit(s, false);
}

static inline void end_rank(rank_session *s)
{
    teardown_of(&s->f);
    for (int i = 0; i < N_PARTS; i++)
        ot_sharding_destroy(s->shardings[i]);
}

static inline ot_state_dict_options options_of(const trial *t, ot_comm *comm)
{
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;

    o.comm = comm;
    o.copy = 1;
    o.flat_optimizer = t->flat;
    if (t->window > 0)
        o.window_bytes = t->window;
    return o;
}

static inline ot_dict *dict_in(ot_dict *dict, const char *name)
{
    ot_dict *inner = NULL;

    RANK_MUST(ot_dict_get_dict(dict, name, &inner));
    return inner;
}

static inline void every_scheme(void (*work)(ot_comm *comm, void *context))
{
    for (size_t i = 0; i < OT_COUNT(rank_counts); i++)
        for (int k = WHOLE; k < SCHEMES; k++)
            for (size_t window = 0; window < 48; window += 20) {
                trial t = {.how = (scheme)k, .window = window};

                run_ranks(rank_counts[i], work, &t);
            }
}

#endif
