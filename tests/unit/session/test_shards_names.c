// SPDX-License-Identifier: Apache-2.0
// Odd names, groups, shapes and properties in a state: each goes out and in again.
#include "state_dict_fixture.h"

enum { LONG = 4096 };

static char long_name[LONG + 1];

// Of the four parameters, in the order of mlp_parts.
static const char *const odd_names[][N_PARTS] = {
    {"a", "a.b", "a.b.c", "A"},
    {"module", "module.module", "state", "param_groups"},
    {"x/y", "\xc3\xa9\xf0\x9d\x84\x9e", " ", "a.exp_avg"},
    {"params", "state.a", "step", long_name},
};

static void odd_names_go_out_and_in(void **state)
{
    (void)state;
    memset(long_name, 'n', LONG);
    for (size_t i = 0; i < OT_COUNT(odd_names); i++)
        for (int flat = 0; flat < 2; flat++) {
            fixture from = {0}, to = {0};
            ot_name_entry names[N_PARTS];
            ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
            picture a, b;
            ot_dict *dict;

            for (int k = 0; k < N_PARTS; k++) {
                names[k] = (ot_name_entry)OT_NAME_ENTRY_INIT;
                names[k].name = odd_names[i][k];
                names[k].parameter = mlp_parts[k].name;
            }
            o.names = names;
            o.n_names = N_PARTS;
            o.flat_optimizer = flat;
            make_trained(&from, mlp_adamw_text, 2);
            make_trained(&to, mlp_adamw_text, 1);
            dict = state_of(&from, ALL_SECTIONS, &o);
            must(ot_session_set_shards(to.session, ALL_SECTIONS, dict, &o, NULL));
            a = take_picture(&from);
            b = take_picture(&to);
            assert_same_picture(&a, &b);
            ot_dict_destroy(dict);
            teardown_of(&from);
            teardown_of(&to);
        }
}

// Of tied names one is enough; without any, each is missing.
static void one_of_two_tied_names_is_enough(void **state)
{
    static const char *const missing[] = {"embed", "head"};
    fixture from = {0}, to = {0};
    ot_name_entry names[] = {OT_NAME_ENTRY_INIT, OT_NAME_ENTRY_INIT};
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_shards_report *report;
    picture a, b;

    (void)state;
    names[0].name = missing[0];
    names[1].name = missing[1];
    names[0].parameter = names[1].parameter = "fc1.weight";
    o.names = names;
    o.n_names = 2;
    make_trained(&from, mlp_adamw_text, 2);
    make_trained(&to, mlp_adamw_text, 1);
    for (int flat = 0; flat < 2; flat++)
        for (int left_out = -1; left_out < 2; left_out++) {
            ot_dict *dict;

            o.flat_optimizer = flat;
            dict = state_of(&from, ALL_SECTIONS, &o);
            if (left_out >= 0)
                must(ot_dict_remove(inside(dict, "model"), missing[left_out]));
            must(ot_session_set_shards(to.session, ALL_SECTIONS, dict, &o, NULL));
            a = take_picture(&from);
            b = take_picture(&to);
            assert_same_picture(&a, &b);
            if (left_out >= 0) {
                must(ot_dict_remove(inside(dict, "model"), missing[1 - left_out]));
                must_be(ot_session_set_shards(to.session, ALL_SECTIONS, dict, &o, &report),
                        OT_ERR_NOT_FOUND, "missing: 'embed', 'head'");
                expect_report(report, OT_REPORT_MISSING, missing, 2);
                ot_shards_report_destroy(report);
            }
            ot_dict_destroy(dict);
        }
    teardown_of(&from);
    teardown_of(&to);
}

// "a" with the number "b.lr", and "a.b" with "lr".
static void two_values_of_one_flat_key_are_refused(void **state)
{
    fixture *f = *state;
    ot_name_entry names[] = {OT_NAME_ENTRY_INIT, OT_NAME_ENTRY_INIT};
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *dict;

    names[0].name = "a";
    names[0].parameter = "fc1.weight";
    names[1].name = "a.b";
    names[1].parameter = "fc2.weight";
    o.names = names;
    o.n_names = 2;
    make_trained(f, mlp_adamw_text, 1);
    dict = state_of(f, OT_STATE_OPTIMIZER, &o);
    must(ot_dict_set_float(inside(dict, "optim/param_groups/0"), "b.lr", 1));
    must(ot_session_set_shards(f->session, OT_STATE_OPTIMIZER, dict, &o, NULL));
    ot_dict_destroy(dict);
    o.flat_optimizer = 1;
    must_be(ot_session_get_shards(f->session, OT_STATE_OPTIMIZER, &o, &dict), OT_ERR_INVALID,
            "two values of the state have the name 'param_groups.a.b.lr'");
}

