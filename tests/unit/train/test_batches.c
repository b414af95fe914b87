// SPDX-License-Identifier: Apache-2.0
// Which fields the inputs of a session take, and what is held out.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/train.h"

static const char one_input[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "net (float[N, 2] x) => (float[N, 3] y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}>\n"
    "{ y = MatMul(x, w) }";
static const char two_inputs[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                 "net (float[N, 2] x, float[N, 1] offset) => (float[N, 3] y)\n"
                                 "<float[2, 3] w = {1, 2, 3, 4, 5, 6}>\n"
                                 "{ m = MatMul(x, w) y = Add(m, offset) }";
// Rows that differ in a constant: no other number of them makes sense.
static const char three_rows[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                 "net (float[3, 2] x) => (float[3, 3] y)\n"
                                 "<float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[3, 1] r = {1, 2, 3}>\n"
                                 "{ m = MatMul(x, w) y = Mul(m, r) }";
static const char csv[] = "a,b,kind\n1,2,red\n3,4,blue\n5,6,red\n7,8,green\n";

typedef struct fixture {
    ot_model *forward;
    ot_artifacts *artifacts;
    ot_session *session;
    ot_dataset *dataset;
    ot_batches *training, *validation;
    ot_data_options options; // with `batches_options`
    ot_batches_options batches_options;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);

    f->options = (ot_data_options)OT_DATA_OPTIONS_INIT;
    f->batches_options = (ot_batches_options)OT_BATCHES_OPTIONS_INIT;
    f->options.batches = &f->batches_options;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;

    ot_batches_destroy(f->training);
    ot_batches_destroy(f->validation);
    ot_dataset_destroy(f->dataset);
    ot_session_destroy(f->session);
    ot_artifacts_destroy(f->artifacts);
    ot_model_destroy(f->forward);
    free(f);
    return 0;
}

// A session with cross entropy over a model, and the rows of a CSV unless `data` is NULL.
static void open(fixture *f, const char *model, const char *data)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;

    options.losses = &loss;
    options.n_losses = 1;
    assert_int_equal(ot_model_load_buffer(model, strlen(model), NULL, &f->forward), OT_OK);
    assert_int_equal(ot_artifacts_generate(f->forward, &options, &f->artifacts), OT_OK);
    assert_int_equal(ot_session_create_from_artifacts(f->artifacts, NULL, &f->session), OT_OK);
    f->options.forward = f->forward;
    if (data != NULL)
        assert_int_equal(ot__dataset_open_bytes(data, strlen(data), NULL, &f->dataset), OT_OK);
}

static void make(fixture *f, const ot_dataset *validation)
{
    if (ot_train_batches(f->session, f->dataset, validation, &f->options, &f->training,
                         &f->validation) != OT_OK)
        fail_msg("%s", ot_error_message());
}

static void assert_refused(fixture *f, const char *message)
{
    assert_int_equal(
        ot_train_batches(f->session, f->dataset, NULL, &f->options, &f->training, &f->validation),
        OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), message));
    assert_null(f->training);
    assert_null(f->validation);
}

static void assert_values(const ot_tensor *tensor, const double *expected, int n)
{
    assert_int_equal(ot_tensor_count(tensor), n);
    for (int i = 0; i < n; i++)
        assert_true(ot__tensor_get_f64(tensor, i) == expected[i]);
}

static void of_a_csv_the_last_column_is_the_label_and_an_input_takes_the_rest(void **state)
{
    fixture *f = *state;
    const ot_tensor *batch[2];
    const char *const *classes;
    int n;

    open(f, one_input, csv);
    make(f, NULL);
    assert_int_equal(ot_train_target(f->session, &f->options), 1);
    assert_null(f->validation);
    assert_int_equal(ot_batches_next(f->training, batch, OT_COUNT(batch)), OT_OK);
    assert_values(batch[0], (const double[]){1, 2, 3, 4, 5, 6, 7, 8}, 8);
    assert_values(batch[1], (const double[]){2, 0, 2, 1}, 4);
    classes = ot_batches_class_names(f->training, &n);
    assert_int_equal(n, 3);
    assert_string_equal(classes[0], "blue");
}

static void a_label_may_be_any_column_by_name_or_position(void **state)
{
    fixture *f = *state;
    const ot_tensor *batch[2];

    open(f, one_input, "class,p,q\n1,10,20\n2,30,40\n");
    f->options.label = "#0";
    f->options.scale = 0.5;
    make(f, NULL);
    assert_int_equal(ot_batches_next(f->training, batch, OT_COUNT(batch)), OT_OK);
    assert_values(batch[0], (const double[]){5, 10, 15, 20}, 4);
    assert_values(batch[1], (const double[]){1, 2}, 2); // no scale for targets
}

