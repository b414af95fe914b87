// SPDX-License-Identifier: Apache-2.0
// HDF5 files that h5py has written (generate.py), and those that are refused before anything in
// them is read; what is written comes back, in the form that h5py chooses by itself.
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ckpt/ckpt.h"
#include "onnxtrain/dict.h"
#include "unit/base/temporary_folder.h"

static void need(ot_status st)
{
    if (st != OT_OK)
        fail_msg("%s: %s", ot_status_name(st), ot_error_message());
}

static const char *data_file(const char *name)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/data/%s.h5", OT_TEST_DIR, name);
    return path;
}

// ---- the tree of generate.py ----

static void set_tensor(ot_dict *dict, const char *name, ot_dtype dtype, const ot_shape *shape,
                       const void *elements)
{
    ot_tensor *tensor;

    need(ot_tensor_create(dtype, shape, &tensor));
    if (tensor->n_bytes > 0)
        memcpy(tensor->data, elements, tensor->n_bytes);
    need(ot_dict_take_tensor(dict, name, tensor));
}

static void set_integers(ot_dict *dict)
{
    ot_dict *inner;

    need(ot_dict_set_dict(dict, "integers", &inner));
    set_tensor(inner, "i1", OT_I8, &OT_SHAPE(3), (int8_t[]){INT8_MIN, 1, INT8_MAX});
    set_tensor(inner, "i2", OT_I16, &OT_SHAPE(3), (int16_t[]){INT16_MIN, 1, INT16_MAX});
    set_tensor(inner, "i4", OT_I32, &OT_SHAPE(3), (int32_t[]){INT32_MIN, 1, INT32_MAX});
    set_tensor(inner, "i8", OT_I64, &OT_SHAPE(3), (int64_t[]){INT64_MIN, 1, INT64_MAX});
    set_tensor(inner, "u1", OT_U8, &OT_SHAPE(3), (uint8_t[]){0, 1, UINT8_MAX});
    set_tensor(inner, "u2", OT_U16, &OT_SHAPE(3), (uint16_t[]){0, 1, UINT16_MAX});
    set_tensor(inner, "u4", OT_U32, &OT_SHAPE(3), (uint32_t[]){0, 1, UINT32_MAX});
    set_tensor(inner, "u8", OT_U64, &OT_SHAPE(3), (uint64_t[]){0, 1, UINT64_MAX});
}

static ot_dict *make_tree(void)
{
    ot_dict *tree, *model, *full;

    need(ot_dict_create(&tree));
    need(ot_dict_set_dict(tree, "model", &model));
    need(ot_dict_set_dict(model, "full_precision", &full));
    set_tensor(full, "fc.weight", OT_F32, &OT_SHAPE(2, 3), (float[]){-1, -0.5f, 0, 0.5f, 1, 1.5f});
    set_tensor(full, "half", OT_F16, &OT_SHAPE(4),
               (uint16_t[]){0, 0x3400, 0x3800, 0x3a00}); // 0, 1/4, 1/2, 3/4
    set_integers(tree);
    set_tensor(tree, "double", OT_F64, &OT_SHAPE(1, 1), (double[]){0.1});
    set_tensor(tree, "truth", OT_BOOL, &OT_SHAPE(3), (uint8_t[]){1, 0, 1});
    set_tensor(tree, "empty", OT_F32, &OT_SHAPE(0, 3), NULL);
    set_tensor(tree, "learned", OT_F32, &OT_SHAPE_SCALAR, (float[]){1.5f});
    need(ot_dict_set_int(tree, "step", -5));
    need(ot_dict_set_float(tree, "rate", 0.1));
    need(ot_dict_set_bool(tree, "is_it", 1));
    need(ot_dict_set_string(tree, "name",
                            "Gr\xc3\xb6\xc3\x9f"
                            "e"));
    need(ot_dict_set_ints(tree, "list", (int64_t[]){3, -1}, 2));
    need(ot_dict_set_dict(tree, "nothing", &model));
    return tree;
}

static void assert_same_tensor(const char *name, const ot_tensor *a, const ot_tensor *b)
{
    if (a->dtype != b->dtype || !ot__shape_equal(&a->shape, &b->shape))
        fail_msg("'%s' is %s%s, expected %s%s", name, ot_dtype_name(a->dtype),
                 OT_SHAPE_TEXT(&a->shape), ot_dtype_name(b->dtype), OT_SHAPE_TEXT(&b->shape));
    if (a->n_bytes > 0)
        assert_memory_equal(a->data, b->data, a->n_bytes);
}

