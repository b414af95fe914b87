// SPDX-License-Identifier: Apache-2.0
// Files of a checkpoint that are damaged, missing, or none at all.
#include "shards_fixture.h"

static void change_file(const char *path, long at, int add)
{
    FILE *file = fopen(path, "r+b");
    int byte;

    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    byte = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
    assert_int_equal(fputc((byte + add) & 0xff, file), (byte + add) & 0xff);
    assert_int_equal(fclose(file), 0);
}

static void expect_damage(const char *path, const char *of_load, const char *of_verify)
{
    ot_shards_reader *reader;
    call c = CALL_INIT;

    c.path = path;
    c.how = SPREAD_ROWS;
    c.status = of_load != NULL ? OT_ERR_FORMAT : OT_OK;
    c.message = of_load;
    run_ranks(2, load_rank, &c);
    if (of_verify == NULL) {
        assert_int_equal(ot_shards_open(path, &reader), OT_ERR_FORMAT);
        return;
    }
    assert_int_equal(ot_shards_open(path, &reader), OT_OK);
    assert_int_equal(ot_shards_reader_verify(reader), OT_ERR_FORMAT);
    if (strstr(ot_error_message(), of_verify) == NULL)
        fail_msg("%s", ot_error_message());
    ot_shards_reader_destroy(reader);
}

static void damaged_files_are_named(void **state)
{
    const char *path = in_folder(state, "a");
    char file[PATH_LENGTH_MAX];
    call c = CALL_INIT;

    c.path = path;
    c.how = SPREAD_ROWS;
    run_ranks(2, save_rank, &c);
    snprintf(file, sizeof file, "%s/data-00001-00000.safetensors", path);
    change_file(file, -1, 1);
    expect_damage(path, "data-00001-00000.safetensors: 'model.mask': chunk 1 has another checksum",
                  "'data-00001-00000.safetensors': tensor 'model.mask': chunk 1 has another");
    change_file(file, -1, -1);
    change_file(file, 30, 1); // the header, which is looked at by verify
    expect_damage(path, NULL, "its header has another checksum than the index says");
    change_file(file, 30, -1);
    assert_int_equal(truncate(file, 4100), 0);
    expect_damage(path, "data-00001-00000.safetensors: has 4100 bytes, expected", NULL);
    assert_int_equal(unlink(file), 0);
    c.status = OT_ERR_IO;
    c.message = "data-00001-00000.safetensors: cannot be read: No such file";
    run_ranks(2, load_rank, &c);
    snprintf(file, sizeof file, "%s/" OT_INDEX_NAME, path);
    change_file(file, 10, 1);
    expect_damage(path, "a/otckpt.index.json: byte ", NULL);
}

// ---- what is compared ----

enum { CHECKED_ROWS = 8, CHECKED_COLUMNS = 4, PART_ROWS = 3, ROW_BYTES = CHECKED_COLUMNS * 4 };

// The first rows of a tensor, whose last byte is another than that which was saved.
static void expect_checked(const char *path, int n_rows, ot_shards_verify_mode verify,
                           ot_status status, ot_shards_counters wanted)
{
    const ot_box box = {2, {0, 0}, {n_rows, CHECKED_COLUMNS}};
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;
    ot_shards_counters counters = OT_SHARDS_COUNTERS_INIT;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;

    item.name = "model";
    assert_int_equal(ot_dict_create(&item.dict), OT_OK);
    assert_int_equal(ot_dict_take_shards(item.dict, "w", OT_F32,
                                         &OT_SHAPE(CHECKED_ROWS, CHECKED_COLUMNS), &box, NULL, 1),
                     OT_OK);
    options.verify = verify;
    options.counters = &counters;
    assert_int_equal(ot_shards_load(NULL, path, &item, 1, &options), status);
    if (status != OT_OK &&
        strstr(ot_error_message(), "'model.w': chunk 0 has another checksum") == NULL)
        fail_msg("%s", ot_error_message());
    assert_int_equal(counters.bytes_wanted, wanted.bytes_wanted);
    assert_int_equal(counters.bytes_read, wanted.bytes_read);
    assert_int_equal(counters.bytes_unchecked, wanted.bytes_unchecked);
    ot_dict_destroy(item.dict);
}

static ot_shards_counters counts(int64_t wanted, int64_t read, int64_t unchecked)
{
    ot_shards_counters c = OT_SHARDS_COUNTERS_INIT;

    c.bytes_wanted = wanted;
    c.bytes_read = read;
    c.bytes_unchecked = unchecked;
    return c;
}

