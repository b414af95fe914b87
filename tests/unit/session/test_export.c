// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"
#include "mlp.h"
#include "session/session_internal.h"

typedef struct fixture {
    ot_model *training, *eval, *exported;
    ot_checkpoint *checkpoint;
    ot_session *session;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);

    *state = f;
    f->training = mlp_model(mlp_training_text, "double");
    f->eval = mlp_model(mlp_eval_text, "double");
    f->checkpoint = mlp_checkpoint(OT_F64);
    return ot_session_create(f->training, f->eval, NULL, f->checkpoint, NULL, &f->session) == OT_OK
               ? 0
               : -1;
}

static void close_session(fixture *f)
{
    ot_session_destroy(f->session);
    ot_checkpoint_destroy(f->checkpoint);
    ot_model_destroy(f->training);
    ot_model_destroy(f->eval);
    memset(f, 0, offsetof(fixture, exported));
    f->checkpoint = NULL;
    f->session = NULL;
}

static int teardown(void **state)
{
    fixture *f = *state;

    ot_model_destroy(f->exported);
    f->exported = NULL;
    close_session(f);
    free(f);
    return 0;
}

static void export(fixture *f, const char *const *names, int n_names)
{
    if (ot_session_export(f->session, names, n_names, &f->exported) != OT_OK)
        fail_msg("%s", ot_error_message());
}

static void the_default_are_the_scores_without_the_labels(void **state)
{
    fixture *f = *state;
    ot_dtype dtype;
    ot_shape shape;

    export(f, NULL, 0);
    assert_int_equal(ot_model_input_count(f->exported), 1);
    assert_string_equal(ot_model_input_name(f->exported, 0), "x");
    assert_int_equal(ot_model_output_count(f->exported), 1);
    assert_string_equal(ot_model_output_name(f->exported, 0), "output-0");
    assert_int_equal(ot_model_value_info(f->exported, "output-0", &dtype, &shape), OT_OK);
    assert_int_equal(dtype, OT_F64);
    assert_int_equal(shape.ndim, 2);
    assert_int_equal(shape.dim[0], -1);
    assert_int_equal(shape.dim[1], CLASSES);
}

static void the_exported_model_computes_with_the_parameters_it_was_given(void **state)
{
    fixture *f = *state;
    ot_tensor *inputs[2], *y;
    mlp_reference r;

    export(f, NULL, 0);
    mlp_reference_init(&r);
    memset(ot__ckpt_find(f->checkpoint, "fc2.bias")->value->data, 0, CLASSES * sizeof(double));
    close_session(f);
    mlp_batch(OT_F64, 0, ROWS, inputs);

    const ot_tensor *const in[] = {inputs[0]};

    assert_int_equal(ot_model_run(f->exported, NULL, in, 1, &y, 1), OT_OK);
    for (int row = 0; row < ROWS; row++) {
        double h[HIDDEN], z[CLASSES];

        mlp_scores(&r, 0, row, h, z);
        for (int k = 0; k < CLASSES; k++)
            assert_true(fabs(((double *)ot_tensor_data(y))[row * CLASSES + k] - z[k]) < 1e-14);
    }
    ot_tensor_destroy(y);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(inputs[i]);
}

static void any_value_inside_can_be_an_output(void **state)
{
    fixture *f = *state;
    const char *const names[] = {"a", "log_prob"};

    export(f, names, 2);
    assert_int_equal(ot_model_output_count(f->exported), 2);
    assert_string_equal(ot_model_output_name(f->exported, 0), "a");
    assert_int_equal(ot_model_input_count(f->exported), 2); // the loss needs the labels
}

static void parameters_that_are_not_needed_are_left_out(void **state)
{
    fixture *f = *state;
    const char *const names[] = {"h"};

    export(f, names, 1);
    assert_int_equal(f->exported->graph->n_initializers, 2);
    assert_int_equal(f->exported->graph->n_nodes, 1);
}

static void a_view_is_the_same_model_over_the_parameters_themselves(void **state)
{
    fixture *f = *state;
    ot__buf copied = {0}, viewed = {0};
    ot_model *view;
    const ot_value *weight;

    export(f, NULL, 0);
    assert_int_equal(ot_session_export_view(f->session, NULL, 0, &view), OT_OK);
    assert_int_equal(ot__onnx_write(f->exported, &copied), OT_OK);
    assert_int_equal(ot__onnx_write(view, &viewed), OT_OK);
    assert_int_equal(copied.length, viewed.length);
    assert_memory_equal(copied.data, viewed.data, copied.length);
    weight = ot__graph_find(view->graph, "fc1.weight");
    assert_ptr_equal(weight->constant->data,
                     ot__ckpt_find(f->checkpoint, "fc1.weight")->value->data);
    weight = ot__graph_find(f->exported->graph, "fc1.weight");
    assert_ptr_not_equal(weight->constant->data,
                         ot__ckpt_find(f->checkpoint, "fc1.weight")->value->data);
    ot_model_destroy(view);
    ot__buf_deinit(&copied);
    ot__buf_deinit(&viewed);
}

static void assert_outputs(const ot_model *model, const char *const *names, int n)
{
    assert_int_equal(ot_model_output_count(model), n);
    for (int i = 0; i < n; i++)
        assert_string_equal(ot_model_output_name(model, i), names[i]);
}

