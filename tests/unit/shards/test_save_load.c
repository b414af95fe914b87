// SPDX-License-Identifier: Apache-2.0
// Checkpoint directories that threads as ranks write and read.
#include <math.h>

#include "shards_fixture.h"

enum { MOST_RANKS = 16 };

static void save_with(int n, call *c)
{
    c->status = OT_OK;
    run_ranks(n, save_rank, c);
}

static void any_number_of_ranks_reads_what_any_number_has_written(void **state)
{
    call c = CALL_INIT;

    c.path = in_folder(state, "a");
    c.options.replaces = 1;
    for (int n = 1; n <= MOST_RANKS; n++) {
        c.how = (spread)(n % N_SPREADS);
        c.add = n;
        save_with(n, &c);
        for (int m = 1; m <= MOST_RANKS; m++) {
            c.how = (spread)((n + m) % N_SPREADS);
            run_ranks(m, load_rank, &c);
        }
    }
    assert_int_equal(count_entries(*state), 1);
}

static void every_sharding_is_read_as_every_other(void **state)
{
    call c = CALL_INIT;

    c.path = in_folder(state, "a");
    c.options.replaces = 1;
    for (int from = 0; from < N_SPREADS; from++) {
        c.how = (spread)from;
        c.add = from;
        save_with(3, &c);
        for (int to = 0; to < N_SPREADS; to++) {
            c.how = (spread)to;
            run_ranks(4, load_rank, &c);
        }
    }
}

static void one_process_saves_and_loads_without_a_communicator(void **state)
{
    call c = CALL_INIT;

    c.path = in_folder(state, "a/");
    c.add = 7;
    assert_int_equal(save_call(NULL, &c), OT_OK);
    assert_int_equal(load_call(NULL, &c), OT_OK);
    run_ranks(3, load_rank, &c);
    expect_no_finding();
}

static void equal_parts_are_written_once_and_by_all_ranks(void **state)
{
    call c = CALL_INIT;
    ot_shards_info info = OT_SHARDS_INFO_INIT;
    ot_shards_reader *reader;
    int64_t n_bytes = 0;

    c.path = in_folder(state, "a");
    c.how = SPREAD_REPLICATED;
    save_with(3, &c);
    for (int i = 0; i < N_STATE_TENSORS; i++) {
        size_t n;

        assert_int_equal(ot__tensor_sizes(state_tensors[i].dtype, &state_tensors[i].shape, &n),
                         OT_OK);
        n_bytes += (int64_t)n;
    }
    assert_int_equal(ot_shards_open(c.path, &reader), OT_OK);
    assert_int_equal(ot_shards_reader_info(reader, &info), OT_OK);
    assert_int_equal(info.n_bytes, n_bytes);
    assert_int_equal(info.n_files, 3); // nobody has nothing to write
    assert_int_equal(info.world_size, 3);
    assert_int_equal(info.n_tensors, N_STATE_TENSORS);
    assert_int_equal(info.n_chunks, N_STATE_TENSORS - 1); // one has no elements
    assert_int_equal(ot_shards_reader_verify(reader), OT_OK);
    ot_shards_reader_destroy(reader);
}

// ---- how much is read ----

enum { ROWS = 512, COLUMNS = 300 };

typedef struct reads {
    const char *path;
    spread how;
    int64_t wanted, read;
} reads;

static ot_dict *make_matrix(spread how, int r, int n, bool fills)
{
    const ot_shape shape = OT_SHAPE(ROWS, COLUMNS);
    const ot_shards *shards;
    ot_box boxes[OT_MAX_RANGE_BOXES];
    const int n_boxes = boxes_of(how, &shape, r, n, boxes);
    ot_dict *dict;

    RANK_MUST(ot_dict_create(&dict));
    RANK_MUST(ot_dict_take_shards(dict, "w", OT_F32, &shape, boxes, NULL, n_boxes));
    RANK_MUST(ot_dict_get_shards(dict, "w", &shards));
    for (int k = 0; fills && k < n_boxes; k++)
        (void)walk_box(OT_F32, &shape, &boxes[k], shards->parts[k]->data, 0, false);
    return dict;
}

