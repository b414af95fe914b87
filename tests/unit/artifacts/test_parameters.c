// SPDX-License-Identifier: Apache-2.0
#include "artifacts/artifacts.h"
#include "evaluate.h"

// Every reason there is.
static const char forward[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>"
    "g (float[N, 3] x) => (float[N, 3] y)"
    "<float[3] w = {1, 2, 3}, float[3] b = {0, 0, 0}, float scalar = {2}, float[1] power = {2},"
    " float low = {0}, int64[1] index = {0}, float[3] spare = {1, 1, 1}, float[3] bits = {1, 1, "
    "1}> {"
    "  a = Mul(x, w) c = Add(a, b) d = Mul(c, scalar) [square] e = Pow(d, power)"
    "  [bounded] f = Clip(e, low) h = Gather<axis = 0>(f, index)"
    "  [step] s = Floor(bits) t = Add(f, s) y = Relu(t) }";

static ot_report *report_of(const char *text, const ot_artifacts_options *options)
{
    ot_model *model = read_text(text);
    ot_report *report;

    assert_ok(ot_report_create(model, options, &report));
    ot_model_destroy(model);
    return report;
}

static void assert_parameter(const ot_report *report, const char *name, int trainable,
                             const char *reason)
{
    for (int i = 0; i < ot_report_parameter_count(report); i++) {
        const ot_parameter_report *row = ot_report_parameter(report, i);

        if (strcmp(row->name, name) != 0)
            continue;
        assert_int_equal(row->trainable, trainable);
        assert_string_equal(row->reason, reason);
        return;
    }
    fail_msg("no parameter '%s'", name);
}

static void by_default_everything_that_is_no_constant_by_nature_trains(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_report *report;

    (void)state;
    loss.loss = OT_LOSS_MSE;
    options.losses = &loss;
    options.n_losses = 1;
    report = report_of(forward, &options);
    if (!ot_report_trainable(report))
        fail_msg("%s", ot_report_problem(report, 0));
    assert_parameter(report, "w", 1, "reaches the loss");
    assert_parameter(report, "b", 1, "reaches the loss");
    assert_parameter(report, "scalar", 0, "a scalar without dimensions");
    assert_parameter(report, "power", 0, "exponent of Pow 'square'");
    assert_parameter(report, "low", 0, "bound of Clip 'bounded'");
    assert_parameter(report, "index", 0, "element type i64");
    assert_parameter(report, "bits", 0, "only through input 'X' of Floor 'step'");
    assert_parameter(report, "spare", 0, "does not reach the loss");
    ot_report_destroy(report);
}

static void patterns_choose_what_trains(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    const char *const trainable[] = {"w*"}, *const frozen[] = {"b"};
    ot_report *report;

    (void)state;
    options.trainable = trainable;
    options.n_trainable = 1;
    report = report_of(forward, &options);
    assert_parameter(report, "w", 1, "reaches the loss");
    assert_parameter(report, "b", 0, "not among the trainable names");
    ot_report_destroy(report);
    options.trainable = NULL;
    options.frozen = frozen;
    options.n_frozen = 1;
    report = report_of(forward, &options);
    assert_parameter(report, "w", 1, "reaches the loss");
    assert_parameter(report, "b", 0, "frozen by name");
    assert_int_equal(ot_report_parameter(report, 0)->frozen, 0);
    assert_int_equal(ot_report_parameter(report, 1)->frozen, 1);
    ot_report_destroy(report);
}

static void assert_refused(const char *trainable, const char *frozen, ot_status status,
                           const char *text)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = read_text(forward);
    ot_artifacts *artifacts;

    options.trainable = trainable ? &trainable : NULL;
    options.n_trainable = trainable != NULL;
    options.frozen = frozen ? &frozen : NULL;
    options.n_frozen = frozen != NULL;
    assert_fails(ot_artifacts_generate(model, &options, &artifacts), status, text);
    assert_null(artifacts);
    ot_model_destroy(model);
}

static void names_that_cannot_train_are_refused(void **state)
{
    (void)state;
    assert_refused("w", "w", OT_ERR_INVALID, "trainable and frozen at the same time: 'w'");
    assert_refused("nope", NULL, OT_ERR_NOT_FOUND, "optimize=False");
    assert_refused("x", NULL, OT_ERR_INVALID, "'x' is an input of the model");
    assert_refused("e", NULL, OT_ERR_INVALID, "'e' is computed by Pow 'square'");
    assert_refused("nope*", NULL, OT_ERR_NOT_FOUND, "trainable 'nope*' matches no initializer");
    assert_refused(NULL, "nope*", OT_ERR_NOT_FOUND, "frozen 'nope*' matches no initializer");
    assert_refused("ind*", NULL, OT_ERR_INVALID, "'index': element type i64");
    assert_refused("spare", NULL, OT_ERR_INVALID, "to 'spare' (no path of operators)");
    assert_refused("bits", NULL, OT_ERR_INVALID,
                   "to 'bits' (only through input 'X' of Floor 'step')");
}

