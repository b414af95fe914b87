// SPDX-License-Identifier: Apache-2.0
// Archives hold more than what is trained with: only arrays that are bound must fit.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zip.h>

#include "data/data.h"

enum { NPY_HEADER = 128, NPY_MAX = 512 };

typedef struct array {
    const char *name, *descr, *shape;
    const void *elements;
    size_t n_bytes;
} array;

static const float x_rows[] = {1, 2, 3, 4, 5, 6}; // 3 rows of 2
static const int64_t y_rows[] = {0, 1, 2};

#define ARRAY_X                                                                                    \
    {                                                                                              \
        "x.npy", "<f4", "(3, 2)", x_rows, sizeof(x_rows)                                           \
    }
#define ARRAY_Y                                                                                    \
    {                                                                                              \
        "y.npy", "<i8", "(3,)", y_rows, sizeof(y_rows)                                             \
    }

static size_t write_npy(const array *a, char npy[NPY_MAX])
{
    memset(npy, ' ', NPY_HEADER);
    memcpy(npy, "\x93NUMPY\x01\x00\x76\x00", 10);
    npy[10 + snprintf(npy + 10, NPY_HEADER - 10,
                      "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", a->descr,
                      a->shape)] = ' ';
    npy[NPY_HEADER - 1] = '\n';
    assert_true(a->n_bytes <= NPY_MAX - NPY_HEADER);
    if (a->n_bytes > 0)
        memcpy(npy + NPY_HEADER, a->elements, a->n_bytes);
    return NPY_HEADER + a->n_bytes;
}

// The caller frees *out.
static size_t write_npz(const array *arrays, size_t n, char **out)
{
    static char npy[8][NPY_MAX];
    zip_error_t error;
    zip_source_t *bytes = zip_source_buffer_create(NULL, 0, 0, &error);
    zip_t *archive = zip_open_from_source(bytes, ZIP_TRUNCATE, &error);
    zip_stat_t info;

    assert_non_null(archive);
    assert_true(n <= OT_COUNT(npy));
    zip_source_keep(bytes);
    for (size_t i = 0; i < n; i++) {
        const size_t size = write_npy(&arrays[i], npy[i]);
        zip_source_t *member = zip_source_buffer(archive, npy[i], size, 0);

        assert_true(zip_file_add(archive, arrays[i].name, member, 0) >= 0);
    }
    assert_int_equal(zip_close(archive), 0);
    assert_int_equal(zip_source_open(bytes), 0);
    assert_int_equal(zip_source_stat(bytes, &info), 0);
    *out = malloc(info.size);
    assert_int_equal(zip_source_read(bytes, *out, info.size), info.size);
    zip_source_close(bytes);
    zip_source_free(bytes);
    return info.size;
}

static ot_status open_npz(const array *arrays, size_t n, ot_dataset **out)
{
    char *bytes;
    const size_t n_bytes = write_npz(arrays, n, &bytes);
    const ot_status st = ot__dataset_open_bytes(bytes, n_bytes, NULL, out);

    free(bytes);
    return st;
}

static ot_binding binding_of(const char *field)
{
    return (ot_binding){.input = field,
                        .fields = field,
                        .dtype = OT_F32,
                        .shape = {1, {-1}},
                        .scale = 1,
                        .n_channels = 1};
}

static void assert_message(const char *part)
{
    if (!strstr(ot_error_message(), part))
        fail_msg("'%s' does not say '%s'", ot_error_message(), part);
}

static const char text[16] = "abcd";
static const array mixed[] = {
    {"epoch.npy", "<i8", "()", y_rows, 8}, // no rows at all
    {"names.npy", "<U1", "(3,)", text, 12},
    {"lengths.npy", "<i8", "(2,)", y_rows, 16},
    {"empty.npy", "<f4", "(0, 2)", NULL, 0},
    {"short.npy", "<f4", "(30, 2)", x_rows, 8},
    ARRAY_X,
    ARRAY_Y,
};

