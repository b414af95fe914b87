// SPDX-License-Identifier: Apache-2.0
// What is in a state dict, and under which names.
#include "state_dict_fixture.h"

static const char *const weights[] = {"fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"};

static void the_model_has_every_parameter_by_its_name(void **state)
{
    fixture *f = *state;
    ot_dict *dict, *model;

    make_trained(f, mlp_adamw_text, 2);
    dict = state_of(f, OT_STATE_MODEL, NULL);
    assert_int_equal(ot_dict_count(dict), 1);
    model = inside(dict, "model");
    assert_int_equal(ot_dict_count(model), N_PARTS);
    for (int i = 0; i < N_PARTS; i++) {
        ot_tensor *expected;
        const ot_tensor *found = tensor_in(model, NULL, weights[i]);

        assert_string_equal(ot_dict_name(model, i), weights[i]);
        must(ot_checkpoint_get_parameter(f->checkpoint, weights[i], &expected));
        assert_true(ot__shape_equal(&found->shape, &expected->shape));
        assert_memory_equal(found->data, expected->data, expected->n_bytes);
        ot_tensor_destroy(expected);
    }
    ot_dict_destroy(dict);
}

// Slots and numbers are named as by torch.optim.AdamW.
static void the_optimizer_is_named_as_in_pytorch(void **state)
{
    fixture *f = *state;
    ot_dict *dict, *group;
    const char *name;
    int64_t step;

    make_trained(f, mlp_adamw_text, 2);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    for (int i = 0; i < N_PARTS; i++) {
        char path[64];
        const ot__parameter *p = ot__ckpt_find(f->checkpoint, weights[i]);
        ot_dict *of;

        (void)snprintf(path, sizeof path, "optim/state/%s", weights[i]);
        of = inside(dict, path);
        assert_int_equal(ot_dict_count(of), 3);
        must(ot_dict_get_int(of, "step", &step));
        assert_int_equal(step, 2);
        assert_memory_equal(tensor_in(of, NULL, "exp_avg")->data, p->slots[0]->data,
                            p->slots[0]->n_bytes);
        assert_memory_equal(tensor_in(of, NULL, "exp_avg_sq")->data, p->slots[1]->data,
                            p->slots[1]->n_bytes);
    }
    group = inside(dict, "optim/param_groups/0");
    assert_int_equal(ot_dict_count(inside(dict, "optim/param_groups")), 1);
    for (int i = 0; i < N_PARTS; i++) {
        char number[16];

        (void)snprintf(number, sizeof number, "%d", i);
        must(ot_dict_get_string(inside(group, "params"), number, &name));
        assert_string_equal(name, mlp_parts[i].name); // the order of the training model
    }
    assert_number(float_in(dict, "optim/param_groups/0", "lr"), 0.001);
    assert_number(float_in(dict, "optim/param_groups/0/betas", "0"), 0.9);
    assert_number(float_in(dict, "optim/param_groups/0/betas", "1"), 0.999);
    assert_number(float_in(dict, "optim/param_groups/0", "eps"), 1e-6);
    assert_number(float_in(dict, "optim/param_groups/0", "weight_decay"), 0.01);
    ot_dict_destroy(dict);
}

// SGD keeps moments for its file format only.
static void plain_sgd_has_groups_and_no_state(void **state)
{
    fixture *f = *state;
    ot_dict *dict;

    make_trained(f, mlp_sgd_text, 1);
    dict = state_of(f, OT_STATE_OPTIMIZER, NULL);
    assert_int_equal(ot_dict_count(inside(dict, "optim/state")), 0);
    assert_int_equal(ot_dict_count(inside(dict, "optim/param_groups")), 1);
    ot_dict_destroy(dict);
}

