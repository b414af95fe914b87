// SPDX-License-Identifier: Apache-2.0
// What a model's metadata say of its training: written, read, compared, refused.
#include <float.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "onnxtrain/record.h"
#include "train/train.h"

static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "heads (float[N, 2] x) => (float[N, 3] kind, float[N, 1] depth)\n"
                           "<float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[2, 1] v = {1, 2}>\n"
                           "{ kind = MatMul(x, w) depth = MatMul(x, v) }";

typedef struct fixture {
    ot_model *forward, *trained; // `trained` gets the record
    ot_artifacts *artifacts;
    ot_record *record;
    ot_data_options data; // with `batches_options`
    ot_batches_options batches_options;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);

    f->data = (ot_data_options)OT_DATA_OPTIONS_INIT;
    f->batches_options = (ot_batches_options)OT_BATCHES_OPTIONS_INIT;
    f->data.batches = &f->batches_options;
    assert_int_equal(ot_model_load_buffer(text, strlen(text), NULL, &f->forward), OT_OK);
    assert_int_equal(ot_model_load_buffer(text, strlen(text), NULL, &f->trained), OT_OK);
    f->data.forward = f->forward;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;

    ot_record_destroy(f->record);
    ot_artifacts_destroy(f->artifacts);
    ot_model_destroy(f->forward);
    ot_model_destroy(f->trained);
    free(f);
    return 0;
}

static void must(ot_status st)
{
    if (st != OT_OK)
        fail_msg("%s", ot_error_message());
}

static ot_loss_options loss(ot_loss kind, const char *input, const char *target)
{
    ot_loss_options options = OT_LOSS_OPTIONS_INIT;

    options.loss = kind;
    options.input = input;
    options.target = target;
    return options;
}

static void generate(fixture *f, const ot_loss_options *losses, int n)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;

    options.losses = losses;
    options.n_losses = n;
    must(ot_artifacts_generate(f->forward, &options, &f->artifacts));
}

// Writes the record of a training and reads it back.
static void write_and_read(fixture *f)
{
    must(ot_record_write(f->trained, f->artifacts, &f->data));
    ot_record_destroy(f->record);
    must(ot_record_read(f->trained, &f->record));
}

static void assert_key(const fixture *f, const char *key, const char *value)
{
    const char *found = ot_model_metadata(f->trained, key);

    if (value)
        assert_string_equal(found ? found : "nothing", value);
    else
        assert_null(found);
}

static void use_decimal_commas(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE",       "fr_FR.UTF-8",
                                        "fr_FR",       "es_ES.UTF-8", "ru_RU.UTF-8"};

    for (size_t i = 0; i < OT_COUNT(names); i++)
        if (setlocale(LC_ALL, names[i]))
            return;
}

static void numbers_are_the_same_to_the_bit_in_any_locale(void **state)
{
    const double mean[] = {0.1307, 1.0 / 3, -0.0}, std[] = {5e-324, DBL_MAX, 0x1.fffffffffffffp-2};
    fixture *f = *state;
    ot_loss_options term = loss(OT_LOSS_MSE, "depth", "far");
    ot_data_options read = OT_DATA_OPTIONS_INIT;
    ot_batches_options found = OT_BATCHES_OPTIONS_INIT;
    int n;

    term.factor = 1.0 / 3;
    generate(f, &term, 1);
    f->data.scale = 1.0 / 255;
    f->data.mean = mean;
    f->data.std = std;
    f->data.n_channels = 3;
    use_decimal_commas();
    write_and_read(f);
    setlocale(LC_ALL, "C");
    assert_key(f, "onnxtrain.loss", "0.3333333333333333\tmse\tdepth\tfar\n");
    assert_key(f, "onnxtrain.data.scale", "0.00392156862745098");
    assert_key(f, "onnxtrain.data.mean", "0.1307,0.3333333333333333,-0");
    must(ot_record_data(f->record, &read, &found));
    assert_true(read.scale == 1.0 / 255);
    assert_int_equal(read.n_channels, 3);
    assert_memory_equal(read.mean, mean, sizeof mean);
    assert_memory_equal(read.std, std, sizeof std);
    assert_true(ot_record_losses(f->record, &n)->factor == 1.0 / 3);
}

