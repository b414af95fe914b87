// SPDX-License-Identifier: Apache-2.0
// What is written reads back as it was; expected headers are NumPy's own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/data.h"

static char folder[64];

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/arrays_save_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static const char *in_folder(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static ot_tensor *tensor_of(ot_dtype dtype, ot_shape shape, const void *elements)
{
    ot_tensor *t = NULL;

    assert_int_equal(ot_tensor_create(dtype, &shape, &t), OT_OK);
    memcpy(t->data, elements, t->n_bytes);
    return t;
}

// numpy.save(array([[1, 2, 3], [4, 5, 6]], "float32"))
static void an_array_is_written_as_numpy_writes_it(void **state)
{
    static const float rows[] = {1, 2, 3, 4, 5, 6};
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    ot_tensor *t = tensor_of(OT_F32, OT_SHAPE(2, 3), rows);
    const char *name = "t";
    uint8_t found[256];
    FILE *file;

    (void)state;
    assert_int_equal(ot_arrays_save(in_folder("a.npy"), &name, (const ot_tensor *const[]){t}, 1),
                     OT_OK);
    file = fopen(in_folder("a.npy"), "rb");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, sizeof(found), file), 128 + sizeof(rows));
    fclose(file);
    assert_memory_equal(found, "\x93NUMPY\x01\x00\x76\x00", 10);
    assert_memory_equal(found + 10, header, sizeof(header) - 1);
    for (size_t k = 10 + sizeof(header) - 1; k < 127; k++)
        assert_int_equal(found[k], ' ');
    assert_int_equal(found[127], '\n');
    assert_memory_equal(found + 128, rows, sizeof(rows));
    ot_tensor_destroy(t);
}

static void an_archive_reads_back(void **state)
{
    static const double rows[] = {0.5, -1.5};
    static const int64_t labels[] = {7, -8};
    static const uint8_t bytes[] = {1, 0};
    ot_tensor *tensors[] = {tensor_of(OT_F64, OT_SHAPE(2), rows),
                            tensor_of(OT_I64, OT_SHAPE(2, 1), labels),
                            tensor_of(OT_BOOL, OT_SHAPE(2), bytes)};
    static const char *const names[] = {"x", "/layer/w_grad", "flags"};
    const char *path = in_folder("b.npz");
    ot_dataset *data;
    ot_shape shape;
    ot_dtype dtype;

    (void)state;
    assert_int_equal(ot_arrays_save(path, names, (const ot_tensor *const *)tensors, 3), OT_OK);
    assert_int_equal(ot_dataset_open(&path, 1, NULL, &data), OT_OK);
    assert_int_equal(ot_dataset_field_count(data), 3);
    assert_int_equal(ot_dataset_rows(data), 2);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(ot_dataset_field_name(data, i), names[i]);
        assert_int_equal(ot_dataset_field_info(data, i, &dtype, &shape), OT_OK);
        assert_int_equal(dtype, tensors[i]->dtype);
        assert_int_equal(shape.ndim, i == 1);
        assert_memory_equal(data->fields[i].data, tensors[i]->data, tensors[i]->n_bytes);
        ot_tensor_destroy(tensors[i]);
    }
    ot_dataset_destroy(data);
}

static void what_cannot_be_written_is_refused(void **state)
{
    static const uint16_t halves[] = {0, 0};
    ot_tensor *t = tensor_of(OT_BF16, OT_SHAPE(2), halves);
    const ot_tensor *const twice[] = {t, t};
    static const char *const names[] = {"t", "u"};

    (void)state;
    assert_int_equal(ot_arrays_save(in_folder("a.txt"), names, twice, 1), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "arrays are written to .npz or .npy"));
    assert_int_equal(ot_arrays_save(in_folder("c.npy"), names, twice, 2), OT_ERR_INVALID);
    assert_int_equal(ot_arrays_save(in_folder("c.npz"), names, twice, 0), OT_ERR_INVALID);
    assert_int_equal(ot_arrays_save(in_folder("c.npz"), names, twice, 1), OT_ERR_UNSUPPORTED);
    assert_non_null(strstr(ot_error_message(), "array 't': NumPy has no element type for bf16"));
    assert_int_equal(ot_arrays_save(in_folder("none/c.npy"), names, twice, 1), OT_ERR_UNSUPPORTED);
    assert_int_not_equal(access(in_folder("c.npz"), F_OK), 0);
    ot_tensor_destroy(t);
}

static void names_that_repeat_and_folders_that_miss_are_errors(void **state)
{
    static const float number[] = {1};
    ot_tensor *t = tensor_of(OT_F32, OT_SHAPE_SCALAR, number);
    const ot_tensor *const twice[] = {t, t};
    static const char *const names[] = {"t", "t"};

    (void)state;
    assert_int_equal(ot_arrays_save(in_folder("d.npz"), names, twice, 2), OT_ERR_IO);
    assert_int_equal(ot_arrays_save(in_folder("none/d.npz"), names, twice, 1), OT_ERR_IO);
    assert_int_equal(ot_arrays_save(in_folder("none/d.npy"), names, twice, 1), OT_ERR_IO);
    ot_tensor_destroy(t);
}

static void a_failing_allocation_leaves_nothing_behind(void **state)
{
    static const float number[] = {1, 2};
    ot_tensor *t = tensor_of(OT_F32, OT_SHAPE(2), number);
    const char *name = "t";
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int64_t n = 0; st == OT_ERR_NO_MEMORY; n++) {
        ot__alloc_fail_after(n);
        st = ot_arrays_save(in_folder("e.npz"), &name, (const ot_tensor *const[]){t}, 1);
        ot__alloc_fail_after(-1);
        assert_int_equal(access(in_folder("e.npz"), F_OK) == 0, st == OT_OK);
    }
    assert_int_equal(st, OT_OK);
    ot_tensor_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_is_written_as_numpy_writes_it),
        cmocka_unit_test(an_archive_reads_back),
        cmocka_unit_test(what_cannot_be_written_is_refused),
        cmocka_unit_test(names_that_repeat_and_folders_that_miss_are_errors),
        cmocka_unit_test(a_failing_allocation_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
