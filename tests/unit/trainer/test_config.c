// SPDX-License-Identifier: Apache-2.0
#include "onnxtrain/config.h"
#include "onnxtrain/model.h"
#include "options_fixture.h"

static ot_config *config_of(const char *json)
{
    ot_config *config;

    must(ot_config_create(&config));
    must(ot_config_merge(config, json, OT_CONFIG_FILE));
    return config;
}

static void assert_config_refused(const char *json, const char *payload, const char *message)
{
    ot_config *config = config_of(json);
    char *violations;

    assert_int_equal(ot_config_check(config, &violations), OT_ERR_INVALID);
    if (!strstr(ot_error_message(), message))
        fail_msg("%s: '%s', expected '%s'", json, ot_error_message(), message);
    if (strcmp(violations, payload) != 0)
        fail_msg("%s: %s, expected %s", json, violations, payload);
    assert_null(ot_config_options(config));
    assert_null(ot_config_optimizer(config));
    assert_null(ot_config_description(config));
    ot_string_free(violations);
    ot_config_destroy(config);
}

// ---- sources ----

static void flags_go_before_files_and_files_before_the_environment(void **state)
{
    ot_config *config = config_of("{\"options\": {\"batch\": {\"gradient_accumulation_steps\": 2},"
                                  " \"onnxtrain\": {\"threads\": 2}}}");
    ot_config_source source;

    (void)state;
    must(ot_config_set_lines(config,
                             "options.batch.gradient_accumulation_steps=3\n\n"
                             "  options.onnxtrain.seed = 5  \n"
                             "options.onnxtrain.threads=3\r\nmodel=\"env.onnx\"",
                             OT_CONFIG_ENVIRONMENT));
    must(ot_config_set(config, "options.onnxtrain.threads", "4", OT_CONFIG_FLAG));
    must(ot_config_check(config, NULL));
    assert_int_equal(ot_config_options(config)->gradient_accumulation_steps, 2);
    assert_int_equal(ot_config_options(config)->n_threads, 4);
    assert_int_equal(ot_config_options(config)->seed, 5);
    assert_string_equal(ot_config_model(config), "env.onnx");
    must(ot_config_source_of(config, "options.onnxtrain.threads", &source));
    assert_int_equal(source, OT_CONFIG_FLAG);
    must(ot_config_source_of(config, "options.batch", &source));
    assert_int_equal(source, OT_CONFIG_FILE);
    must(ot_config_source_of(config, "options.onnxtrain.seed", &source));
    assert_int_equal(source, OT_CONFIG_ENVIRONMENT);
    assert_int_equal(ot_config_source_of(config, "options.device.id", &source), OT_ERR_NOT_FOUND);
    ot_config_destroy(config);
}

static void what_has_a_type_replaces_and_other_objects_are_merged(void **state)
{
    ot_config *config = config_of("{\"options\": {\"lr_scheduler\": {\"type\": \"cosine\","
                                  " \"total_steps\": 9, \"cycles\": 2}}}");

    (void)state;
    must(ot_config_set(config, "options.lr_scheduler.total_steps", "10", OT_CONFIG_FLAG));
    must(ot_config_check(config, NULL));
    assert_int_equal(ot_config_options(config)->lr_schedule->total_steps, 10);
    assert_true(ot_config_options(config)->lr_schedule->cycles == 2);
    must(ot_config_set(config, "options.lr_scheduler", "{\"type\": \"constant\"}", OT_CONFIG_FLAG));
    assert_null(ot_config_options(config)); // something more was given
    must(ot_config_check(config, NULL));
    assert_int_equal(ot_config_options(config)->lr_schedule->kind, OT_SCHEDULE_CONSTANT);
    assert_int_equal(ot_config_options(config)->lr_schedule->total_steps, 0);
    ot_config_destroy(config);
}