static void assert_same_list(const ot_dict *found, const ot_dict *expected, const char *name)
{
    const int64_t *a, *b;
    int n, m;

    need(ot_dict_get_ints(found, name, &a, &n));
    need(ot_dict_get_ints(expected, name, &b, &m));
    assert_int_equal(n, m);
    assert_memory_equal(a, b, (size_t)n * sizeof *a);
}

static void assert_same(ot_dict *found, ot_dict *expected);

static void assert_same_value(ot_dict *found, ot_dict *expected, const char *name)
{
    const ot_tensor *a_tensor, *b_tensor;
    const char *a_text, *b_text;
    ot_dict *a_dict, *b_dict;
    int64_t a_int, b_int;
    double a_real, b_real;
    ot_dict_kind kind;
    int a_bool, b_bool;

    need(ot_dict_kind_of(expected, name, &kind));
    switch (kind) {
    case OT_DICT_BOOL:
        need(ot_dict_get_bool(found, name, &a_bool));
        need(ot_dict_get_bool(expected, name, &b_bool));
        assert_int_equal(a_bool, b_bool);
        return;
    case OT_DICT_INT:
        need(ot_dict_get_int(found, name, &a_int));
        need(ot_dict_get_int(expected, name, &b_int));
        assert_true(a_int == b_int);
        return;
    case OT_DICT_FLOAT:
        need(ot_dict_get_float(found, name, &a_real));
        need(ot_dict_get_float(expected, name, &b_real));
        assert_true(a_real == b_real);
        return;
    case OT_DICT_STRING:
        need(ot_dict_get_string(found, name, &a_text));
        need(ot_dict_get_string(expected, name, &b_text));
        assert_string_equal(a_text, b_text);
        return;
    case OT_DICT_INTS:
        assert_same_list(found, expected, name);
        return;
    case OT_DICT_TENSOR:
        need(ot_dict_get_tensor(found, name, &a_tensor));
        need(ot_dict_get_tensor(expected, name, &b_tensor));
        assert_same_tensor(name, a_tensor, b_tensor);
        return;
    case OT_DICT_DICT:
        need(ot_dict_get_dict(found, name, &a_dict));
        need(ot_dict_get_dict(expected, name, &b_dict));
        assert_same(a_dict, b_dict);
        return;
    default:
        fail_msg("'%s' is of a kind that HDF5 files have not", name);
    }
}

static void assert_same(ot_dict *found, ot_dict *expected)
{
    assert_int_equal(ot_dict_count(found), ot_dict_count(expected));
    for (int i = 0; i < ot_dict_count(expected); i++)
        assert_same_value(found, expected, ot_dict_name(expected, i));
}

// ---- files of others ----

static void files_of_h5py_are_read_in_every_form(void **state)
{
    static const char *const names[] = {"default",     "gzip_shuffle", "v108",      "v110",
                                        "track_order", "user_block",   "big_endian"};
    ot_dict *expected = make_tree();

    (void)state;
    for (size_t i = 0; i < OT_COUNT(names); i++) {
        ot_dict *found;

        need(ot_dict_load_hdf5(data_file(names[i]), NULL, &found));
        assert_same(found, expected);
        ot_dict_destroy(found);
    }
    ot_dict_destroy(expected);
}

static void a_key_selects_a_group_or_one_dataset(void **state)
{
    const ot_tensor *tensor;
    ot_dict *found, *group;
    int64_t step;

    (void)state;
    need(ot_dict_load_hdf5(data_file("v110"), "model/full_precision", &found));
    assert_int_equal(ot_dict_count(found), 1);
    need(ot_dict_get_dict(found, "full_precision", &group));
    assert_int_equal(ot_dict_count(group), 2);
    ot_dict_destroy(found);
    need(ot_dict_load_hdf5(data_file("default"), "/model/full_precision/half", &found));
    assert_int_equal(ot_dict_count(found), 1);
    need(ot_dict_get_tensor(found, "half", &tensor));
    ot_dict_destroy(found);
    need(ot_dict_load_hdf5(data_file("default"), "step", &found));
    need(ot_dict_get_int(found, "step", &step));
    assert_int_equal(step, -5);
    ot_dict_destroy(found);
    assert_int_equal(ot_dict_load_hdf5(data_file("default"), "model/x", &found), OT_ERR_NOT_FOUND);
    assert_non_null(strstr(ot_error_message(), "default.h5: has no 'model/x'"));
    assert_int_equal(ot_dict_load_hdf5(data_file("default"), "step/x", &found), OT_ERR_NOT_FOUND);
}

