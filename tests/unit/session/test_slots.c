// SPDX-License-Identifier: Apache-2.0
// Which optimizer goes on with what another one, or a file, has left.
#include "session_fixture.h"
#include "unit/base/temporary_folder.h"

static const char momentum_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnxtrain\" : 1]>\n"
    "sgd (" MLP_OPTIMIZER_INPUTS ") => (bool[1] flag)\n"
    "{\n"
    "  flag = ai.onnxtrain.SGDMomentumOptimizer(learning_rate, params, gradients, "
    "first_order_moments)\n"
    "}\n";

// Keeps averages, too, which no node writes.
static const char averaging_text[] =
    MLP_HEAD "sgd (" MLP_OPTIMIZER_INPUTS ", seq(T[]) averages) => (bool[1] flag)\n"
             "{\n"
             "  flag = com.microsoft.SGDOptimizerV2(learning_rate, params, gradients)\n"
             "}\n";

static const char *const moment_names[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};

static void close_session(fixture *f, const char *next_text)
{
    ot_session_destroy(f->session);
    f->session = NULL;
    ot_model_destroy(f->optimizer);
    f->optimizer = mlp_model(next_text, "float");
}

static void assert_no_session(const fixture *f, const char *message)
{
    ot_session *session;

    assert_int_equal(
        ot_session_create(f->training, f->eval, f->optimizer, f->checkpoint, NULL, &session),
        OT_ERR_INVALID);
    assert_null(session);
    if (strstr(ot_error_message(), message) == NULL)
        fail_msg("'%s' lacks '%s'", ot_error_message(), message);
}

static void switch_to(fixture *f, const char *text)
{
    ot_model *model = mlp_model(text, "float");

    if (ot_session_set_optimizer(f->session, model) != OT_OK)
        fail_msg("%s", ot_error_message());
    ot_model_destroy(model);
}

static ot_tensor *moment(const fixture *f, const char *name, int k)
{
    return ot__ckpt_find(f->checkpoint, name)->slots[k];
}

static bool is_zero(const ot_tensor *t)
{
    for (int64_t i = 0; i < ot_tensor_count(t); i++)
        if (!(fabs(ot__tensor_get_f64(t, i)) <= 0))
            return false;
    return true;
}

// ---- files ----

// Both rules keep one moment or more of each parameter; they mean different things.
static void moments_of_another_rule_in_a_file_are_refused(void **state)
{
    fixture f = {0};
    const char *path = in_folder(state, "moments.ckpt");

    make(&f, OT_F32, mlp_adamw_text);
    open_session(&f);
    (void)train(&f, 0);
    optimize(&f);
    assert_int_equal(ot_session_save(f.session, path), OT_OK);
    close_session(&f, momentum_text);
    ot_checkpoint_destroy(f.checkpoint);
    assert_int_equal(ot_checkpoint_load(path, &f.checkpoint), OT_OK);
    assert_no_session(&f, "the checkpoint's optimizer state is that of AdamWOptimizer, the "
                          "optimizer model has SGDOptimizer");
    close_session(&f, mlp_sgd_text); // has no use for moments
    open_session(&f);
    assert_int_equal(ot_session_step_count(f.session), 1);
    teardown_of(&f);
}

static void load_anew(fixture *f, const char *path, const char *next_text)
{
    assert_int_equal(ot_session_save(f->session, path), OT_OK);
    close_session(f, next_text);
    ot_checkpoint_destroy(f->checkpoint);
    assert_int_equal(ot_checkpoint_load(path, &f->checkpoint), OT_OK);
    open_session(f);
}

// They are of parameters that plain SGD has moved since.
static void a_rule_does_not_find_its_moments_after_a_run_of_plain_sgd(void **state)
{
    fixture f = {0};
    const char *path = in_folder(state, "checkpoint"), *owner;

    make(&f, OT_F32, mlp_adamw_text);
    open_session(&f);
    (void)train(&f, 0);
    optimize(&f);
    load_anew(&f, path, mlp_sgd_text);
    (void)train(&f, 1);
    optimize(&f);
    assert_int_equal(ot_session_step_count(f.session), 2);
    assert_int_not_equal(ot_checkpoint_get_string(f.checkpoint, "onnxtrain.optimizer", &owner),
                         OT_OK);
    load_anew(&f, path, mlp_adamw_text);
    assert_int_equal(ot_session_step_count(f.session), 0);
    for (size_t k = 0; k < OT_COUNT(moment_names); k++)
        assert_true(is_zero(moment(&f, moment_names[k], 0)) &&
                    is_zero(moment(&f, moment_names[k], 1)));
    (void)train(&f, 2);
    optimize(&f);
    assert_int_equal(ot_checkpoint_get_string(f.checkpoint, "onnxtrain.optimizer", &owner), OT_OK);
    assert_string_equal(owner, "AdamWOptimizer");
    teardown_of(&f);
}