static void all_that_changes_a_loss_is_recorded(void **state)
{
    float weights[] = {1, 0.1f, 2};
    fixture *f = *state;
    ot_loss_options terms[] = {loss(OT_LOSS_CROSS_ENTROPY, "kind", NULL),
                               loss(OT_LOSS_L1, "depth", "far")};
    const ot_loss_options *read;
    ot_tensor *tensor;
    int n;

    must(ot_tensor_wrap(OT_F32, &OT_SHAPE(3), weights, sizeof weights, &tensor));
    terms[0].weight = tensor;
    terms[0].has_ignore_index = 1;
    terms[0].ignore_index = -100;
    terms[0].class_axis = -1;
    terms[0].reduction = OT_REDUCTION_SUM;
    terms[1].factor = 0.5;
    generate(f, terms, 2);
    write_and_read(f);
    assert_key(f, "onnxtrain.loss",
               "1\tcross-entropy reduced sum over -1 ignoring -100 weighted 1,0.1,2\tkind\tlabels\n"
               "0.5\tl1\tdepth\tfar\n");
    read = ot_record_losses(f->record, &n);
    assert_int_equal(n, 2);
    assert_int_equal(read[0].loss, OT_LOSS_CROSS_ENTROPY);
    assert_string_equal(read[0].input, "kind");
    assert_string_equal(read[0].target, "labels");
    assert_int_equal(read[0].reduction, OT_REDUCTION_SUM);
    assert_int_equal(read[0].class_axis, -1);
    assert_true(read[0].has_ignore_index && read[0].ignore_index == -100);
    assert_int_equal(ot_tensor_dtype(read[0].weight), OT_F32);
    assert_memory_equal(ot_tensor_data_const(read[0].weight), weights, sizeof weights);
    assert_true(read[1].loss == OT_LOSS_L1 && read[1].factor == 0.5);
    ot_tensor_destroy(tensor);
}

