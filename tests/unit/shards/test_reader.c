// SPDX-License-Identifier: Apache-2.0
// Checkpoints of another maker (record_checkpoint.py), and those that are written anew for another
// number of ranks.
#include "shards_fixture.h"

#define RECORDED OT_TEST_DIR "/recorded/run"

static void a_checkpoint_of_another_maker_is_read(void **state)
{
    const ot_shape shape = OT_SHAPE(8, 5);
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    ot_shards_info info = OT_SHARDS_INFO_INIT;
    const ot_box box = {2, {2, 1}, {4, 3}};
    const ot_shards *shards;
    const ot_tensor *tensor;
    ot_shards_reader *reader;
    const char *text;
    ot_dict *names;
    double lr;

    (void)state;
    assert_int_equal(ot_shards_open(RECORDED, &reader), OT_OK); // by its file `latest`
    assert_int_equal(ot_shards_reader_info(reader, &info), OT_OK);
    assert_int_equal(info.step, 7);
    assert_int_equal(info.n_chunks, 5);
    assert_int_equal(ot_shards_reader_verify(reader), OT_OK);
    ot_shards_reader_destroy(reader);
    item.name = "model";
    options.allows_unexpected = 1;
    options.verify = OT_SHARDS_VERIFY_ALL;
    assert_int_equal(ot_dict_create(&item.dict), OT_OK);
    assert_int_equal(ot_dict_take_shards(item.dict, "fc.weight", OT_F32, &shape, &box, NULL, 1),
                     OT_OK);
    assert_int_equal(ot_dict_take_shards(item.dict, "step", OT_I64, &OT_SHAPE_SCALAR,
                                         &(const ot_box){0}, NULL, 1),
                     OT_OK);
    assert_int_equal(ot_shards_load(NULL, RECORDED, &item, 1, &options), OT_OK);
    assert_int_equal(ot_dict_get_shards(item.dict, "fc.weight", &shards), OT_OK);
    assert_int_equal(walk_box(OT_F32, &shape, &box, shards->parts[0]->data, 0, true), -1);
    assert_int_equal(ot_dict_get_shards(item.dict, "step", &shards), OT_OK);
    assert_int_equal(*(const int64_t *)ot_tensor_data_const(shards->parts[0]), 7);
    ot_dict_destroy(item.dict);
    item.name = "train";
    assert_int_equal(ot_dict_create(&item.dict), OT_OK);
    assert_int_equal(ot_shards_load(NULL, RECORDED, &item, 1, NULL), OT_OK);
    assert_int_equal(ot_dict_get_float(item.dict, "lr", &lr), OT_OK);
    assert_true(lr == 0.25);
    assert_int_equal(ot_dict_get_list(item.dict, "names", &names), OT_OK);
    assert_int_equal(ot_dict_count(names), 3);
    assert_int_equal(ot_dict_get_string(names, "0", &text), OT_OK);
    assert_string_equal(text, "a");
    assert_int_equal(ot_dict_get_tensor(names, "0", &tensor), OT_ERR_INVALID);
    ot_dict_destroy(item.dict);
}

static void a_checkpoint_is_written_for_another_number_of_ranks(void **state)
{
    static const int counts[] = {1, 2, 5, 16};
    call c = CALL_INIT;
    char path[PATH_LENGTH_MAX];

    snprintf(path, sizeof path, "%s/from", (const char *)*state);
    c.path = path;
    c.how = SPREAD_RANGE;
    c.add = 11;
    run_ranks(3, save_rank, &c);
    for (size_t i = 0; i < OT_COUNT(counts); i++) {
        ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
        ot_shards_info info = OT_SHARDS_INFO_INIT;
        ot_shards_reader *reader;

        options.replaces = 1;
        c.path = in_folder(state, "to");
        if (ot_shards_reshard(path, c.path, counts[i], &options) != OT_OK)
            fail_msg("%s", ot_error_message());
        assert_int_equal(ot_shards_open(c.path, &reader), OT_OK);
        assert_int_equal(ot_shards_reader_info(reader, &info), OT_OK);
        assert_int_equal(info.world_size, counts[i]);
        assert_int_equal(info.step, 11);
        assert_int_equal(ot_shards_reader_verify(reader), OT_OK);
        ot_shards_reader_destroy(reader);
        run_ranks(2, load_rank, &c);
    }
    assert_int_equal(count_entries(*state), 2);
}

static void what_cannot_be_resharded_is_refused(void **state)
{
    const char *to = in_folder(state, "to");

    assert_int_equal(ot_shards_reshard(RECORDED, to, 0, NULL), OT_ERR_INVALID);
    assert_int_equal(ot_shards_reshard(in_folder(state, "none"), to, 1, NULL), OT_ERR_NOT_FOUND);
    assert_int_equal(ot_shards_reshard(RECORDED, to, 2, NULL), OT_OK);
    assert_int_equal(ot_shards_reshard(RECORDED, to, 2, NULL), OT_ERR_IO);
    assert_int_equal(count_entries(*state), 1);
}

static void every_allocation_of_a_reader_and_of_resharding_may_fail(void **state)
{
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
    ot_status st = OT_ERR_NO_MEMORY;

    options.replaces = 1;
    for (int n = 0; st != OT_OK; n++) {
        ot_shards_reader *reader = NULL;
        ot_dict *dict = NULL;

        ot__alloc_fail_after(n);
        st = ot_shards_open(RECORDED, &reader);
        OT_THEN(st, ot_shards_reader_read(reader, "model", &dict));
        OT_THEN(st, ot_shards_reader_verify(reader));
        OT_THEN(st, ot_shards_reshard(RECORDED, in_folder(state, "to"), 2, &options));
        ot__alloc_fail_after(-1);
        if (st != OT_OK && st != OT_ERR_NO_MEMORY)
            fail_msg("%s", ot_error_message());
        ot_dict_destroy(dict);
        ot_shards_reader_destroy(reader);
    }
    assert_int_equal(count_entries(*state), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHARDS_TEST(a_checkpoint_of_another_maker_is_read),
        SHARDS_TEST(a_checkpoint_is_written_for_another_number_of_ranks),
        SHARDS_TEST(what_cannot_be_resharded_is_refused),
        SHARDS_TEST(every_allocation_of_a_reader_and_of_resharding_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
