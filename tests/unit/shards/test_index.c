// SPDX-License-Identifier: Apache-2.0
// The index of a checkpoint directory: what is refused, each with its own message, and how large it
// may be.
#include <time.h>

#include "shards_fixture.h"

// Written by hand from the description of the format.
static const char good[] =
    "{\"format\":\"onnxtrain-checkpoint\",\"version\":[1,0],\"save_id\":\"0123456789abcdef\","
    "\"created_ns\":\"1700000000000000000\",\"writer\":\"onnxtrain/0.1.0\",\"step\":1200,"
    "\"world_size\":2,\"files\":["
    "{\"name\":\"data-00000-00000.safetensors\",\"size\":4176,\"data_start\":4096,"
    "\"crc32c\":\"00000001\"},"
    "{\"name\":\"data-00001-00000.safetensors\",\"size\":4144,\"data_start\":4096,"
    "\"crc32c\":\"ffffffff\"}],"
    "\"parts\":[],\"items\":{\"m\":{\"w\":[\"tensor\"],\"s\":[\"tensor\"],\"lr\":0.5},\"t\":{}},"
    "\"tensors\":{"
    "\"m.w\":{\"dtype\":\"F32\",\"shape\":[8,4],\"chunks\":["
    "{\"f\":0,\"o\":[0,0],\"s\":[5,4],\"b\":0,\"n\":80,\"c\":\"0000000a\"},"
    "{\"f\":1,\"o\":[5,0],\"s\":[3,4],\"b\":0,\"n\":48,\"c\":\"0000000b\"}]},"
    "\"m.s\":{\"dtype\":\"I64\",\"shape\":[0],\"chunks\":[]}}}";

static ot_status read_index(const char *text, ot__index *index)
{
    ot_status st = ot__index_read(text, strlen(text), index);

    if (st == OT_OK) {
        st = ot__index_check(index);
        if (st != OT_OK)
            ot__index_deinit(index);
    }
    return st;
}

// `from` in the good one becomes `to`.
static char *changed(const char *from, const char *to)
{
    const char *at = strstr(good, from);
    ot__buf out = {0};

    assert_non_null(at);
    ot__buf_append(&out, good, (size_t)(at - good));
    ot__buf_text(&out, to);
    ot__buf_text(&out, at + strlen(from));
    return out.data;
}

static void a_good_index_is_read(void **state)
{
    ot__index index;
    ot_dict *dict;
    double lr;

    (void)state;
    assert_int_equal(read_index(good, &index), OT_OK);
    assert_int_equal(index.n_files, 2);
    assert_int_equal(index.n_tensors, 2);
    assert_int_equal(index.n_chunks, 2);
    assert_true(index.unix_ns == UINT64_C(1700000000000000000));
    assert_int_equal(index.tensors[1].chunks[1].box[0], 5);
    assert_int_equal(index.tensors[1].chunks[1].crc, 0xb);
    assert_int_equal(ot_dict_create(&dict), OT_OK);
    assert_int_equal(ot__values_read(&index, &index.items[0], false, dict), OT_OK);
    assert_int_equal(ot_dict_get_float(dict, "lr", &lr), OT_OK);
    assert_true(lr == 0.5);
    ot_dict_destroy(dict);
    ot__index_deinit(&index);
}

