// SPDX-License-Identifier: Apache-2.0
// Safetensors files of other makers, alone and in a list, as one process looks at them.
#include "shards_fixture.h"

// What the safetensors package writes of w = 1, 2, 3, 4 as f32 and b = 1, 2, 3 as f16.
#define VECTOR                                                                                     \
    "\x90\0\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"},\"w\":{\"dtype\":\"F32\","            \
    "\"shape\":[2,2],\"data_offsets\":[0,16]},\"b\":{\"dtype\":\"F16\",\"shape\":[3],"             \
    "\"data_offsets\":[16,22]}} "                                                                  \
    "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40\0\x3c\0\x40\0\x42"
#define OTHER                                                                                      \
    "\x38\0\0\0\0\0\0\0{\"e.s\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}} "         \
    "\x07\0\0\0\0\0\0\0"
static const char vector[] = VECTOR, other[] = OTHER;

static void write_bytes(const char *path, const void *bytes, size_t n)
{
    assert_int_equal(ot__file_write(path, bytes, n), OT_OK);
}

static void expect_refused(const char *path, ot_status status, const char *message)
{
    ot_shards_reader *reader = NULL;

    assert_int_equal(ot_shards_open(path, &reader), status);
    if (strstr(ot_error_message(), message) == NULL)
        fail_msg("%s", ot_error_message());
}

static void a_file_of_another_maker_is_read(void **state)
{
    static const float w[] = {1, 2, 3, 4};
    static const uint16_t b[] = {0x3c00, 0x4000, 0x4200};
    const char *path = in_folder(state, "my weights.safetensors");
    const ot_box box = {2, {0, 1}, {2, 1}};
    ot_shards_info info = OT_SHARDS_INFO_INIT;
    ot_shards_reader *reader;
    const ot_tensor *tensor;
    ot_tensor *part;
    ot_dict *dict;

    write_bytes(path, vector, sizeof vector - 1);
    if (ot_shards_open(path, &reader) != OT_OK)
        fail_msg("%s", ot_error_message());
    assert_string_equal(ot_shards_reader_path(reader), path);
    assert_int_equal(ot_shards_reader_info(reader, &info), OT_OK);
    assert_int_equal(info.is_foreign, 1);
    assert_int_equal(info.n_tensors, 2);
    assert_int_equal(info.n_bytes, 22);
    assert_string_equal(ot_shards_reader_item(reader, 0), "model");
    assert_int_equal(ot_shards_reader_read(reader, "model", &dict), OT_OK);
    assert_int_equal(ot_dict_get_tensor(dict, "w", &tensor), OT_OK);
    assert_int_equal(ot_tensor_bytes(tensor), sizeof w);
    assert_memory_equal(ot_tensor_data_const(tensor), w, sizeof w);
    assert_int_equal(ot_dict_get_tensor(dict, "b", &tensor), OT_OK);
    assert_memory_equal(ot_tensor_data_const(tensor), b, sizeof b);
    ot_dict_destroy(dict);
    assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(2, 1), &part), OT_OK);
    assert_int_equal(ot_shards_reader_read_box(reader, "model.w", &box, part), OT_OK);
    assert_true(((const float *)ot_tensor_data_const(part))[0] == 2);
    assert_true(((const float *)ot_tensor_data_const(part))[1] == 4);
    ot_tensor_destroy(part);
    assert_int_equal(ot_shards_reader_verify(reader), OT_OK);
    write_bytes(path, vector, sizeof vector - 2);
    assert_int_equal(ot_shards_reader_verify(reader), OT_ERR_FORMAT);
    ot_shards_reader_destroy(reader);
    expect_refused(path, OT_ERR_FORMAT, "my weights.safetensors: ");
}

static void write_list(const char *path, const char *of_s)
{
    char text[256];

    snprintf(text, sizeof text,
             "{\"metadata\":{\"total_size\":30},\"weight_map\":{\"w\":\"a.safetensors\","
             "\"b\":\"a.safetensors\",\"e.s\":\"%s\"}}",
             of_s);
    write_bytes(path, text, strlen(text));
}

