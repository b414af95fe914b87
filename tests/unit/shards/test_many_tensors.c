// SPDX-License-Identifier: Apache-2.0
// More tensors than one file of the index takes.
#include "shards_fixture.h"

enum { MANY = OT_INDEX_PART_CHUNKS + 5 };

static ot_dict *make_many(bool fills)
{
    ot_dict *dict;

    assert_int_equal(ot_dict_create(&dict), OT_OK);
    for (int i = 0; i < MANY; i++) {
        ot_tensor *tensor;
        char name[16];

        snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(ot_tensor_create(OT_I32, &OT_SHAPE_SCALAR, &tensor), OT_OK);
        *(int32_t *)tensor->data = fills ? i : -1;
        assert_int_equal(ot_dict_take_tensor(dict, name, tensor), OT_OK);
    }
    return dict;
}

static void change_byte(const char *path, long at, int add)
{
    FILE *file = fopen(path, "r+b");
    int byte;

    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte + add, file), byte + add);
    assert_int_equal(fclose(file), 0);
}

static void they_are_in_several_files_of_the_index(void **state)
{
    const char *path = in_folder(state, "a"), *part = in_folder(state, "a/otckpt.index-00001.json");
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    ot_shards_reader *reader;
    const ot_tensor *tensor;

    item.name = "m";
    item.dict = make_many(true);
    assert_int_equal(ot_shards_save(NULL, path, &item, 1, NULL), OT_OK);
    ot_dict_destroy(item.dict);
    assert_true(ot__path_exists(part));
    item.dict = make_many(false);
    if (ot_shards_load(NULL, path, &item, 1, NULL) != OT_OK)
        fail_msg("%s", ot_error_message());
    for (int i = 0; i < MANY; i++) {
        char name[16];

        snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(ot_dict_get_tensor(item.dict, name, &tensor), OT_OK);
        assert_int_equal(*(const int32_t *)tensor->data, i);
    }
    change_byte(part, 20, 1);
    assert_int_equal(ot_shards_load(NULL, path, &item, 1, NULL), OT_ERR_FORMAT);
    assert_non_null(strstr(ot_error_message(), "a/otckpt.index-00001.json: has another size or "
                                               "checksum than 'otckpt.index.json' says"));
    change_byte(part, 20, -1);
    assert_int_equal(unlink(part), 0);
    assert_int_equal(ot_shards_open(path, &reader), OT_ERR_IO);
    ot_dict_destroy(item.dict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {SHARDS_TEST(they_are_in_several_files_of_the_index)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