static void scalars_train_when_they_are_named(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    const char *const trainable[] = {"scalar"};
    ot_report *report;

    (void)state;
    options.trainable = trainable;
    options.n_trainable = 1;
    report = report_of(forward, &options);
    assert_int_equal(ot_report_trainable(report), 1);
    assert_parameter(report, "scalar", 1, "trainable by name");
    ot_report_destroy(report);
}

static void scalars_train_where_all_are_asked_for(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_report *report;
    ot_model *model;

    (void)state;
    options.train_scalars = 1;
    loss.loss = OT_LOSS_MSE;
    options.losses = &loss;
    options.n_losses = 1;
    report = report_of(forward, &options);
    assert_int_equal(ot_report_trainable(report), 1);
    assert_parameter(report, "scalar", 1, "reaches the loss");
    assert_parameter(report, "power", 0, "exponent of Pow 'square'");
    assert_parameter(report, "low", 0, "bound of Clip 'bounded'");
    ot_report_destroy(report);
    model = read_text(forward);
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    assert_int_equal(
        ot_checkpoint_parameter_trainable(ot_artifacts_checkpoint(artifacts), "scalar"), 1);
    assert_int_equal(ot_checkpoint_parameter_count(ot_artifacts_checkpoint(artifacts)), 3);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void unknown_frozen_names_may_be_ignored(void **state)
{
    static const char *const frozen[] = {"b", "num_batches_tracked"};
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_report *report;

    (void)state;
    loss.loss = OT_LOSS_MSE;
    options.losses = &loss;
    options.n_losses = 1;
    options.frozen = frozen;
    options.n_frozen = 2;
    options.ignore_unknown_frozen = 1;
    report = report_of(forward, &options);
    assert_true(ot_report_trainable(report));
    assert_parameter(report, "b", 0, "frozen by name");
    ot_report_destroy(report);
}

// "w" and "scalar" train, "b" and "index" do not; "spare" reaches no loss, and "pooler" is not
// there.
static void names_of_a_module_say_what_trains(void **state)
{
    static const char *const trainable[] = {"w", "scalar", "spare", "pooler"},
                             *const frozen[] = {"b", "index", "other"},
                             *const none[] = {"scalar", "lost"};
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_report *report;

    (void)state;
    options.trainable = trainable;
    options.n_trainable = 4;
    options.frozen = frozen;
    options.n_frozen = 3;
    options.names_of_module = 1;
    report = report_of(forward, &options);
    if (!ot_report_trainable(report))
        fail_msg("%s", ot_report_problem(report, 0));
    assert_parameter(report, "w", 1, "reaches the loss");
    assert_parameter(report, "scalar", 1, "trainable by name");
    assert_parameter(report, "b", 0, "frozen by name");
    assert_parameter(report, "index", 0, "element type i64");
    assert_parameter(report, "spare", 0, "does not reach the loss");
    assert_int_equal(ot_report_note_count(report), 0);
    ot_report_destroy(report);
    // "w" may be what "lost" was computed into.
    options.trainable = none;
    options.n_trainable = 2;
    report = report_of(forward, &options);
    assert_int_equal(ot_report_trainable(report), 0);
    assert_non_null(strstr(ot_report_problem(report, 0),
                           "the model has no 'lost' of the module, but 'w', which is not in it"));
    ot_report_destroy(report);
    options.n_trainable = 1;
    report = report_of(forward, &options);
    assert_int_equal(ot_report_trainable(report), 1);
    assert_parameter(report, "w", 0, "not among the trainable names");
    ot_report_destroy(report);
}

// A tensor that was renamed stands for what the file calls it.
static void names_of_a_module_may_be_those_of_the_file(void **state)
{
    static const char *const trainable[] = {"lost", "onnx::Mul_7"}, *const frozen[] = {"b"};
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = read_text(forward);
    ot_report *report;

    (void)state;
    ot__graph_find(model->graph, "w")->alias = trainable[1];
    options.trainable = trainable;
    options.n_trainable = 2;
    options.frozen = frozen;
    options.n_frozen = 1;
    options.names_of_module = 1;
    assert_ok(ot_report_create(model, &options, &report));
    if (!ot_report_trainable(report))
        fail_msg("%s", ot_report_problem(report, 0));
    assert_parameter(report, "w", 1, "reaches the loss");
    ot_report_destroy(report);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_default_everything_that_is_no_constant_by_nature_trains),
        cmocka_unit_test(patterns_choose_what_trains),
        cmocka_unit_test(names_that_cannot_train_are_refused),
        cmocka_unit_test(scalars_train_when_they_are_named),
        cmocka_unit_test(scalars_train_where_all_are_asked_for),
        cmocka_unit_test(unknown_frozen_names_may_be_ignored),
        cmocka_unit_test(names_of_a_module_say_what_trains),
        cmocka_unit_test(names_of_a_module_may_be_those_of_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