// ---- groups ----

#define GROUPS_TEXT(groups)                                                                        \
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnxtrain\" : 1]>\n"                           \
    "adam (float[2] learning_rate, int64[1] step, seq(T[]) params, seq(T[]) gradients, "           \
    "seq(T[]) first_order_moments, seq(T[]) second_order_moments) => (bool[1] flag)\n"             \
    "{\n"                                                                                          \
    "  flag = ai.onnxtrain.AdamOptimizer<lambda = [0.0, 0.5], group = " groups                     \
    ", names = [\"fc1.weight\", \"fc1.bias\", \"fc2.weight\", \"fc2.bias\"]>(learning_rate, "      \
    "step, params, gradients, first_order_moments, second_order_moments)\n"                        \
    "}\n"
static const char empty_group_text[] = GROUPS_TEXT("[0, 0, 0, 0]");
static const char two_groups_text[] = GROUPS_TEXT("[0, 1, 0, 1]");

static void an_empty_group_is_that_at_its_place(void **state)
{
    fixture *f = *state;
    ot_dict *dict;

    make_trained(f, empty_group_text, 1);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    assert_int_equal(ot_dict_count(inside(dict, "optim/param_groups")), 2);
    assert_int_equal(ot_dict_count(inside(dict, "optim/param_groups/1/params")), 0);
    must(ot_dict_set_float(inside(dict, "optim/param_groups/1"), "lr", 0.25));
    must(ot_dict_set_float(inside(dict, "optim/param_groups/1"), "weight_decay", 0.125));
    must(ot_session_set_shards(f->session, OT_STATE_OPTIMIZER, dict, NULL, NULL));
    ot_dict_destroy(dict);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    assert_number(float_in(dict, "optim/param_groups/0", "lr"), 0.001);
    assert_number(float_in(dict, "optim/param_groups/1", "lr"), 0.25);
    assert_number(float_in(dict, "optim/param_groups/1", "weight_decay"), 0.125);
    ot_dict_destroy(dict);
}

// Where the state has another number of groups, it stays, and the report says so.
static void an_empty_group_that_is_not_given_stays(void **state)
{
    fixture *f = *state;
    static const char *const groups[] = {"param_groups.1"};
    fixture one = {0};
    ot_shards_report *report;
    ot_dict *dict;

    make_trained(&one, mlp_adamw_text, 1);
    make_trained(f, empty_group_text, 1);
    dict = state_of(&one, OT_STATE_OPTIMIZER, NULL);
    must(ot_dict_set_float(inside(dict, "optim/param_groups/0"), "weight_decay", 0.25));
    must(ot_session_set_shards(f->session, OT_STATE_OPTIMIZER, dict, NULL, &report));
    expect_report(report, OT_REPORT_GROUP, groups, 1);
    ot_shards_report_destroy(report);
    ot_dict_destroy(dict);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    assert_number(float_in(dict, "optim/param_groups/0", "weight_decay"), 0.25);
    assert_number(float_in(dict, "optim/param_groups/1", "weight_decay"), 0.5);
    ot_dict_destroy(dict);
    teardown_of(&one);
}

static void a_group_may_be_split(void **state)
{
    fixture *f = *state;
    fixture one = {0};
    ot_dict *dict;

    make_trained(&one, mlp_adamw_text, 1);
    must(ot_session_set_learning_rate(one.session, 0.75));
    make_trained(f, two_groups_text, 1);
    dict = state_of(&one, OT_STATE_OPTIMIZER, NULL);
    must(ot_session_set_shards(f->session, OT_STATE_OPTIMIZER, dict, NULL, NULL));
    ot_dict_destroy(dict);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    for (int g = 0; g < 2; g++) {
        char path[64];

        (void)snprintf(path, sizeof path, "optim/param_groups/%d", g);
        assert_number(float_in(dict, path, "lr"), 0.75);
        assert_number(float_in(dict, path, "weight_decay"), 0.01);
        assert_number(float_in(dict, path, "eps"), 1e-6);
    }
    ot_dict_destroy(dict);
    teardown_of(&one);
}

// ---- shapes ----