static const struct {
    const char *name, *message; // behind the file's name
    ot_status status;
} refused[] = {
    {"soft_link", "'b': is a soft link, which is not followed", OT_ERR_UNSUPPORTED},
    {"external_link", "'b': is a link to another file, which is not followed", OT_ERR_UNSUPPORTED},
    {"user_link", "'b': is a user-defined link, which is not followed", OT_ERR_UNSUPPORTED},
    {"external_storage", "'b': has its data in other files", OT_ERR_UNSUPPORTED},
    {"virtual", "'b': is a virtual dataset, whose data are in other files", OT_ERR_UNSUPPORTED},
    {"lzf", "'b': goes through filter 32000 (lzf), known are deflate and shuffle",
     OT_ERR_UNSUPPORTED},
    {"scale_offset", "'b': goes through filter 6 (scaleoffset), known are deflate and shuffle",
     OT_ERR_UNSUPPORTED},
    {"hard_link", "'b': is an object that has another name already", OT_ERR_FORMAT},
    {"cycle", "'a/b': is an object that has another name already", OT_ERR_FORMAT},
    {"deep", "b/b': is a group within 64 others, which is too deep", OT_ERR_FORMAT},
    {"huge", "'b': has 4398046511104 bytes, more than the file of ", OT_ERR_FORMAT},
    {"huge_deflate", "'b': has 4294967296 bytes, more than the file of ", OT_ERR_FORMAT},
    {"huge_chunk", "'b': has chunks larger than the file of ", OT_ERR_FORMAT},
    {"overflow", "'b': is [8589934592,8589934592], which is too large", OT_ERR_FORMAT},
    {"compound", "'b': is of an array of compounds of 12 bytes, which are not read",
     OT_ERR_UNSUPPORTED},
    {"strings", "'b': is of an array of strings of ", OT_ERR_UNSUPPORTED},
    {"enumeration", "'b': is of an array of an enumeration of 1 bytes other than FALSE 0, TRUE 1",
     OT_ERR_UNSUPPORTED},
    {"null", "'b': has no value (a null dataspace)", OT_ERR_UNSUPPORTED},
    {"named_type", "'b': is neither a group nor a dataset", OT_ERR_UNSUPPORTED},
    {"axes", "'b': has 17 axes, at most 16 are read", OT_ERR_UNSUPPORTED},
};

static void what_is_not_to_be_read_is_refused_naming_the_object(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(refused); i++) {
        char name[64];
        ot_dict *found;
        ot_status st;

        snprintf(name, sizeof name, "refused_%s", refused[i].name);
        st = ot_dict_load_hdf5(data_file(name), NULL, &found);
        if (st != refused[i].status || !strstr(ot_error_message(), refused[i].message))
            fail_msg("%s: %s: %s", name, ot_status_name(st), ot_error_message());
        assert_null(found);
    }
}

static void what_the_memory_limit_refuses_is_not_read(void **state)
{
    ot_dict *found;

    (void)state;
    ot_set_memory_max(ot__memory_taken() + 64);
    assert_int_equal(ot_dict_load_hdf5(data_file("default"), NULL, &found), OT_ERR_NO_MEMORY);
    assert_non_null(strstr(ot_error_message(), "more than are left of the memory limit"));
    ot_set_memory_max(0);
    need(ot_dict_load_hdf5(data_file("default"), "model", &found));
    ot_dict_destroy(found);
}

