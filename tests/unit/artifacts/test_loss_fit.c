// SPDX-License-Identifier: Apache-2.0
// Scores that went through the softmax or sigmoid that their loss does itself.
#include "artifacts/artifacts.h"
#include "evaluate.h"

static ot_model *model_of(const char *nodes)
{
    char text[512];

    snprintf(text, sizeof text,
             "<ir_version: 8, opset_import: [\"\" : 17]>\n"
             "g (float[N, 2] x) => (float[N, 2] y)\n"
             "<float[2, 2] w = {1, 2, 3, 4}, int64[2] rows = {-1, 2}, int64[1] zero = {0}>\n"
             "{ logits = MatMul(x, w) %s }",
             nodes);
    return read_text(text);
}

static ot_artifacts *generate(const char *nodes, ot_loss kind, const char *input)
{
    ot_model *model = model_of(nodes);
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *artifacts;

    loss.loss = kind;
    loss.input = input;
    options.losses = &loss;
    options.n_losses = 1;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

static void assert_note(const char *nodes, ot_loss kind, const char *input, const char *expected)
{
    ot_artifacts *artifacts = generate(nodes, kind, input);
    int n_warnings = 0;

    for (int i = 0; i < ot_artifacts_note_count(artifacts); i++) {
        ot_log_level level;
        const char *note = ot_artifacts_note(artifacts, i, &level);

        if (level != OT_LOG_WARNING)
            continue;
        n_warnings++;
        assert_string_equal(note, expected ? expected : "");
    }
    assert_int_equal(n_warnings, expected != NULL);
    ot_artifacts_destroy(artifacts);
}

static void a_second_softmax_is_noted_with_the_remedy(void **state)
{
    (void)state;
    assert_note(
        "[soft] y = Softmax(logits)", OT_LOSS_CROSS_ENTROPY, NULL,
        "cross-entropy takes 'y', which comes after Softmax 'soft', but expects scores: it "
        "applies Softmax itself, and two of them train badly; take 'logits' as loss input, or "
        "export the model without Softmax");
    assert_note("[soft] y = Softmax(logits)", OT_LOSS_CROSS_ENTROPY, "logits", NULL);
    assert_note(
        "[gate] y = Sigmoid(logits)", OT_LOSS_BCE_WITH_LOGITS, NULL,
        "bce-with-logits takes 'y', which comes after Sigmoid 'gate', but expects scores: it "
        "applies Sigmoid itself, and two of them train badly; take 'logits' as loss input, or "
        "export the model without Sigmoid");
}

static void what_moves_elements_hides_nothing(void **state)
{
    (void)state;
    assert_note(
        "[soft] s = Softmax(logits) r = Reshape(s, rows) y = Identity(r)", OT_LOSS_CROSS_ENTROPY,
        NULL,
        "cross-entropy takes 'y', which comes after Softmax 'soft', but expects scores: it "
        "applies Softmax itself, and two of them train badly; export the model without Softmax");
    assert_note(
        "[soft] s = Sigmoid(logits) u = Unsqueeze(s, zero) y = Squeeze(u, zero)",
        OT_LOSS_BCE_WITH_LOGITS, NULL,
        "bce-with-logits takes 'y', which comes after Sigmoid 'soft', but expects scores: it "
        "applies Sigmoid itself, and two of them train badly; export the model without Sigmoid");
}

static void other_ends_are_not_noted(void **state)
{
    (void)state;
    assert_note("y = LogSoftmax(logits)", OT_LOSS_CROSS_ENTROPY, NULL, NULL); // softmax again
    assert_note("y = Softmax(logits)", OT_LOSS_MSE, NULL, NULL);
    assert_note("y = Sigmoid(logits)", OT_LOSS_L1, NULL, NULL);
    assert_note("y = Identity(logits)", OT_LOSS_CROSS_ENTROPY, NULL, NULL);
    assert_note("s = Softmax(logits) y = MatMul(s, w)", OT_LOSS_CROSS_ENTROPY, NULL, NULL);
    assert_note("s = Sigmoid(x) y = Mul(s, logits)", OT_LOSS_BCE_WITH_LOGITS, NULL, NULL);
}

typedef struct heard {
    int n_warnings;
    bool is_softmax;
} heard;

static void hear(void *context, ot_log_level level, const char *message)
{
    heard *h = context;

    if (level != OT_LOG_WARNING)
        return;
    h->n_warnings++;
    h->is_softmax = strstr(message, "which comes after Softmax") != NULL;
}

static void the_log_and_the_report_have_it_too(void **state)
{
    ot_model *model = model_of("y = Softmax(logits)");
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_report *report;
    heard h = {0};

    (void)state;
    ot_set_log(hear, &h);
    ot_artifacts_destroy(generate("y = Softmax(logits)", OT_LOSS_CROSS_ENTROPY, NULL));
    ot_set_log(NULL, NULL);
    assert_int_equal(h.n_warnings, 1);
    assert_true(h.is_softmax);
    options.losses = &loss;
    options.n_losses = 1;
    assert_ok(ot_report_create(model, &options, &report));
    assert_int_equal(ot_report_trainable(report), 1);
    assert_int_equal(ot_report_note_count(report), 1);
    assert_non_null(strstr(ot_report_note(report, 0), "which comes after Softmax of 'y'"));
    ot_report_destroy(report);
    ot_model_destroy(model);
}

static void failing_allocations_lose_nothing(void **state)
{
    ot_model *model = model_of("y = Softmax(logits)");
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_status st = OT_ERR_NO_MEMORY;
    ot_artifacts *artifacts = NULL;

    (void)state;
    options.losses = &loss;
    options.n_losses = 1;
    for (int64_t n = 0; st != OT_OK; n++) {
        ot__alloc_fail_after(n);
        st = ot_artifacts_generate(model, &options, &artifacts);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        assert_int_equal(st == OT_OK, artifacts != NULL);
    }
    assert_int_equal(ot_artifacts_note_count(artifacts), 1);
    assert_null(ot_artifacts_note(artifacts, 1, NULL));
    assert_null(ot_artifacts_note(artifacts, -1, NULL));
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_softmax_is_noted_with_the_remedy),
        cmocka_unit_test(what_moves_elements_hides_nothing),
        cmocka_unit_test(other_ends_are_not_noted),
        cmocka_unit_test(the_log_and_the_report_have_it_too),
        cmocka_unit_test(failing_allocations_lose_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