static void save_matrix(ot_comm *comm, void *context)
{
    const reads *c = context;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;

    item.name = "m";
    item.dict = make_matrix(c->how, ot_comm_rank(comm), ot_comm_world_size(comm), true);
    RANK_MUST(ot_shards_save(comm, c->path, &item, 1, NULL));
    ot_dict_destroy(item.dict);
}

static void load_matrix(ot_comm *comm, void *context)
{
    const reads *c = context;
    const ot_shape shape = OT_SHAPE(ROWS, COLUMNS);
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;
    ot_shards_counters counters = OT_SHARDS_COUNTERS_INIT;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    const ot_shards *shards;

    item.name = "m";
    item.dict = make_matrix(c->how, ot_comm_rank(comm), ot_comm_world_size(comm), false);
    options.counters = &counters;
    RANK_MUST(ot_shards_load(comm, c->path, &item, 1, &options));
    RANK_MUST(ot_dict_get_shards(item.dict, "w", &shards));
    for (int k = 0; k < shards->n_parts; k++)
        RANK_CHECK(walk_box(OT_F32, &shape, &shards->boxes[k], shards->parts[k]->data, 0, true) < 0,
                   "part %d", k);
    RANK_CHECK(counters.bytes_wanted == c->wanted, "%d", (int)counters.bytes_wanted);
    RANK_CHECK(counters.bytes_read == c->read, "%d", (int)counters.bytes_read);
    ot_dict_destroy(item.dict);
}

static void a_rank_reads_the_bytes_that_it_wants(void **state)
{
    enum { HALF = ROWS * COLUMNS * 4 / 2, HALF_ROW = COLUMNS / 2 * 4 };
    reads c = {.path = in_folder(state, "a"), .how = SPREAD_ROWS};

    run_ranks(4, save_matrix, &c);
    c.wanted = HALF;
    c.read = HALF; // two of four files, whole
    run_ranks(2, load_matrix, &c);
    // Of columns, what lies between them is read along: the gaps are small. In each of the four
    // files, from the first column wanted to the last.
    c.how = SPREAD_COLUMNS;
    c.read = 2 * HALF - 4 * HALF_ROW;
    run_ranks(2, load_matrix, &c);
}

// ---- values ----