static void a_moment_that_some_parameter_lacks_is_named(void **state)
{
    fixture *f = *state;
    ot__parameter *p;

    make(f, OT_F32, mlp_adamw_text);
    open_session(f);
    (void)train(f, 0);
    optimize(f);
    close_session(f, mlp_adamw_text);
    p = ot__ckpt_find(f->checkpoint, "fc2.bias");
    ot_tensor_destroy(p->slots[1]);
    p->slots[1] = NULL;
    assert_no_session(f, "the checkpoint's optimizer state has no momentum1 of parameter "
                         "'fc2.bias'");
    ot_tensor_destroy(p->slots[0]);
    p->slots[0] = NULL;
    assert_no_session(f, "the checkpoint's optimizer state has no momentum0 of parameter "
                         "'fc2.bias'");
}

// A file saved without optimizer state may still name the rule of the run before.
static void a_rule_that_begins_is_named_in_files(void **state)
{
    fixture f = {0};
    const char *path = in_folder(state, "checkpoint"), *owner;

    make(&f, OT_F32, mlp_adamw_text);
    open_session(&f);
    assert_int_equal(ot_session_save(f.session, path), OT_OK);
    assert_int_equal(ot_checkpoint_save(f.checkpoint, path, 0), OT_OK);
    close_session(&f, momentum_text);
    ot_checkpoint_destroy(f.checkpoint);
    assert_int_equal(ot_checkpoint_load(path, &f.checkpoint), OT_OK);
    open_session(&f);
    assert_int_equal(ot_checkpoint_get_string(f.checkpoint, "onnxtrain.optimizer", &owner), OT_OK);
    assert_string_equal(owner, "SGDOptimizer");
    teardown_of(&f);
}

// Plain SGD is given moments, which it leaves zero. ONNX Runtime refuses to go on with AdamW.
static void adamw_begins_over_the_state_of_plain_sgd(void **state)
{
    fixture *f = *state, fresh = {0};

    make(f, OT_F32, mlp_sgd_text);
    open_session(f);
    (void)train(f, 0);
    optimize(f);
    assert_true(is_zero(moment(f, "fc1.weight", 0)));
    close_session(f, mlp_adamw_text);
    open_session(f);
    assert_int_equal(ot_session_step_count(f->session), 0);
    (void)train(f, 1);
    optimize(f);
    assert_int_equal(ot_session_step_count(f->session), 1);

    // What AdamW does that finds the same parameters without any state.
    make(&fresh, OT_F32, mlp_sgd_text);
    open_session(&fresh);
    (void)train(&fresh, 0);
    optimize(&fresh);
    close_session(&fresh, mlp_adamw_text);
    fresh.checkpoint->has_optimizer_state = false;
    open_session(&fresh);
    (void)train(&fresh, 1);
    optimize(&fresh);
    for (int k = 0; k < N_PARTS; k++) {
        const ot__parameter *a = ot__ckpt_find(f->checkpoint, moment_names[k]);
        const ot__parameter *b = ot__ckpt_find(fresh.checkpoint, moment_names[k]);

        ot__ckpt_unpack(f->checkpoint, ot__ckpt_find(f->checkpoint, moment_names[k]));
        ot__ckpt_unpack(fresh.checkpoint, ot__ckpt_find(fresh.checkpoint, moment_names[k]));
        assert_memory_equal(a->value->data, b->value->data, a->value->n_bytes);
    }
    teardown_of(&fresh);
}

// ---- averages ----

static void assert_average_is(const fixture *f, const float *expected)
{
    const float *found = moment(f, "fc1.bias", OT_SLOT_AVERAGE)->data;

    for (int i = 0; i < HIDDEN; i++)
        assert_near((double)found[i], (double)expected[i], 0);
}

static void averages_begin_with_the_parameters_and_come_back_from_files(void **state)
{
    fixture f = {0};
    const char *path = in_folder(state, "averages.ckpt");
    float initial[HIDDEN];

    make(&f, OT_F32, averaging_text);
    memcpy(initial, ot__ckpt_find(f.checkpoint, "fc1.bias")->value->data, sizeof initial);
    open_session(&f);
    assert_average_is(&f, initial);
    (void)train(&f, 0);
    optimize(&f);
    load_anew(&f, path, averaging_text);
    assert_average_is(&f, initial); // not the present values
    assert_int_equal(ot_session_step_count(f.session), 1);
    teardown_of(&f);
}

