// SPDX-License-Identifier: Apache-2.0
// What can be wrong with a checkpoint file, and with what is asked of a checkpoint: one row each.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/ckpt.h"
#include "unit/base/temporary_folder.h"
#include "unit/ckpt/worked_example.h"

enum { AT_IDENTIFIER = 4, AT_VERSION = 28 };

static void assert_error(ot_status found, ot_status expected, const char *message)
{
    if (found != expected || strstr(ot_error_message(), message) == NULL)
        fail_msg("%s '%s', expected %s '%s'", ot_status_name(found), ot_error_message(),
                 ot_status_name(expected), message);
}

// ---- loading ----

typedef struct bad_file {
    const char *what; // for the reader
    size_t n_bytes;   // of the good file
    size_t at;        // a byte changed
    uint8_t value;
    const char *message;
} bad_file;

static const bad_file bad_files[] = {
    {"empty", 0, 0, 0, "has 0 bytes, too few for a checkpoint"},
    {"cut in the identifier", 6, 0, 0, "has 6 bytes, too few for a checkpoint"},
    {"cut in the elements", 138, 0, 0, "leaves the 138 bytes of the file"},
    {"another identifier", 144, AT_IDENTIFIER, 'X',
     "is not a checkpoint: bytes 4 to 7 are not 'ODTC'"},
    {"version 3", 144, AT_VERSION, 3, "is a checkpoint of version 3, expected 1 to 2"},
    {"version 0", 144, AT_VERSION, 0, "is a checkpoint of version 0, expected 1 to 2"},
};

static void files_that_are_none_are_refused_with_their_name(void **state)
{
    const char *path = in_folder(state, "file");

    for (size_t i = 0; i < OT_COUNT(bad_files); i++) {
        const bad_file *bad = &bad_files[i];
        uint8_t bytes[sizeof worked_example];
        ot_checkpoint *checkpoint = (ot_checkpoint *)bytes; // is set to NULL

        memcpy(bytes, worked_example, sizeof bytes);
        if (bad->at > 0)
            bytes[bad->at] = bad->value;
        assert_int_equal(ot__file_write(path, bytes, bad->n_bytes), OT_OK);
        assert_error(ot_checkpoint_load(path, &checkpoint), OT_ERR_FORMAT, bad->message);
        assert_non_null(strstr(ot_error_message(), path));
        assert_null(checkpoint);
        assert_error(ot_checkpoint_load_buffer(bytes, bad->n_bytes, &checkpoint), OT_ERR_FORMAT,
                     bad->message);
        assert_null(checkpoint);
    }
}

static void what_is_not_there_is_an_error_of_the_system(void **state)
{
    ot_checkpoint *checkpoint;

    assert_error(ot_checkpoint_load(in_folder(state, "missing"), &checkpoint), OT_ERR_IO,
                 "missing: cannot be opened: No such file or directory");
    assert_null(checkpoint);
    assert_error(ot_checkpoint_load(*state, &checkpoint), OT_ERR_FORMAT,
                 "is a directory; checkpoints from before ONNX Runtime 1.16 cannot be read");
}

// ---- external data ----

static void save_with_external_data(const char *path)
{
    ot_checkpoint *checkpoint;

    assert_int_equal(ot_checkpoint_load_buffer(worked_example, sizeof worked_example, &checkpoint),
                     OT_OK);
    checkpoint->has_external_data = true;
    assert_int_equal(ot_checkpoint_save(checkpoint, path, 0), OT_OK);
    ot_checkpoint_destroy(checkpoint);
}

static void external_data_that_are_missing_are_named(void **state)
{
    const char *path = in_folder(state, "checkpoint"), *data = in_folder(state, "checkpoint.data");
    ot_checkpoint *checkpoint;

    save_with_external_data(path);
    assert_int_equal(unlink(data), 0);
    assert_error(ot_checkpoint_load(path, &checkpoint), OT_ERR_IO, "checkpoint.data: ");
    assert_null(checkpoint);
}

static void external_data_are_refused_where_there_is_no_folder(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot_checkpoint *checkpoint;
    ot__file_map map;

    save_with_external_data(path);
    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    assert_error(ot_checkpoint_load_buffer(map.data, map.size, &checkpoint), OT_ERR_UNSUPPORTED,
                 "has external data, which needs the checkpoint's path");
    assert_null(checkpoint);
    ot__file_map_close(&map);
}

// ---- parameters ----

static ot_tensor *floats(ot_dtype dtype, ot_shape shape, float first)
{
    ot_tensor *t;

    assert_int_equal(ot_tensor_create(dtype, &shape, &t), OT_OK);
    memcpy(ot_tensor_data(t), &first, sizeof first);
    return t;
}