static void the_flat_form_repeats_a_groups_numbers_for_each_member(void **state)
{
    fixture *f = *state;
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *dict;
    int64_t step;

    make_trained(f, mlp_adamw_text, 1);
    o.flat_optimizer = 1;
    dict = state_of(f, OT_STATE_OPTIMIZER, &o);
    assert_int_equal(tensor_in(dict, "optim", "state.fc1.weight.exp_avg")->shape.dim[0], IN);
    must(ot_dict_get_int(inside(dict, "optim"), "state.fc2.bias.step", &step));
    assert_int_equal(step, 1);
    for (int i = 0; i < N_PARTS; i++) {
        char key[64];

        (void)snprintf(key, sizeof key, "param_groups.%s.lr", weights[i]);
        assert_number(float_in(dict, "optim", key), 0.001);
    }
    ot_dict_destroy(dict);
}

// DS: getting the state before the first step changes nothing.
static void a_state_before_the_first_step_is_zeros(void **state)
{
    fixture *f = *state;
    ot_dict *dict, *own;
    picture before, after;
    const ot_tensor *moment;

    make_trained(f, mlp_adamw_text, 0);
    before = take_picture(f);
    own = state_of(f, OT_STATE_OWN, NULL); // seed, counter and the like
    dict = state_of(f, ALL_SECTIONS, NULL);
    after = take_picture(f);
    assert_same_picture(&before, &after);
    assert_true(ot__dict_same(dict, "train", own, "train"));
    ot_dict_destroy(own);
    moment = tensor_in(dict, "optim/state/fc1.weight", "exp_avg_sq");
    for (int64_t i = 0; i < ot_tensor_count(moment); i++)
        assert_true(fabs((double)((float *)moment->data)[i]) <= 0);
    ot_dict_destroy(dict);
}

static void a_filter_leaves_names_out_and_takes_their_beginning_off(void **state)
{
    fixture *f = *state;
    const char *const include[] = {"fc2."}, *const pattern[] = {"*.bias"};
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *dict;

    make_trained(f, mlp_adamw_text, 0);
    o.include = include;
    o.n_include = 1;
    dict = state_of(f, OT_STATE_MODEL | OT_STATE_OPTIMIZER, &o);
    assert_int_equal(ot_dict_count(inside(dict, "model")), 2);
    assert_int_equal(ot_dict_count(inside(dict, "optim/state")), 2);
    assert_int_equal(ot_dict_count(inside(dict, "optim/param_groups/0/params")), 2);
    ot_dict_destroy(dict);
    o.strip_prefix = 1;
    dict = state_of(f, OT_STATE_MODEL, &o);
    assert_int_equal(tensor_in(dict, "model", "weight")->shape.dim[0], HIDDEN);
    ot_dict_destroy(dict);
    o.include = pattern;
    must_be(ot_session_get_shards(f->session, OT_STATE_MODEL, &o, &dict), OT_ERR_INVALID,
            "strip_prefix");
    assert_null(dict);
    o.strip_prefix = 0;
    dict = state_of(f, OT_STATE_MODEL, &o);
    assert_int_equal(ot_dict_count(inside(dict, "model")), 2);
    assert_non_null(tensor_in(dict, "model", "fc1.bias"));
    ot_dict_destroy(dict);
}

static void frozen_parameters_may_be_left_out(void **state)
{
    fixture *f = *state;
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *dict;

    make(f, OT_F32, NULL);
    add(f->checkpoint, "frozen", OT_SHAPE(2), 0);
    open_session(f);
    dict = state_of(f, OT_STATE_MODEL, NULL);
    assert_int_equal(ot_dict_count(inside(dict, "model")), N_PARTS + 1);
    ot_dict_destroy(dict);
    o.skip_frozen = 1;
    dict = state_of(f, OT_STATE_MODEL, &o);
    assert_int_equal(ot_dict_count(inside(dict, "model")), N_PARTS);
    ot_dict_destroy(dict);
}

// ---- views ----

