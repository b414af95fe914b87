// SPDX-License-Identifier: Apache-2.0
// Every allocation in getting and setting a state fails once: nothing has changed then, and the
// call does its work when it is made again.
#include "state_dict_fixture.h"

typedef struct life {
    fixture f;
    picture before;
    ot_dict *dict;
    ot_state_dict_options options;
} life;

#include "until_it_works.h"

static ot_status checked(const life *l, ot_status st)
{
    const picture after = take_picture(&l->f);

    if (st != OT_OK)
        assert_same_picture(&l->before, &after);
    return st;
}

static ot_status get_state(life *l)
{
    ot_dict *dict;
    const ot_status st = ot_session_get_shards(l->f.session, ALL_SECTIONS, &l->options, &dict);

    ot__alloc_fail_after(-1);
    ot_dict_destroy(dict);
    return checked(l, st);
}

static ot_status set_given_state(life *l)
{
    ot_shards_report *report;
    const ot_status st =
        ot_session_set_shards(l->f.session, ALL_SECTIONS, l->dict, &l->options, &report);

    ot__alloc_fail_after(-1);
    ot_shards_report_destroy(report);
    return checked(l, st);
}

static ot_status check_given(life *l)
{
    const ot_status st =
        ot_session_check_shards(l->f.session, ALL_SECTIONS, l->dict, &l->options, NULL);

    ot__alloc_fail_after(-1);
    return checked(l, st);
}

static ot_status set_bytes(life *l)
{
    return ot_session_set_bytes(l->f.session, "vocabulary", "abc", 3);
}

static ot_status take_leaf(void *context, const char *const *path, int n_path, const ot_dict *leaf)
{
    (void)context, (void)path, (void)n_path, (void)leaf;
    return OT_OK;
}

static ot_status stream(life *l)
{
    return ot_session_stream_shards(l->f.session, ALL_SECTIONS, &l->options, take_leaf, NULL);
}

static void run_life(int flat, int copy)
{
    life *l = calloc(1, sizeof *l);
    ot_name_entry name = OT_NAME_ENTRY_INIT;

    name.name = "turned";
    name.parameter = "fc1.weight";
    name.transform = OT_NAME_TRANSPOSE;
    name.axes[1] = 1;
    l->options = (ot_state_dict_options)OT_STATE_DICT_OPTIONS_INIT;
    l->options.flat_optimizer = flat;
    l->options.copy = copy;
    l->options.names = &name;
    l->options.n_names = 1;
    l->options.allow_cast = 1;
    make_trained(&l->f, mlp_adamw_text, 1);
    l->before = take_picture(&l->f);
    assert_true(until_it_works(l, set_bytes) > 0);
    assert_true(until_it_works(l, get_state) > 0);
    assert_true(until_it_works(l, stream) > 0);
    l->dict = state_of(&l->f, ALL_SECTIONS, &l->options);
    // Other numbers: another optimizer model is made.
    must(
        ot_dict_set_float(flat ? inside(l->dict, "optim") : inside(l->dict, "optim/param_groups/0"),
                          flat ? "param_groups.turned.custom" : "weight_decay", 0.5));
    assert_true(until_it_works(l, check_given) > 0);
    assert_true(until_it_works(l, set_given_state) > 0);
    ot_dict_destroy(l->dict);
    teardown_of(&l->f);
    free(l);
}

static void a_lack_of_memory_leaves_all_as_it_was(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        run_life(i % 2, i / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_lack_of_memory_leaves_all_as_it_was)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
