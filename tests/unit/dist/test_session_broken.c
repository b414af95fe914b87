// SPDX-License-Identifier: Apache-2.0
// Messages that fail while a state is set: a session has all of it, nothing of it, or refuses to go
// on until it is set again.
#include "session/session_internal.h"
#include "session_shards.h"

typedef struct breaking {
    int n_sends; // of rank 0, that go well
    atomic_int n_half, n_well, n_whole;
    _Atomic double died; // when rank 0 did, by the clock; 0: not yet
} breaking;

static _Thread_local breaking *broken;
static _Thread_local int n_left;
static _Thread_local ot_transport real;

static ot_status send_some(void *context, int to, int tag, const void *bytes, size_t n_bytes,
                           ot_request *out)
{
    if (n_left-- > 0)
        return real.send(context, to, tag, bytes, n_bytes, out);
    atomic_store(&broken->died, ot__clock_seconds());
    return OT_ERR_IO;
}

// As a library that hears of it: what is under way arrives first.
static ot_status test_alive(void *context, ot_request *requests, int n, int *n_done)
{
    static const double heard_after = 0.05; // seconds
    const double died = atomic_load(&broken->died);

    return died > 0 && ot__clock_seconds() - died > heard_after
               ? OT_ERR_IO
               : real.test(context, requests, n, n_done);
}

static void begin_breaking(ot_comm *comm, breaking *b)
{
    broken = b;
    real = comm->job->transport;
    comm->job->transport.test = test_alive;
    n_left = b->n_sends;
    if (ot_comm_rank(comm) == 0)
        comm->job->transport.send = send_some;
}

static ot_status try_step(rank_session *s)
{
    ot_tensor *loss = NULL;
    ot_status st;

    batch(&s->f, 0, ROWS);
    st = ot_session_train_step(s->f.session, (const ot_tensor *const *)s->f.inputs, 2, &loss, 1);
    ot_tensor_destroy(loss);
    return st;
}

static bool same_elements(const picture *a, const picture *b)
{
    return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

// Rank 0 gives, and its messages fail. What a rank has then is all, nothing, or refused by steps.
static void break_a_set(ot_comm *comm, void *context)
{
    breaking *b = context;
    const trial t = {.how = STATE};
    ot_state_dict_options o = options_of(&t, comm);
    const bool is_root = ot_comm_rank(comm) == 0;
    picture whole, empty, found;
    rank_session s;
    ot_dict *state = NULL;
    ot_status st;

    begin_rank(&s, comm, t.how);
    o.gather = OT_GATHER_ALL;
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &state));
    RANK_MUST(ot_comm_barrier(comm));
    o.scatter = OT_SCATTER_ROOT;
    whole = take_picture(&s.f);
    clear(&s);
    empty = take_picture(&s.f);
    begin_breaking(comm, b);
    st = ot_session_set_shards(s.f.session, ALL_SECTIONS, is_root ? state : NULL, &o, NULL);
    found = take_picture(&s.f);
    if (st == OT_OK)
        atomic_fetch_add(&b->n_well, 1);
    if (same_elements(&found, &whole))
        atomic_fetch_add(&b->n_whole, 1);
    RANK_CHECK(st != OT_OK || !s.f.session->is_half_set, "it has all");
    if (s.f.session->is_half_set) {
        atomic_fetch_add(&b->n_half, 1);
        RANK_CHECK(try_step(&s) == OT_ERR_STATE &&
                       strstr(ot_error_message(), "a part of a state only") != NULL,
                   "%s", ot_error_message());
    } else if (st != OT_OK) {
        RANK_CHECK(same_elements(&found, &empty), "%s, and some is changed", ot_status_name(st));
    }
    o.comm = NULL; // what is set whole needs no messages
    o.scatter = OT_SCATTER_EACH;
    RANK_MUST(ot_session_set_shards(s.f.session, ALL_SECTIONS, state, &o, NULL));
    visit(&s, true);
    RANK_MUST(try_step(&s));
    ot_dict_destroy(state);
    end_rank(&s);
}

static void a_state_that_is_set_in_part_is_set_again_before_steps(void **state)
{
    enum { N_RANKS = 3, FROM = 20, TO = 90 };
    int n_failed = 0;
    breaking b = {.n_sends = FROM};

    (void)state;
    for (; b.n_sends < TO && b.n_well < N_RANKS; b.n_sends++) {
        b.n_half = b.n_well = b.n_whole = 0;
        b.died = 0;
        run_ranks(N_RANKS, break_a_set, &b);
        if (b.n_well > 0 && b.n_whole < N_RANKS)
            fail_msg("after %d messages %d ranks have all, and %d end well", b.n_sends, b.n_whole,
                     b.n_well);
        n_failed += b.n_half == N_RANKS;
    }
    assert_true(n_failed > 0);
}

