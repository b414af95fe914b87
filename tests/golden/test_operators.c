// SPDX-License-Identifier: Apache-2.0
// Models whose training other runtimes get wrong without a word, through artifacts and session in
// f64: the inference loss is that of independent evaluators (generate_operators.py), and the
// gradient of every trained element is the central difference of the training loss.
#include "golden.h"

static const double step_size = 1e-5, tolerance = 1e-7;

typedef struct run {
    char *recorded;
    ot_artifacts *artifacts;
    ot_checkpoint *checkpoint;
    ot_session *session;
    ot_tensor *x, *labels;
} run;

static void begin(run *r, const char *name)
{
    static const char *const all[] = {"*"};
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = load_model(name, OT_F64);
    long rows;

    options.losses = &loss;
    options.n_losses = 1;
    if (strcmp(name, "pow") == 0) { // by itself an exponent does not train
        options.trainable = all;
        options.n_trainable = 1;
    }
    r->recorded = read_text(name, ".txt");
    rows = header_number(r->recorded, "batch ");
    if (ot_artifacts_generate(model, &options, &r->artifacts) != OT_OK ||
        ot_session_create_from_artifacts(r->artifacts, NULL, &r->session) != OT_OK)
        fail_msg("%s: %s", name, ot_error_message());
    ot_model_destroy(model);
    r->checkpoint = ot_artifacts_checkpoint(r->artifacts);
    r->x = make_input(r->session, 0, 0, rows, 1);
    r->labels =
        make_input(r->session, 1, 0, rows, (uint32_t)header_number(r->recorded, "classes "));
}

static void end(run *r)
{
    ot_session_destroy(r->session);
    ot_artifacts_destroy(r->artifacts);
    ot_tensor_destroy(r->x);
    ot_tensor_destroy(r->labels);
    free(r->recorded);
}

static double loss_of(run *r, ot_mode mode)
{
    const ot_tensor *const inputs[] = {r->x, r->labels};
    ot_tensor *loss = NULL;
    ot_status st;
    double value;

    ot_session_reset_gradients(r->session);
    st = mode == OT_MODE_TRAIN ? ot_session_train_step(r->session, inputs, 2, &loss, 1)
                               : ot_session_eval_step(r->session, inputs, 2, &loss, 1);
    if (st != OT_OK)
        fail_msg("%s", ot_error_message());
    value = element(loss, 0);
    ot_tensor_destroy(loss);
    return value;
}

static double loss_with(run *r, const char *name, ot_tensor *value, int64_t i, double x)
{
    double *place = (double *)ot_tensor_data(value) + i;
    const double before = *place;
    double loss;

    *place = x;
    assert_int_equal(ot_checkpoint_set_parameter(r->checkpoint, name, value), OT_OK);
    loss = loss_of(r, OT_MODE_TRAIN);
    *place = before;
    assert_int_equal(ot_checkpoint_set_parameter(r->checkpoint, name, value), OT_OK);
    return loss;
}

static void check_parameter(run *r, const char *name, ot_tensor *value, const ot_tensor *gradient)
{
    bool is_zero = true;

    for (int64_t i = 0; i < ot_tensor_count(value); i++) {
        const double x = element(value, i), found = element(gradient, i);
        const double difference = loss_with(r, name, value, i, x + step_size) -
                                  loss_with(r, name, value, i, x - step_size);
        const double expected = difference / (2 * step_size);

        if (!(fabs(found - expected) <= tolerance * fmax(1.0, fabs(expected))))
            fail_msg("gradient of '%s', element %d, is %.12g; the difference quotient is %.12g",
                     name, (int)i, found, expected);
        is_zero = is_zero && found == 0;
    }
    if (is_zero)
        fail_msg("the gradient of '%s' is zero", name);
}

static void check_gradients(run *r)
{
    const int n = ot_checkpoint_parameter_count(r->checkpoint);
    int n_trained = 0;

    for (int i = 0; i < n; i++) {
        const char *name = ot_checkpoint_parameter_name(r->checkpoint, i);
        ot_tensor *value, *gradient;

        if (!ot_checkpoint_parameter_trainable(r->checkpoint, name))
            continue;
        (void)loss_of(r, OT_MODE_TRAIN);
        assert_int_equal(ot_checkpoint_get_gradient(r->checkpoint, name, &gradient), OT_OK);
        assert_int_equal(ot_checkpoint_get_parameter(r->checkpoint, name, &value), OT_OK);
        check_parameter(r, name, value, gradient);
        ot_tensor_destroy(value);
        ot_tensor_destroy(gradient);
        n_trained++;
    }
    assert_in_range(n_trained, 2, n);
}

static void trains_right(const char *name)
{
    double expected;
    run r;

    begin(&r, name);
    read_numbers(find_line(r.recorded, "inference", "loss"), &expected, 1);
    if (!(fabs(loss_of(&r, OT_MODE_EVAL) - expected) <= 1e-9))
        fail_msg("%s: the inference loss is %.12g, expected %.12g", name, loss_of(&r, OT_MODE_EVAL),
                 expected);
    check_gradients(&r);
    end(&r);
}

static void split_with_outputs_that_nobody_reads_trains_right(void **state)
{
    (void)state;
    trains_right("split");
}

static void where_with_broadcast_branches_trains_right(void **state)
{
    (void)state;
    trains_right("where");
}

static void pow_with_a_trained_exponent_trains_right(void **state)
{
    (void)state;
    trains_right("pow");
}

static void gelu_in_the_tanh_form_trains_right(void **state)
{
    (void)state;
    trains_right("gelu_tanh");
}

static void convolutions_with_same_padding_train_right(void **state)
{
    (void)state;
    trains_right("conv_same");
}

static void
batch_normalization_of_opset_13_trains_right_and_evaluates_by_stored_statistics(void **state)
{
    (void)state;
    trains_right("batch_norm_13");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split_with_outputs_that_nobody_reads_trains_right),
        cmocka_unit_test(where_with_broadcast_branches_trains_right),
        cmocka_unit_test(pow_with_a_trained_exponent_trains_right),
        cmocka_unit_test(gelu_in_the_tanh_form_trains_right),
        cmocka_unit_test(convolutions_with_same_padding_train_right),
        cmocka_unit_test(
            batch_normalization_of_opset_13_trains_right_and_evaluates_by_stored_statistics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
