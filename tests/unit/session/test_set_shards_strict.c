// SPDX-License-Identifier: Apache-2.0
// What of a state that does not fit each strictness refuses, and what reports say.
#include "state_dict_fixture.h"

// The matrices decay, the biases do not.
static const char two_groups_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnxtrain\" : 1]>\n"
    "adam (float[2] learning_rate, int64[1] step, seq(T[]) params, seq(T[]) gradients, seq(T[]) "
    "first_order_moments, seq(T[]) second_order_moments) => (bool[1] flag)\n"
    "{\n"
    "  flag = ai.onnxtrain.AdamOptimizer<lambda = [0.1, 0.0], group = [0, 1, 0, 1], "
    "names = [\"fc1.weight\", \"fc1.bias\", \"fc2.weight\", \"fc2.bias\"]>"
    "(learning_rate, step, params, gradients, first_order_moments, second_order_moments)\n"
    "}\n";

enum { BOTH = OT_STATE_MODEL | OT_STATE_OPTIMIZER };

static ot_status set(fixture *f, unsigned sections, const ot_dict *dict, ot_strictness strictness,
                     ot_shards_report **report)
{
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;

    o.strictness = strictness;
    return ot_session_set_shards(f->session, sections, dict, &o, report);
}

// Without fc1.bias and one of its slots, with a name too many, one of another shape.
static ot_dict *crooked_state(fixture *f, bool has_missing, bool has_more, bool has_shape,
                              bool has_dtype)
{
    ot_dict *dict = state_of(f, OT_STATE_MODEL | OT_STATE_OPTIMIZER, NULL);
    ot_tensor *t;

    if (has_missing) {
        must(ot_dict_remove(inside(dict, "model"), "fc1.bias"));
        must(ot_dict_remove(inside(dict, "optim/state/fc2.bias"), "exp_avg"));
    }
    must(ot_tensor_create(OT_F32, &OT_SHAPE(3), &t));
    if (has_more) {
        must(ot_dict_set_tensor(inside(dict, "model"), "extra", t));
        must(ot_dict_set_tensor(inside(dict, "optim/state/fc2.weight"), "max_exp_avg_sq", t));
    }
    if (has_shape)
        must(ot_dict_set_tensor(inside(dict, "model"), "fc2.bias", t));
    ot_tensor_destroy(t);
    must(ot_tensor_create(OT_F64, &OT_SHAPE(IN, HIDDEN), &t));
    if (has_dtype)
        must(ot_dict_set_tensor(inside(dict, "model"), "fc1.weight", t));
    ot_tensor_destroy(t);
    return dict;
}

typedef struct strict_case {
    bool missing, more, shape, dtype;
    ot_status expected[4]; // by ot_strictness
    const char *message;
    bool slot, casts; // a slot alone is missing; types are converted
} strict_case;

static const strict_case strict_cases[] = {
    {.missing = true,
     .expected = {OT_ERR_NOT_FOUND, OT_OK, OT_ERR_NOT_FOUND, OT_OK},
     .message = "'fc1.bias'"},
    {.more = true,
     .expected = {OT_ERR_INVALID, OT_OK, OT_ERR_INVALID, OT_OK},
     .message = "'extra'"},
    {.shape = true,
     .expected = {OT_ERR_INVALID, OT_ERR_INVALID, OT_ERR_INVALID, OT_OK},
     .message = "'fc2.bias' is f32[3], expected f32[2]"},
    {.dtype = true,
     .expected = {OT_ERR_INVALID, OT_ERR_INVALID, OT_ERR_INVALID, OT_OK},
     .message = "'fc1.weight' is f64[3,4], expected f32[3,4]"},
    {.dtype = true, .casts = true, .message = ""},
    {.slot = true, .expected = {OT_ERR_NOT_FOUND}, .message = "'state.fc2.bias.exp_avg'"},
};