static void what_is_bound_goes_before_names_and_the_rest(void **state)
{
    fixture *f = *state;
    const char *const bind[] = {"offset=b", "x=kind:a"};
    const ot_tensor *batch[3];

    open(f, two_inputs, "offset,b,kind,a,labels\n1,2,3,4,0\n5,6,7,8,1\n");
    f->options.bind = bind;
    f->options.n_bind = 2;
    make(f, NULL);
    assert_int_equal(ot_batches_next(f->training, batch, OT_COUNT(batch)), OT_OK);
    assert_values(batch[0], (const double[]){3, 4, 7, 8}, 4);
    assert_values(batch[1], (const double[]){2, 6}, 2);
    assert_values(batch[2], (const double[]){0, 1}, 2);
}

static void arrays_go_to_the_inputs_of_their_names_and_then_in_order(void **state)
{
    fixture *f = *state;
    const char *const names[] = {"second", "offset", "first"};
    double pair[] = {1, 2, 3, 4}, offset[] = {5, 6};
    int64_t kinds[] = {2, 1};
    ot_tensor *tensors[3];
    const ot_tensor *batch[3];

    assert_int_equal(ot_tensor_wrap(OT_F64, &OT_SHAPE(2, 2), pair, sizeof pair, &tensors[0]), 0);
    assert_int_equal(ot_tensor_wrap(OT_F64, &OT_SHAPE(2), offset, sizeof offset, &tensors[1]), 0);
    assert_int_equal(ot_tensor_wrap(OT_I64, &OT_SHAPE(2), kinds, sizeof kinds, &tensors[2]), 0);
    open(f, two_inputs, NULL);
    assert_int_equal(
        ot_dataset_from_tensors(names, (const ot_tensor *const *)tensors, 3, &f->dataset), OT_OK);
    make(f, NULL);
    assert_int_equal(ot_batches_next(f->training, batch, OT_COUNT(batch)), OT_OK);
    assert_values(batch[0], pair, 4);
    assert_values(batch[1], offset, 2);
    assert_values(batch[2], (const double[]){2, 1}, 2);
    for (int i = 0; i < 3; i++)
        ot_tensor_destroy(tensors[i]);
}

// Arrays of one number a row are no columns of a CSV: two of them are not one input of two.
static void arrays_of_numbers_are_no_columns(void **state)
{
    fixture *f = *state;
    const char *const names[] = {"p", "q", "labels"};
    double numbers[] = {1, 2};
    ot_tensor *tensor;

    assert_int_equal(ot_tensor_wrap(OT_F64, &OT_SHAPE(2), numbers, sizeof numbers, &tensor), 0);
    open(f, one_input, NULL);
    assert_int_equal(ot_dataset_from_tensors(
                         names, (const ot_tensor *const[]){tensor, tensor, tensor}, 3, &f->dataset),
                     OT_OK);
    assert_refused(f, "input 'x' wants rows of [2], field 'p' has one number a row");
    ot_tensor_destroy(tensor);
}

static void the_rows_held_out_are_those_not_trained_on(void **state)
{
    fixture *f = *state;
    ot__buf text = {0};
    const ot_tensor *batch[2];
    int seen[40] = {0}, n_validation = 0;

    ot__buf_text(&text, "a,b,kind\n");
    for (int i = 0; i < 40; i++)
        ot__buf_printf(&text, "%d,0,%d\n", i, i % 3);
    open(f, one_input, text.data);
    ot__buf_deinit(&text);
    f->options.split = 0.25;
    f->batches_options.shuffle = 1;
    f->batches_options.batch_size = 7;
    make(f, NULL);
    assert_int_equal(ot_batches_rows(f->training), 30);
    for (int k = 0; k < 2; k++)
        for (;;) {
            assert_int_equal(
                ot_batches_next(k ? f->validation : f->training, batch, OT_COUNT(batch)), OT_OK);
            if (batch[0] == NULL)
                break;
            for (int64_t i = 0; i < ot_tensor_count(batch[1]); i++) {
                seen[(int)ot__tensor_get_f64(batch[0], 2 * i)]++;
                n_validation += k;
            }
        }
    assert_int_equal(n_validation, 10);
    for (int i = 0; i < 40; i++)
        assert_int_equal(seen[i], 1);
}

static void validation_data_that_lack_a_class_keep_the_numbers(void **state)
{
    fixture *f = *state;
    static const char other[] = "a,b,kind\n1,1,red\n1,1,green\n";
    const ot_tensor *batch[2];
    ot_dataset *validation;

    open(f, one_input, csv);
    assert_int_equal(ot__dataset_open_bytes(other, strlen(other), NULL, &validation), OT_OK);
    make(f, validation);
    ot_batches_destroy(f->training); // the others live on
    f->training = NULL;
    assert_int_equal(ot_batches_next(f->validation, batch, OT_COUNT(batch)), OT_OK);
    assert_values(batch[1], (const double[]){2, 1}, 2);
    ot_batches_destroy(f->validation);
    f->validation = NULL;
    ot_dataset_destroy(validation);
}