static void a_view_is_given_out_until_the_session_steps(void **state)
{
    fixture *f = *state;
    const ot_tensor *view;
    ot_dict *dict, *copy;

    make_trained(f, mlp_adamw_text, 1);
    must(ot_session_get_shards(f->session, OT_STATE_MODEL, NULL, &dict));
    view = tensor_in(dict, "model", "fc1.weight");
    assert_ptr_equal(view->data, ot__ckpt_find(f->checkpoint, "fc1.weight")->value->data);
    copy = state_of(f, OT_STATE_MODEL, NULL);
    (void)train(f, 1);
    must_be(ot_dict_get_tensor(inside(dict, "model"), "fc1.weight", &view), OT_ERR_STATE,
            "'fc1.weight' of the dict is the session's own, which has changed since");
    assert_null(view);
    assert_non_null(tensor_in(copy, "model", "fc1.weight"));
    must_be(ot_session_set_shards(f->session, OT_STATE_MODEL, dict, NULL, NULL), OT_ERR_STATE,
            "changed since");
    ot_session_destroy(f->session); // a dict may live longer
    f->session = NULL;
    ot_dict_destroy(dict);
    ot_dict_destroy(copy);
}

// ---- other names ----

static void names_may_be_others_and_matrices_transposed(void **state)
{
    fixture *f = *state;
    ot_name_entry names[] = {OT_NAME_ENTRY_INIT, OT_NAME_ENTRY_INIT, OT_NAME_ENTRY_INIT};
    const ot_shape flat = OT_SHAPE(HIDDEN * CLASSES);
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    const ot_tensor *t;
    const float *w;
    ot_dict *dict;

    make_trained(f, mlp_adamw_text, 1);
    names[0].name = "enc.0.weight";
    names[0].parameter = "fc1.weight";
    names[0].transform = OT_NAME_TRANSPOSE;
    names[0].axes[1] = 1;
    names[1].name = "tied"; // a second name of one parameter
    names[1].parameter = names[2].parameter = "fc2.weight";
    names[2].name = "dec.weight";
    names[2].transform = OT_NAME_RESHAPE;
    names[2].shape = &flat;
    o.names = names;
    o.n_names = 3;
    dict = state_of(f, OT_STATE_MODEL | OT_STATE_OPTIMIZER, &o);
    assert_int_equal(ot_dict_count(inside(dict, "model")), N_PARTS + 1);
    t = tensor_in(dict, "model", "enc.0.weight");
    w = ot__ckpt_find(f->checkpoint, "fc1.weight")->value->data;
    assert_true(ot__shape_equal(&t->shape, &OT_SHAPE(HIDDEN, IN)));
    for (int i = 0; i < HIDDEN; i++)
        for (int j = 0; j < IN; j++)
            assert_memory_equal(&((float *)t->data)[i * IN + j], &w[j * HIDDEN + i], sizeof(float));
    t = tensor_in(dict, "model", "dec.weight");
    assert_true(ot__shape_equal(&t->shape, &flat));
    assert_memory_equal(t->data, tensor_in(dict, "model", "tied")->data, t->n_bytes);
    assert_int_equal(ot_dict_count(inside(dict, "optim/state")), N_PARTS);
    assert_non_null(tensor_in(dict, "optim/state/tied", "exp_avg"));
    ot_dict_destroy(dict);
    names[1].parameter = "fc9";
    must_be(ot_session_get_shards(f->session, OT_STATE_MODEL, &o, &dict), OT_ERR_NOT_FOUND,
            "no parameter 'fc9'");
    names[1].parameter = "fc2.weight";
    names[1].name = "fc1.bias";
    must_be(ot_session_get_shards(f->session, OT_STATE_MODEL, &o, &dict), OT_ERR_INVALID,
            "two values of the state have the name 'fc1.bias'");
}

// ---- byte strings ----