static void a_loss_that_is_the_first_output_is_recorded_as_none(void **state)
{
    static const char scalar[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                 "f (float[2] x) => (float w_loss) <float[2] w = {1, 2}>\n"
                                 "{ p = Mul(x, w) w_loss = ReduceSum<keepdims = 0>(p) }";
    fixture *f = *state;

    ot_model_destroy(f->forward);
    must(ot_model_load_buffer(scalar, strlen(scalar), NULL, &f->forward));
    f->data.forward = f->forward;
    generate(f, NULL, 0);
    write_and_read(f);
    assert_key(f, "onnxtrain.loss", "1\tnone\tw_loss\n");
}

static void class_names_may_have_any_bytes(void **state)
{
    static const char *const names[] = {"",
                                        "\x01\t\n",
                                        "\"q\"",
                                        "[",
                                        "a,b",
                                        "b\\c",
                                        "na\xc3\xafve",
                                        "\xe2\x82\xac",
                                        "\xf0\x9f\x8d\x8b",
                                        "\xff\x80"};
    fixture *f = *state;
    ot_loss_options term = loss(OT_LOSS_CROSS_ENTROPY, "kind", NULL);
    ot_data_options read = OT_DATA_OPTIONS_INIT;
    ot_batches_options found = OT_BATCHES_OPTIONS_INIT;

    generate(f, &term, 1);
    f->batches_options.class_names = names;
    f->batches_options.n_classes = OT_COUNT(names);
    write_and_read(f);
    assert_key(
        f, "onnxtrain.classes",
        "[\"\",\"\\u0001\\u0009\\u000a\",\"\\\"q\\\"\",\"[\",\"a,b\",\"b\\\\c\",\"na\xc3\xafve\","
        "\"\xe2\x82\xac\",\"\xf0\x9f\x8d\x8b\",\"\\udcff\\udc80\"]");
    must(ot_record_data(f->record, &read, &found));
    assert_int_equal(found.n_classes, OT_COUNT(names));
    for (size_t i = 0; i < OT_COUNT(names); i++)
        assert_string_equal(found.class_names[i], names[i]);
}

static void json_of_others_is_read(void **state)
{
    fixture *f = *state;
    ot_data_options read = OT_DATA_OPTIONS_INIT;
    ot_batches_options found = OT_BATCHES_OPTIONS_INIT;

    must(ot_model_set_metadata(f->trained, "onnxtrain.classes",
                               " [ \"\\u0041\\/\" ,\n\"b\\u00e9\", \"\\ud83c\\udf4b\\n\" ] "));
    must(ot_record_read(f->trained, &f->record));
    must(ot_record_data(f->record, &read, &found));
    assert_int_equal(found.n_classes, 3);
    assert_string_equal(found.class_names[0], "A/");
    assert_string_equal(found.class_names[1], "b\xc3\xa9");
    assert_string_equal(found.class_names[2], "\xf0\x9f\x8d\x8b\n");
    assert_true(read.scale == 1 && !read.mean);
}

static void hostile_metadata_are_refused_by_key(void **state)
{
    static const struct {
        const char *key, *value, *message;
    } cases[] = {
        {"onnxtrain.loss", "1\thinge\ty\tt\n", "'onnxtrain.loss': line 1: 'hinge' is not a loss"},
        {"onnxtrain.loss", "nan\tmse\ty\tt\n", "'nan' is not a weight"},
        {"onnxtrain.loss", "1\tmse\ty\tt\n1\tmse\n", "line 2: lacks"},
        {"onnxtrain.loss", "1\tmse\ty\tt", "line 1 has no end"},
        {"onnxtrain.loss", "1\tmse\ty\tt\tu\n", "has 2 targets, expected one"},
        {"onnxtrain.loss", "1\tmse\ty\n", "has 0 targets, expected one"},
        {"onnxtrain.loss", "1\tcross-entropy over 2\ty\tt\n", "'over 2' says nothing of a loss"},
        {"onnxtrain.loss", "1\tcross-entropy ignoring\ty\tt\n", "'ignoring' lacks its value"},
        {"onnxtrain.loss", "1\tcross-entropy ignoring 1e9\ty\tt\n", "'ignoring 1e9'"},
        {"onnxtrain.loss", "1\tcross-entropy weighted 1,-2\ty\tt\n", "'-2' is not a class weight"},
        {"onnxtrain.loss", "1\tcross-entropy weighted 1,,2\ty\tt\n", "'' is not a class weight"},
        {"onnxtrain.data.scale", "", "'onnxtrain.data.scale': '' is not a finite number"},
        {"onnxtrain.data.scale", "1,2", "has 2 numbers, expected one"},
        {"onnxtrain.data.scale", "inf", "'inf' is not a finite number"},
        {"onnxtrain.data.mean", "1,x", "'onnxtrain.data.mean': 'x' is not a finite number"},
        {"onnxtrain.data.std", "1,0", "'onnxtrain.data.std': 0 is not above 0"},
        {"onnxtrain.classes", "{}", "'onnxtrain.classes': is not a JSON list of strings"},
        {"onnxtrain.classes", "[]", "is not a JSON list of strings"},
        {"onnxtrain.classes", "[\"a\"", "is not a JSON list of strings"},
        {"onnxtrain.classes", "[\"a\",]", "is not a JSON list of strings"},
        {"onnxtrain.classes", "[\"a\"] x", "is not a JSON list of strings"},
        {"onnxtrain.classes", "[\"a", "is not a JSON list of strings"},
        {"onnxtrain.classes", "[\"\\", "is not a JSON list of strings"},
        {"onnxtrain.classes", "[\"\\u12", "is not a JSON list of strings"},
        {"onnxtrain.classes", "[\"\\u0000\"]", "is not a JSON list of strings"},
        {"onnxtrain.classes", "[\"\\ud800\"]", "is not a JSON list of strings"},
        {"onnxtrain.classes", "[1,2]", "is not a JSON list of strings"},
        {"onnxtrain.classes", "[\"b\",\"a\"]", "has 'a' after 'b'"},
        {"onnxtrain.classes", "[\"a\",\"a\"]", "has 'a' after 'a'"},
    };
    (void)state;

    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_model *model;
        ot_record *record;

        must(ot_model_load_buffer(text, strlen(text), NULL, &model));
        must(ot_model_set_metadata(model, cases[i].key, cases[i].value));
        if (ot_record_read(model, &record) != OT_ERR_FORMAT)
            fail_msg("%s: '%s' is read", cases[i].key, cases[i].value);
        assert_null(record);
        if (!strstr(ot_error_message(), cases[i].message))
            fail_msg("'%s' does not say '%s'", ot_error_message(), cases[i].message);
        ot_model_destroy(model);
    }
}

