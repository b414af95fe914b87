// SPDX-License-Identifier: Apache-2.0
// State dicts of sessions that are cut over ranks: what each rank gets.
#include "session_shards.h"

static void check_tensor(ot_dict *of, const char *key, int number)
{
    const ot_tensor *t = NULL;

    RANK_MUST(ot_dict_get_tensor(of, key, &t));
    for (int64_t i = 0; t != NULL && i < ot_tensor_count(t); i++)
        RANK_CHECK(fabsf(((float *)t->data)[i] - expected_at(number, i)) <= 0, "%s [%d] is %g", key,
                   (int)i, (double)((float *)t->data)[i]);
}

// The names are those of one process, however it is cut.
static void check_whole(ot_dict *dict)
{
    RANK_CHECK(ot_dict_count(dict_in(dict, "model")) == N_PARTS &&
                   ot_dict_count(dict_in(dict_in(dict, "optim"), "state")) == N_PARTS,
               "other names");
    for (int i = 0; i < N_PARTS; i++) {
        ot_dict *of = dict_in(dict_in(dict_in(dict, "optim"), "state"), mlp_parts[i].name);

        RANK_CHECK(ot_dict_count(of) == 3, "%s has %d slots", mlp_parts[i].name, ot_dict_count(of));
        check_tensor(dict_in(dict, "model"), mlp_parts[i].name, 3 * i);
        check_tensor(of, "exp_avg", 3 * i + 1);
        check_tensor(of, "exp_avg_sq", 3 * i + 2);
    }
}

static void gather_everywhere(ot_comm *comm, void *context)
{
    const trial *t = context;
    ot_state_dict_options o = options_of(t, comm);
    rank_session s;
    ot_dict *dict = NULL;

    begin_rank(&s, comm, t->how);
    o.gather = OT_GATHER_ALL;
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &dict));
    if (dict != NULL)
        check_whole(dict);
    ot_dict_destroy(dict);
    o.gather = OT_GATHER_ROOT;
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &dict));
    if (ot_comm_rank(comm) == 0 && dict != NULL)
        check_whole(dict);
    else
        RANK_CHECK(ot_dict_count(dict) == 0, "rank 0 alone gets it");
    ot_dict_destroy(dict);
    visit(&s, true);
    end_rank(&s);
}

static void cut_tensors_are_made_whole(void **state)
{
    (void)state;
    every_scheme(gather_everywhere);
}

// ---- one value at a time ----

enum { LEAVES = 4 + 4 * 3 + 1 + 4, PATH_MAX_LENGTH = 128 }; // values, slots, groups, numbers

typedef struct taking {
    ot_dict *all; // by what a get gives
    char last[PATH_MAX_LENGTH];
    int n, n_failing; // fails with the n-th; 0: never
} taking;

// A value is that of the whole state, and sections and names come in their order.
static ot_status take_leaf(void *context, const char *const *path, int n_path, const ot_dict *leaf)
{
    taking *t = context;
    ot_dict *in = t->all;
    char name[PATH_MAX_LENGTH];

    if (++t->n == t->n_failing)
        return OT_ERR_IO;
    for (int i = 0; i < n_path - 1; i++)
        in = dict_in(in, path[i]);
    RANK_CHECK(ot__dict_has(in, path[n_path - 1]) &&
                   ot__dict_same(in, path[n_path - 1], leaf, path[n_path - 1]),
               "%s is another", path[n_path - 1]);
    snprintf(name, sizeof name, "%s/%s", path[0], path[n_path < 3 ? n_path - 1 : 2]);
    RANK_CHECK(strcmp(path[0], "train") == 0 || n_path == 2 || strcmp(t->last, name) <= 0,
               "%s comes after %s", name, t->last);
    memcpy(t->last, name, sizeof name);
    return OT_OK;
}