static void what_is_wrong_is_refused_with_a_message_of_its_own(void **state)
{
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"onnxtrain-checkpoint", "other", "format 'other', expected 'onnxtrain-checkpoint'"},
        {"[1,0]", "[2,0]", "version 2.0, expected 1.x"},
        {"[1,0]", "[1]", "version 1.0, expected 1.x"},
        {"\"step\":1200", "\"step\":\"01\"",
         "'01', expected a whole number from 0 to 9223372036854775807"},
        {"\"step\":1200", "\"step\":\"-1\"", "'-1', expected a whole number"},
        {"\"step\":1200", "\"step\":\"\"", "'', expected a whole number"},
        {"\"step\":1200", "\"step\":\"9223372036854775808\"", "expected a whole number from 0 to"},
        {"\"f\":1", "\"f\":\"1048577\"", "expected a whole number from 0 to 1048576"},
        {"\"size\":4176", "\"size\":4176,\"more\":1", "unknown member 'more'"},
        {"\"step\":1200", "\"step\":-1", "expected a whole number from 0 on"},
        {"\"step\":1200", "\"step\":1e3", "expected a whole number from 0 on"},
        {"\"step\":1200", "\"step\":9007199254740992", "a number above 9007199254740991"},
        {"\"step\":1200", "\"step\":1,\"step\":1", "'step' is there twice"},
        {"\"step\":1200,", "", "no 'step'"},
        {"\"step\":1200", "\"stop\":1200", "unknown member 'stop'"},
        {"0123456789abcdef", "0123456789abcdeg", "save_id is not 16 hexadecimal digits"},
        {"1700000000000000000", "soon", "created_ns 'soon' is no time"},
        {"\"world_size\":2", "\"world_size\":2147483648", "a number above 2147483647"},
        {"data-00000-0", "../-00000-0", "'../-00000-00000.safetensors' is not the name of a file"},
        {"data-00000-0", "/ata-00000-0", "is not the name of a file beside the index"},
        {"data-00000-0", ".ata-00000-0", "is not the name of a file beside the index"},
        {"data-00000-00000.safetensors", "", "'' is not the name of a file beside the index"},
        {"data-00000-0", "data-00001-0", "file 'data-00001-00000.safetensors' is there twice"},
        {"data-00000-00000.safetensors", "otckpt.index.json",
         "file 'otckpt.index.json' is there twice"},
        {"\"size\":4176", "\"size\":4000", "its data begin at 4096 of 4000 bytes"},
        {"00000001", "1", "'1', expected 8 hexadecimal digits"},
        {"\"w\":[\"tensor\"]", "\"w\":[\"tensr\"]", "values of the unknown kind 'tensr'"},
        {"\"w\":[\"tensor\"]", "\"v\":[\"tensor\"]", "item 'm': byte 15: there is no tensor 'm.v'"},
        {"\"s\":[\"tensor\"],", "", "has 2 tensors, and its items 1"},
        {"\"t\":{}", "\"t\":1", "item 't' is no object"},
        {"\"t\":{}", "\"m\":{}", "item 'm' is there twice"},
        {"\"lr\":0.5", "\"w\":0.5", "'w' is there twice"},
        {"\"lr\":0.5", "\"\":0.5", "an empty name"},
        {"\"lr\":0.5", "\"lr\":99999999999999999999", "an integer of more than 64 bits"},
        {"\"lr\":0.5", "\"lr\":1e999", "a number beyond those of 64 bits"},
        {"\"lr\":0.5", "\"lr\":[\"bytes\",\"0\"]", "expected pairs of hexadecimal digits"},
        {"\"lr\":0.5", "\"lr\":[\"ints\",0.5]", "expected an integer"},
        {"\"lr\":0.5", "\"lr\":[\"float\",\"1\"]", "'1', expected nan, inf or -inf"},
        {"\"lr\":0.5", "\"lr\":[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]",
         "objects and arrays inside each other"},
        {"\"m.s\":{", "\"m.w\":{", "tensor 'm.w': is there twice"},
        {"F32", "F33", "unknown dtype 'F33'"},
        {"F32", "F4", "unknown dtype 'F4'"},
        {"[8,4]", "[8,4,1]", "tensor 'm.w' has 3 axes, its chunks 2"},
        {"[8,4]", "[8,4,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "more than 16 axes"},
        {"[8,4]", "[281474976710657,4]", "a number above 281474976710656"},
        {"[8,4]", "[281474976710656,281474976710656]", "tensor 'm.w': chunks: "},
        {"[8,4]", "[9,4]", "tensor 'm.w': chunks: 4 of 36 elements are in no box"},
        {"[8,4]", "[7,4]", "tensor 'm.w': chunks: box 1 has 3 elements of axis 0 from 5 on, of 7"},
        {"\"o\":[5,0]", "\"o\":[4,0]", "tensor 'm.w': chunks: boxes 0 and 1 have elements in"},
        {"\"s\":[3,4]", "\"s\":[0,4]", "box 1 has 0 elements of axis 0, expected some"},
        {"\"s\":[3,4]", "\"s\":[3]", "a chunk with 2 offsets and 1 sizes"},
        {"\"f\":1", "\"f\":2", "tensor 'm.w': chunk 1: is in file 2 of 2"},
        {"\"f\":1", "\"f\":0", "chunk 1: is the second one in file 'data-00000-00000.safetensors'"},
        {"\"n\":48", "\"n\":47", "chunk 1: has 47 bytes, its box and type 48"},
        {"\"b\":0,\"n\":48", "\"b\":1,\"n\":48",
         "chunk 1: 48 bytes from 1 on, of 48 that file 'data-00001-00000.safetensors' has"},
        {"\"chunks\":[]",
         "\"chunks\":[{\"f\":0,\"o\":[0],\"s\":[0],\"b\":0,\"n\":0,\"c\":"
         "\"00000000\"}]",
         "tensor 'm.s': chunks: box 0 has 0 elements"},
        {"\"m.s\"", "\"m.s\xff\"", "is not UTF-8"},
        {"\"parts\":[]", "\"parts\":[{\"name\":\"a/b\",\"size\":1,\"crc32c\":\"00000000\"}]",
         "'a/b' is not the name of a file beside the index"},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        char *text = changed(cases[i].from, cases[i].to);
        ot__index index;
        const ot_status st = read_index(text, &index);

        if (st != OT_ERR_FORMAT || strstr(ot_error_message(), cases[i].message) == NULL)
            fail_msg("%s -> %s: %s: %s", cases[i].from, cases[i].to, ot_status_name(st),
                     st == OT_OK ? "" : ot_error_message());
        ot__free(text);
    }
}