static void byte_strings_of_the_program_are_part_of_the_model(void **state)
{
    fixture *f = *state;
    const void *bytes;
    size_t n_bytes;
    ot_dict *dict;

    make_trained(f, mlp_adamw_text, 0);
    must(ot_session_set_bytes(f->session, "vocabulary", "a\0b", 3));
    must_be(ot_session_set_bytes(f->session, "fc1.bias", "x", 1), OT_ERR_INVALID,
            "'fc1.bias' is a parameter");
    dict = state_of(f, OT_STATE_MODEL, NULL);
    must(ot_dict_get_bytes(inside(dict, "model"), "vocabulary", &bytes, &n_bytes));
    assert_int_equal(n_bytes, 3);
    assert_memory_equal(bytes, "a\0b", 3);
    must(ot_session_set_bytes(f->session, "vocabulary", "other", 5));
    must(ot_session_set_shards(f->session, OT_STATE_MODEL, dict, NULL, NULL));
    must(ot_session_get_bytes(f->session, "vocabulary", &bytes, &n_bytes));
    assert_int_equal(n_bytes, 3);
    ot_dict_destroy(dict);
    must(ot_session_set_bytes(f->session, "vocabulary", NULL, 0));
    must_be(ot_session_get_bytes(f->session, "vocabulary", &bytes, &n_bytes), OT_ERR_NOT_FOUND,
            "no byte string 'vocabulary'");
}

// ---- streams ----

typedef struct seen {
    char text[1024];
    ot_status answer;
} seen;

static ot_status note_path(void *context, const char *const *path, int n_path, const ot_dict *leaf)
{
    seen *s = context;

    assert_int_equal(ot_dict_count(leaf), 1);
    assert_string_equal(ot_dict_name(leaf, 0), path[n_path - 1]);
    for (int i = 0; i < n_path; i++) {
        strcat(s->text, path[i]);
        strcat(s->text, i + 1 < n_path ? "/" : " ");
    }
    return s->answer;
}

static void a_stream_has_values_one_by_one_in_the_order_of_names(void **state)
{
    fixture *f = *state;
    seen s = {.answer = OT_OK};

    make_trained(f, mlp_sgd_text, 0);
    must(ot_session_stream_shards(f->session, OT_STATE_MODEL | OT_STATE_OPTIMIZER, NULL, note_path,
                                  &s));
    assert_string_equal(s.text, "model/fc1.bias model/fc1.weight model/fc2.bias model/fc2.weight "
                                "optim/param_groups ");
    s = (seen){.answer = OT_ERR_IO};
    assert_int_equal(ot_session_stream_shards(f->session, OT_STATE_MODEL, NULL, note_path, &s),
                     OT_ERR_IO);
    assert_string_equal(s.text, "model/fc1.bias ");
}

// ---- refusals ----

static void what_cannot_be_asked_for_is_refused(void **state)
{
    fixture *f = *state;
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *dict;

    make_trained(f, NULL, 0);
    must_be(ot_session_get_shards(f->session, 0, NULL, &dict), OT_ERR_INVALID, "sections 0x0");
    must_be(ot_session_get_shards(f->session, OT_STATE_STEPS, NULL, &dict), OT_ERR_INVALID,
            "sections 0x8");
    must_be(ot_session_get_shards(f->session, OT_STATE_OPTIMIZER, NULL, &dict), OT_ERR_INVALID,
            "no optimizer");
    o.gather = (ot_gather)7;
    must_be(ot_session_get_shards(f->session, OT_STATE_MODEL, &o, &dict), OT_ERR_INVALID,
            "gather 7, expected 0 to 2");
    o = (ot_state_dict_options)OT_STATE_DICT_OPTIONS_INIT;
    o.window_bytes = 4;
    must_be(ot_session_get_shards(f->session, OT_STATE_MODEL, &o, &dict), OT_ERR_INVALID,
            "window_bytes is 4, expected at least 16");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_model_has_every_parameter_by_its_name),
        TEST(the_optimizer_is_named_as_in_pytorch),
        TEST(plain_sgd_has_groups_and_no_state),
        TEST(the_flat_form_repeats_a_groups_numbers_for_each_member),
        TEST(a_state_before_the_first_step_is_zeros),
        TEST(a_filter_leaves_names_out_and_takes_their_beginning_off),
        TEST(frozen_parameters_may_be_left_out),
        TEST(a_view_is_given_out_until_the_session_steps),
        TEST(names_may_be_others_and_matrices_transposed),
        TEST(byte_strings_of_the_program_are_part_of_the_model),
        TEST(a_stream_has_values_one_by_one_in_the_order_of_names),
        TEST(what_cannot_be_asked_for_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
