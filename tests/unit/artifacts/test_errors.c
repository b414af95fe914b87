// SPDX-License-Identifier: Apache-2.0
// What can be asked wrongly of artifacts, one row each: names, losses, optimizers, operators in the
// way. Where ONNX Runtime has an error and here there is none, the row says so.
#include "artifacts/artifacts.h"
#include "evaluate.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"com.acme\" : 1]>"

static const char two_outputs[] =
    HEAD "g (float[2,3] x) => (float[2,3] y, float[2,3] z)"
         "<float[3] w = {1, 2, 3}, float[3] side = {1, 1, 1}, float[3] unused = {1, 1, 1}> {"
         "  y = Mul(x, w) z = Mul(x, side) }";
static const char bounds[] = HEAD "g (float[2,3] x) => (float[2,3] y)"
                                  "<float[3] w = {1, 2, 3}, float[3] step = {1, 1, 1}> {"
                                  "  a = Mul(x, w) [cut] low = Floor(step) y = Max(a, low) }";
static const char unknown_operators[] =
    HEAD "g (float[2,3] x) => (float[2,3] y) <float[3] w = {1, 2, 3}> {"
         "  a = Mul(x, w) [first] b = com.acme.Twist(a) [second] y = com.acme.Turn(b) }";
static const char before_unknown[] =
    HEAD "g (float[2,3] x) => (float[2,3] y)"
         "<float[3] v = {1, 2, 3}, float[3] w = {1, 2, 3}> {"
         "  a = Mul(x, v) [sinh] b = ImageDecoder(a) y = Mul(b, w) }";
static const char of_integers[] = HEAD "g (float[2,3] x) => (int64[2] y) <float[3] w = {1, 2, 3}> {"
                                       "  a = Mul(x, w) y = ArgMax<axis = 1, keepdims = 0>(a) }";
static const char padded[] = HEAD "g (float[2,3] x) => (float[2,5] y)"
                                  "<float[3] w = {1, 2, 3}, int64[4] pads = {0, 1, 0, 1}> {"
                                  "  a = Mul(x, w) y = Pad<mode = \"reflect\">(a, pads) }";

enum { NO_LOSS = 99 };

typedef struct bad_wish {
    const char *what; // for the reader
    const char *model;
    const char *trainable, *frozen, *output, *loss_input;
    int loss;
    const char *optimizer;
    ot_status status;
    const char *message;
} bad_wish;

static const bad_wish wishes[] = {
    // names
    {"trainable and frozen", two_outputs, "w", "w", NULL, NULL, OT_LOSS_MSE, "AdamWOptimizer",
     OT_ERR_INVALID, "trainable and frozen at the same time: 'w'"},
    {"trainable, not in the graph", two_outputs, "nope", NULL, NULL, NULL, OT_LOSS_MSE,
     "AdamWOptimizer", OT_ERR_NOT_FOUND, "trainable 'nope' matches no initializer of the model"},
    {"frozen, not in the graph", two_outputs, NULL, "nope", NULL, NULL, OT_LOSS_MSE,
     "AdamWOptimizer", OT_ERR_NOT_FOUND, "frozen 'nope' matches no initializer of the model"},
    {"trainable without consumer", two_outputs, "unused", NULL, NULL, NULL, OT_LOSS_MSE,
     "AdamWOptimizer", OT_ERR_INVALID, "to 'unused' (no path of operators)"},
    {"trainable, not reaching the loss", two_outputs, "side", NULL, NULL, NULL, OT_LOSS_MSE,
     "AdamWOptimizer", OT_ERR_INVALID, "to 'side' (no path of operators)"},
    {"trainable, at an input without gradient", bounds, "step", NULL, NULL, NULL, OT_LOSS_MSE,
     "AdamWOptimizer", OT_ERR_INVALID, "to 'step' (only through input 'X' of Floor 'cut')"},
    {"an additional output that is none", two_outputs, NULL, NULL, "nope", NULL, OT_LOSS_MSE,
     "AdamWOptimizer", OT_ERR_NOT_FOUND, "additional output 'nope' is not a tensor of the model"},
    // losses
    {"a loss that is none", two_outputs, NULL, NULL, NULL, NULL, NO_LOSS, "AdamWOptimizer",
     OT_ERR_INVALID,
     "unknown loss 99 (known: none, cross-entropy, mse, l1, bce-with-logits, "
     "custom)"},
    {"a loss of what is not a value", two_outputs, NULL, NULL, NULL, "nope", OT_LOSS_MSE,
     "AdamWOptimizer", OT_ERR_NOT_FOUND, "loss input 'nope' is not a value of the model"},
    {"a custom loss without a model", two_outputs, NULL, NULL, NULL, NULL, OT_LOSS_CUSTOM,
     "AdamWOptimizer", OT_ERR_INVALID, "custom loss without a model"},
    {"a loss of integers", of_integers, NULL, NULL, NULL, NULL, OT_LOSS_MSE, "AdamWOptimizer",
     OT_ERR_INVALID, "loss input 'y' is i64, expected a tensor of a float type"},
    {"no loss, of integers", of_integers, NULL, NULL, NULL, NULL, OT_LOSS_NONE, "AdamWOptimizer",
     OT_ERR_INVALID, "loss input 'y' is i64, expected a tensor of a float type"},
    // optimizers
    {"an optimizer that is none", two_outputs, NULL, NULL, NULL, NULL, OT_LOSS_MSE, "AdamW",
     OT_ERR_NOT_FOUND, "unknown optimizer 'AdamW', known: "},
    {"one that is meant", two_outputs, NULL, NULL, NULL, NULL, OT_LOSS_MSE, "adamwoptimizer",
     OT_ERR_NOT_FOUND, "; did you mean 'AdamWOptimizer'?"},
    // operators in the way, all of them at once
    {"unknown operators", unknown_operators, NULL, NULL, NULL, NULL, OT_LOSS_MSE, "AdamWOptimizer",
     OT_ERR_UNSUPPORTED, "com.acme.Twist 'first' (from 'w' by Mul)"},
    {"unknown operators, the second", unknown_operators, NULL, NULL, NULL, NULL, OT_LOSS_MSE,
     "AdamWOptimizer", OT_ERR_UNSUPPORTED,
     "com.acme.Turn 'second' (from 'w' by Mul > first); freeze 'w'"},
    {"behind an operator without gradient", before_unknown, "v", NULL, NULL, NULL, OT_LOSS_MSE,
     "AdamWOptimizer", OT_ERR_UNSUPPORTED,
     "1 operator on the way to 'onnx::reducemean_output::6' without gradient: ImageDecoder "
     "'sinh' (from "
     "'v' "
     "by Mul); freeze 'v'"},
};