// Of others those that begin with "x-", of a later minor version all.
static void members_of_later_versions_are_passed_over(void **state)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"\"step\":", "\"x-note\":{\"a\":[1]},\"step\":"},
        {"[1,0]", "[1,1]"},
        {"[1,0]", "[1,7],\"note\":{\"a\":[1]}"},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        char *text = changed(cases[i].from, cases[i].to);
        ot__index index;

        if (read_index(text, &index) != OT_OK)
            fail_msg("%s: %s", cases[i].to, ot_error_message());
        assert_int_equal(index.n_chunks, 2);
        ot__index_deinit(&index);
        ot__free(text);
    }
}

// Numbers that JavaScript has not are texts; others may be.
static void numbers_are_read_as_texts_too(void **state)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"\"step\":1200", "\"step\":\"9007199254740993\""},
        {"\"step\":1200", "\"step\":\"1200\""},
        {"\"size\":4176", "\"size\":\"4176\""},
        {"\"data_start\":4096", "\"data_start\":\"4096\""},
        {"\"world_size\":2", "\"world_size\":\"2\""},
        {"[8,4]", "[\"8\",4]"},
        {"\"f\":1,\"o\":[5,0]", "\"f\":\"1\",\"o\":[\"5\",\"0\"]"},
        {"\"b\":0,\"n\":80", "\"b\":\"0\",\"n\":\"80\""},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        char *text = changed(cases[i].from, cases[i].to);
        ot__buf again = {0};
        ot__index index, read;

        if (read_index(text, &index) != OT_OK)
            fail_msg("%s: %s", cases[i].to, ot_error_message());
        assert_true(index.step == (i == 0 ? UINT64_C(9007199254740993) : 1200));
        assert_int_equal(index.world_size, 2);
        assert_int_equal(index.files[0].size, 4176);
        assert_int_equal(index.tensors[1].shape.dim[0], 8);
        assert_int_equal(index.tensors[1].chunks[1].box[0], 5);
        ot__index_write(&index, index.n_tensors, &again); // as it would be written
        assert_int_equal(ot__index_read(again.data, again.length, &read), OT_OK);
        assert_true(read.step == index.step);
        ot__buf_deinit(&again);
        ot__index_deinit(&read);
        ot__index_deinit(&index);
        ot__free(text);
    }
}

