// SPDX-License-Identifier: Apache-2.0
// Masks, buffers and parameters that look like them, as both exporters of PyTorch write them:
// record_buffers.py says what is in the files.
#include "exporters/losses.h"

#define FOLDER "buffers"

static ot_report *report_of(const char *file)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = load(FOLDER, file);
    ot_report *report;

    options.losses = &loss;
    options.n_losses = 1;
    if (ot_report_create(model, &options, &report) != OT_OK)
        fail_msg("%s: %s", file, ot_error_message());
    ot_model_destroy(model);
    return report;
}

static const ot_parameter_report *row_of(const ot_report *report, const char *name)
{
    for (int i = 0; i < ot_report_parameter_count(report); i++)
        if (strcmp(ot_report_parameter(report, i)->name, name) == 0)
            return ot_report_parameter(report, i);
    fail_msg("there is no '%s'", name);
    return NULL;
}

static int count_trained(const ot_report *report)
{
    int n = 0;

    for (int i = 0; i < ot_report_parameter_count(report); i++)
        n += ot_report_parameter(report, i)->trainable;
    return n;
}

static void assert_frozen(const ot_report *report, const char *name, const char *reason)
{
    const ot_parameter_report *row = row_of(report, name);

    assert_int_equal(row->frozen, 1);
    assert_string_equal(row->reason, reason);
}

// The one note that begins with 'name', or NULL.
static const char *note_on(const ot_report *report, const char *name)
{
    char start[64];

    snprintf(start, sizeof start, "'%s', ", name);
    for (int i = 0; i < ot_report_note_count(report); i++)
        if (strncmp(ot_report_note(report, i), start, strlen(start)) == 0)
            return ot_report_note(report, i);
    return NULL;
}

static void a_mask_is_frozen_by_what_it_does_in_files_of_the_classic_exporter(void **state)
{
    static const char *const files[] = {
        "words_infinite_classic.onnx", "words_infinite_training.onnx",
        "words_huge_classic.onnx",     "words_huge_training.onnx",
        "words_hundred_classic.onnx",  "words_hundred_training.onnx"};

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        ot_report *report = report_of(files[i]);

        assert_frozen(report, "attention.mask", "a mask of Softmax '/attention/Softmax'");
        assert_int_equal(row_of(report, "attention.qkv.bias")->trainable, 1);
        assert_null(note_on(report, "attention.mask"));
        ot_report_destroy(report);
    }
}

static void a_mask_of_shifted_windows_is_frozen_and_relative_positions_train(void **state)
{
    ot_report *report = report_of("windows_training.onnx");

    (void)state;
    assert_frozen(report, "mask", "a mask of Softmax '/Softmax'");
    assert_int_equal(row_of(report, "table")->trainable, 1);
    assert_null(note_on(report, "table"));
    assert_int_equal(count_trained(report), 5);
    ot_report_destroy(report);
    report = report_of("windows_plain.onnx");
    assert_frozen(report, "mask", "a mask of Softmax 'node_softmax'");
    assert_int_equal(row_of(report, "table")->trainable, 1);
    assert_int_equal(count_trained(report), 5);
    assert_int_equal(ot_report_note_count(report), 1);
    assert_non_null(strstr(ot_report_note(report, 0), "the batch size stays 4"));
    ot_report_destroy(report);
}

// What is computed from parameter and buffers is a parameter, what is from buffers alone is none.
static void folded_tensors_are_what_they_were_folded_from(void **state)
{
    ot_report *report = report_of("windows_newer.onnx");

    (void)state;
    assert_int_equal(row_of(report, "unsqueeze")->trainable, 1);
    assert_null(note_on(report, "unsqueeze"));
    assert_frozen(report, "unsqueeze_2", "a mask of Softmax 'node_softmax'");
    ot_report_destroy(report);
    report = report_of("words_infinite_newer.onnx");
    assert_frozen(report, "alias", "made of 'positions', a buffer of the exported module");
    assert_frozen(report, "alias_1", "a mask of Softmax 'node_softmax'");
    assert_int_equal(row_of(report, "select")->trainable, 1); // of the parameter 'token'
    assert_null(note_on(report, "select"));
    // The exporter had made one tensor of these two, which are all ones.
    assert_frozen(report, "attention.gain", "a buffer of the exported module");
    assert_int_equal(row_of(report, "attention.norm.weight")->trainable, 1);
    ot_report_destroy(report);
}