static void stream_state(ot_comm *comm, void *context)
{
    const trial *t = context;
    const bool is_root = ot_comm_rank(comm) == 0;
    ot_state_dict_options o = options_of(t, comm);
    taking to = {.n = 0};
    rank_session s;

    begin_rank(&s, comm, t->how);
    o.gather = OT_GATHER_ALL;
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &to.all));
    RANK_MUST(ot_session_stream_shards(s.f.session, ALL_SECTIONS, &o, take_leaf, &to));
    RANK_CHECK(to.n == (is_root ? LEAVES : 0), "%d values", to.n);
    for (int n = 1; n <= LEAVES; n += 5) {
        ot_status st;

        to = (taking){.all = to.all, .n_failing = n};
        (void)ot_checkpoint_load("", NULL); // leaves a message
        st = ot_session_stream_shards(s.f.session, ALL_SECTIONS, &o, take_leaf, &to);
        RANK_CHECK(st == OT_ERR_IO &&
                       strstr(ot_error_message(), "rank 0: the sink has failed at") != NULL,
                   "%s: %s", ot_status_name(st), ot_error_message());
        RANK_CHECK(to.n == (is_root ? n : 0), "%d values after it has failed", to.n - n);
    }
    RANK_MUST(ot_session_stream_shards(s.f.session, ALL_SECTIONS, &o, take_leaf,
                                       &(taking){.all = to.all}));
    ot_dict_destroy(to.all);
    end_rank(&s);
}

static void a_stream_is_the_whole_state_on_rank_0(void **state)
{
    (void)state;
    for (int k = WHOLE; k < SCHEMES; k++) {
        trial t = {.how = (scheme)k};

        run_ranks(3, stream_state, &t);
    }
}

// Parts say themselves which elements they are.
static void check_parts(const ot_shards *shards, int number)
{
    int64_t strides[OT_MAX_NDIM];

    ot__shape_strides(&shards->shape, strides);
    for (int i = 0; i < shards->n_parts; i++) {
        const ot_box *b = &shards->boxes[i];
        const int64_t columns = b->size[b->ndim - 1];

        for (int64_t e = 0; e < ot_tensor_count(shards->parts[i]); e++) {
            const int64_t row = b->ndim == 2 ? b->offset[0] + e / columns : 0;
            const int64_t at =
                row * (b->ndim == 2 ? strides[0] : 0) + b->offset[b->ndim - 1] + e % columns;

            RANK_CHECK(fabsf(((float *)shards->parts[i]->data)[e] - expected_at(number, at)) <= 0,
                       "part %d of tensor %d", i, number);
        }
    }
}

static void local_parts(ot_comm *comm, void *context)
{
    const trial *t = context;
    ot_state_dict_options o = options_of(t, comm);
    const ot_shards *shards = NULL;
    rank_session s;
    ot_dict *dict = NULL, *model;

    begin_rank(&s, comm, t->how);
    o.comm = NULL; // local
    RANK_MUST(ot_session_get_shards(s.f.session, OT_STATE_MODEL, &o, &dict));
    model = dict_in(dict, "model");
    for (int i = 0; i < N_PARTS; i++) {
        if (t->how != VALUES && t->how != COLUMNS) {
            check_tensor(model, mlp_parts[i].name, 3 * i);
        } else if (ot_comm_world_size(comm) > 1) {
            RANK_MUST(ot_dict_get_shards(model, mlp_parts[i].name, &shards));
            check_parts(shards, 3 * i);
        }
    }
    ot_dict_destroy(dict);
    o.gather = OT_GATHER_ALL;
    if (t->how == VALUES && ot_comm_world_size(comm) > 1)
        RANK_CHECK(ot_session_get_shards(s.f.session, OT_STATE_MODEL, &o, &dict) == OT_ERR_STATE,
                   "needs ranks");
    end_rank(&s);
}

static void parts_are_got_without_messages(void **state)
{
    (void)state;
    every_scheme(local_parts);
}

// ---- no elements, no axes ----

static const struct {
    const char *name;
    ot_shape shape, cut; // of a tensor without axes, one is cut
} odd_tensors[] = {
    {"empty", {.ndim = 2, .dim = {0, 3}}, {.ndim = 2, .dim = {0, 3}}},
    {"scalar", {.ndim = 0}, {.ndim = 1, .dim = {1}}},
};