static void scalars_and_tensors_without_elements_are_values_too(void **state)
{
    fixture *f = *state;
    const ot_tensor *t;
    ot_dict *dict;

    make(f, OT_F32, NULL);
    add(f->checkpoint, "scalar", (ot_shape){.ndim = 0}, 0);
    add(f->checkpoint, "empty", OT_SHAPE(0, 3), 0);
    *(float *)ot__ckpt_find(f->checkpoint, "scalar")->value->data = 4;
    open_session(f);
    dict = state_of(f, OT_STATE_MODEL, NULL);
    t = tensor_in(dict, "model", "scalar");
    assert_int_equal(t->shape.ndim, 0);
    assert_true(fabs((double)*(float *)t->data - 4) <= 0);
    t = tensor_in(dict, "model", "empty");
    assert_true(ot__shape_equal(&t->shape, &OT_SHAPE(0, 3)));
    *(float *)ot__ckpt_find(f->checkpoint, "scalar")->value->data = 5;
    must(ot_session_set_shards(f->session, OT_STATE_MODEL, dict, NULL, NULL));
    assert_true(fabs((double)*(float *)ot__ckpt_find(f->checkpoint, "scalar")->value->data - 4) <=
                0);
    ot_dict_destroy(dict);
}

// ---- what is given stays as it is ----

static void what_is_given_is_not_changed(void **state)
{
    fixture *f = *state;
    ot_dict *dict, *copy;

    make_trained(f, mlp_adamw_text, 1);
    dict = state_of(f, ALL_SECTIONS, NULL);
    must(ot_dict_create(&copy));
    for (int i = 0; i < ot_dict_count(dict); i++)
        must(ot__dict_copy(dict, ot_dict_name(dict, i), copy, ot_dict_name(dict, i)));
    must(ot_session_set_shards(f->session, ALL_SECTIONS, dict, NULL, NULL));
    must(ot_dict_set_int(inside(dict, "model"), "fc1.bias", 1)); // refused, and no tensor
    must(ot_dict_set_int(inside(copy, "model"), "fc1.bias", 1));
    must_be(ot_session_set_shards(f->session, ALL_SECTIONS, dict, NULL, NULL), OT_ERR_INVALID,
            "'fc1.bias' is not a tensor");
    for (int i = 0; i < ot_dict_count(dict); i++)
        assert_true(ot__dict_same(dict, ot_dict_name(dict, i), copy, ot_dict_name(dict, i)));
    ot_dict_destroy(dict);
    ot_dict_destroy(copy);
}

// ---- properties ----

// Those of the library stay what they are here.
static void properties_of_the_user_come_along(void **state)
{
    fixture *f = *state;
    fixture other = {0};
    const char *text;
    int64_t number;
    ot_dict *dict;

    make_trained(&other, mlp_adamw_text, 1);
    must(ot_checkpoint_set_string(other.checkpoint, "run", "first"));
    must(ot_checkpoint_set_int(other.checkpoint, "epoch", 7));
    make_trained(f, mlp_adamw_text, 1);
    must(ot_checkpoint_set_int(f->checkpoint, "run", 1));
    must(ot_checkpoint_set_string(f->checkpoint, "onnxtrain.note", "mine"));
    dict = state_of(&other, OT_STATE_OWN, NULL);
    must(ot_session_set_shards(f->session, OT_STATE_OWN, dict, NULL, NULL));
    must(ot_checkpoint_get_string(f->checkpoint, "run", &text));
    assert_string_equal(text, "first");
    must(ot_checkpoint_get_int(f->checkpoint, "epoch", &number));
    assert_int_equal(number, 7);
    must(ot_checkpoint_get_string(f->checkpoint, "onnxtrain.note", &text));
    assert_string_equal(text, "mine");
    must(ot_dict_set_int(inside(dict, "train/properties"), "onnxtrain.seed", 1));
    must_be(ot_session_set_shards(f->session, OT_STATE_OWN, dict, NULL, NULL), OT_ERR_INVALID,
            "property 'onnxtrain.seed' of the state is the library's");
    ot_dict_destroy(dict);
    teardown_of(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(odd_names_go_out_and_in),
        TEST(one_of_two_tied_names_is_enough),
        TEST(two_values_of_one_flat_key_are_refused),
        TEST(an_empty_group_is_that_at_its_place),
        TEST(an_empty_group_that_is_not_given_stays),
        TEST(a_group_may_be_split),
        TEST(scalars_and_tensors_without_elements_are_values_too),
        TEST(what_is_given_is_not_changed),
        TEST(properties_of_the_user_come_along),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