static void what_cannot_be_given_changes_nothing(void **state)
{
    static const struct {
        const char *lines, *message;
    } cases[] = {
        {"model=\"a\"\nmodel", "line 2: 'model' has no '='"},
        {"model=\"a\"\nmodel=a.onnx", "line 2: model: 'a.onnx' is no JSON (a text needs quotes): "},
        {"=3", "'' is no path of names"},
        {"a..b=3", "'a..b' is no path of names"},
        {"a.b.c.d.e.f.g.h.i=3", "is no path of names"},
        {"a\xff=3", "is no path of names in UTF-8"},
        {"options={\"a\": 1, \"a\": 2}", "duplicate object key"},
        {"options=[NaN]", "invalid token"},
        {"a.b.c.d.e.f=[[[[[[[[[[[]]]]]]]]]]]", "a.b.c.d.e.f: more than 16 objects and arrays"},
    };
    ot_config *config = config_of("{\"model\": \"m\"}");

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        assert_int_not_equal(ot_config_set_lines(config, cases[i].lines, OT_CONFIG_FLAG), OT_OK);
        if (!strstr(ot_error_message(), cases[i].message))
            fail_msg("%s: %s", cases[i].lines, ot_error_message());
    }
    assert_int_equal(ot_config_merge(config, "[1]", OT_CONFIG_FLAG), OT_ERR_FORMAT);
    assert_int_equal(ot_config_merge(config, "{\"model\":\n x}", OT_CONFIG_FLAG), OT_ERR_FORMAT);
    assert_non_null(strstr(ot_error_message(), "line 2, column 2"));
    assert_int_equal(ot_config_merge(config, "{}", (ot_config_source)3), OT_ERR_INVALID);
    must(ot_config_check(config, NULL));
    assert_string_equal(ot_config_model(config), "m");
    ot_config_destroy(config);
}

// ---- sections ----

static void all_that_is_wrong_is_told_at_once(void **state)
{
    (void)state;
    assert_config_refused(
        "{\"model\": 3, \"modle_desc\": {}, \"model_desc\": {\"inputs\": [[\"x\", []]]},"
        " \"optimizer\": {\"name\": \"AdamWOptimizer\", \"lr\": -1, \"alhpa\": 0.9},"
        " \"options\": {\"mixed_precision\": {\"enabled\": 1}}, \"train\": {\"epochs\": null}}",
        "{\"optimizer\":[{\"lr\":[\"is -1, expected at least 0 and below inf\"],"
        "\"alhpa\":[\"unknown field\"]}],\"model\":[\"must be of string type\"],"
        "\"modle_desc\":[\"unknown field\"],\"model_desc\":[{\"outputs\":[\"required field\"]}],"
        "\"options\":[{\"mixed_precision\":[{\"enabled\":[\"must be of boolean type\"]}]}],"
        "\"train\":[{\"epochs\":[\"must be a string, a number, a boolean or a list of them\"]}]}",
        "configuration: 7 violations: optimizer.lr: is -1, expected at least 0 and below inf; "
        "optimizer.alhpa: unknown field; did you mean 'alpha'?; model: must be of string type; "
        "modle_desc: unknown field; did you mean 'model_desc'?");
}

static void an_optimizer_has_the_hyper_parameters_of_its_operator(void **state)
{
    ot_config *config =
        config_of("{\"optimizer\": {\"name\": \"AdamWOptimizer\", \"lr\": 1, \"alpha\": 0.5,"
                  " \"weight_decay_coef\": 0, \"correct_bias\": false,"
                  " \"params\": [{\"params\": [\"*.bias\", \"w\"], \"weight_decay\": 0.25},"
                  " {\"params\": [], \"lr_factor\": 0.5}]}}");
    const ot_optimizer_options *o;

    (void)state;
    must(ot_config_check(config, NULL));
    o = ot_config_optimizer(config);
    assert_string_equal(o->name, "AdamWOptimizer");
    assert_true(o->lr == 1);
    assert_int_equal(o->n_hyper, 3);
    assert_string_equal(o->hyper[1].name, "weight_decay");
    assert_true(o->hyper[0].value == 0.5 && o->hyper[1].value == 0 && o->hyper[2].value == 0);
    assert_int_equal(o->n_groups, 2);
    assert_int_equal(o->groups[0].n_params, 2);
    assert_string_equal(o->groups[0].params[0], "*.bias");
    assert_true(o->groups[0].hyper[0].value == 0.25 && o->groups[0].lr_factor == 1);
    assert_true(o->groups[1].n_hyper == 0 && o->groups[1].lr_factor == 0.5);
    ot_config_destroy(config);
}