static void damage_is_found_as_far_as_is_asked(void **state)
{
    enum { WHOLE = CHECKED_ROWS * ROW_BYTES, PART = PART_ROWS * ROW_BYTES };
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    const char *path = in_folder(state, "a");
    char file[PATH_LENGTH_MAX];
    ot_tensor *tensor;

    item.name = "model";
    assert_int_equal(ot_dict_create(&item.dict), OT_OK);
    assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(CHECKED_ROWS, CHECKED_COLUMNS), &tensor),
                     OT_OK);
    assert_int_equal(ot_dict_take_tensor(item.dict, "w", tensor), OT_OK);
    assert_int_equal(ot_shards_save(NULL, path, &item, 1, NULL), OT_OK);
    ot_dict_destroy(item.dict);
    expect_checked(path, PART_ROWS, OT_SHARDS_VERIFY_ALL, OT_OK, counts(PART, WHOLE + PART, 0));
    snprintf(file, sizeof file, "%s/data-00000-00000.safetensors", path);
    change_file(file, -1, 1);
    expect_checked(path, CHECKED_ROWS, OT_SHARDS_VERIFY_READ, OT_ERR_FORMAT,
                   counts(WHOLE, WHOLE, 0));
    expect_checked(path, CHECKED_ROWS, OT_SHARDS_VERIFY_ALL, OT_ERR_FORMAT,
                   counts(WHOLE, WHOLE, 0));
    expect_checked(path, CHECKED_ROWS, OT_SHARDS_VERIFY_NONE, OT_OK, counts(WHOLE, WHOLE, WHOLE));
    // The damage is outside this part.
    expect_checked(path, PART_ROWS, OT_SHARDS_VERIFY_READ, OT_OK, counts(PART, PART, PART));
    expect_checked(path, PART_ROWS, OT_SHARDS_VERIFY_ALL, OT_ERR_FORMAT, counts(PART, WHOLE, 0));
    expect_checked(path, PART_ROWS, OT_SHARDS_VERIFY_NONE, OT_OK, counts(PART, PART, PART));
}

// ---- large chunks, whose parts several threads read and check ----

enum { LARGE_COUNT = 3 << 20, N_LARGE = 2 }; // elements, tensors

static ot_dict *make_large(float first)
{
    ot_dict *dict;

    assert_int_equal(ot_dict_create(&dict), OT_OK);
    for (int i = 0; i <= N_LARGE; i++) { // and a small one
        const int64_t count = i < N_LARGE ? LARGE_COUNT : 3;
        char name[16];
        ot_tensor *tensor;

        assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(count), &tensor), OT_OK);
        for (int64_t k = 0; first > 0 && k < count; k++)
            ((float *)ot_tensor_data(tensor))[k] = first + (float)k;
        snprintf(name, sizeof name, "t%d", i);
        assert_int_equal(ot_dict_take_tensor(dict, name, tensor), OT_OK);
    }
    return dict;
}

static void large_chunks_are_checked_too(void **state)
{
    ot_shards_item item = OT_SHARDS_ITEM_INIT, other = OT_SHARDS_ITEM_INIT;
    const char *path = in_folder(state, "a");
    char file[PATH_LENGTH_MAX];
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;
    ot_shards_counters counters = OT_SHARDS_COUNTERS_INIT;
    const ot_tensor *a, *b;

    options.counters = &counters;
    item.name = other.name = "model";
    item.dict = make_large(1);
    other.dict = make_large(0);
    assert_int_equal(ot_shards_save(NULL, path, &item, 1, NULL), OT_OK);
    assert_int_equal(ot_shards_load(NULL, path, &other, 1, &options), OT_OK);
    assert_int_equal(counters.bytes_wanted, 8 * LARGE_COUNT + 12);
    assert_int_equal(counters.bytes_read, 8 * LARGE_COUNT + 12);
    assert_int_equal(counters.bytes_unchecked, 0);
    for (int i = 0; i <= N_LARGE; i++) {
        const char *name = ot_dict_name(item.dict, i);

        assert_int_equal(ot_dict_get_tensor(item.dict, name, &a), OT_OK);
        assert_int_equal(ot_dict_get_tensor(other.dict, name, &b), OT_OK);
        assert_int_equal(
            memcmp(ot_tensor_data_const(a), ot_tensor_data_const(b), ot_tensor_bytes(a)), 0);
    }
    snprintf(file, sizeof file, "%s/data-00000-00000.safetensors", path);
    for (int k = 0; k < 3 * (N_LARGE + 1); k++) { // first, middle and last byte of each
        const int i = k / 3;
        const long n_bytes = i < N_LARGE ? 4L * LARGE_COUNT : 12;
        const long at = 4096 + 4L * LARGE_COUNT * i + (n_bytes - 1) * (k % 3) / 2;
        char message[64];

        change_file(file, at, 1);
        assert_int_equal(ot_shards_load(NULL, path, &other, 1, NULL), OT_ERR_FORMAT);
        snprintf(message, sizeof message, "'model.t%d': chunk 0 has another checksum", i);
        if (strstr(ot_error_message(), message) == NULL || strstr(ot_error_message(), file) == NULL)
            fail_msg("%s", ot_error_message());
        change_file(file, at, -1);
    }
    ot_dict_destroy(item.dict);
    ot_dict_destroy(other.dict);
}