static void check_report(const strict_case *c, ot_strictness strictness,
                         const ot_shards_report *report)
{
    const bool is_all = strictness == OT_STRICTNESS_ALL, lacks_slot = c->missing || c->slot;
    const int expected[OT_REPORT_CATEGORIES] = {
        [OT_REPORT_MISSING] = c->missing + (lacks_slot && is_all),
        [OT_REPORT_UNEXPECTED] = 2 * c->more,
        [OT_REPORT_SHAPE] = c->shape,
        [OT_REPORT_DTYPE] = c->dtype && !c->casts,
        [OT_REPORT_ZEROED] = lacks_slot && !is_all,
    };

    for (int k = 0; k < OT_REPORT_CATEGORIES; k++)
        assert_int_equal(ot_shards_report_count(report, (ot_report_category)k), expected[k]);
}

static void assert_all_are(const ot_tensor *t, double number)
{
    for (int64_t i = 0; i < ot_tensor_count(t); i++)
        assert_number(ot__tensor_get_f64(t, i), number);
}

static void assert_same_elements(const ot_tensor *a, const ot_tensor *b)
{
    assert_memory_equal(a->data, b->data, a->n_bytes);
}

static const double cast_slot = 0.5; // of all elements

// What did not fit stays or begins anew, and all else is what is given.
static void check_taken(const strict_case *c, const fixture *f, const fixture *given,
                        const fixture *before)
{
    for (int i = 0; i < N_PARTS; i++) {
        const char *name = mlp_parts[i].name;
        ot__parameter *p = ot__ckpt_find(f->checkpoint, name);
        const ot__parameter *from = ot__ckpt_find(given->checkpoint, name);
        const bool stays = (c->missing && strcmp(name, "fc1.bias") == 0) ||
                           (c->shape && strcmp(name, "fc2.bias") == 0) ||
                           (c->dtype && !c->casts && strcmp(name, "fc1.weight") == 0);
        const bool is_fresh = (c->missing || c->slot) && strcmp(name, "fc2.bias") == 0;

        if (c->casts && strcmp(name, "fc1.weight") == 0)
            assert_all_are(p->value, 0);
        else
            assert_same_elements(p->value, stays ? ot__ckpt_find(before->checkpoint, name)->value
                                                 : from->value);
        if (is_fresh)
            assert_all_are(p->slots[0], 0);
        else if (c->casts && strcmp(name, "fc2.weight") == 0)
            assert_all_are(p->slots[0], cast_slot);
        else
            assert_same_elements(p->slots[0], from->slots[0]);
        assert_same_elements(p->slots[1], from->slots[1]);
    }
}

static void unpack_all(const fixture *f)
{
    (void)take_picture(f);
}

static void give_crooked(const strict_case *c, ot_strictness strictness)
{
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    fixture f = {0}, given = {0}, same = {0};
    picture before, after;
    ot_shards_report *report;
    ot_dict *dict;
    ot_tensor *t;

    make_trained(&given, mlp_adamw_text, 2);
    make_trained(&f, mlp_adamw_text, 1);
    make_trained(&same, mlp_adamw_text, 1);
    dict = crooked_state(&given, c->missing, c->more, c->shape, c->dtype);
    if (c->slot)
        must(ot_dict_remove(inside(dict, "optim/state/fc2.bias"), "exp_avg"));
    if (c->casts) {
        must(ot_tensor_create(OT_F64, &OT_SHAPE(HIDDEN, CLASSES), &t));
        for (int64_t i = 0; i < ot_tensor_count(t); i++)
            ((double *)t->data)[i] = cast_slot;
        must(ot_dict_take_tensor(inside(dict, "optim/state/fc2.weight"), "exp_avg", t));
    }
    o.strictness = strictness;
    o.allow_cast = c->casts;
    before = take_picture(&f);
    must_be(ot_session_set_shards(f.session, BOTH, dict, &o, &report), c->expected[strictness],
            c->message);
    check_report(c, strictness, report);
    after = take_picture(&f);
    unpack_all(&given);
    unpack_all(&same);
    if (c->expected[strictness] != OT_OK)
        assert_same_picture(&before, &after);
    else
        check_taken(c, &f, &given, &same);
    ot_shards_report_destroy(report);
    ot_dict_destroy(dict);
    teardown_of(&f);
    teardown_of(&given);
    teardown_of(&same);
}