static void optimizers_and_groups_are_checked(void **state)
{
    (void)state;
    assert_config_refused("{\"optimizer\": {\"name\": \"AdamWOptimiser\", \"alpha\": 3}}",
                          "{\"optimizer\":[{\"name\":[\"unallowed value 'AdamWOptimiser'\"]}]}",
                          "did you mean 'AdamWOptimizer'?");
    assert_config_refused("{\"optimizer\": {\"name\": 3, \"params\": 1}}",
                          "{\"optimizer\":[{\"name\":[\"must be of string type\"],"
                          "\"params\":[\"must be of list type\"]}]}",
                          "");
    assert_config_refused(
        "{\"optimizer\": {\"alpha\": 0.5, \"alpha_coef\": 0.6, \"max_norm\": \"1\","
        " \"average_decay\": 1, \"params\": [{}, {\"params\": [\"w\"]},"
        " {\"params\": [1], \"lr\": 3, \"lr_factor\": -1}, 7]}}",
        "{\"optimizer\":[{\"max_norm\":[\"must be of float type\"],"
        "\"average_decay\":[\"is 1, expected at least 0 and below 1\"],"
        "\"alpha_coef\":[\"alpha is given twice\"],\"params\":[{\"0\":[{\"params\":["
        "\"required field\"]}],\"1\":[\"must have a hyper-parameter besides params\"],"
        "\"2\":[{\"params\":[{\"0\":[\"must be of string type\"]}],"
        "\"lr_factor\":[\"is -1, expected at least 0 and below inf\"],\"lr\":[\"unknown "
        "field\"]}],\"3\":[\"must be of dict type\"]}]}]}",
        "did you mean 'lr_factor'?");
}

static void a_polynomial_ends_below_the_learning_rate(void **state)
{
    ot_config *config = config_of("{\"options\": {\"lr_scheduler\": {\"type\": "
                                  "\"PolyWarmupLRScheduler\", \"total_steps\": 10, \"warmup\": 0.5,"
                                  " \"lr_end\": 0.25, \"power\": 2}}, \"optimizer\": {\"lr\": 1}}");
    const ot_schedule *schedule;

    (void)state;
    must(ot_config_check(config, NULL));
    schedule = ot_config_options(config)->lr_schedule;
    assert_int_equal(schedule->kind, OT_SCHEDULE_POLYNOMIAL);
    assert_true(schedule->warmup_steps == 5 && schedule->end_factor == 0.25 &&
                schedule->power == 2 && schedule->initial_lr == 1);
    ot_config_destroy(config);
    assert_config_refused(
        "{\"options\": {\"lr_scheduler\": {\"type\": \"PolyWarmupLRScheduler\","
        " \"total_steps\": 10, \"lr_end\": 0.001}}}",
        "{\"options\":[{\"lr_scheduler\":[{\"lr_end\":[\"is 0.001, expected below "
        "the learning rate, which is 0.001\"]}]}]}",
        "");
}