static void arrays_that_nobody_binds_do_not_matter(void **state)
{
    const ot_binding bindings[] = {binding_of("x"), binding_of("y")};
    const ot_tensor *tensors[2];
    ot_dataset *dataset;
    ot_batches *batches;

    (void)state;
    assert_int_equal(open_npz(mixed, OT_COUNT(mixed), &dataset), OT_OK);
    assert_int_equal(ot_dataset_field_count(dataset), OT_COUNT(mixed));
    if (ot_batches_create(dataset, bindings, 2, NULL, &batches) != OT_OK)
        fail_msg("%s", ot_error_message());
    assert_int_equal(ot_batches_rows(batches), 3);
    assert_int_equal(ot_batches_next(batches, tensors, 2), OT_OK);
    assert_true(ot__tensor_get_f64(tensors[0], 5) == 6);
    assert_true(ot__tensor_get_f64(tensors[1], 2) == 2);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

static void an_array_that_is_bound_is_named_when_it_cannot_be_used(void **state)
{
    static const struct {
        const char *field, *message;
    } cases[] = {
        {"epoch", "input 'epoch': data: array 'epoch': the header declares no array of rows"},
        {"names", "input 'names': data: array 'names': element type is not one of numpy's numeric"},
        {"empty", "field 'empty' has no rows"},
        {"short", "array 'short' is stated as f32[30,2] but has 8 bytes"},
    };
    ot_dataset *dataset;
    ot_batches *batches;
    ot_dtype dtype;
    ot_shape shape;

    (void)state;
    assert_int_equal(open_npz(mixed, OT_COUNT(mixed), &dataset), OT_OK);
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        const ot_binding binding = binding_of(cases[i].field);

        assert_int_equal(ot_batches_create(dataset, &binding, 1, NULL, &batches),
                         OT_ERR_UNSUPPORTED);
        assert_null(batches);
        assert_message(cases[i].message);
    }
    assert_int_equal(ot_dataset_field_info(dataset, 1, &dtype, &shape), OT_ERR_UNSUPPORTED);
    assert_message("array 'names'");
    ot_dataset_destroy(dataset);
}

static void bound_arrays_of_different_lengths_are_named(void **state)
{
    const ot_binding bindings[] = {binding_of("x"), binding_of("lengths")};
    ot_dataset *dataset;
    ot_batches *batches;

    (void)state;
    assert_int_equal(open_npz(mixed, OT_COUNT(mixed), &dataset), OT_OK);
    assert_int_equal(ot_batches_create(dataset, bindings, 2, NULL, &batches), OT_ERR_INVALID);
    assert_message("field 'lengths' of input 'lengths' has 2 rows, 'x' of input 'x' has 3");
    assert_int_equal(ot_batches_create(dataset, &bindings[1], 1, NULL, &batches), OT_OK);
    assert_int_equal(ot_batches_rows(batches), 2);
    ot_batches_destroy(batches);
    ot_dataset_destroy(dataset);
}

static void an_archive_without_one_array_of_use_says_why(void **state)
{
    ot_dataset *dataset;

    (void)state;
    assert_int_equal(open_npz(mixed, 2, &dataset), OT_ERR_UNSUPPORTED);
    assert_message("array 'epoch': the header declares no array of rows");
    assert_null(dataset);
}

static void running_out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    const ot_binding bindings[] = {binding_of("x"), binding_of("y")};
    char *bytes;
    const size_t n_bytes = write_npz(mixed, OT_COUNT(mixed), &bytes);
    ot_status st = OT_ERR_NO_MEMORY;
    int64_t n;

    (void)state;
    for (n = 0; st == OT_ERR_NO_MEMORY; n++) {
        ot_dataset *dataset;
        ot_batches *batches = NULL;

        ot__alloc_fail_after(n);
        st = ot__dataset_open_bytes(bytes, n_bytes, NULL, &dataset);
        if (st == OT_OK)
            st = ot_batches_create(dataset, bindings, 2, NULL, &batches);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        ot_batches_destroy(batches);
        ot_dataset_destroy(dataset);
    }
    assert_true(n > 20);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_that_nobody_binds_do_not_matter),
        cmocka_unit_test(an_array_that_is_bound_is_named_when_it_cannot_be_used),
        cmocka_unit_test(bound_arrays_of_different_lengths_are_named),
        cmocka_unit_test(an_archive_without_one_array_of_use_says_why),
        cmocka_unit_test(running_out_of_memory_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
