// SPDX-License-Identifier: Apache-2.0
// A state whose constants have other values makes the trainer the one of a model with these values.
#include "dropout_fixture.h"

static ot_model *model_with(const char *old, const char *replacement)
{
    char text[sizeof dropout_text + 16];
    const char *at = strstr(dropout_text, old);
    ot_model *model;

    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - dropout_text), dropout_text, replacement,
             at + strlen(old));
    need(ot_model_load_buffer(text, strlen(text), NULL, &model));
    return model;
}

static ot_trainer *trained_in(ot_precision precision, const char *old, const char *replacement,
                              int64_t n_calls)
{
    const ot_optimizer_options lamb = dropout_rule("LambOptimizer");
    ot_trainer *trainer = dropout_trainer_on(model_with(old, replacement), &lamb, precision, 3);

    for (int64_t i = 0; i < n_calls; i++)
        dropout_step(trainer, i, 1);
    return trainer;
}

static ot_trainer *trained_with(const char *old, const char *replacement, int64_t n_calls)
{
    return trained_in(OT_PRECISION_F32, old, replacement, n_calls);
}

static void assert_goes_on_as(ot_trainer *trainer, ot_trainer *other)
{
    assert_true(hash_of(trainer) == hash_of(other));
    for (int64_t i = 20; i < 28; i++) {
        const float wanted = dropout_step(other, i, 1), wanted_eval = dropout_step(other, i, 0);

        assert_true(dropout_step(trainer, i, 1) == wanted);
        assert_true(dropout_step(trainer, i, 0) == wanted_eval);
    }
    assert_true(hash_of(trainer) == hash_of(other));
}

static void assert_taken_over(ot_precision precision, const char *old, const char *replacement)
{
    ot_trainer *from = trained_in(precision, old, replacement, 5);
    ot_trainer *to = trained_in(precision, old, old, 1);
    ot_session *const session = ot_trainer_session(to);
    ot_dict *all = state_of(from, OT_STATE_ALL);

    assert_true(dropout_step(from, 9, 0) != dropout_step(to, 9, 0));
    need(ot_trainer_set_state(to, all, OT_STRICTNESS_ALL));
    assert_ptr_equal(ot_trainer_session(to), session);
    assert_goes_on_as(to, from);
    ot_dict_destroy(all);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

static void constants_of_a_state_are_built_in(void **state)
{
    (void)state;
    for (int i = OT_PRECISION_F32; i <= OT_PRECISION_F16; i++) {
        assert_taken_over((ot_precision)i, "power = {2}", "power = {4}"); // 2 is made a product
        assert_taken_over((ot_precision)i, "ratio = {0.25}", "ratio = {0.5}");
    }
}

static void the_trained_model_has_them(void **state)
{
    ot_trainer *from = trained_with("power = {2}", "power = {4}", 0);
    ot_trainer *to = dropout_trainer("LambOptimizer", 3), *again;
    const ot_optimizer_options lamb = dropout_rule("LambOptimizer");
    ot_dict *all = state_of(from, OT_STATE_ALL);
    ot_model *model;

    (void)state;
    need(ot_trainer_set_state(to, all, OT_STRICTNESS_ALL));
    need(ot_trainer_export(to, &model));
    again = dropout_trainer_on(model, &lamb, OT_PRECISION_F32, 3);
    assert_true(dropout_step(again, 3, 0) == dropout_step(from, 3, 0));
    ot_dict_destroy(all);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
    ot_trainer_destroy(again);
}

static void without_memory_the_old_ones_stay(void **state)
{
    ot_trainer *from = trained_with("power = {2}", "power = {4}", 5);
    ot_trainer *to = trained_with("power = {2}", "power = {2}", 1);
    ot_dict *all = state_of(from, OT_STATE_ALL);
    const float loss = dropout_step(to, 9, 0);
    const uint64_t hash = hash_of(to);
    ot_status st = OT_ERR_NO_MEMORY;
    int64_t n;

    (void)state;
    for (n = 0; st != OT_OK && n < 100000; n += 1 + n / 32) {
        ot__alloc_fail_after(n);
        st = ot_trainer_set_state(to, all, OT_STRICTNESS_ALL);
        ot__alloc_fail_after(-1);
        if (st == OT_OK)
            break;
        assert_int_equal(st, OT_ERR_NO_MEMORY);
        assert_true(hash_of(to) == hash);
        assert_true(dropout_step(to, 9, 0) == loss);
    }
    assert_in_range(n, 100, 99999);
    assert_goes_on_as(to, from);
    ot_dict_destroy(all);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_of_a_state_are_built_in),
        cmocka_unit_test(the_trained_model_has_them),
        cmocka_unit_test(without_memory_the_old_ones_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
