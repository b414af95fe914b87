// SPDX-License-Identifier: Apache-2.0
// A state is set whole or not at all, and what did not fit is told by names.
#include "state_dict_fixture.h"

// As mlp_adamw_text, of ai.onnxtrain and with two groups: the matrices decay, the biases do not.
static const char grouped_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnxtrain\" : 1]>\n"
    "adam (float[2] learning_rate, int64[1] step, seq(T[]) params, seq(T[]) gradients, seq(T[]) "
    "first_order_moments, seq(T[]) second_order_moments) => (bool[1] flag)\n"
    "{\n"
    "  flag = ai.onnxtrain.AdamOptimizer<lambda = [0.1, 0.0], group = [0, 1, 0, 1], "
    "lr_factor = [1.0, 0.5], names = [\"fc1.weight\", \"fc1.bias\", \"fc2.weight\", \"fc2.bias\"]>"
    "(learning_rate, step, params, gradients, first_order_moments, second_order_moments)\n"
    "}\n";
// With what a state of the other sets.
static const char heavier_text[] = MLP_HEAD
    "adamw (" MLP_OPTIMIZER_INPUTS ", seq(T[]) second_order_moments) => (bool[1] flag)\n"
    "{\n"
    "  flag = com.microsoft.AdamWOptimizer<alpha = 0.5, beta = 0.999, epsilon = 0.000001, "
    "weight_decay = 0.25, adam_mode = 1, correct_bias = 1>(learning_rate, step, params, gradients, "
    "first_order_moments, second_order_moments)\n"
    "}\n";

static ot_status set(fixture *f, unsigned sections, const ot_dict *dict, ot_strictness strictness,
                     ot_shards_report **report)
{
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;

    o.strictness = strictness;
    return ot_session_set_shards(f->session, sections, dict, &o, report);
}

static void one_more_step(fixture *f)
{
    (void)train(f, 7);
    optimize(f);
}

// ---- round trips ----

static void round_trip(const char *optimizer, int flat, bool has_names)
{
    fixture from = {0}, to = {0};
    ot_name_entry names[] = {OT_NAME_ENTRY_INIT, OT_NAME_ENTRY_INIT};
    const ot_shape shape = OT_SHAPE(2, 2, 2);
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    picture a, b;
    ot_dict *dict;

    names[0].name = "first";
    names[0].parameter = "fc1.weight";
    names[0].transform = OT_NAME_TRANSPOSE;
    names[0].axes[1] = 1;
    names[1].name = "second";
    names[1].parameter = "fc2.weight";
    names[1].transform = OT_NAME_RESHAPE;
    names[1].shape = &shape;
    o.flat_optimizer = flat;
    o.names = names;
    o.n_names = has_names ? 2 : 0;
    make_trained(&from, optimizer, 3);
    make_trained(&to, optimizer, 1);
    ot_session_set_seed(from.session, 5);
    dict = state_of(&from, ALL_SECTIONS, &o);
    must(ot_session_set_shards(to.session, ALL_SECTIONS, dict, &o, NULL));
    ot_dict_destroy(dict);
    a = take_picture(&from);
    b = take_picture(&to);
    assert_same_picture(&a, &b);
    one_more_step(&from);
    ot_session_reset_gradients(to.session);
    one_more_step(&to);
    a = take_picture(&from);
    b = take_picture(&to);
    assert_same_picture(&a, &b);
    teardown_of(&from);
    teardown_of(&to);
}

static void what_is_got_can_be_set_elsewhere_bit_for_bit(void **state)
{
    (void)state;
    for (int flat = 0; flat < 2; flat++)
        for (int has_names = 0; has_names < 2; has_names++) {
            round_trip(mlp_adamw_text, flat, has_names != 0);
            round_trip(grouped_text, flat, has_names != 0);
            round_trip(mlp_sgd_text, flat, has_names != 0);
        }
}

static void a_view_of_a_session_can_be_set_into_itself(void **state)
{
    fixture *f = *state;
    picture before, after;
    ot_dict *dict;

    make_trained(f, mlp_adamw_text, 2);
    before = take_picture(f);
    must(ot_session_get_shards(f->session, ALL_SECTIONS, NULL, &dict));
    must(ot_session_set_shards(f->session, ALL_SECTIONS, dict, NULL, NULL));
    after = take_picture(f);
    assert_same_picture(&before, &after);
    ot_dict_destroy(dict);
}

// ---- what is refused, and what may be missing ----