static void every_strictness_takes_what_it_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(strict_cases); i++)
        for (int s = OT_STRICTNESS_ALL; s <= OT_STRICTNESS_NONE; s++)
            give_crooked(&strict_cases[i], (ot_strictness)s);
}

static void the_report_has_every_name_by_its_category(void **state)
{
    fixture *f = *state;
    static const char *const missing[] = {"fc1.bias"}, *const zeroed[] = {"state.fc2.bias.exp_avg"},
                             *const more[] = {"extra", "state.fc2.weight.max_exp_avg_sq"},
                             *const shape[] = {"fc2.bias"}, *const dtype[] = {"fc1.weight"};
    ot_shards_report *report;
    const ot_tensor *slot;
    ot_dict *dict;

    make_trained(f, mlp_adamw_text, 2);
    dict = crooked_state(f, true, true, true, true);
    must(set(f, OT_STATE_MODEL | OT_STATE_OPTIMIZER, dict, OT_STRICTNESS_NONE, &report));
    expect_report(report, OT_REPORT_MISSING, missing, 1);
    expect_report(report, OT_REPORT_UNEXPECTED, more, 2);
    expect_report(report, OT_REPORT_SHAPE, shape, 1);
    expect_report(report, OT_REPORT_DTYPE, dtype, 1);
    expect_report(report, OT_REPORT_ZEROED, zeroed, 1);
    assert_int_equal(ot_shards_report_section(report, OT_REPORT_UNEXPECTED, 0), OT_STATE_MODEL);
    assert_int_equal(ot_shards_report_section(report, OT_REPORT_UNEXPECTED, 1), OT_STATE_OPTIMIZER);
    assert_string_equal(ot_shards_report_detail(report, OT_REPORT_SHAPE, 0),
                        "is f32[3], expected f32[2]");
    slot = ot__ckpt_find(f->checkpoint, "fc2.bias")->slots[0];
    for (int64_t i = 0; i < CLASSES; i++)
        assert_true(fabs((double)((float *)slot->data)[i]) <= 0);
    ot_shards_report_destroy(report);
    ot_dict_destroy(dict);
}

// ---- optimizers ----

typedef struct odd_case {
    void (*spoil)(ot_dict *optim);
    ot_status expected[2]; // with ALL, and with SUBSET
    const char *message;
    int flat;
} odd_case;

static void give_text_for_a_slot(ot_dict *optim)
{
    must(ot_dict_set_string(inside(optim, "state/fc1.bias"), "exp_avg", "0"));
}

static void give_text_for_a_step(ot_dict *optim)
{
    must(ot_dict_set_string(inside(optim, "state/fc1.bias"), "step", "0"));
}

static void forget_a_parameter(ot_dict *optim)
{
    must(ot_dict_remove(inside(optim, "state"), "fc2.bias"));
}

static void forget_a_moment(ot_dict *optim)
{
    must(ot_dict_remove(inside(optim, "state/fc2.bias"), "exp_avg_sq"));
}

static void add_a_stranger(ot_dict *optim)
{
    must(ot_dict_set_string(inside(optim, "param_groups/0/params"), "4", "fc9"));
}

static void add_the_state_of_a_stranger(ot_dict *optim)
{
    ot_dict *of;

    must(ot_dict_set_dict(inside(optim, "state"), "fc9", &of));
}

static void forget_groups(ot_dict *optim)
{
    must(ot_dict_remove(optim, "param_groups"));
}

static void empty_the_groups(ot_dict *optim)
{
    ot_dict *list;

    must(ot_dict_set_list(optim, "param_groups", &list));
}