static void a_parameter_is_asked_for_by_a_name_it_has(void **state)
{
    ot_checkpoint *c;
    ot_tensor *t = floats(OT_F32, OT_SHAPE(2), 5);
    ot_shape shape;
    ot_dtype dtype;

    (void)state;
    assert_int_equal(ot_checkpoint_load_buffer(worked_example, sizeof worked_example, &c), OT_OK);
    assert_error(ot_checkpoint_set_parameter(c, "v", t), OT_ERR_NOT_FOUND,
                 "the checkpoint has no parameter 'v'");
    assert_error(ot_checkpoint_set_gradient(c, "v", t), OT_ERR_NOT_FOUND,
                 "the checkpoint has no parameter 'v'");
    assert_error(ot_checkpoint_parameter_info(c, "v", &dtype, &shape), OT_ERR_NOT_FOUND,
                 "the checkpoint has no parameter 'v'");
    assert_int_equal(shape.ndim, -1);
    ot_tensor_destroy(t);
    assert_error(ot_checkpoint_get_parameter(c, "v", &t), OT_ERR_NOT_FOUND,
                 "the checkpoint has no parameter 'v'");
    assert_null(t);
    assert_error(ot_checkpoint_get_gradient(c, "w", &t), OT_ERR_STATE,
                 "parameter 'w' has no gradient before a session exists");
    assert_null(t);
    assert_int_equal(ot_checkpoint_parameter_trainable(c, "v"), -1);
    ot_checkpoint_destroy(c);
}

static void a_value_must_have_the_parameters_type_and_shape(void **state)
{
    ot_tensor *wide = floats(OT_F32, OT_SHAPE(3), 5), *f64 = floats(OT_F64, OT_SHAPE(2), 5);
    ot_checkpoint *c;

    (void)state;
    assert_int_equal(ot_checkpoint_load_buffer(worked_example, sizeof worked_example, &c), OT_OK);
    assert_error(ot_checkpoint_set_parameter(c, "w", wide), OT_ERR_INVALID,
                 "parameter 'w' is f32[2], got f32[3]");
    assert_error(ot_checkpoint_set_parameter(c, "w", f64), OT_ERR_INVALID,
                 "parameter 'w' is f32[2], got f64[2]");
    assert_error(ot_checkpoint_set_gradient(c, "w", wide), OT_ERR_INVALID,
                 "the gradient of parameter 'w' is f32[2], got f32[3]");
    assert_error(ot_checkpoint_add_parameter(c, "w", wide, 1), OT_ERR_INVALID,
                 "parameter 'w' is there already");
    ot_tensor_destroy(wide);
    ot_tensor_destroy(f64);
    ot_checkpoint_destroy(c);
}

// ONNX Runtime refuses this: there, a session has to come first.
static void values_and_gradients_can_be_set_without_a_session(void **state)
{
    ot_tensor *five = floats(OT_F32, OT_SHAPE(2), 5), *found;
    ot_checkpoint *c;
    ot_shape shape;
    ot_dtype dtype;

    (void)state;
    assert_int_equal(ot_checkpoint_load_buffer(worked_example, sizeof worked_example, &c), OT_OK);
    assert_int_equal(ot_checkpoint_set_parameter(c, "w", five), OT_OK);
    assert_int_equal(ot_checkpoint_set_gradient(c, "w", five), OT_OK);
    assert_int_equal(ot_checkpoint_get_parameter(c, "w", &found), OT_OK);
    assert_memory_equal(ot_tensor_data(found), ot_tensor_data(five), 2 * sizeof(float));
    ot_tensor_destroy(found);
    assert_int_equal(ot_checkpoint_get_gradient(c, "w", &found), OT_OK);
    assert_memory_equal(ot_tensor_data(found), ot_tensor_data(five), 2 * sizeof(float));
    ot_tensor_destroy(found);
    assert_int_equal(ot_checkpoint_parameter_info(c, "w", &dtype, &shape), OT_OK);
    assert_int_equal(dtype, OT_F32);
    assert_int_equal(shape.ndim, 1);
    assert_int_equal(shape.dim[0], 2);
    ot_tensor_destroy(five);
    ot_checkpoint_destroy(c);
}