// They begin in the midst of a run, and moments and steps go on.
static void averages_may_join_and_leave_a_run(void **state)
{
    fixture f = {0};
    const char *path = in_folder(state, "averages.ckpt");
    float present[HIDDEN];

    make(&f, OT_F32, mlp_sgd_text);
    open_session(&f);
    (void)train(&f, 0);
    optimize(&f);
    load_anew(&f, path, averaging_text);
    assert_int_equal(ot_session_step_count(f.session), 1);
    memcpy(present, ot__ckpt_find(f.checkpoint, "fc1.bias")->value->data, sizeof present);
    assert_average_is(&f, present);
    (void)train(&f, 1);
    optimize(&f);
    load_anew(&f, path, mlp_sgd_text); // would not keep them up
    assert_int_equal(ot_session_step_count(f.session), 2);
    assert_null(moment(&f, "fc1.bias", OT_SLOT_AVERAGE));
    teardown_of(&f);
}

static void an_average_of_another_shape_is_named(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, averaging_text);
    ot__ckpt_find(f->checkpoint, "fc1.bias")->slots[OT_SLOT_AVERAGE] =
        mlp_tensor(OT_F32, OT_SHAPE(1), NULL);
    assert_no_session(f, "average of parameter 'fc1.bias' is f32[1], expected f32[4]");
}

// ---- in a session ----

static void a_session_may_go_from_plain_sgd_to_adamw(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, mlp_sgd_text);
    open_session(f);
    (void)train(f, 0);
    optimize(f);
    switch_to(f, mlp_adamw_text);
    assert_int_equal(ot_session_step_count(f->session), 0);
    (void)train(f, 1);
    optimize(f);
    assert_int_equal(ot_session_step_count(f->session), 1);
    assert_false(is_zero(moment(f, "fc1.weight", 1)));
}

static void a_rule_that_replaces_another_begins_with_moments_of_its_own(void **state)
{
    fixture *f = *state;
    const char *owner;

    make(f, OT_F32, mlp_adamw_text);
    open_session(f);
    (void)train(f, 0);
    optimize(f);
    assert_false(is_zero(moment(f, "fc1.weight", 0)));
    switch_to(f, momentum_text);
    assert_true(is_zero(moment(f, "fc1.weight", 0)));
    assert_null(moment(f, "fc1.weight", 1));
    assert_int_equal(ot_session_step_count(f->session), 0);
    assert_int_equal(ot_checkpoint_get_string(f->checkpoint, "onnxtrain.optimizer", &owner), OT_OK);
    assert_string_equal(owner, "SGDOptimizer");
    (void)train(f, 1);
    optimize(f);
    assert_false(is_zero(moment(f, "fc1.weight", 0)));
}

static void the_same_rule_goes_on_with_its_moments_also_after_plain_sgd(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, mlp_adamw_text);
    open_session(f);
    (void)train(f, 0);
    optimize(f);
    switch_to(f, mlp_sgd_text);
    optimize(f);
    assert_int_equal(ot_session_step_count(f->session), 2);
    switch_to(f, mlp_adamw_text);
    assert_int_equal(ot_session_step_count(f->session), 2);
    assert_false(is_zero(moment(f, "fc1.weight", 1)));
    optimize(f);
}

static void a_switch_that_fails_leaves_the_rule_and_its_moments(void **state)
{
    fixture *f = *state;
    int n_failures = 0;

    make(f, OT_F32, mlp_adamw_text);
    open_session(f);
    (void)train(f, 0);
    optimize(f);

    ot_model *momentum = mlp_model(momentum_text, "float");

    for (int n = 0; n < 100000; n++) {
        ot_status st;

        ot__alloc_fail_after(n);
        st = ot_session_set_optimizer(f->session, momentum);
        ot__alloc_fail_after(-1);
        if (st == OT_OK)
            break;
        assert_int_equal(st, OT_ERR_NO_MEMORY);
        assert_int_equal(ot_session_step_count(f->session), 1);
        assert_false(is_zero(moment(f, "fc1.weight", 1)));
        n_failures++;
    }
    assert_true(n_failures > 20);
    assert_int_equal(ot_session_step_count(f->session), 0);
    (void)train(f, 1);
    optimize(f);
    ot_model_destroy(momentum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(moments_of_another_rule_in_a_file_are_refused),
        TEST_IN_FOLDER(a_rule_that_begins_is_named_in_files),
        TEST_IN_FOLDER(a_rule_does_not_find_its_moments_after_a_run_of_plain_sgd),
        TEST(a_moment_that_some_parameter_lacks_is_named),
        TEST_IN_FOLDER(averages_begin_with_the_parameters_and_come_back_from_files),
        TEST_IN_FOLDER(averages_may_join_and_leave_a_run),
        TEST(an_average_of_another_shape_is_named),
        TEST(adamw_begins_over_the_state_of_plain_sgd),
        TEST(a_session_may_go_from_plain_sgd_to_adamw),
        TEST(a_rule_that_replaces_another_begins_with_moments_of_its_own),
        TEST(the_same_rule_goes_on_with_its_moments_also_after_plain_sgd),
        TEST(a_switch_that_fails_leaves_the_rule_and_its_moments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