static void forget_a_member(ot_dict *optim)
{
    ot_dict *list;

    must(ot_dict_set_list(inside(optim, "param_groups/0"), "params", &list));
    for (int i = 1; i < N_PARTS; i++) {
        char number[16];

        (void)snprintf(number, sizeof number, "%d", i - 1);
        must(ot_dict_set_string(list, number, mlp_parts[i].name));
    }
}

static void add_an_empty_group(ot_dict *optim)
{
    ot_dict *group, *params;

    must(ot_dict_set_dict(inside(optim, "param_groups"), "1", &group));
    must(ot_dict_set_list(group, "params", &params));
    must(ot_dict_set_float(group, "lr", 3));
}

static void forget_flat_groups(ot_dict *optim)
{
    for (int i = ot_dict_count(optim) - 1; i >= 0; i--)
        if (strncmp(ot_dict_name(optim, i), "param_groups.", 13) == 0)
            must(ot_dict_remove(optim, ot_dict_name(optim, i)));
}

static void forget_a_number(ot_dict *optim)
{
    must(ot_dict_remove(inside(optim, "param_groups/0"), "eps"));
}

static void give_text_for_a_number(ot_dict *optim)
{
    must(ot_dict_set_string(inside(optim, "param_groups/0"), "eps", "1"));
}

static void forget_a_flat_number(ot_dict *optim)
{
    for (int i = 0; i < N_PARTS; i++) {
        char key[64];

        (void)snprintf(key, sizeof key, "param_groups.%s.lr", mlp_parts[i].name);
        must(ot_dict_remove(optim, key));
    }
}

static void forget_the_first_flat_number(ot_dict *optim)
{
    must(ot_dict_remove(optim, "param_groups.fc1.weight.lr"));
}

static void forget_a_later_flat_number(ot_dict *optim)
{
    must(ot_dict_remove(optim, "param_groups.fc2.bias.eps"));
}

static void forget_a_flat_slot(ot_dict *optim)
{
    must(ot_dict_remove(optim, "state.fc1.weight.exp_avg_sq"));
}

static const odd_case odd_cases[] = {
    {give_text_for_a_slot,
     {OT_ERR_INVALID, OT_ERR_INVALID},
     "'state.fc1.bias.exp_avg' is not a tensor",
     0},
    {give_text_for_a_step,
     {OT_ERR_INVALID, OT_ERR_INVALID},
     "'state.fc1.bias.step' is not a number of updates",
     0},
    {forget_a_parameter, {OT_ERR_NOT_FOUND, OT_OK}, "missing: 'state.fc2.bias.exp_avg'", 0},
    {forget_a_moment, {OT_ERR_NOT_FOUND, OT_OK}, "missing: 'state.fc2.bias.exp_avg_sq'", 0},
    {add_a_stranger, {OT_ERR_INVALID, OT_OK}, "'fc9' is in a group of the state", 0},
    {add_the_state_of_a_stranger, {OT_ERR_INVALID, OT_OK}, "unexpected: 'state.fc9'", 0},
    {forget_groups, {OT_ERR_NOT_FOUND, OT_OK}, "missing: 'param_groups'", 0},
    {empty_the_groups,
     {OT_ERR_NOT_FOUND, OT_OK},
     "missing: 'fc1.weight' is in no group of the state, 'fc1.bias' is",
     0},
    {forget_a_member,
     {OT_ERR_NOT_FOUND, OT_OK},
     "missing: 'fc1.weight' is in no group of the state",
     0},
    {add_an_empty_group,
     {OT_ERR_INVALID, OT_OK},
     "unexpected: 'param_groups.1' has no parameters",
     0},
    {forget_flat_groups,
     {OT_ERR_NOT_FOUND, OT_OK},
     "missing: 'fc1.weight' is in no group of the state",
     1},
    {forget_a_number, {OT_ERR_NOT_FOUND, OT_OK}, "missing: 'param_groups.0.eps'", 0},
    {give_text_for_a_number,
     {OT_ERR_INVALID, OT_ERR_INVALID},
     "'param_groups.0.eps' is not a number",
     0},
    {forget_a_flat_number, {OT_ERR_NOT_FOUND, OT_OK}, "missing: 'param_groups.0.lr'", 1},
    {forget_the_first_flat_number,
     {OT_ERR_NOT_FOUND, OT_OK},
     "missing: 'param_groups.fc1.weight.lr'",
     1},
    {forget_a_later_flat_number,
     {OT_ERR_NOT_FOUND, OT_OK},
     "missing: 'param_groups.fc2.bias.eps'",
     1},
    {forget_a_flat_slot, {OT_ERR_NOT_FOUND, OT_OK}, "missing: 'state.fc1.weight.exp_avg_sq'", 1},
};