// As they stand in a run's folder.
static void an_eval_model_and_a_checkpoint_are_enough(void **state)
{
    fixture *f = *state;
    static const char *const two[] = {"output-0", "h"}, *const one[] = {"h"};

    ot_session_destroy(f->session);
    f->session = NULL;
    assert_int_equal(ot_model_set_metadata(f->eval, "onnxtrain.outputs", "output-0\nh"), OT_OK);
    assert_int_equal(ot_model_set_metadata(f->eval, "mine", "stays"), OT_OK);
    assert_int_equal(ot_model_export_view(f->eval, f->checkpoint, NULL, 0, &f->exported), OT_OK);
    assert_outputs(f->exported, two, 2);
    assert_null(ot_model_metadata(f->exported, "onnxtrain.outputs"));
    assert_string_equal(ot_model_metadata(f->exported, "mine"), "stays");
    ot_model_destroy(f->exported);
    assert_int_equal(ot_model_export_view(f->eval, f->checkpoint, one, 1, &f->exported), OT_OK);
    assert_outputs(f->exported, one, 1);
    ot_model_destroy(f->exported);
    f->exported = NULL;
    assert_int_equal(ot_model_set_metadata(f->eval, "onnxtrain.outputs", "h\n"), OT_OK);
    assert_int_equal(ot_model_export_view(f->eval, f->checkpoint, NULL, 0, &f->exported),
                     OT_ERR_NOT_FOUND);
    assert_null(f->exported);
}

static void so_it_is_not_with_the_checkpoint_of_another_model(void **state)
{
    fixture *f = *state;
    float value = 1;
    ot_checkpoint *other;
    ot_tensor *t;

    assert_int_equal(ot_checkpoint_create(&other), OT_OK);
    assert_int_equal(ot_tensor_wrap(OT_F32, &OT_SHAPE(1), &value, sizeof value, &t), OT_OK);
    assert_int_equal(ot_checkpoint_add_parameter(other, "mine", t, 1), OT_OK);
    assert_int_equal(ot_model_export_view(f->eval, other, NULL, 0, &f->exported), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "none of its 1 parameters ('mine', ...) is among"));
    assert_null(f->exported);
    ot_tensor_destroy(t);
    ot_checkpoint_destroy(other);
}

static void wrong_names_are_refused(void **state)
{
    fixture *f = *state;
    const char *const unknown[] = {"nothing"}, *const twice[] = {"a", "a"};

    assert_int_equal(ot_session_export(f->session, unknown, 1, &f->exported), OT_ERR_NOT_FOUND);
    assert_string_equal(ot_error_message(), "the eval model computes no value 'nothing'");
    assert_int_equal(ot_session_export(f->session, twice, 2, &f->exported), OT_ERR_INVALID);
    assert_int_equal(ot_session_export(f->session, unknown, 0, &f->exported), OT_ERR_INVALID);
    assert_null(f->exported);
}

static void assert_default(const char *text, const char *const *expected, int n)
{
    ot_model *model = mlp_model(text, "float");
    ot_checkpoint *checkpoint = mlp_checkpoint(OT_F32);
    ot__compiled_model program;
    const char **names;
    int n_names;

    assert_int_equal(ot__compiled_model_create(&program, "eval model", model, NULL), OT_OK);
    assert_int_equal(ot__compiled_model_sort(&program, checkpoint), OT_OK);
    if (ot__export_outputs(&program, &names, &n_names) != OT_OK)
        fail_msg("%s", ot_error_message());
    assert_int_equal(n_names, n);
    for (int i = 0; i < n; i++)
        assert_string_equal(names[i], expected[i]);
    ot__free(names);
    ot__compiled_model_deinit(&program);
    ot_checkpoint_destroy(checkpoint);
}

// Binary cross entropy in its stable form reads the scores three times, twice by way of other
// nodes.
static void what_only_prepares_the_scores_for_the_loss_is_no_output(void **state)
{
    static const char text[] =
        MLP_HEAD "eval (T[N,3] x, T[N,4] target, T[3,4] \"fc1.weight\") => (T loss) {\n"
                 "  z = MatMul(x, \"fc1.weight\")\n"
                 "  positive = Relu(z)\n"
                 "  size = Abs(z)\n"
                 "  negative = Neg(size)\n"
                 "  soft = Softplus(negative)\n"
                 "  product = Mul(z, target)\n"
                 "  rest = Sub(positive, product)\n"
                 "  all = Add(rest, soft)\n"
                 "  loss = ReduceMean<keepdims = 0>(all)\n"
                 "}";

    (void)state;
    assert_default(text, (const char *const[]){"z"}, 1);
}

static void outputs_beside_the_loss_are_taken_when_there_are_any(void **state)
{
    static const char text[] =
        MLP_HEAD "eval (T[N,3] x, T[N,4] target, T[3,4] \"fc1.weight\") => (T loss, T[N,4] p) {\n"
                 "  z = MatMul(x, \"fc1.weight\")\n"
                 "  p = Sigmoid(z)\n"
                 "  d = Sub(z, target)\n"
                 "  s = Mul(d, d)\n"
                 "  loss = ReduceMean<keepdims = 0>(s)\n"
                 "}";

    (void)state;
    assert_default(text, (const char *const[]){"p"}, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_default_are_the_scores_without_the_labels),
        TEST(the_exported_model_computes_with_the_parameters_it_was_given),
        TEST(any_value_inside_can_be_an_output),
        TEST(parameters_that_are_not_needed_are_left_out),
        TEST(a_view_is_the_same_model_over_the_parameters_themselves),
        TEST(an_eval_model_and_a_checkpoint_are_enough),
        TEST(so_it_is_not_with_the_checkpoint_of_another_model),
        TEST(wrong_names_are_refused),
        cmocka_unit_test(what_only_prepares_the_scores_for_the_loss_is_no_output),
        cmocka_unit_test(outputs_beside_the_loss_are_taken_when_there_are_any),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