static void schedules_and_scalers_are_checked(void **state)
{
    (void)state;
    assert_config_refused(
        "{\"options\": {\"lr_scheduler\": {\"type\": \"LinearWarmupLRSchduler\"}}}",
        "{\"options\":[{\"lr_scheduler\":[{\"type\":[\"unallowed value "
        "'LinearWarmupLRSchduler'\"]}]}]}",
        "did you mean 'LinearWarmupLRScheduler'?");
    assert_config_refused("{\"options\": {\"lr_scheduler\": {\"total_steps\": 3}}}",
                          "{\"options\":[{\"lr_scheduler\":[{\"type\":[\"required field\"]}]}]}",
                          "");
    assert_config_refused(
        "{\"options\": {\"lr_scheduler\": {\"type\": \"CosineWarmupLRScheduler\", \"warmup\": 1,"
        " \"cycles\": 0, \"power\": 1}}}",
        "{\"options\":[{\"lr_scheduler\":[{\"warmup\":[\"must be below 1\"],"
        "\"cycles\":[\"must be above 0\"],\"power\":[\"unknown field\"],"
        "\"total_steps\":[\"required field\"]}]}]}",
        "");
    assert_config_refused(
        "{\"options\": {\"lr_scheduler\": {\"type\": \"ConstantWarmupLRScheduler\","
        " \"total_steps\": 1.0}}}",
        "{\"options\":[{\"lr_scheduler\":[{\"total_steps\":[\"must be of integer "
        "type\"]}]}]}",
        "");
    assert_config_refused(
        "{\"options\": {\"mixed_precision\": {\"enabled\": true, \"loss_scaler\":"
        " {\"type\": \"DynamicLossScaler\", \"loss_scale\": 0, \"x\": 1}}}}",
        "{\"options\":[{\"mixed_precision\":[{\"loss_scaler\":[\"loss_scale is 0, "
        "expected a finite number above 0\",{\"loss_scale\":[\"must be above "
        "0\"],\"x\":[\"unknown field\"]}]}]}]}",
        "");
}

static void train_has_options_of_the_command(void **state)
{
    static const char *const expected[][2] = {
        {"epochs", "3"}, {"split", "0.1"}, {"quiet", "true"}, {"bind", "a=b"}, {"bind", "c=d"}};
    ot_config *config = config_of("{\"train\": {\"epochs\": 3, \"split\": 0.1, \"quiet\": true,"
                                  " \"bind\": [\"a=b\", \"c=d\"]}}");

    (void)state;
    assert_int_equal(ot_config_train_count(config), 0);
    must(ot_config_check(config, NULL));
    assert_int_equal(ot_config_train_count(config), OT_COUNT(expected));
    for (int i = 0; i < (int)OT_COUNT(expected); i++) {
        assert_string_equal(ot_config_train_name(config, i), expected[i][0]);
        assert_string_equal(ot_config_train_value(config, i), expected[i][1]);
    }
    assert_null(ot_config_train_name(config, -1));
    assert_null(ot_config_train_value(config, (int)OT_COUNT(expected)));
    ot_config_destroy(config);
}

static const char *refuse_odd(void *context, const char *name, const char *value)
{
    static char text[64];

    (*(int *)context)++;
    if (strlen(value) % 2 == 0)
        return NULL;
    snprintf(text, sizeof text, "%s is odd", name);
    return text;
}

static void the_program_says_what_is_wrong_with_its_options(void **state)
{
    ot_config *config = config_of("{\"train\": {\"a\": 12, \"b\": 3, \"c\": [\"d\", \"ef\"]},"
                                  " \"options\": {\"batch\": 1}}");
    char *violations;
    int n_calls = 0;

    (void)state;
    must(ot_config_set_train_function(config, refuse_odd, &n_calls));
    assert_int_equal(ot_config_check(config, &violations), OT_ERR_INVALID);
    assert_int_equal(n_calls, 4);
    assert_string_equal(violations,
                        "{\"train\":[{\"b\":[\"b is odd\"],\"c\":[{\"0\":[\"c is odd\"]}]}],"
                        "\"options\":[{\"batch\":[\"must be of dict type\"]}]}");
    ot_string_free(violations);
    must(ot_config_set(config, "options", "{}", OT_CONFIG_FLAG));
    must(ot_config_set(config, "options.batch", "{}", OT_CONFIG_FLAG));
    must(ot_config_set_train_function(config, NULL, NULL));
    must(ot_config_check(config, NULL));
    ot_config_destroy(config);
}

// ---- text ----

