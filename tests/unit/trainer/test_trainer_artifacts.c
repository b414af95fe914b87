// SPDX-License-Identifier: Apache-2.0
// What options of a trainer ask of artifacts.
#include "trainer_fixture.h"

static ot_status generate_linear(const char *optimizer, const ot_trainer_options *options,
                                 ot_artifacts **out)
{
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_optimizer_options own = OT_OPTIMIZER_OPTIONS_INIT;
    ot_model *model = linear_model();
    ot_status st;

    own.name = optimizer;
    end_in_loss(&how, &loss);
    how.optimizer = &own;
    how.train_scalars = 1;
    st = ot_trainer_generate_artifacts(model, &how, options, out);
    ot_model_destroy(model);
    return st;
}

static bool optimizer_has(const ot_artifacts *artifacts, const char *name)
{
    const ot_model *model = ot_artifacts_optimizer_model(artifacts);

    for (int i = 0; i < ot_model_input_count(model); i++)
        if (strcmp(ot_model_input_name(model, i), name) == 0)
            return true;
    for (int i = 0; i < ot_model_output_count(model); i++)
        if (strcmp(ot_model_output_name(model, i), name) == 0)
            return true;
    return false;
}

static void what_is_asked_for_stands_in_the_optimizer_model(void **state)
{
    ot_trainer_options plain = OT_TRAINER_OPTIONS_INIT, asked = OT_TRAINER_OPTIONS_INIT;
    ot_artifacts *artifacts;

    (void)state;
    need(generate_linear("AdamOptimizer", &plain, &artifacts));
    assert_true(optimizer_has(artifacts, "gradient_norm")); // Adam clips unless it is told not to
    assert_false(optimizer_has(artifacts, "gradients_finite"));
    assert_false(optimizer_has(artifacts, "averages"));
    assert_int_equal(ot_checkpoint_parameter_trainable(ot_artifacts_checkpoint(artifacts), "w"), 1);
    ot_artifacts_destroy(artifacts);
    asked.grad_norm_clip = 0;
    need(generate_linear("AdamOptimizer", &asked, &artifacts));
    assert_false(optimizer_has(artifacts, "gradient_norm"));
    ot_artifacts_destroy(artifacts);
    asked.skip_non_finite = 1;
    asked.average_decay = 0.5;
    asked.frozen_weights = (const char *const[]){"w"};
    asked.n_frozen_weights = 1;
    need(generate_linear("AdamOptimizer", &asked, &artifacts));
    assert_true(optimizer_has(artifacts, "gradients_finite"));
    assert_true(optimizer_has(artifacts, "averages"));
    assert_int_equal(ot_checkpoint_parameter_trainable(ot_artifacts_checkpoint(artifacts), "w"), 0);
    assert_int_equal(ot_checkpoint_parameter_trainable(ot_artifacts_checkpoint(artifacts), "b"), 1);
    ot_artifacts_destroy(artifacts);
}

static void options_that_are_refused_make_no_artifacts(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_artifacts *artifacts;

    (void)state;
    options.device_id = "cuda";
    assert_int_equal(generate_linear("AdamOptimizer", &options, &artifacts), OT_ERR_UNSUPPORTED);
    assert_non_null(strstr(ot_error_message(), "options.device.id is \"cuda\""));
    assert_null(artifacts);
}

static void artifacts_for_a_trainer_survive_every_failing_allocation(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_model *model = linear_model();
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    end_in_loss(&how, &loss);
    options.skip_non_finite = 1;
    how.train_scalars = 1;
    options.frozen_weights = (const char *const[]){"b"};
    options.n_frozen_weights = 1;
    for (int n = 0; st != OT_OK; n++) {
        ot_artifacts *artifacts;

        ot__alloc_fail_after(n);
        st = ot_trainer_generate_artifacts(model, &how, &options, &artifacts);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        assert_true((st == OT_OK) == (artifacts != NULL));
        ot_artifacts_destroy(artifacts);
    }
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_for_stands_in_the_optimizer_model),
        cmocka_unit_test(options_that_are_refused_make_no_artifacts),
        cmocka_unit_test(artifacts_for_a_trainer_survive_every_failing_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