static void other_files_are_no_hdf5_files(void **state)
{
    const char *path = in_folder(state, "other");
    ot_dict *found;
    FILE *file;

    assert_int_equal(ot_dict_load_hdf5(path, NULL, &found), OT_ERR_IO);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(ot_dict_load_hdf5(path, NULL, &found), OT_ERR_FORMAT);
    assert_non_null(strstr(ot_error_message(), "is not an HDF5 file"));
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("\x89HDF\r\n\x1a\n and nothing more", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(ot_dict_load_hdf5(path, NULL, &found), OT_ERR_FORMAT);
    assert_non_null(strstr(ot_error_message(), "cannot be read: libhdf5: "));
    assert_int_equal(ot_dict_load_hdf5(in_folder(state, ""), NULL, &found), OT_ERR_IO);
    assert_null(found);
}

// ---- our files ----

static void what_is_written_comes_back(void **state)
{
    const char *path = in_folder(state, "ours");
    ot_dict *tree = make_tree(), *found;

    need(ot_dict_save_hdf5(tree, path));
    need(ot_dict_load_hdf5(path, NULL, &found));
    assert_same(found, tree);
    ot_dict_destroy(found);
    ot_dict_destroy(tree);
    assert_int_equal(count_entries(*state), 1);
}

static bool holds(const ot__file_map *file, const char *bytes, size_t n)
{
    for (size_t i = 0; i + n <= file->size; i++)
        if (memcmp(file->data + i, bytes, n) == 0)
            return true;
    return false;
}

// Superblock 0, groups that are symbol tables, no attributes, no object headers of version 2.
static void files_have_the_oldest_form_and_the_same_bytes_at_any_time(void **state)
{
    ot_dict *tree = make_tree();
    ot__file_map first, second;

    need(ot_dict_save_hdf5(tree, in_folder(state, "first")));
    sleep(1);
    need(ot_dict_save_hdf5(tree, in_folder(state, "second")));
    need(ot__file_map_open(&first, in_folder(state, "first")));
    need(ot__file_map_open(&second, in_folder(state, "second")));
    assert_int_equal(first.data[8], 0);
    assert_true(holds(&first, "SNOD", 4));
    assert_false(holds(&first, "OHDR", 4));
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    ot__file_map_close(&first);
    ot__file_map_close(&second);
    ot_dict_destroy(tree);
}

static void bf16_is_written_as_f32(void **state)
{
    const char *path = in_folder(state, "ours");
    const ot_tensor *tensor;
    ot_dict *dict;

    need(ot_dict_create(&dict));
    set_tensor(dict, "w", OT_BF16, &OT_SHAPE(2), (uint16_t[]){0x3fc0, 0xc000});
    need(ot_dict_save_hdf5(dict, path));
    ot_dict_destroy(dict);
    need(ot_dict_load_hdf5(path, NULL, &dict));
    need(ot_dict_get_tensor(dict, "w", &tensor));
    assert_int_equal(tensor->dtype, OT_F32);
    assert_true(((float *)tensor->data)[0] == 1.5f && ((float *)tensor->data)[1] == -2);
    ot_dict_destroy(dict);
}

static void a_slash_makes_groups(void **state)
{
    static const char *const names[] = {"a/b/c", "a/b/d", "a/e", "/x", "y/", "z/./w"};
    const char *path = in_folder(state, "ours");
    ot_dict *dict, *found, *a, *b;
    int64_t i;

    need(ot_dict_create(&dict));
    for (int k = 0; k < (int)OT_COUNT(names); k++)
        need(ot_dict_set_int(dict, names[k], k));
    need(ot_dict_save_hdf5(dict, path));
    need(ot_dict_load_hdf5(path, NULL, &found));
    need(ot_dict_get_dict(found, "a", &a));
    need(ot_dict_get_dict(a, "b", &b));
    need(ot_dict_get_int(b, "d", &i));
    assert_int_equal(i, 1);
    need(ot_dict_get_int(a, "e", &i));
    assert_int_equal(i, 2);
    need(ot_dict_get_dict(found, "%", &a)); // what HDF5 has no links for
    need(ot_dict_get_int(a, "x", &i));
    assert_int_equal(i, 3);
    need(ot_dict_get_dict(found, "z", &a));
    need(ot_dict_get_dict(a, "%.", &b));
    need(ot_dict_get_int(b, "w", &i));
    assert_int_equal(i, 5);
    ot_dict_destroy(found);
    ot_dict_destroy(dict);
}

static void expect_refusal(void **state, ot_dict *dict, const char *message)
{
    assert_int_equal(ot_dict_save_hdf5(dict, in_folder(state, "ours")), OT_ERR_UNSUPPORTED);
    if (!strstr(ot_error_message(), message))
        fail_msg("%s", ot_error_message());
    assert_int_equal(count_entries(*state), 0);
    ot_dict_destroy(dict);
}

static void what_hdf5_cannot_hold_is_refused_by_name(void **state)
{
    ot_dict *dict, *at;

    need(ot_dict_create(&dict));
    need(ot_dict_set_dict(dict, "m", &at));
    need(ot_dict_set_int(at, "a", 1));
    need(ot_dict_set_int(at, "a/b", 1));
    expect_refusal(state, dict, "ours: 'a' and 'a/b' cannot both be in an HDF5 file");
    need(ot_dict_create(&dict));
    need(ot_dict_set_dict(dict, "m", &at));
    set_tensor(at, "w", OT_F8E4M3FN, &OT_SHAPE(1), "");
    expect_refusal(state, dict, "ours: 'm/w' has elements of f8e4m3fn, which HDF5");
    need(ot_dict_create(&dict));
    need(ot_dict_set_int(dict, "m/%", 1));
    expect_refusal(state, dict, "ours: 'm/%' ");
    need(ot_dict_create(&dict));
    need(ot_dict_set_null(dict, "n"));
    expect_refusal(state, dict, "ours: 'n' is null, which these HDF5 files have not");
    need(ot_dict_create(&dict));
    need(ot_dict_set_list(dict, "l", &at));
    expect_refusal(state, dict, "ours: 'l' is a list, which these HDF5 files have not");
    need(ot_dict_create(&dict));
    need(ot_dict_take_shards(dict, "s", OT_F32, &OT_SHAPE(4), NULL, NULL, 0));
    expect_refusal(state, dict, "ours: 's' is parts of a tensor");
    need(ot_dict_create(&dict));
    at = dict;
    for (int i = 0; i < 65; i++)
        need(ot_dict_set_dict(at, "d", &at));
    expect_refusal(state, dict, "is nested too deeply for an HDF5 file");
}

static void a_file_that_is_there_stays(void **state)
{
    const char *path = in_folder(state, "ours");
    ot_dict *tree = make_tree();
    FILE *file = fopen(path, "w");
    char text[8] = "";

    assert_non_null(file);
    fputs("mine", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(ot_dict_save_hdf5(tree, path), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), "ours: exists already, and is not replaced"));
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "mine");
    assert_int_equal(symlink("nowhere", in_folder(state, "link")), 0);
    assert_int_equal(ot_dict_save_hdf5(tree, in_folder(state, "link")), OT_ERR_IO);
    assert_int_equal(ot_dict_save_hdf5(tree, in_folder(state, "no/folder")), OT_ERR_IO);
    assert_int_equal(count_entries(*state), 2);
    ot_dict_destroy(tree);
}