static void begin_odd(rank_session *s, ot_comm *comm)
{
    *s = (rank_session){0};
    make(&s->f, OT_F32, NULL);
    s->f.checkpoint->places[OT_CUT_DATA] = ot_comm_rank(comm);
    for (size_t i = 0; i < OT_COUNT(odd_tensors); i++) {
        ot__parameter *p;
        ot_tensor *part;

        add(s->f.checkpoint, odd_tensors[i].name, odd_tensors[i].shape, 0);
        p = ot__ckpt_find(s->f.checkpoint, odd_tensors[i].name);
        if (p->value->n_bytes > 0)
            *(float *)p->value->data = 4;
        if (ot_comm_world_size(comm) == 1)
            continue;
        s->shardings[i] = cut_for(&odd_tensors[i].cut, VALUES, ot_comm_world_size(comm));
        RANK_MUST(ot__ckpt_cut(s->f.checkpoint, s->shardings[i], p->value, &part));
        ot_tensor_destroy(p->value);
        p->value = part;
        p->value_sharding = p->state_sharding = s->shardings[i];
        p->is_scalar = odd_tensors[i].shape.ndim == 0;
    }
    open_session(&s->f);
}

// Rank 0 alone has the element of the scalar.
static float *own_scalar(const rank_session *s)
{
    ot_tensor *value = ot__ckpt_find(s->f.checkpoint, "scalar")->value;

    return ot_tensor_count(value) > 0 ? value->data : NULL;
}

static void set_odd(rank_session *s, const ot_dict *state, const ot_state_dict_options *o)
{
    if (own_scalar(s) != NULL)
        *own_scalar(s) = 0;
    RANK_MUST(ot_session_set_shards(s->f.session, OT_STATE_MODEL, state, o, NULL));
    RANK_CHECK(own_scalar(s) == NULL || fabsf(*own_scalar(s) - 4) <= 0, "the scalar is %g",
               (double)*own_scalar(s));
}

// Tensors without elements, or with one, that are cut over the ranks go out and in again.
static void pass_little_on(ot_comm *comm, void *context)
{
    const trial t = {.how = VALUES};
    ot_state_dict_options o = options_of(&t, comm);
    const bool is_root = ot_comm_rank(comm) == 0;
    const ot_tensor *found = NULL;
    ot_dict *parts = NULL, *whole = NULL;
    rank_session s;

    (void)context;
    begin_odd(&s, comm);
    RANK_CHECK((own_scalar(&s) != NULL) == is_root, "rank 0 has the scalar");
    RANK_MUST(ot_session_get_shards(s.f.session, OT_STATE_MODEL, &o, &parts));
    o.gather = OT_GATHER_ALL;
    RANK_MUST(ot_session_get_shards(s.f.session, OT_STATE_MODEL, &o, &whole));
    for (size_t i = 0; i < OT_COUNT(odd_tensors); i++) {
        RANK_MUST(ot_dict_get_tensor(dict_in(whole, "model"), odd_tensors[i].name, &found));
        RANK_CHECK(found != NULL && ot__shape_equal(&found->shape, &odd_tensors[i].shape),
                   "another shape");
    }
    RANK_CHECK(fabsf(*(float *)found->data - 4) <= 0, "%g", (double)*(float *)found->data);
    set_odd(&s, parts, &o);
    o.scatter = OT_SCATTER_EACH;
    set_odd(&s, whole, &o);
    o.scatter = OT_SCATTER_ROOT;
    set_odd(&s, is_root ? whole : NULL, &o);
    ot_dict_destroy(parts);
    ot_dict_destroy(whole);
    end_rank(&s);
}

static void tensors_without_elements_or_axes_are_cut_too(void **state)
{
    (void)state;
    run_all_ranks(pass_little_on);
}

// ---- names without values ----

static void a_nominal_checkpoint_has_no_state(void **state)
{
    fixture f = {0};
    ot_dict *dict;

    (void)state;
    make(&f, OT_F32, NULL);
    open_session(&f);
    dict = state_of(&f, OT_STATE_MODEL, NULL);
    f.checkpoint->is_nominal = true;
    must_be(ot_session_set_shards(f.session, OT_STATE_MODEL, dict, NULL, NULL), OT_ERR_STATE,
            "nominal");
    ot_dict_destroy(dict);
    must_be(ot_session_get_shards(f.session, OT_STATE_MODEL, NULL, &dict), OT_ERR_STATE, "nominal");
    f.checkpoint->is_nominal = false;
    teardown_of(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_tensors_are_made_whole),
        cmocka_unit_test(a_stream_is_the_whole_state_on_rank_0),
        cmocka_unit_test(parts_are_got_without_messages),
        cmocka_unit_test(tensors_without_elements_or_axes_are_cut_too),
        cmocka_unit_test(a_nominal_checkpoint_has_no_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