static void odd_states_of_optimizers_are_named(void **state)
{
    fixture *f = *state;

    make_trained(f, mlp_adamw_text, 1);
    for (size_t i = 0; i < OT_COUNT(odd_cases); i++)
        for (int lenient = 0; lenient < 2; lenient++) {
            const odd_case *c = &odd_cases[i];
            ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
            const picture before = take_picture(f);
            picture after;
            ot_dict *dict;

            o.flat_optimizer = c->flat;
            dict = state_of(f, OT_STATE_OPTIMIZER, &o);
            c->spoil(inside(dict, "optim"));
            must_be(set(f, OT_STATE_OPTIMIZER, dict,
                        lenient ? OT_STRICTNESS_SUBSET : OT_STRICTNESS_ALL, NULL),
                    c->expected[lenient], c->message);
            after = take_picture(f);
            if (c->expected[lenient] != OT_OK)
                assert_same_picture(&before, &after);
            ot_dict_destroy(dict);
        }
}

typedef struct group_case {
    void (*spoil)(ot_dict *optim);
    ot_status refusal; // by levels that want all of the model
    ot_report_category category;
    int n;
    const char *name;
    int flat;
} group_case;

static void groups_are_all_there_or_told(void **state)
{
    fixture *f = *state;
    static const group_case cases[] = {
        {empty_the_groups, OT_ERR_NOT_FOUND, OT_REPORT_MISSING, N_PARTS, "fc1.weight", 0},
        {forget_flat_groups, OT_ERR_NOT_FOUND, OT_REPORT_MISSING, N_PARTS, "fc1.weight", 1},
        {forget_a_member, OT_ERR_NOT_FOUND, OT_REPORT_MISSING, 1, "fc1.weight", 0},
        {add_an_empty_group, OT_ERR_INVALID, OT_REPORT_UNEXPECTED, 1, "param_groups.1", 0},
    };

    make_trained(f, mlp_adamw_text, 1);
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        for (int s = OT_STRICTNESS_ALL; s <= OT_STRICTNESS_NONE; s++) {
            const group_case *c = &cases[i];
            const bool is_refused = s == OT_STRICTNESS_ALL || s == OT_STRICTNESS_MODEL;
            ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
            ot_shards_report *report;
            ot_dict *dict;

            o.flat_optimizer = c->flat;
            dict = state_of(f, OT_STATE_OPTIMIZER, &o);
            c->spoil(inside(dict, "optim"));
            must_be(set(f, OT_STATE_OPTIMIZER, dict, (ot_strictness)s, &report),
                    is_refused ? c->refusal : OT_OK, c->name);
            assert_int_equal(ot_shards_report_count(report, c->category), c->n);
            assert_string_equal(ot_shards_report_name(report, c->category, 0), c->name);
            ot_shards_report_destroy(report);
            ot_dict_destroy(dict);
        }
}

// ---- filters and frozen parameters ----

typedef struct stranger {
    const char *include;
    const char *flat, *name, *slot; // a flat key, and where it is in the other form
    bool is_refused;
} stranger;