static void a_nominal_checkpoint_has_types_but_no_values(void **state)
{
    const char *path = in_folder(state, "nominal"), *const names[] = {"w"};
    ot_tensor *five = floats(OT_F32, OT_SHAPE(2), 5), *found;
    ot_checkpoint *c;
    ot_shape shape;
    ot_dtype dtype;

    assert_int_equal(ot_checkpoint_load_buffer(worked_example, sizeof worked_example, &c), OT_OK);
    assert_false(ot_checkpoint_is_nominal(c));
    assert_int_equal(ot__ckpt_save_artifact(c, path, names, 1, true), OT_OK);
    ot_checkpoint_destroy(c);
    assert_int_equal(ot_checkpoint_load(path, &c), OT_OK);
    assert_true(ot_checkpoint_is_nominal(c));
    assert_error(ot_checkpoint_get_parameter(c, "w", &found), OT_ERR_STATE,
                 "parameter 'w' has no value: the checkpoint is nominal");
    assert_error(ot_checkpoint_set_parameter(c, "w", five), OT_ERR_STATE,
                 "parameter 'w' has no value: the checkpoint is nominal");
    assert_error(ot_checkpoint_get_gradient(c, "w", &found), OT_ERR_STATE, "nominal");
    assert_error(ot_checkpoint_set_gradient(c, "w", five), OT_ERR_STATE, "nominal");
    assert_int_equal(ot_checkpoint_parameter_info(c, "w", &dtype, &shape), OT_OK);
    assert_int_equal(dtype, OT_F32);
    assert_int_equal(shape.ndim, -1);
    ot_tensor_destroy(five);
    ot_checkpoint_destroy(c);
}

static void a_frozen_parameter_has_no_gradient(void **state)
{
    ot_tensor *five = floats(OT_F32, OT_SHAPE(2), 5), *found;
    ot_checkpoint *c;

    (void)state;
    assert_int_equal(ot_checkpoint_create(&c), OT_OK);
    assert_int_equal(ot_checkpoint_add_parameter(c, "mean", five, OT_PARAMETER_FROZEN), OT_OK);
    assert_error(ot_checkpoint_get_gradient(c, "mean", &found), OT_ERR_STATE,
                 "parameter 'mean' is frozen and has no gradient");
    assert_error(ot_checkpoint_set_gradient(c, "mean", five), OT_ERR_STATE,
                 "parameter 'mean' is frozen and has no gradient");
    ot_tensor_destroy(five);
    ot_checkpoint_destroy(c);
}

// ---- properties ----

static void properties_are_asked_for_by_name_and_kind(void **state)
{
    ot_property_kind kind;
    const char *text;
    ot_checkpoint *c;
    int64_t number;
    float real;

    (void)state;
    assert_int_equal(ot_checkpoint_create(&c), OT_OK);
    assert_error(ot_checkpoint_get_int(c, "epoch", &number), OT_ERR_NOT_FOUND,
                 "the checkpoint has no property 'epoch'");
    assert_error(ot_checkpoint_property_kind_of(c, "epoch", &kind), OT_ERR_NOT_FOUND,
                 "the checkpoint has no property 'epoch'");
    assert_error(ot_checkpoint_remove_property(c, "epoch"), OT_ERR_NOT_FOUND,
                 "the checkpoint has no property 'epoch'");
    assert_int_equal(ot_checkpoint_set_int(c, "epoch", 3), OT_OK);
    assert_error(ot_checkpoint_get_float(c, "epoch", &real), OT_ERR_INVALID,
                 "property 'epoch' is an int, not a float");
    assert_int_equal(ot_checkpoint_set_string(c, "epoch", "three"), OT_OK); // of another kind now
    assert_error(ot_checkpoint_get_int(c, "epoch", &number), OT_ERR_INVALID,
                 "property 'epoch' is a string, not an int");
    assert_int_equal(ot_checkpoint_get_string(c, "epoch", &text), OT_OK);
    assert_string_equal(text, "three");
    ot_checkpoint_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(files_that_are_none_are_refused_with_their_name),
        TEST_IN_FOLDER(what_is_not_there_is_an_error_of_the_system),
        TEST_IN_FOLDER(external_data_that_are_missing_are_named),
        TEST_IN_FOLDER(external_data_are_refused_where_there_is_no_folder),
        cmocka_unit_test(a_parameter_is_asked_for_by_a_name_it_has),
        cmocka_unit_test(a_value_must_have_the_parameters_type_and_shape),
        cmocka_unit_test(values_and_gradients_can_be_set_without_a_session),
        TEST_IN_FOLDER(a_nominal_checkpoint_has_types_but_no_values),
        cmocka_unit_test(a_frozen_parameter_has_no_gradient),
        cmocka_unit_test(properties_are_asked_for_by_name_and_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