static void assert_wish(const bad_wish *wish)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_model *model = read_text(wish->model);
    ot_artifacts *artifacts = NULL;
    ot_status st;

    loss.loss = (ot_loss)wish->loss;
    loss.input = wish->loss_input;
    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    optimizer.name = wish->optimizer;
    options.trainable = wish->trainable ? &wish->trainable : NULL;
    options.n_trainable = wish->trainable != NULL;
    options.frozen = &wish->frozen;
    options.n_frozen = wish->frozen != NULL;
    options.additional_outputs = &wish->output;
    options.n_additional_outputs = wish->output != NULL;
    st = ot_artifacts_generate(model, &options, &artifacts);
    if (st != wish->status || (st != OT_OK && !strstr(ot_error_message(), wish->message)))
        fail_msg("%s: %s '%s', expected %s '%s'", wish->what, ot_status_name(st),
                 st == OT_OK ? "" : ot_error_message(), ot_status_name(wish->status),
                 wish->message);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void wrong_wishes_are_refused_with_the_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(wishes); i++)
        assert_wish(&wishes[i]);
}

static const bad_wish fine[] = {
    // There, one more output becomes the name of the target.
    {"a loss of the first of two outputs", two_outputs, "w", NULL, NULL, NULL, OT_LOSS_MSE,
     "AdamWOptimizer", OT_OK, ""},
    // There, Pad has a gradient in constant mode only.
    {"reflecting borders", padded, NULL, NULL, NULL, NULL, OT_LOSS_MSE, "AdamWOptimizer", OT_OK,
     ""},
    // There as here, what is before an operator without gradient may stay frozen.
    {"frozen before an operator without gradient", before_unknown, "w", "v", NULL, NULL,
     OT_LOSS_MSE, "AdamWOptimizer", OT_OK, ""},
    {"an additional output from inside", two_outputs, "w", NULL, "z", NULL, OT_LOSS_MSE,
     "AdamWOptimizer", OT_OK, ""},
};

static void what_is_an_error_elsewhere_need_not_be_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(fine); i++)
        assert_wish(&fine[i]);
}

// Lists made by a framework name what an exporter has dropped.
static void frozen_names_that_are_unknown_may_be_ignored(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    const char *const frozen[] = {"nope"};
    ot_model *model = read_text(two_outputs);
    ot_artifacts *artifacts;

    (void)state;
    options.frozen = frozen;
    options.n_frozen = 1;
    options.ignore_unknown_frozen = 1;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void lists_without_entries_are_refused(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    const char *const hole[] = {"w", NULL};
    ot_model *model = read_text(two_outputs);
    ot_artifacts *artifacts;

    (void)state;
    options.trainable = hole;
    options.n_trainable = 2;
    assert_fails(ot_artifacts_generate(model, &options, &artifacts), OT_ERR_INVALID,
                 "artifacts options: trainable name 1 is NULL");
    options.trainable = NULL;
    options.n_frozen = -1;
    assert_fails(ot_artifacts_generate(model, &options, &artifacts), OT_ERR_INVALID,
                 "artifacts options: a list of -1 frozen names");
    options.n_frozen = 0;
    options.n_losses = 1;
    assert_fails(ot_artifacts_generate(model, &options, &artifacts), OT_ERR_INVALID,
                 "losses is NULL");
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_wishes_are_refused_with_the_name),
        cmocka_unit_test(what_is_an_error_elsewhere_need_not_be_one),
        cmocka_unit_test(frozen_names_that_are_unknown_may_be_ignored),
        cmocka_unit_test(lists_without_entries_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