static const char whole[] =
    "{\"model\": \"m.onnx\", \"model_desc\": {\"inputs\": [[\"x\", [\"batch\", 4]]],"
    " \"outputs\": [[\"loss\", [], true]]}, \"optimizer\": {\"lr\": 0.1, \"params\":"
    " [{\"params\": [\"*.bias\"], \"weight_decay\": 0.5}]}, \"options\": {\"lr_scheduler\":"
    " {\"type\": \"LinearWarmupLRScheduler\", \"total_steps\": 10, \"warmup\": 0.3},"
    " \"utils\": {\"frozen_weights\": [\"w\"]}}, \"train\": {\"epochs\": 2, \"bind\": [\"a=b\"]}}";

static void the_text_is_a_configuration_that_says_the_same(void **state)
{
    (void)state;
    for (int style = OT_CONFIG_EFFECTIVE; style <= OT_CONFIG_DEFAULTS_FILLED; style++) {
        ot_config *config = config_of(whole), *again;
        char *text, *second;

        assert_int_equal(ot_config_text(config, (ot_config_style)style, &text), OT_ERR_STATE);
        assert_null(text);
        must(ot_config_check(config, NULL));
        must(ot_config_text(config, (ot_config_style)style, &text));
        assert_null(strchr(text, '\n'));
        again = config_of(text);
        must(ot_config_check(again, NULL));
        must(ot_config_text(again, (ot_config_style)style, &second));
        assert_string_equal(second, text);
        assert_non_null(
            strstr(text, style == OT_CONFIG_EFFECTIVE ? "\"id\":\"cpu\"" : "\"id\":\"cuda\""));
        assert_int_equal(strstr(text, "\"onnxtrain\"") != NULL, style == OT_CONFIG_EFFECTIVE);
        assert_non_null(strstr(text, "\"train\":{\"epochs\":2,\"bind\":[\"a=b\"]}}"));
        ot_string_free(text);
        ot_string_free(second);
        ot_config_destroy(config);
        ot_config_destroy(again);
    }
}

static ot_status use_all(ot_config **config, char **text, char **violations)
{
    OT_TRY(ot_config_create(config));
    OT_TRY(ot_config_merge(*config, whole, OT_CONFIG_FILE));
    OT_TRY(
        ot_config_set_lines(*config, "options.onnxtrain.seed=3\ntrain.quiet=true", OT_CONFIG_FLAG));
    OT_TRY(ot_config_check(*config, violations));
    OT_TRY(ot_config_text(*config, OT_CONFIG_EFFECTIVE, text));
    OT_TRY(ot_config_set(*config, "options.devic", "3", OT_CONFIG_FLAG));
    if (ot_config_check(*config, violations) == OT_ERR_NO_MEMORY)
        return OT_ERR_NO_MEMORY;
    return OT_OK;
}

static void every_allocation_may_fail(void **state)
{
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int n = 0; st != OT_OK; n++) {
        ot_config *config = NULL;
        char *text = NULL, *violations = NULL;

        ot__alloc_fail_after(n);
        st = use_all(&config, &text, &violations);
        ot__alloc_fail_after(-1);
        if (st != OT_OK)
            assert_int_equal(st, OT_ERR_NO_MEMORY);
        else
            assert_string_equal(violations, "{\"options\":[{\"devic\":[\"unknown field\"]}]}");
        ot_string_free(text);
        ot_string_free(violations);
        ot_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_go_before_files_and_files_before_the_environment),
        cmocka_unit_test(what_has_a_type_replaces_and_other_objects_are_merged),
        cmocka_unit_test(what_cannot_be_given_changes_nothing),
        cmocka_unit_test(all_that_is_wrong_is_told_at_once),
        cmocka_unit_test(an_optimizer_has_the_hyper_parameters_of_its_operator),
        cmocka_unit_test(optimizers_and_groups_are_checked),
        cmocka_unit_test(a_polynomial_ends_below_the_learning_rate),
        cmocka_unit_test(schedules_and_scalers_are_checked),
        cmocka_unit_test(train_has_options_of_the_command),
        cmocka_unit_test(the_program_says_what_is_wrong_with_its_options),
        cmocka_unit_test(the_text_is_a_configuration_that_says_the_same),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