static void what_is_given_must_be_what_is_recorded(void **state)
{
    const double half[] = {0.5, 0.25}, other[] = {0.5, 0.125}, two = 2, one = 1;
    const ot_reduction sum = OT_REDUCTION_SUM;
    const int axis = -1;
    const int64_t ignored = 7;
    fixture *f = *state;
    ot_loss_options term = loss(OT_LOSS_CROSS_ENTROPY, "kind", NULL), mse, same, elsewhere;
    ot_record_given given = OT_RECORD_GIVEN_INIT;

    generate(f, &term, 1);
    f->data.mean = half;
    f->data.n_channels = 2;
    write_and_read(f);
    assert_string_equal(ot_record_text(f->record), "loss cross-entropy:kind=labels, mean 0.5,0.25");
    mse = loss(OT_LOSS_MSE, NULL, NULL);
    same = loss(OT_LOSS_CROSS_ENTROPY, NULL, NULL);
    elsewhere = loss(OT_LOSS_CROSS_ENTROPY, "depth", NULL);
    assert_int_equal(ot_record_check(f->record, &given), OT_OK);
#define DIFFERS(change, message)                                                                   \
    do {                                                                                           \
        given = (ot_record_given)OT_RECORD_GIVEN_INIT;                                             \
        change;                                                                                    \
        assert_int_equal(ot_record_check(f->record, &given), OT_ERR_INVALID);                      \
        assert_string_equal(ot_error_message(), message);                                          \
        assert_int_equal(ot_record_check(NULL, &given), OT_OK);                                    \
    } while (0)
    DIFFERS((given.losses = &mse, given.n_losses = 1),
            "loss: mse is given, the model was trained with cross-entropy:kind=labels");
    DIFFERS((given.losses = &elsewhere, given.n_losses = 1),
            "loss: cross-entropy:depth is given, the model was trained with "
            "cross-entropy:kind=labels");
    DIFFERS(given.reduction = &sum, "reduction: sum is given, the model was trained with mean");
    DIFFERS(given.class_axis = &axis, "class_axis: -1 is given, the model was trained with 1");
    DIFFERS(given.ignore_index = &ignored,
            "ignore_index: 7 is given, the model was trained with none");
    DIFFERS(given.scale = &two, "scale: 2 is given, the model was trained with 1");
    DIFFERS((given.mean = other, given.n_mean = 2),
            "mean: 0.5,0.125 is given, the model was trained with 0.5,0.25");
    DIFFERS((given.mean = half, given.n_mean = 1),
            "mean: 0.5 is given, the model was trained with 0.5,0.25");
    DIFFERS((given.std = half, given.n_std = 2),
            "std: 0.5,0.25 is given, the model was trained with none");
    given = (ot_record_given)OT_RECORD_GIVEN_INIT;
    given.losses = &same;
    given.n_losses = 1;
    given.scale = &one;
    given.mean = half;
    given.n_mean = 2;
    assert_int_equal(ot_record_check(f->record, &given), OT_OK);
}