// ---- what is looked at before anything is read ----

enum { TWO_COUNT = 64 };

// Two tensors of ones, each in a file of its own.
static void save_two(const char *path)
{
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    static const char *const names[] = {"a", "b"};

    item.name = "model";
    assert_int_equal(ot_dict_create(&item.dict), OT_OK);
    for (int i = 0; i < 2; i++) {
        ot_tensor *tensor;

        assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(TWO_COUNT), &tensor), OT_OK);
        for (int k = 0; k < TWO_COUNT; k++)
            ((float *)ot_tensor_data(tensor))[k] = 1;
        assert_int_equal(ot_dict_take_tensor(item.dict, names[i], tensor), OT_OK);
    }
    options.file_bytes_max = 1;
    assert_int_equal(ot_shards_save(NULL, path, &item, 1, &options), OT_OK);
    ot_dict_destroy(item.dict);
}

// Neither loads nor opens; not an element of what is sound is read.
static void expect_nothing_read(const char *path, ot_status status, const char *message)
{
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;
    ot_shards_counters counters = OT_SHARDS_COUNTERS_INIT;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    ot_shards_reader *reader;
    ot_tensor *tensors[2];

    counters.bytes_read = -1;
    options.counters = &counters;
    item.name = "model";
    assert_int_equal(ot_dict_create(&item.dict), OT_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(TWO_COUNT), &tensors[i]), OT_OK);
        assert_int_equal(ot_dict_take_tensor(item.dict, i == 0 ? "a" : "b", tensors[i]), OT_OK);
    }
    assert_int_equal(ot_shards_load(NULL, path, &item, 1, &options), status);
    if (strstr(ot_error_message(), message) == NULL)
        fail_msg("%s", ot_error_message());
    assert_int_equal(counters.bytes_read, 0);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < TWO_COUNT; k++)
            assert_true(((const float *)ot_tensor_data_const(tensors[i]))[k] == 0);
    ot_dict_destroy(item.dict);
    assert_int_equal(ot_shards_open(path, &reader), status);
    if (strstr(ot_error_message(), message) == NULL)
        fail_msg("%s", ot_error_message());
}

static void files_are_looked_at_before_anything_is_read(void **state)
{
    const char *path = in_folder(state, "a");
    char file[PATH_LENGTH_MAX];

    save_two(path);
    snprintf(file, sizeof file, "%s/data-00000-00001.safetensors", path);
    assert_int_equal(truncate(file, 4100), 0);
    expect_nothing_read(path, OT_ERR_FORMAT,
                        "data-00000-00001.safetensors: has 4100 bytes, expected 4352");
    assert_int_equal(truncate(file, 4353), 0);
    expect_nothing_read(path, OT_ERR_FORMAT,
                        "data-00000-00001.safetensors: has 4353 bytes, expected 4352");
    assert_int_equal(unlink(file), 0);
    expect_nothing_read(path, OT_ERR_IO, "data-00000-00001.safetensors: cannot be read");
    assert_int_equal(mkdir(file, 0777), 0);
    expect_nothing_read(path, OT_ERR_IO,
                        "data-00000-00001.safetensors: is a directory, expected a file");
    assert_int_equal(rmdir(file), 0);
    assert_int_equal(mkfifo(file, 0666), 0);
    expect_nothing_read(path, OT_ERR_IO,
                        "data-00000-00001.safetensors: is a pipe, expected a file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHARDS_TEST(damaged_files_are_named),
        SHARDS_TEST(damage_is_found_as_far_as_is_asked),
        SHARDS_TEST(large_chunks_are_checked_too),
        SHARDS_TEST(files_are_looked_at_before_anything_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