static void what_finds_no_field_is_told(void **state)
{
    static const char *const unknown[] = {"z=a"}, *const no_pair[] = {"x"};
    fixture *f = *state;

    open(f, two_inputs, csv);
    assert_refused(f, "nothing in the data is left for input 'offset'");
    f->options.label = "class";
    assert_refused(f, "label: the data has no field 'class'");
    f->options.label = NULL;
    f->options.n_bind = 1;
    f->options.bind = unknown;
    assert_refused(f, "bind: there is no input 'z'");
    f->options.bind = no_pair;
    assert_refused(f, "bind: 'x' is not INPUT=FIELD");
}

static void splits_and_classes_that_cannot_be_are_told(void **state)
{
    fixture *f = *state;

    open(f, one_input, csv);
    f->options.split = 0.05;
    assert_refused(f, "split: 0.05 of 4 rows leaves none to validate on");
    f->options.split = 3;
    assert_refused(f, "split: 3 of 4 rows leaves none to train on");
    f->options.split = -1;
    assert_refused(f, "split: -1, expected 0 to 1");
    f->options.split = 0;
    f->batches_options.n_classes = 2;
    assert_refused(f, "the labels are 3 different strings, the model has 2 classes");
    f->batches_options.n_classes = 0;
    f->options.n_bind = 1;
    assert_refused(f, "0 targets and 1 bindings, of which some are missing");
    f->options.n_bind = 0;
    f->options.n_probabilities = 1;
    assert_refused(f, "1 probabilities, of which some are missing");
    f->options.n_probabilities = 0;
    f->options.mean = (const double[]){1};
    f->options.n_channels = 0;
    assert_refused(f, "means or deviations of 0 channels");
}

static void failing_allocations_lose_nothing(void **state)
{
    fixture *f = *state;
    ot_status st = OT_ERR_NO_MEMORY;

    open(f, one_input, csv);
    f->options.split = 0.5;
    for (int64_t n = 0; st != OT_OK; n++) {
        ot__alloc_fail_after(n);
        st = ot_train_batches(f->session, f->dataset, NULL, &f->options, &f->training,
                              &f->validation);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        assert_int_equal(st == OT_OK, f->training != NULL && f->validation != NULL);
    }
}

static void missing_handles_are_refused(void **state)
{
    fixture *f = *state;

    assert_refused(f, "ot_train_batches: session is NULL");
    assert_int_equal(ot_train_target(NULL, NULL), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void a_model_of_one_number_of_rows_gets_that_and_no_short_batch(void **state)
{
    fixture *f = *state;
    const ot_tensor *batch[2];

    open(f, three_rows, csv);
    make(f, f->dataset);
    assert_int_equal(ot_batches_count(f->training), 1);
    assert_int_equal(ot_batches_count(f->validation), 1);
    assert_int_equal(ot_batches_next(f->training, batch, OT_COUNT(batch)), OT_OK);
    assert_int_equal(batch[0]->shape.dim[0], 3);
    assert_int_equal(ot_batches_next(f->training, batch, OT_COUNT(batch)), OT_OK);
    assert_null(batch[0]);
}

static void another_number_is_refused_with_the_remedy(void **state)
{
    fixture *f = *state;

    open(f, three_rows, csv);
    f->batches_options.batch_size = 4;
    assert_refused(f, "batch-size: 4, but input 'x' takes 3 rows and no other number; export with "
                      "dynamic_axes or dynamic_shapes for another");
    f->batches_options.batch_size = 3;
    make(f, NULL);
}

static void fewer_rows_than_the_model_takes_are_refused(void **state)
{
    fixture *f = *state;

    open(f, three_rows, "a,b,kind\n1,2,red\n3,4,blue\n");
    assert_refused(f, "2 rows are fewer than the 3 that the model takes at once");
}

static void any_number_of_rows_is_32_at_most_where_nothing_is_said(void **state)
{
    fixture *f = *state;
    char text[4096] = "a,b,kind\n";

    for (int i = 0; i < 40; i++)
        strcat(text, "1,2,red\n");
    open(f, one_input, text);
    make(f, NULL);
    assert_int_equal(ot_batches_count(f->training), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(of_a_csv_the_last_column_is_the_label_and_an_input_takes_the_rest),
        TEST(a_label_may_be_any_column_by_name_or_position),
        TEST(what_is_bound_goes_before_names_and_the_rest),
        TEST(arrays_go_to_the_inputs_of_their_names_and_then_in_order),
        TEST(arrays_of_numbers_are_no_columns),
        TEST(the_rows_held_out_are_those_not_trained_on),
        TEST(validation_data_that_lack_a_class_keep_the_numbers),
        TEST(what_finds_no_field_is_told),
        TEST(splits_and_classes_that_cannot_be_are_told),
        TEST(failing_allocations_lose_nothing),
        TEST(missing_handles_are_refused),
        cmocka_unit_test_setup_teardown(a_model_of_one_number_of_rows_gets_that_and_no_short_batch,
                                        setup, teardown),
        TEST(another_number_is_refused_with_the_remedy),
        cmocka_unit_test_setup_teardown(fewer_rows_than_the_model_takes_are_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(any_number_of_rows_is_32_at_most_where_nothing_is_said,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
