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

static void check_whole(ot_dict *dict)
{
    for (int i = 0; i < N_PARTS; i++) {
        ot_dict *of = dict_in(dict_in(dict_in(dict, "optim"), "state"), mlp_parts[i].name);

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_tensors_are_made_whole),
        cmocka_unit_test(parts_are_got_without_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