// ---- memory ----

static _Thread_local int64_t bytes_now, bytes_most;

enum { BEFORE = 16 }; // of a block, for its size

static void *count_reallocate(void *context, void *block, size_t n_bytes)
{
    const size_t old = block == NULL ? 0 : *(size_t *)((char *)block - BEFORE);
    char *made = realloc(block == NULL ? NULL : (char *)block - BEFORE, n_bytes + BEFORE);

    (void)context;
    if (made == NULL)
        return NULL;
    *(size_t *)made = n_bytes;
    bytes_now += (int64_t)n_bytes - (int64_t)old;
    bytes_most = OT_MAX(bytes_most, bytes_now);
    return made + BEFORE;
}

static void count_release(void *context, void *block)
{
    (void)context;
    if (block == NULL)
        return;
    bytes_now -= (int64_t) * (size_t *)((char *)block - BEFORE);
    free((char *)block - BEFORE);
}

enum { BIG_ROWS = 4096, BIG_COLUMNS = 64, WINDOW = 4096, BESIDES = 4096 };

static void check_big(ot_dict *dict)
{
    const ot_tensor *big = NULL;

    RANK_MUST(ot_dict_get_tensor(dict_in(dict, "model"), "big", &big));
    for (int64_t i = 0; big != NULL && i < ot_tensor_count(big); i++)
        RANK_CHECK(fabsf(((float *)big->data)[i] - expected_at(0, i)) <= 0, "element %d", (int)i);
}

static ot_status take_leaf(void *context, const char *const *path, int n_path, const ot_dict *leaf)
{
    (void)context, (void)path, (void)n_path, (void)leaf;
    return OT_OK;
}

// 256 KiB of a tensor are on each rank; to gather it on rank 0 the others need the window, and a
// page for names and lists.
static void gather_a_large_tensor(ot_comm *comm, void *context)
{
    const trial t = {.how = VALUES, .window = WINDOW};
    ot_state_dict_options o = options_of(&t, comm);
    const ot_shape shape = OT_SHAPE(BIG_ROWS, BIG_COLUMNS);
    rank_session s = {0};
    ot__parameter *p;
    ot_sharding *sharding;
    ot_tensor *part;
    ot_dict *dict = NULL;
    int64_t before;

    (void)context;
    make(&s.f, OT_F32, NULL);
    add(s.f.checkpoint, "big", shape, 0);
    p = ot__ckpt_find(s.f.checkpoint, "big");
    s.f.checkpoint->places[OT_CUT_DATA] = ot_comm_rank(comm);
    sharding = cut_for(&shape, VALUES, ot_comm_world_size(comm));
    RANK_MUST(ot__ckpt_cut(s.f.checkpoint, sharding, p->value, &part));
    ot_tensor_destroy(p->value);
    p->value = part;
    p->value_sharding = p->state_sharding = sharding;
    open_session(&s.f);
    fill(&s, p->value, sharding, 0, false);
    o.gather = OT_GATHER_ROOT;
    before = bytes_most = bytes_now;
    RANK_MUST(ot_session_get_shards(s.f.session, OT_STATE_MODEL, &o, &dict));
    if (ot_comm_rank(comm) == 0)
        check_big(dict);
    ot_dict_destroy(dict);
    RANK_MUST(ot_session_stream_shards(s.f.session, OT_STATE_MODEL, &o, take_leaf, NULL));
    if (ot_comm_rank(comm) != 0)
        RANK_CHECK(bytes_most - before < WINDOW + BESIDES, "%d bytes more",
                   (int)(bytes_most - before));
    teardown_of(&s.f);
    ot_sharding_destroy(sharding);
}

static void ranks_that_get_nothing_need_no_memory(void **state)
{
    (void)state;
    run_ranks(4, gather_a_large_tensor, NULL);
}

int main(void)
{
    static const ot_allocator counting = {count_reallocate, count_release, NULL};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_that_is_set_in_part_is_set_again_before_steps),
        cmocka_unit_test(ranks_that_get_nothing_need_no_memory),
    };

    ot_set_allocator(&counting);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