static void a_check_changes_nothing(void **state)
{
    fixture *f = *state;
    fixture other = {0};
    picture before, after;
    ot_dict *dict;

    make_trained(&other, mlp_adamw_text, 2);
    make_trained(f, mlp_adamw_text, 1);
    dict = state_of(&other, ALL_SECTIONS, NULL);
    before = take_picture(f);
    must(ot_session_check_shards(f->session, ALL_SECTIONS, dict, NULL, NULL));
    after = take_picture(f);
    assert_same_picture(&before, &after);
    ot_dict_destroy(dict);
    teardown_of(&other);
}

static void an_empty_section_is_no_state(void **state)
{
    fixture *f = *state;
    ot_dict *dict, *inner;

    make_trained(f, mlp_adamw_text, 1);
    must(ot_dict_create(&dict));
    must_be(set(f, OT_STATE_MODEL, dict, OT_STRICTNESS_ALL, NULL), OT_ERR_NOT_FOUND, "'model'");
    must(ot_dict_set_dict(dict, "model", &inner));
    must_be(set(f, OT_STATE_MODEL, dict, OT_STRICTNESS_MODEL, NULL), OT_ERR_NOT_FOUND, "'model'");
    must_be(set(f, OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_ALL, NULL), OT_ERR_NOT_FOUND, "'optim'");
    must(set(f, OT_STATE_MODEL | OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_SUBSET, NULL));
    must_be(ot_session_set_shards(f->session, OT_STATE_MODEL, NULL, NULL, NULL), OT_ERR_INVALID,
            "state is NULL");
    ot_dict_destroy(dict);
}

// Shards of which none is there are no value.
static void parts_without_elements_are_no_tensor(void **state)
{
    static const struct {
        ot_scatter scatter;
        const char *message;
    } ways[] = {{OT_SCATTER_SHARDED, "the parts of 'fc1.weight' have 0 of the 12 elements"},
                {OT_SCATTER_EACH, "'fc1.weight' is given in parts, expected whole"},
                {OT_SCATTER_ROOT, "'fc1.weight' is given in parts, expected whole"}};
    fixture *f = *state;
    picture before, after;
    ot_dict *dict;

    make_trained(f, mlp_adamw_text, 1);
    before = take_picture(f);
    dict = state_of(f, ALL_SECTIONS, NULL);
    must(ot_dict_take_shards(inside(dict, "model"), "fc1.weight", OT_F32, &OT_SHAPE(IN, HIDDEN),
                             NULL, NULL, 0));
    for (size_t i = 0; i < OT_COUNT(ways); i++) {
        ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;

        o.scatter = ways[i].scatter;
        must_be(ot_session_set_shards(f->session, ALL_SECTIONS, dict, &o, NULL), OT_ERR_INVALID,
                ways[i].message);
        after = take_picture(f);
        assert_same_picture(&before, &after);
    }
    ot_dict_destroy(dict);
}

static void other_types_are_converted_where_that_is_allowed(void **state)
{
    fixture *f = *state;
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    const float *found;
    ot_dict *dict;
    ot_tensor *t;

    make_trained(f, mlp_adamw_text, 1);
    dict = state_of(f, OT_STATE_MODEL, NULL);
    must(ot_tensor_create(OT_F64, &OT_SHAPE(CLASSES), &t));
    ((double *)t->data)[0] = 0.1;
    ((double *)t->data)[1] = -3;
    must(ot_dict_take_tensor(inside(dict, "model"), "fc2.bias", t));
    o.allow_cast = 1;
    must(ot_session_set_shards(f->session, OT_STATE_MODEL, dict, &o, NULL));
    found = ot__ckpt_find(f->checkpoint, "fc2.bias")->value->data;
    assert_true(fabs((double)found[0] - (double)0.1f) <= 0 && fabs((double)found[1] + 3) <= 0);
    ot_dict_destroy(dict);
}

static void frozen_parameters_may_be_missing(void **state)
{
    fixture *f = *state;
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *dict;

    make(f, OT_F32, NULL);
    add(f->checkpoint, "frozen", OT_SHAPE(2), 0);
    open_session(f);
    o.skip_frozen = 1;
    dict = state_of(f, OT_STATE_MODEL, &o);
    must(ot_session_set_shards(f->session, OT_STATE_MODEL, dict, &o, NULL));
    must_be(set(f, OT_STATE_MODEL, dict, OT_STRICTNESS_ALL, NULL), OT_ERR_NOT_FOUND, "'frozen'");
    ot_dict_destroy(dict);
}