// A model that was trained is no record of what is done with its copies.
static void artifacts_say_their_own_loss_and_exports_nothing(void **state)
{
    fixture *f = *state;
    ot_loss_options term = loss(OT_LOSS_MSE, "depth", NULL);
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *unrecorded;

    must(ot_model_set_metadata(f->forward, "onnxtrain.loss", "1\tl1\tdepth\ttarget\n"));
    must(ot_model_set_metadata(f->forward, "onnxtrain.data.scale", "3"));
    must(ot_model_set_metadata(f->forward, "owner", "me"));
    generate(f, &term, 1);
    assert_string_equal(ot_model_metadata(f->artifacts->training, "onnxtrain.loss"),
                        "1\tmse\tdepth\ttarget\n");
    assert_string_equal(ot_model_metadata(f->artifacts->training, "onnxtrain.data.scale"), "3");
    assert_null(ot_model_metadata(f->artifacts->eval, "onnxtrain.loss"));
    assert_null(ot_model_metadata(f->artifacts->eval, "onnxtrain.data.scale"));
    assert_string_equal(ot_model_metadata(f->artifacts->eval, "owner"), "me");
    assert_string_equal(ot_model_metadata(f->forward, "onnxtrain.loss"), "1\tl1\tdepth\ttarget\n");
    options.losses = &term;
    options.n_losses = 1;
    options.unrecorded = 1;
    must(ot_artifacts_generate(f->forward, &options, &unrecorded));
    assert_null(ot_model_metadata(unrecorded->training, "onnxtrain.loss"));
    assert_null(ot_model_metadata(unrecorded->training, "onnxtrain.data.scale"));
    ot_artifacts_destroy(unrecorded);
}

static void a_new_record_takes_the_place_of_the_old(void **state)
{
    const double mean[] = {0.5};
    fixture *f = *state;
    ot_loss_options term = loss(OT_LOSS_MSE, "depth", NULL);

    generate(f, &term, 1);
    f->data.mean = mean;
    write_and_read(f);
    assert_key(f, "onnxtrain.data.mean", "0.5");
    f->data.mean = NULL;
    write_and_read(f);
    assert_key(f, "onnxtrain.data.mean", NULL);
    must(ot_record_write(f->trained, f->artifacts, NULL));
    assert_key(f, "onnxtrain.data.scale", NULL);
    assert_key(f, "onnxtrain.loss", "1\tmse\tdepth\ttarget\n");
}

static void running_out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    static const char *const names[] = {"a", "b"};
    const double mean[] = {0.5};
    fixture *f = *state;
    ot_loss_options term = loss(OT_LOSS_CROSS_ENTROPY, "kind", NULL);
    ot_status st = OT_ERR_NO_MEMORY;

    generate(f, &term, 1);
    f->data.mean = mean;
    f->batches_options.class_names = names;
    f->batches_options.n_classes = 2;
    for (int n = 0; st != OT_OK; n++) {
        ot_record *record = NULL;

        ot__alloc_fail_after(n);
        st = ot_record_write(f->trained, f->artifacts, &f->data);
        if (st == OT_OK)
            st = ot_record_read(f->trained, &record);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        ot_record_destroy(record);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(numbers_are_the_same_to_the_bit_in_any_locale),
        TEST(all_that_changes_a_loss_is_recorded),
        TEST(a_loss_that_is_the_first_output_is_recorded_as_none),
        TEST(class_names_may_have_any_bytes),
        TEST(json_of_others_is_read),
        TEST(hostile_metadata_are_refused_by_key),
        TEST(what_is_given_must_be_what_is_recorded),
        TEST(artifacts_say_their_own_loss_and_exports_nothing),
        TEST(a_new_record_takes_the_place_of_the_old),
        TEST(running_out_of_memory_is_reported_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