static void every_allocation_may_fail(void **state)
{
    ot_dict *tree = make_tree(), *found = NULL;
    ot_status st = OT_ERR_NO_MEMORY;

    for (int n = 0; st != OT_OK; n++) {
        ot__alloc_fail_after(n);
        st = ot_dict_save_hdf5(tree, in_folder(state, "ours"));
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        assert_int_equal(count_entries(*state), st == OT_OK);
    }
    st = OT_ERR_NO_MEMORY;
    for (int n = 0; st != OT_OK; n++) {
        ot__alloc_fail_after(n);
        st = ot_dict_load_hdf5(in_folder(state, "ours"), NULL, &found);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || (st == OT_ERR_NO_MEMORY && found == NULL));
    }
    assert_same(found, tree);
    ot_dict_destroy(found);
    ot_dict_destroy(tree);
}

// ---- without the library ----

static void without_libhdf5_the_option_is_named(void **state)
{
    ot_dict *dict, *found;

    need(ot_dict_create(&dict));
    assert_int_equal(ot_dict_save_hdf5(dict, in_folder(state, "ours")), OT_ERR_UNSUPPORTED);
    assert_non_null(strstr(ot_error_message(), "OT_WITH_HDF5"));
    assert_int_equal(ot_dict_load_hdf5(data_file("default"), NULL, &found), OT_ERR_UNSUPPORTED);
    assert_int_equal(count_entries(*state), 0);
    ot_dict_destroy(dict);
}

int main(void)
{
    const struct CMUnitTest with[] = {
        cmocka_unit_test(files_of_h5py_are_read_in_every_form),
        cmocka_unit_test(a_key_selects_a_group_or_one_dataset),
        cmocka_unit_test(what_is_not_to_be_read_is_refused_naming_the_object),
        cmocka_unit_test(what_the_memory_limit_refuses_is_not_read),
        TEST_IN_FOLDER(other_files_are_no_hdf5_files),
        TEST_IN_FOLDER(what_is_written_comes_back),
        TEST_IN_FOLDER(files_have_the_oldest_form_and_the_same_bytes_at_any_time),
        TEST_IN_FOLDER(bf16_is_written_as_f32),
        TEST_IN_FOLDER(a_slash_makes_groups),
        TEST_IN_FOLDER(what_hdf5_cannot_hold_is_refused_by_name),
        TEST_IN_FOLDER(a_file_that_is_there_stays),
        TEST_IN_FOLDER(every_allocation_may_fail),
    };
    const struct CMUnitTest without[] = {
        TEST_IN_FOLDER(without_libhdf5_the_option_is_named),
    };

    return OT_WITH_HDF5 ? cmocka_run_group_tests(with, NULL, NULL)
                        : cmocka_run_group_tests(without, NULL, NULL);
}