// ---- numbers of groups ----

// The optimizer that gets other numbers does what one does that was made with them.
static void numbers_of_a_group_become_the_rules(void **state)
{
    fixture heavier = {0}, f = {0};
    picture a, b;
    ot_dict *dict;

    (void)state;
    make_trained(&heavier, heavier_text, 2);
    make_trained(&f, mlp_adamw_text, 1);
    must(ot_session_set_learning_rate(heavier.session, 0.25));
    dict = state_of(&heavier, ALL_SECTIONS, NULL);
    must(ot_session_set_shards(f.session, ALL_SECTIONS, dict, NULL, NULL));
    ot_dict_destroy(dict);
    assert_number(ot_session_learning_rate(f.session), 0.25);
    ot_session_reset_gradients(f.session);
    one_more_step(&heavier);
    one_more_step(&f);
    a = take_picture(&heavier);
    b = take_picture(&f);
    assert_same_picture(&a, &b);
    dict = state_of(&f, OT_STATE_OPTIMIZER, NULL);
    assert_number(float_in(dict, "optim/param_groups/0", "weight_decay"), 0.25);
    assert_number(float_in(dict, "optim/param_groups/0/betas", "0"), 0.5);
    ot_dict_destroy(dict);
    teardown_of(&heavier);
    teardown_of(&f);
}

static void groups_have_rates_of_their_own(void **state)
{
    fixture *f = *state;
    ot_dict *dict;

    make_trained(f, grouped_text, 1);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    assert_int_equal(ot_dict_count(inside(dict, "optim/param_groups")), 2);
    assert_number(float_in(dict, "optim/param_groups/0", "lr"), 0.001);
    assert_number(float_in(dict, "optim/param_groups/1", "lr"), 0.0005);
    assert_number(float_in(dict, "optim/param_groups/0", "weight_decay"), 0.1);
    assert_number(float_in(dict, "optim/param_groups/1", "weight_decay"), 0);
    must(ot_dict_set_float(inside(dict, "optim/param_groups/1"), "lr", 0.25));
    must(ot_dict_set_float(inside(dict, "optim/param_groups/1"), "weight_decay", 0.75));
    must(set(f, OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_ALL, NULL));
    ot_dict_destroy(dict);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    assert_number(float_in(dict, "optim/param_groups/0", "lr"), 0.001);
    assert_number(float_in(dict, "optim/param_groups/1", "lr"), 0.25);
    assert_number(float_in(dict, "optim/param_groups/0", "weight_decay"), 0.1);
    assert_number(float_in(dict, "optim/param_groups/1", "weight_decay"), 0.75);
    ot_dict_destroy(dict);
}

// A state with the parameters in two groups goes into an optimizer with one, if both say the same.
static void groups_are_merged_where_they_agree(void **state)
{
    fixture *f = *state;
    fixture grouped = {0};
    picture before, after;
    ot_shards_report *report;
    ot_dict *dict;

    make_trained(&grouped, grouped_text, 1);
    make_trained(f, mlp_adamw_text, 1);
    dict = state_of(&grouped, OT_STATE_OPTIMIZER, NULL);
    before = take_picture(f);
    must_be(set(f, OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_SUBSET, &report), OT_ERR_INVALID,
            "has another 'lr' in the state than others of its group");
    after = take_picture(f);
    assert_same_picture(&before, &after);
    assert_int_equal(ot_shards_report_count(report, OT_REPORT_GROUP), 2);
    ot_shards_report_destroy(report);
    must(ot_dict_set_float(inside(dict, "optim/param_groups/1"), "lr", 0.001));
    must(ot_dict_set_float(inside(dict, "optim/param_groups/1"), "weight_decay", 0.1));
    must(set(f, OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_SUBSET, NULL));
    ot_dict_destroy(dict);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    assert_number(float_in(dict, "optim/param_groups/0", "weight_decay"), 0.1);
    ot_dict_destroy(dict);
    teardown_of(&grouped);
}

static void a_parameter_is_in_one_group(void **state)
{
    fixture *f = *state;
    ot_dict *dict;

    make_trained(f, grouped_text, 1);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    must(ot_dict_set_string(inside(dict, "optim/param_groups/1/params"), "2", "fc1.weight"));
    must_be(set(f, OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_NONE, NULL), OT_ERR_INVALID,
            "'fc1.weight' is in two groups of the state");
    ot_dict_destroy(dict);
}