static void what_the_file_calls_a_buffer_is_frozen(void **state)
{
    ot_report *report = report_of("words_infinite_plain.onnx");

    (void)state;
    assert_frozen(report, "positions", "a buffer of the exported module");
    assert_frozen(report, "attention.gain", "a buffer of the exported module");
    assert_frozen(report, "attention.mask", "a mask of Softmax 'node_softmax'");
    assert_int_equal(count_trained(report), 9);
    assert_int_equal(ot_report_note_count(report), 0);
    ot_report_destroy(report);
}

static void what_nothing_calls_a_parameter_is_noted(void **state)
{
    ot_report *report = report_of("words_infinite_training.onnx");

    (void)state;
    assert_int_equal(count_trained(report), 11);
    assert_int_equal(ot_report_note_count(report), 2);
    assert_string_equal(note_on(report, "attention.gain"),
                        "'attention.gain', f32[8], all 1, trains as an operand of Mul "
                        "'/attention/Mul', not as weight, bias, scale or table of an operator; "
                        "freeze it if it is a buffer (--freeze, frozen=)");
    assert_non_null(strstr(note_on(report, "positions"),
                           "f32[1,6,8] from -2.91674 to 1.91424, trains as an operand of Add"));
    ot_report_destroy(report);
}

// ---- losses ----

// Losses of five steps are PyTorch's in f64, as far as f32 goes.
static void assert_torch_losses(const char *file, const char *losses, const char *const *frozen,
                                int n_frozen)
{
    const double tolerance = 2e-6, rate = 0.1;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_model *model = load(FOLDER, file);
    ot_tensor *x = array(FOLDER, "x.npy"), *labels = array(FOLDER, "labels.npy"),
              *expected = array(FOLDER, losses);
    double allowed[STEPS];
    ot_artifacts *artifacts;

    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    optimizer.name = "SGDOptimizerV2";
    options.frozen = frozen;
    options.n_frozen = n_frozen;
    if (ot_artifacts_generate(model, &options, &artifacts) != OT_OK)
        fail_msg("%s: %s", file, ot_error_message());
    for (int step = 0; step < STEPS; step++)
        allowed[step] = tolerance * ((const double *)ot_tensor_data(expected))[step];
    assert_losses(artifacts, file, x, labels, rate, ot_tensor_data(expected), allowed);
    ot_artifacts_destroy(artifacts);
    ot_tensor_destroy(x);
    ot_tensor_destroy(labels);
    ot_tensor_destroy(expected);
    ot_model_destroy(model);
}

static void five_steps_lose_what_pytorch_loses(void **state)
{
    static const char *const buffers[] = {"positions", "attention.gain"};

    (void)state;
    assert_torch_losses("words_infinite_plain.onnx", "words_infinite_losses.npy", NULL, 0);
    assert_torch_losses("words_infinite_newer.onnx", "words_infinite_losses.npy", NULL, 0);
    assert_torch_losses("words_infinite_classic.onnx", "words_infinite_losses.npy", buffers, 2);
    assert_torch_losses("words_infinite_training.onnx", "words_infinite_losses.npy", buffers, 2);
    assert_torch_losses("words_huge_training.onnx", "words_huge_losses.npy", buffers, 2);
    assert_torch_losses("words_hundred_training.onnx", "words_hundred_losses.npy", buffers, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mask_is_frozen_by_what_it_does_in_files_of_the_classic_exporter),
        cmocka_unit_test(a_mask_of_shifted_windows_is_frozen_and_relative_positions_train),
        cmocka_unit_test(folded_tensors_are_what_they_were_folded_from),
        cmocka_unit_test(what_the_file_calls_a_buffer_is_frozen),
        cmocka_unit_test(what_nothing_calls_a_parameter_is_noted),
        cmocka_unit_test(five_steps_lose_what_pytorch_loses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
