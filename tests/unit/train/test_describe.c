// SPDX-License-Identifier: Apache-2.0
// What artifacts say of their loss.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/train.h"

static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "heads (float[N, 2] x) => (float[N, 3] kind, float[N, 1] depth)\n"
                           "<float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[2, 1] v = {1, 2}>\n"
                           "{ kind = MatMul(x, w) depth = MatMul(x, v) }";

typedef struct fixture {
    ot_model *forward;
    ot_artifacts *artifacts;
    ot_session *session;
    ot_data_options data;
    ot_batches_options batches_options;
    ot_train_options train;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);

    f->data = (ot_data_options)OT_DATA_OPTIONS_INIT;
    f->batches_options = (ot_batches_options)OT_BATCHES_OPTIONS_INIT;
    f->train = (ot_train_options)OT_TRAIN_OPTIONS_INIT;
    assert_int_equal(ot_model_load_buffer(text, strlen(text), NULL, &f->forward), OT_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;

    ot_session_destroy(f->session);
    ot_artifacts_destroy(f->artifacts);
    ot_model_destroy(f->forward);
    free(f);
    return 0;
}

static void generate(fixture *f, const ot_loss_options *losses, int n)
{
    static const char *const outputs[] = {"kind", "depth"};
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;

    options.losses = losses;
    options.n_losses = n;
    options.additional_outputs = outputs;
    options.n_additional_outputs = 2;
    if (ot_artifacts_generate(f->forward, &options, &f->artifacts) != OT_OK)
        fail_msg("%s", ot_error_message());
    assert_int_equal(ot_session_create_from_artifacts(f->artifacts, NULL, &f->session), OT_OK);
}

static void describe(fixture *f)
{
    assert_int_equal(
        ot_train_describe(f->artifacts, f->session, &f->data, &f->batches_options, &f->train),
        OT_OK);
}

static ot_loss_options loss(ot_loss kind, const char *input, const char *target)
{
    ot_loss_options options = OT_LOSS_OPTIONS_INIT;

    options.loss = kind;
    options.input = input;
    options.target = target;
    return options;
}

static void metrics_go_by_the_first_term_and_targets_are_those_of_all(void **state)
{
    fixture *f = *state;
    ot_loss_options losses[] = {loss(OT_LOSS_MSE, "depth", "far"),
                                loss(OT_LOSS_CROSS_ENTROPY, "kind", NULL)};

    losses[1].factor = 0.3;
    losses[1].has_ignore_index = 1;
    losses[1].ignore_index = -7;
    generate(f, losses, 2);
    describe(f);
    assert_int_equal(f->train.task, OT_TASK_REGRESSION);
    assert_string_equal(ot_session_output_name(f->session, OT_MODE_TRAIN, f->train.metric_output),
                        "depth");
    assert_string_equal(ot_session_input_name(f->session, OT_MODE_TRAIN, f->train.metric_input),
                        "far");
    assert_int_equal(f->data.n_targets, 2);
    assert_string_equal(f->data.targets[0], "far");
    assert_string_equal(f->data.targets[1], "labels");
    assert_int_equal(f->batches_options.n_classes, 3);
    assert_true(f->batches_options.has_ignored_label);
    assert_int_equal(f->batches_options.ignored_label, -7);
    assert_true(f->artifacts->loss_terms[1].factor == 0.3);
}

static void targets_of_binary_cross_entropy_are_probabilities(void **state)
{
    fixture *f = *state;
    const ot_loss_options losses[] = {loss(OT_LOSS_MSE, "depth", "far"),
                                      loss(OT_LOSS_BCE_WITH_LOGITS, "depth", "near"),
                                      loss(OT_LOSS_BCE_WITH_LOGITS, "kind", NULL)};

    generate(f, losses, 3);
    describe(f);
    assert_int_equal(f->data.n_probabilities, 2);
    assert_string_equal(f->data.probabilities[0], "near");
    assert_string_equal(f->data.probabilities[1], "target");
}

static void targets_that_are_given_stay(void **state)
{
    fixture *f = *state;
    const ot_loss_options losses[] = {loss(OT_LOSS_MSE, "depth", "far"),
                                      loss(OT_LOSS_CROSS_ENTROPY, "kind", NULL)};
    const char *const targets[] = {"labels"};

    generate(f, losses, 2);
    f->data.targets = targets;
    f->data.n_targets = 1;
    describe(f);
    assert_ptr_equal(f->data.targets, targets);
    assert_string_equal(ot_session_input_name(f->session, OT_MODE_TRAIN, f->train.metric_input),
                        "labels");
}

// Makes the note of the loss what `note` says.
static void annotate(fixture *f, const char *note)
{
    f->artifacts->n_loss_terms = 0;
    assert_int_equal(ot_model_set_metadata(f->artifacts->training, "onnxtrain.loss", note), OT_OK);
    assert_int_equal(ot__loss_read(f->artifacts), OT_OK);
}

static void artifacts_of_another_maker_are_known_by_names_and_types(void **state)
{
    fixture *f = *state;
    const ot_loss_options losses[] = {loss(OT_LOSS_CROSS_ENTROPY, "kind", NULL)};

    generate(f, losses, 1);
    annotate(f, "");
    describe(f);
    assert_int_equal(f->train.task, OT_TASK_CLASSIFICATION);
    assert_int_equal(f->train.metric_output, 1);
    assert_string_equal(ot_session_input_name(f->session, OT_MODE_TRAIN, f->train.metric_input),
                        "labels");
    assert_int_equal(f->batches_options.n_classes, 0);
}

static void a_loss_of_the_models_own_is_not_guessed_at(void **state)
{
    fixture *f = *state;
    const ot_loss_options losses[] = {loss(OT_LOSS_CROSS_ENTROPY, "kind", NULL)};

    generate(f, losses, 1);
    annotate(f, "");
    f->data.forward = f->forward;
    describe(f);
    assert_int_equal(f->train.task, OT_TASK_NONE);
    assert_int_equal(f->train.metric_output, -1);
    assert_int_equal(f->data.n_targets, 0);
}

static void a_note_that_is_malformed_is_none(void **state)
{
    static const char *const notes[] = {
        "mse\n",
        "x\tmse\tdepth\tfar\n",
        "1\thinge\tdepth\tfar\n",
        "1\tcross-entropy ignoring many\tkind\tlabels\n",
        "1\tmse\n",
        "1\tmse\tdepth\tfar",
        "\n",
        "1\tmse\tdepth\tfar\n\n",
        "\t\t\t\t\t",
    };
    fixture *f = *state;
    const ot_loss_options losses[] = {loss(OT_LOSS_CROSS_ENTROPY, "kind", NULL)};

    generate(f, losses, 1);
    assert_int_equal(f->artifacts->n_loss_terms, 1);
    for (size_t i = 0; i < OT_COUNT(notes); i++) {
        annotate(f, notes[i]);
        assert_int_equal(f->artifacts->n_loss_terms, 0);
    }
}

static void missing_handles_are_refused(void **state)
{
    fixture *f = *state;

    assert_int_equal(ot_train_describe(NULL, NULL, &f->data, NULL, &f->train), OT_ERR_INVALID);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(metrics_go_by_the_first_term_and_targets_are_those_of_all),
        TEST(targets_of_binary_cross_entropy_are_probabilities),
        TEST(targets_that_are_given_stay),
        TEST(artifacts_of_another_maker_are_known_by_names_and_types),
        TEST(a_loss_of_the_models_own_is_not_guessed_at),
        TEST(a_note_that_is_malformed_is_none),
        TEST(missing_handles_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