static void several_files_are_read_by_their_list(void **state)
{
    const char *list = in_folder(state, "model.safetensors.index.json");
    ot_shards_info info = OT_SHARDS_INFO_INIT;
    const char *paths[] = {list, *state};
    const ot_tensor *tensor;
    ot_dict *dict;

    write_bytes(in_folder(state, "a.safetensors"), vector, sizeof vector - 1);
    write_bytes(in_folder(state, "b.safetensors"), other, sizeof other - 1);
    write_list(list, "b.safetensors");
    for (size_t i = 0; i < OT_COUNT(paths); i++) {
        ot_shards_reader *reader;

        if (ot_shards_open(paths[i], &reader) != OT_OK)
            fail_msg("%s", ot_error_message());
        assert_string_equal(ot_shards_reader_path(reader), list);
        assert_int_equal(ot_shards_reader_info(reader, &info), OT_OK);
        assert_int_equal(info.n_files, 2);
        assert_int_equal(info.n_tensors, 3);
        assert_int_equal(ot_shards_reader_read(reader, "model", &dict), OT_OK);
        assert_int_equal(ot_dict_get_tensor(dict, "e.s", &tensor), OT_OK);
        assert_int_equal(*(const int64_t *)ot_tensor_data_const(tensor), 7);
        ot_dict_destroy(dict);
        assert_int_equal(ot_shards_reader_verify(reader), OT_OK);
        ot_shards_reader_destroy(reader);
    }
    write_list(list, "../b.safetensors");
    expect_refused(list, OT_ERR_FORMAT, "'../b.safetensors' is not the name of a file beside");
    write_list(list, "c.safetensors");
    expect_refused(list, OT_ERR_IO, "c.safetensors: cannot be read");
    write_bytes(in_folder(state, "c.safetensors"), vector, sizeof vector - 1);
    expect_refused(list, OT_ERR_FORMAT, "tensor 'model.b': is there twice");
    write_bytes(list, "{}", 2);
    expect_refused(list, OT_ERR_FORMAT, "no file is named by a 'weight_map'");
    write_bytes(list, "{\"weight_map\":{\"w\":1}}", 22);
    expect_refused(list, OT_ERR_FORMAT, "model.safetensors.index.json: byte ");
}

static ot_tensor *zeros(const ot_shape *shape)
{
    ot_tensor *tensor;

    assert_int_equal(ot_tensor_create(OT_F32, shape, &tensor), OT_OK);
    memset(ot_tensor_data(tensor), 0, ot_tensor_bytes(tensor));
    return tensor;
}

static void files_of_another_maker_fill_trees(void **state)
{
    const char *folder = in_folder(state, ".");
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    const ot_tensor *tensor;

    write_bytes(in_folder(state, "a.safetensors"), vector, sizeof vector - 1);
    write_bytes(in_folder(state, "b.safetensors"), other, sizeof other - 1);
    write_list(in_folder(state, "model.safetensors.index.json"), "b.safetensors");
    item.name = "model";
    assert_int_equal(ot_dict_create(&item.dict), OT_OK);
    assert_int_equal(ot_dict_take_tensor(item.dict, "w", zeros(&OT_SHAPE(2, 2))), OT_OK);
    assert_int_equal(ot_dict_take_tensor(item.dict, "b", zeros(&OT_SHAPE(3))), OT_OK);
    options.allows_unexpected = 1;
    assert_int_equal(ot_shards_load(NULL, folder, &item, 1, &options), OT_ERR_INVALID); // f16
    options.casts = 1;
    assert_int_equal(ot_shards_load(NULL, folder, &item, 1, &options), OT_OK);
    assert_int_equal(ot_dict_get_tensor(item.dict, "w", &tensor), OT_OK);
    assert_true(((const float *)ot_tensor_data_const(tensor))[3] == 4);
    assert_int_equal(ot_dict_get_tensor(item.dict, "b", &tensor), OT_OK);
    assert_true(((const float *)ot_tensor_data_const(tensor))[2] == 3);
    options.allows_unexpected = 0;
    assert_int_equal(ot_shards_load(NULL, folder, &item, 1, &options), OT_ERR_NOT_FOUND);
    item.name = "optimizer";
    assert_int_equal(ot_shards_load(NULL, folder, &item, 1, &options), OT_ERR_NOT_FOUND);
    assert_non_null(strstr(ot_error_message(), "no item 'optimizer', it has: model"));
    ot_dict_destroy(item.dict);
}

static void every_allocation_of_a_list_may_fail(void **state)
{
    const char *list = in_folder(state, "model.safetensors.index.json");
    ot_status st = OT_ERR_NO_MEMORY;

    write_bytes(in_folder(state, "a.safetensors"), vector, sizeof vector - 1);
    write_bytes(in_folder(state, "b.safetensors"), other, sizeof other - 1);
    write_list(list, "b.safetensors");
    for (int n = 0; st != OT_OK; n++) {
        ot_shards_reader *reader = NULL;

        ot__alloc_fail_after(n);
        st = ot_shards_open(list, &reader);
        ot__alloc_fail_after(-1);
        if (st != OT_OK && st != OT_ERR_NO_MEMORY)
            fail_msg("%s", ot_error_message());
        ot_shards_reader_destroy(reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHARDS_TEST(a_file_of_another_maker_is_read),
        SHARDS_TEST(several_files_are_read_by_their_list),
        SHARDS_TEST(files_of_another_maker_fill_trees),
        SHARDS_TEST(every_allocation_of_a_list_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