// An index that says that there is much takes no memory for what is not there.
static void announced_sizes_take_no_memory(void **state)
{
    char *text = changed("\"size\":4176", "\"size\":9007199254740991");
    ot__index index;

    (void)state;
    ot_set_memory_max((size_t)1 << 20);
    assert_int_equal(read_index(text, &index), OT_OK);
    ot__index_deinit(&index);
    ot_set_memory_max(0);
    ot__free(text);
}

static void every_allocation_of_an_index_may_fail(void **state)
{
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int n = 0; st != OT_OK; n++) {
        ot__index index;

        ot__alloc_fail_after(n);
        st = read_index(good, &index);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        if (st == OT_OK)
            ot__index_deinit(&index);
    }
}

// ---- many chunks ----

enum { MANY_TENSORS = 1000, CHUNKS = 210, ROWS_OF_CHUNK = 3 };

// More chunks than one file takes, of tensors of this many rows; boxes as chunks have them.
static void fill_large(ot__index *index)
{
    ot__index_file file = {"data.safetensors", 0, 0, 0};

    index->save_id = "0123456789abcdef";
    index->writer = "test";
    index->items = ot__arena_alloc(index->arena, sizeof *index->items);
    index->tensors = ot__arena_alloc(index->arena, MANY_TENSORS * sizeof *index->tensors);
    assert_true(index->items != NULL && index->tensors != NULL);
    for (int k = 0; k < CHUNKS; k++) {
        file.name = ot__arena_printf(index->arena, "data-%d", k);
        file.size = (uint64_t)MANY_TENSORS * ROWS_OF_CHUNK * 4;
        assert_true(ot__arena_push(index->arena, &index->files, &index->files_capacity,
                                   &index->n_files, &file, sizeof file));
    }
    for (int i = 0; i < MANY_TENSORS; i++) {
        ot__index_tensor *t = &index->tensors[index->n_tensors++];
        ot__index_chunk *chunks = ot__arena_alloc(index->arena, CHUNKS * sizeof *chunks);
        int64_t *box = ot__arena_alloc(index->arena, CHUNKS * 2 * sizeof *box);

        assert_true(chunks != NULL && box != NULL);
        *t = (ot__index_tensor){.key = ot__arena_printf(index->arena, "m.layer%04d", i),
                                .dtype = OT_F32,
                                .shape = {1, {CHUNKS * ROWS_OF_CHUNK}},
                                .n_chunks = CHUNKS,
                                .chunks = chunks};
        for (int k = 0; k < CHUNKS; k++, box += 2) {
            box[0] = k * ROWS_OF_CHUNK;
            box[1] = ROWS_OF_CHUNK;
            chunks[k] =
                (ot__index_chunk){.file = k, .begin = (uint64_t)i * ROWS_OF_CHUNK * 4, .box = box};
        }
    }
}

static void an_index_of_many_chunks_is_several_files(void **state)
{
    ot__index index = {.arena = ot__arena_create()}, again;
    ot__buf tree = {0}, text = {0};
    int n_first = 0, n_parts = 0;

    (void)state;
    fill_large(&index);
    ot__json_open(&tree, NULL, '{');
    for (int i = 0; i < MANY_TENSORS; i++)
        ot__json_raw(&tree, index.tensors[i].key + 2, "[\"tensor\"]");
    ot__json_close(&tree, '}');
    index.items[index.n_items++] = (ot__index_item){"m", tree.data};
    ot__index_write_tensors(&index, &n_first, NULL);
    assert_int_equal(n_first, OT_INDEX_PART_CHUNKS / CHUNKS);
    ot__index_write(&index, n_first, &text);
    assert_int_equal(ot__index_read(text.data, text.length, &again), OT_OK);
    for (int at = n_first; at < MANY_TENSORS; n_parts++) {
        text.length = 0;
        ot__index_write_tensors(&index, &at, &text);
        assert_int_equal(ot__index_read_part(&again, text.data, text.length), OT_OK);
    }
    assert_int_equal(n_parts, 2);
    assert_int_equal(ot__index_check(&again), OT_OK);
    assert_int_equal(again.n_chunks, MANY_TENSORS * CHUNKS);
    for (int i = 0; i < MANY_TENSORS; i++)
        assert_string_equal(again.tensors[i].key, index.tensors[i].key);
    ot__buf_deinit(&text);
    ot__buf_deinit(&tree);
    ot__index_deinit(&again);
    ot__index_deinit(&index);
}