// In either form a filter lets pass what it does not take, and nothing else.
static void unknown_names_inside_a_filter_are_refused(void **state)
{
    fixture *f = *state;
    static const stranger strangers[] = {
        {"fc1.", "state.fc1.weight.max_exp_avg_sq", "fc1.weight", "max_exp_avg_sq", true},
        {"fc1.", "state.fc1.nobody.exp_avg", "fc1.nobody", "exp_avg", true},
        {"fc1.", "state.fc2.weight.max_exp_avg_sq", "fc2.weight", "max_exp_avg_sq", false},
        {"fc1.", "state.fc9.exp_avg", "fc9", "exp_avg", false},
        {"*.bias", "state.fc1.bias.max_exp_avg_sq", "fc1.bias", "max_exp_avg_sq", true},
        {"*.bias", "state.fc9.bias.exp_avg", "fc9.bias", "exp_avg", true},
        {"*.bias", "state.fc9.weight.exp_avg", "fc9.weight", "exp_avg", false},
        {"fc1.", "param_groups.fc1.nobody.lr", NULL, NULL, true},
        {"fc1.", "param_groups.fc9.lr", NULL, NULL, false},
    };

    make_trained(f, mlp_adamw_text, 1);
    for (size_t i = 0; i < OT_COUNT(strangers); i++)
        for (int flat = strangers[i].name == NULL; flat < 2; flat++) {
            const stranger *s = &strangers[i];
            ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
            ot_dict *dict, *of;

            o.include = &s->include;
            o.n_include = 1;
            o.flat_optimizer = flat;
            dict = state_of(f, OT_STATE_OPTIMIZER, &o);
            if (flat)
                must(ot_dict_set_int(inside(dict, "optim"), s->flat, 1));
            else if (ot__dict_has(inside(dict, "optim/state"), s->name))
                must(ot_dict_get_dict(inside(dict, "optim/state"), s->name, &of));
            else
                must(ot_dict_set_dict(inside(dict, "optim/state"), s->name, &of));
            if (!flat)
                must(ot_dict_set_int(of, s->slot, 1));
            must_be(ot_session_set_shards(f->session, OT_STATE_OPTIMIZER, dict, &o, NULL),
                    s->is_refused ? OT_ERR_INVALID : OT_OK, "unexpected: '");
            ot_dict_destroy(dict);
        }
}

// A filter leaves groups without parameters.
static void groups_may_be_outside_a_filter(void **state)
{
    fixture *f = *state;
    static const char *const include[] = {"*.bias"};
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *dict;

    make_trained(f, two_groups_text, 1);
    o.include = include;
    o.n_include = 1;
    dict = state_of(f, OT_STATE_OPTIMIZER, &o);
    assert_int_equal(ot_dict_count(inside(dict, "optim/param_groups/0/params")), 0);
    must(ot_session_set_shards(f->session, OT_STATE_OPTIMIZER, dict, &o, NULL));
    ot_dict_destroy(dict);
}

static void frozen_parameters_may_be_outside_a_filter(void **state)
{
    fixture *f = *state;
    static const char *const include[] = {"fc2."};
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *dict;

    make(f, OT_F32, mlp_adamw_text);
    add(f->checkpoint, "frozen", OT_SHAPE(2), 0);
    add(f->checkpoint, "fc2.frozen", OT_SHAPE(2), 0);
    open_session(f);
    o.include = include;
    o.n_include = 1;
    o.skip_frozen = 1;
    dict = state_of(f, BOTH, &o);
    assert_int_equal(ot_dict_count(inside(dict, "model")), 2);
    must(ot_session_set_shards(f->session, BOTH, dict, &o, NULL));
    ot_dict_destroy(dict);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_strictness_takes_what_it_says),
        TEST(the_report_has_every_name_by_its_category),
        TEST(odd_states_of_optimizers_are_named),
        TEST(groups_are_all_there_or_told),
        TEST(unknown_names_inside_a_filter_are_refused),
        TEST(groups_may_be_outside_a_filter),
        TEST(frozen_parameters_may_be_outside_a_filter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
