// SPDX-License-Identifier: Apache-2.0
// Models put right before training.
#include "artifacts/artifacts.h"
#include "artifacts/prepare.h"
#include "onnxtrain/artifacts.h"
#include "unit/graph/model_text.h"

// Two normalisations whose scales and biases an exporter made one each.
static const char merged[] =
    "<ir_version: 8, opset_import: ['': 17]> g (float[N,2] x) => (float[N,2] y)\n"
    "    <float[2] 'n1.weight' = {1, 1}, float[2] 'n1.bias' = {0, 0}>\n{\n"
    "    'n2.weight' = Identity('n1.weight')\n    'n2.bias' = Identity('n1.bias')\n"
    "    a = LayerNormalization(x, 'n1.weight', 'n1.bias')\n"
    "    y = LayerNormalization(a, 'n2.weight', 'n2.bias')\n}";

static ot_model *prepared(const ot_model *model, const char *const *shared, int n_shared,
                          ot_findings **findings)
{
    ot_prepare_options options = OT_PREPARE_OPTIONS_INIT;
    ot_model *out;

    options.shared = shared;
    options.n_shared = n_shared;
    if (ot_model_prepare_training(model, &options, &out, findings) != OT_OK)
        fail_msg("%s", ot_error_message());
    return out;
}

static int n_parameters(const ot_artifacts *artifacts)
{
    return artifacts->n_parameters;
}

static void parameters_of_their_own_names_are_tensors_of_their_own(void **state)
{
    ot_model *model = quoted_model(merged), *out;
    ot_findings *findings;
    const ot_finding *first;

    (void)state;
    out = prepared(model, NULL, 0, &findings);
    assert_int_equal(ot_model_initializer_count(out), 4);
    assert_int_equal(ot_model_initializer_count(model), 2);
    assert_true(ot__graph_find(out->graph, "n2.weight")->is_initializer);
    assert_int_equal(ot_findings_count(findings), 2);
    first = ot_findings_get(findings, 0);
    assert_int_equal(first->kind, OT_FINDING_SEPARATED);
    assert_string_equal(first->word, "separated");
    assert_int_equal(first->changes, 1);
    assert_non_null(strstr(first->text, "n1."));
    assert_null(ot_findings_get(findings, 2));
    ot_findings_destroy(findings);
    ot_model_destroy(out);
    ot_model_destroy(model);
}

static void artifacts_have_the_parameters_that_the_model_had(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = quoted_model(merged);
    ot_artifacts *artifacts;

    (void)state;
    assert_int_equal(ot_artifacts_generate(model, &options, &artifacts), OT_OK);
    assert_int_equal(n_parameters(artifacts), 4);
    assert_int_equal(ot_artifacts_note_count(artifacts), 2);
    assert_non_null(strstr(ot_artifacts_note(artifacts, 0, NULL), "n2."));
    ot_artifacts_destroy(artifacts);
    options.prepare = OT_PREPARE_NONE;
    assert_int_equal(ot_artifacts_generate(model, &options, &artifacts), OT_OK);
    assert_int_equal(n_parameters(artifacts), 2);
    ot_artifacts_destroy(artifacts);
    options.prepare = (ot_prepare)7;
    assert_int_equal(ot_artifacts_generate(model, &options, &artifacts), OT_ERR_INVALID);
    ot_model_destroy(model);
}

static int n_logged;

static void count_line(void *context, ot_log_level level, const char *message)
{
    (void)context;
    n_logged += level == OT_LOG_WARNING && strstr(message, "taken as the file has it");
}

static void what_stays_as_it_is_is_logged(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = quoted_model(merged);
    ot_artifacts *artifacts;

    (void)state;
    options.prepare = OT_PREPARE_NONE;
    n_logged = 0;
    ot_set_log(count_line, NULL);
    assert_int_equal(ot_artifacts_generate(model, &options, &artifacts), OT_OK);
    ot_set_log(NULL, NULL);
    assert_int_equal(n_logged, 2);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void what_the_user_keeps_shared_stays(void **state)
{
    static const char *const one[] = {"n2.weight"}, *const both[] = {"n?.*"},
                             *const all[] = {"keep"}, *const unknown[] = {"n3.*"};
    ot_prepare_options options = OT_PREPARE_OPTIONS_INIT;
    ot_model *model = quoted_model(merged), *out;

    (void)state;
    out = prepared(model, one, 1, NULL);
    assert_int_equal(ot_model_initializer_count(out), 3);
    ot_model_destroy(out);
    out = prepared(model, both, 1, NULL);
    assert_int_equal(ot_model_initializer_count(out), 2);
    ot_model_destroy(out);
    out = prepared(model, all, 1, NULL);
    assert_int_equal(ot_model_initializer_count(out), 2);
    ot_model_destroy(out);
    options.shared = unknown;
    options.n_shared = 1;
    assert_int_equal(ot_model_prepare_training(model, &options, &out, NULL), OT_ERR_NOT_FOUND);
    assert_message_has("n3.*");
    assert_null(out);
    options.shared = (const char *const[]){NULL};
    assert_int_equal(ot_model_prepare_training(model, &options, &out, NULL), OT_ERR_INVALID);
    options.shared = NULL;
    assert_int_equal(ot_model_prepare_training(model, &options, &out, NULL), OT_ERR_INVALID);
    ot_model_destroy(model);
}

static void a_report_says_what_would_change(void **state)
{
    ot_model *model = quoted_model(merged);
    ot_report *report;

    (void)state;
    assert_int_equal(ot_report_create(model, NULL, &report), OT_OK);
    assert_int_equal(ot_report_note_count(report), 2);
    assert_int_equal(ot_report_parameter_count(report), 4);
    ot_report_destroy(report);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_of_their_own_names_are_tensors_of_their_own),
        cmocka_unit_test(artifacts_have_the_parameters_that_the_model_had),
        cmocka_unit_test(what_stays_as_it_is_is_logged),
        cmocka_unit_test(what_the_user_keeps_shared_stays),
        cmocka_unit_test(a_report_says_what_would_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