// ---- plans ----

// Runs against cells: all boxes of small tensors, in all larger ones.
static void runs_are_those_of_single_cells(void **state)
{
    const ot_box from = {3, {0, 0, 0}, {4, 3, 4}};

    (void)state;
    for (int64_t a = 0; a < 4 * 3 * 4; a++)
        for (int64_t b = 0; b < 4 * 3 * 4; b++) {
            ot_box to = {3, {a / 12, a / 4 % 3, a % 4}, {0, 0, 0}}, both;
            int64_t expected_from[48], expected_to[48], begin, place;
            int n_expected = 0, n = 0;
            ot__runs runs;

            to.size[0] = b / 12 - to.offset[0] + 1;
            to.size[1] = b / 4 % 3 - to.offset[1] + 1;
            to.size[2] = b % 4 - to.offset[2] + 1;
            if (!ot_box_intersect(&from, &to, &both))
                continue;
            for (int64_t i = 0; i < to.size[0]; i++)
                for (int64_t j = 0; j < to.size[1]; j++)
                    for (int64_t k = 0; k < to.size[2]; k++) {
                        expected_from[n_expected] =
                            ((to.offset[0] + i) * 3 + to.offset[1] + j) * 4 + to.offset[2] + k;
                        expected_to[n_expected++] = (i * to.size[1] + j) * to.size[2] + k;
                    }
            ot__runs_begin(&runs, &both, &from, &to);
            while (ot__runs_next(&runs, &begin, &place))
                for (int64_t k = 0; k < runs.length; k++, n++) {
                    assert_in_range(n, 0, n_expected - 1);
                    assert_int_equal(begin + k, expected_from[n]);
                    assert_int_equal(place + k, expected_to[n]);
                }
            assert_int_equal(n, n_expected);
        }
}

// Replicas are given to who has least; equal plans for equal records in any order.
static void owners_are_balanced(void **state)
{
    enum { TENSORS = 40, RANKS = 7 };
    static ot__leaf leaves[TENSORS];
    static ot__save_record records[TENSORS * RANKS];
    static int64_t boxes[TENSORS][3];
    const ot__leaves tensors = {.items = leaves, .n = TENSORS};
    int64_t bytes[RANKS] = {0}, most = 0, least = INT64_MAX;
    int n = 0;

    (void)state;
    for (int i = 0; i < TENSORS; i++) {
        leaves[i] = (ot__leaf){.key = "x", .dtype = OT_F32, .shape = {1, {100 + i}}};
        boxes[i][0] = 2;
        boxes[i][2] = 100 + i;
        for (int r = RANKS - 1; r >= 0; r--)
            records[n++] = (ot__save_record){.tensor = i, .rank = r, .box = &boxes[i][1]};
    }
    assert_int_equal(ot__plan_save(&tensors, records, n, RANKS), OT_OK);
    for (int i = 0; i < n; i++)
        bytes[records[i].rank] += records[i].is_owned ? 4 * (100 + records[i].tensor) : 0;
    for (int r = 0; r < RANKS; r++) {
        most = OT_MAX(most, bytes[r]);
        least = OT_MIN(least, bytes[r]);
    }
    assert_true(most - least <= 4 * 140);
    assert_int_equal(records[0].rank, 0);
    assert_true(records[0].is_owned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_index_is_read),
        cmocka_unit_test(what_is_wrong_is_refused_with_a_message_of_its_own),
        cmocka_unit_test(members_of_later_versions_are_passed_over),
        cmocka_unit_test(numbers_are_read_as_texts_too),
        cmocka_unit_test(announced_sizes_take_no_memory),
        cmocka_unit_test(every_allocation_of_an_index_may_fail),
        cmocka_unit_test(an_index_of_many_chunks_is_several_files),
        cmocka_unit_test(runs_are_those_of_single_cells),
        cmocka_unit_test(owners_are_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