static void flat_members_of_a_group_agree(void **state)
{
    fixture *f = *state;
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *dict;

    make_trained(f, mlp_adamw_text, 1);
    o.flat_optimizer = 1;
    dict = state_of(f, OT_STATE_OPTIMIZER, &o);
    must(ot_dict_set_float(inside(dict, "optim"), "param_groups.fc2.bias.lr", 0.5));
    must_be(set(f, OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_NONE, NULL), OT_ERR_INVALID,
            "'param_groups.fc2.bias.lr' differs among the members of its group");
    ot_dict_destroy(dict);
}

// What a scheduler of the program keeps there, and options of other optimizers, come back.
static void numbers_that_no_rule_knows_are_kept(void **state)
{
    fixture *f = *state;
    fixture fresh = {0};
    static const char *const custom[] = {"param_groups.0.initial_lr", "param_groups.0.foreach"};
    ot_shards_report *report;
    ot_dict_kind kind;
    ot_dict *dict;

    make_trained(f, mlp_adamw_text, 1);
    make_trained(&fresh, mlp_adamw_text, 0);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    must(ot_dict_set_float(inside(dict, "optim/param_groups/0"), "initial_lr", 0.125));
    must(ot_dict_set_null(inside(dict, "optim/param_groups/0"), "foreach"));
    must(set(&fresh, OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_ALL, &report));
    expect_report(report, OT_REPORT_CUSTOM, custom, 2);
    ot_shards_report_destroy(report);
    ot_dict_destroy(dict);
    dict = state_of(&fresh, OT_STATE_OPTIMIZER, NULL);
    assert_number(float_in(dict, "optim/param_groups/0", "initial_lr"), 0.125);
    must(ot_dict_kind_of(inside(dict, "optim/param_groups/0"), "foreach", &kind));
    assert_int_equal(kind, OT_DICT_NULL);
    ot_dict_destroy(dict);
    teardown_of(&fresh);
}

static void numbers_out_of_bounds_are_refused(void **state)
{
    fixture *f = *state;
    picture before, after;
    ot_dict *dict;

    make_trained(f, mlp_adamw_text, 1);
    before = take_picture(f);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    must(ot_dict_set_float(inside(dict, "optim/param_groups/0/betas"), "1", 1.5));
    must_be(set(f, OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_NONE, NULL), OT_ERR_INVALID,
            "'beta' is 1.5");
    must(ot_dict_set_float(inside(dict, "optim/param_groups/0/betas"), "1", 0.5));
    must(ot_dict_set_float(inside(dict, "optim/param_groups/0"), "lr", -1));
    must_be(set(f, OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_NONE, NULL), OT_ERR_INVALID, "'lr'");
    after = take_picture(f);
    assert_same_picture(&before, &after);
    ot_dict_destroy(dict);
}

// A model with one counter cannot have parameters of different ages.
static void counters_that_differ_need_a_model_with_many(void **state)
{
    fixture *f = *state;
    ot_dict *dict;

    make_trained(f, mlp_adamw_text, 1);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    must(ot_dict_set_int(inside(dict, "optim/state/fc1.bias"), "step", 5));
    must_be(set(f, OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_NONE, NULL), OT_ERR_INVALID,
            "has another number of updates");
    for (int i = 0; i < N_PARTS; i++) {
        char path[64];

        (void)snprintf(path, sizeof path, "optim/state/%s", mlp_parts[i].name);
        must(ot_dict_set_float(inside(dict, path), "step", 5)); // as PyTorch has it
    }
    must(set(f, OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_ALL, NULL));
    assert_int_equal(ot_session_step_count(f->session), 5);
    ot_dict_destroy(dict);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_got_can_be_set_elsewhere_bit_for_bit),
        TEST(a_view_of_a_session_can_be_set_into_itself),
        TEST(a_check_changes_nothing),
        TEST(an_empty_section_is_no_state),
        TEST(parts_without_elements_are_no_tensor),
        TEST(other_types_are_converted_where_that_is_allowed),
        TEST(frozen_parameters_may_be_missing),
        TEST(numbers_of_a_group_become_the_rules),
        TEST(groups_have_rates_of_their_own),
        TEST(groups_are_merged_where_they_agree),
        TEST(a_parameter_is_in_one_group),
        TEST(flat_members_of_a_group_agree),
        TEST(numbers_that_no_rule_knows_are_kept),
        TEST(numbers_out_of_bounds_are_refused),
        TEST(counters_that_differ_need_a_model_with_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