static void values_come_back_with_their_kinds_and_order(void **state)
{
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    ot_shards_reader *reader;
    ot_dict *dict, *inner, *back;
    const int64_t *ints;
    const void *bytes;
    const char *text;
    ot_dict_kind kind;
    double real;
    size_t n_bytes;
    int64_t i;
    int n;

    assert_int_equal(ot_dict_create(&dict), OT_OK);
    assert_int_equal(ot_dict_set_int(dict, "z", INT64_MIN), OT_OK);
    assert_int_equal(ot_dict_set_float(dict, "whole", 3.0), OT_OK);
    assert_int_equal(ot_dict_set_float(dict, "third", 1.0 / 3), OT_OK);
    assert_int_equal(ot_dict_set_float(dict, "nan", NAN), OT_OK);
    assert_int_equal(ot_dict_set_float(dict, "-inf", -INFINITY), OT_OK);
    assert_int_equal(ot_dict_set_bool(dict, "yes", 1), OT_OK);
    assert_int_equal(ot_dict_set_null(dict, "null"), OT_OK);
    assert_int_equal(ot_dict_set_string(dict, "text", "a \"b\"\n\xc3\xa9"), OT_OK);
    assert_int_equal(ot_dict_set_bytes(dict, "bytes", "\0\xff\x10", 3), OT_OK);
    assert_int_equal(ot_dict_set_ints(dict, "ints", (const int64_t[]){-1, INT64_MAX}, 2), OT_OK);
    assert_int_equal(ot_dict_set_ints(dict, "no ints", NULL, 0), OT_OK);
    assert_int_equal(ot_dict_set_list(dict, "list", &inner), OT_OK);
    assert_int_equal(ot_dict_set_dict(inner, "0", &inner), OT_OK);
    assert_int_equal(ot_dict_set_int(inner, "x", 1), OT_OK);
    item.name = "v";
    item.dict = dict;
    assert_int_equal(ot_shards_save(NULL, in_folder(state, "a"), &item, 1, NULL), OT_OK);
    assert_int_equal(ot_shards_open(in_folder(state, "a"), &reader), OT_OK);
    assert_int_equal(ot_shards_reader_read(reader, "v", &back), OT_OK);
    ot_shards_reader_destroy(reader);
    assert_int_equal(ot_dict_count(back), ot_dict_count(dict));
    for (int k = 0; k < ot_dict_count(dict); k++)
        assert_string_equal(ot_dict_name(back, k), ot_dict_name(dict, k));
    assert_int_equal(ot_dict_get_int(back, "z", &i), OT_OK);
    assert_true(i == INT64_MIN);
    assert_int_equal(ot_dict_get_float(back, "whole", &real), OT_OK);
    assert_true(real == 3.0);
    assert_int_equal(ot_dict_get_float(back, "third", &real), OT_OK);
    assert_true(real == 1.0 / 3);
    assert_int_equal(ot_dict_get_float(back, "nan", &real), OT_OK);
    assert_true(real != real);
    assert_int_equal(ot_dict_get_float(back, "-inf", &real), OT_OK);
    assert_true(real == -INFINITY);
    assert_int_equal(ot_dict_get_bool(back, "yes", &n), OT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(ot_dict_kind_of(back, "null", &kind), OT_OK);
    assert_int_equal(kind, OT_DICT_NULL);
    assert_int_equal(ot_dict_get_string(back, "text", &text), OT_OK);
    assert_string_equal(text, "a \"b\"\n\xc3\xa9");
    assert_int_equal(ot_dict_get_bytes(back, "bytes", &bytes, &n_bytes), OT_OK);
    assert_int_equal(n_bytes, 3);
    assert_memory_equal(bytes, "\0\xff\x10", 3);
    assert_int_equal(ot_dict_get_ints(back, "ints", &ints, &n), OT_OK);
    assert_true(n == 2 && ints[0] == -1 && ints[1] == INT64_MAX);
    assert_int_equal(ot_dict_get_ints(back, "no ints", &ints, &n), OT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(ot_dict_get_list(back, "list", &inner), OT_OK);
    assert_int_equal(ot_dict_get_dict(inner, "0", &inner), OT_OK);
    assert_int_equal(ot_dict_get_int(inner, "x", &i), OT_OK);
    ot_dict_destroy(back);
    ot_dict_destroy(dict);
}

static void a_tree_without_names_takes_all_values(void **state)
{
    call c = CALL_INIT;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    ot_dict *groups;

    c.path = in_folder(state, "a");
    c.add = 3;
    assert_int_equal(save_call(NULL, &c), OT_OK);
    item.name = "train";
    assert_int_equal(ot_dict_create(&item.dict), OT_OK);
    assert_int_equal(ot_shards_load(NULL, c.path, &item, 1, NULL), OT_OK);
    assert_int_equal(ot_dict_count(item.dict), 3);
    assert_int_equal(ot_dict_get_list(item.dict, "groups", &groups), OT_OK);
    assert_int_equal(ot_dict_count(groups), 1);
    ot_dict_destroy(item.dict);
    expect_no_finding();
}

// ---- files ----

static void files_are_split_where_they_become_too_large(void **state)
{
    call c = CALL_INIT;
    ot_shards_info info = OT_SHARDS_INFO_INIT;
    ot_shards_reader *reader;

    c.path = in_folder(state, "a");
    c.options.file_bytes_max = 30;
    c.how = SPREAD_BLOCKS; // two chunks of a tensor on a rank: never in one file
    save_with(2, &c);
    run_ranks(3, load_rank, &c);
    assert_int_equal(ot_shards_open(c.path, &reader), OT_OK);
    assert_int_equal(ot_shards_reader_info(reader, &info), OT_OK);
    assert_true(info.n_files > 8);
    assert_int_equal(ot_shards_reader_verify(reader), OT_OK);
    ot_shards_reader_destroy(reader);
}

static int count_named(const char *folder, const char *prefix)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    int n = 0;

    while (entries && (entry = readdir(entries)))
        n += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    if (entries)
        closedir(entries);
    return n;
}

static void the_newest_are_kept_and_latest_names_the_last(void **state)
{
    call c = CALL_INIT;

    c.options.sets_latest = 1;
    c.options.n_kept = 2;
    assert_int_equal(mkdir(in_folder(state, "step-mine"), 0777), 0);
    for (int step = 8; step < 13; step++) {
        char name[32];

        snprintf(name, sizeof name, "step-%d", step);
        c.path = in_folder(state, name);
        c.add = step;
        save_with(2, &c);
    }
    assert_int_equal(count_named(*state, "step-"), 3);
    assert_true(ot__path_exists(in_folder(state, "step-11/" OT_INDEX_NAME)));
    c.path = *state; // by the file `latest`
    run_ranks(2, load_rank, &c);
    // An older step, as of a training that went back, is kept, and so is what `latest` names.
    c.options.sets_latest = 0;
    c.path = in_folder(state, "step-3");
    c.add = 3;
    c.options.n_kept = 1;
    save_with(2, &c);
    assert_true(ot__path_exists(in_folder(state, "step-3")));
    assert_true(ot__path_exists(in_folder(state, "step-12")));
    assert_int_equal(count_named(*state, "step-"), 3);
}

static void parts_of_tensors_are_read_by_one_process(void **state)
{
    call c = CALL_INIT;
    ot_shards_tensor tensor = OT_SHARDS_TENSOR_INIT;
    const ot_box box = {2, {3, 1}, {2, 2}};
    ot_shards_reader *reader;
    ot_tensor *part;
    ot_dict *dict;

    c.path = in_folder(state, "a");
    c.how = SPREAD_RANGE;
    save_with(3, &c);
    assert_int_equal(ot_shards_open(c.path, &reader), OT_OK);
    assert_string_equal(ot_shards_reader_item(reader, 1), "train");
    assert_null(ot_shards_reader_item(reader, 2));
    assert_int_equal(ot_shards_reader_tensor(reader, 1, &tensor), OT_OK);
    assert_string_equal(tensor.key, "model.fc.bias");
    assert_int_equal(tensor.n_chunks, 3);
    assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(2, 2), &part), OT_OK);
    assert_int_equal(ot_shards_reader_read_box(reader, "model.fc.weight", &box, part), OT_OK);
    assert_int_equal(walk_box(OT_F32, &state_tensors[0].shape, &box, part->data, 0, true), -1);
    assert_int_equal(ot_shards_reader_read_box(reader, "model.conv", &box, part), OT_ERR_INVALID);
    assert_int_equal(ot_shards_reader_read_box(reader, "model.x", &box, part), OT_ERR_NOT_FOUND);
    ot_tensor_destroy(part);
    assert_int_equal(ot_shards_reader_read(reader, "model", &dict), OT_OK);
    check_state(dict, 0);
    ot_dict_destroy(dict);
    assert_int_equal(ot_shards_reader_describe(reader, "model", &dict), OT_OK);
    assert_int_equal(ot_dict_count(dict), N_STATE_TENSORS);
    ot_dict_destroy(dict);
    assert_int_equal(ot_shards_reader_read(reader, "modle", &dict), OT_ERR_NOT_FOUND);
    assert_string_equal(ot_error_message(), "the checkpoint has no item 'modle', it has: model, "
                                            "train; did you mean 'model'?");
    ot_shards_reader_destroy(reader);
    expect_no_finding();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHARDS_TEST(any_number_of_ranks_reads_what_any_number_has_written),
        SHARDS_TEST(every_sharding_is_read_as_every_other),
        SHARDS_TEST(one_process_saves_and_loads_without_a_communicator),
        SHARDS_TEST(equal_parts_are_written_once_and_by_all_ranks),
        SHARDS_TEST(a_rank_reads_the_bytes_that_it_wants),
        SHARDS_TEST(values_come_back_with_their_kinds_and_order),
        SHARDS_TEST(a_tree_without_names_takes_all_values),
        SHARDS_TEST(files_are_split_where_they_become_too_large),
        SHARDS_TEST(the_newest_are_kept_and_latest_names_the_last),
        SHARDS_TEST(parts_of_tensors_are_read_by_one_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
