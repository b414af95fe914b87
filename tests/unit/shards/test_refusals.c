// SPDX-License-Identifier: Apache-2.0
// What does not fit together: ranks, trees and checkpoints. All ranks hear the same, and the next
// call works.
#include "shards_fixture.h"

typedef struct refusal {
    call call;
    void (*spoil)(int rank, ot_shards_item *items);
} refusal;

static void save_spoiled(ot_comm *comm, void *context)
{
    const refusal *f = context;
    const int r = ot_comm_rank(comm), n = ot_comm_world_size(comm);
    ot_shards_item items[] = {OT_SHARDS_ITEM_INIT, OT_SHARDS_ITEM_INIT};

    items[0].name = "model";
    items[0].dict = make_state(f->call.how, r, n, 0, true);
    items[1].name = "train";
    items[1].dict = make_values(0);
    f->spoil(r, items);
    check_status(&f->call, ot_shards_save(comm, f->call.path, items, 2, &f->call.options));
    ot_dict_destroy(items[0].dict);
    ot_dict_destroy(items[1].dict);
}

static void load_spoiled(ot_comm *comm, void *context)
{
    const refusal *f = context;
    const int r = ot_comm_rank(comm), n = ot_comm_world_size(comm);
    ot_shards_item items[] = {OT_SHARDS_ITEM_INIT, OT_SHARDS_ITEM_INIT};

    items[0].name = "model";
    items[0].dict = make_state(f->call.how, r, n, 0, false);
    items[1].name = "train";
    items[1].dict = make_values(0);
    f->spoil(r, items);
    check_status(&f->call, ot_shards_load(comm, f->call.path, items, 2, &f->call.load_options));
    ot_dict_destroy(items[0].dict);
    ot_dict_destroy(items[1].dict);
}

// ---- what ranks say of themselves ----

static void take_away(int rank, ot_shards_item *items)
{
    if (rank == 1)
        RANK_MUST(ot_dict_take_shards(items[0].dict, "conv", OT_F64, &state_tensors[4].shape, NULL,
                                      NULL, 0));
}

static void overlap(int rank, ot_shards_item *items)
{
    const ot_box box = {3, {0, 0, 0}, {2, 1, 1}};

    if (rank == 1)
        RANK_MUST(ot_dict_take_shards(items[0].dict, "conv", OT_F64, &state_tensors[4].shape, &box,
                                      NULL, 1));
}

static void other_shape(int rank, ot_shards_item *items)
{
    RANK_MUST(
        ot_dict_take_shards(items[0].dict, "mask", OT_BOOL, &OT_SHAPE(6 + rank), NULL, NULL, 0));
}

static void other_value(int rank, ot_shards_item *items)
{
    RANK_MUST(ot_dict_set_int(items[1].dict, "step", rank));
}

static void other_item(int rank, ot_shards_item *items)
{
    items[1].name = rank == 1 ? "other" : "train";
}

static void bad_item(int rank, ot_shards_item *items)
{
    items[1].name = rank == 1 ? "a/b" : "train";
}

static void same_item(int rank, ot_shards_item *items)
{
    (void)rank;
    items[1].name = "model";
}

static void no_dict(int rank, ot_shards_item *items)
{
    if (rank == 1) {
        ot_dict_destroy(items[1].dict);
        items[1].dict = NULL;
    }
}

static void bad_text(int rank, ot_shards_item *items)
{
    if (rank == 1)
        RANK_MUST(ot_dict_set_string(items[1].dict, "note", "\xff"));
}

static void same_key(int rank, ot_shards_item *items)
{
    ot_dict *inner;

    (void)rank;
    RANK_MUST(ot_dict_set_dict(items[0].dict, "fc", &inner));
    RANK_MUST(ot_dict_take_shards(inner, "bias", OT_F32, &OT_SHAPE(0), NULL, NULL, 0));
}

static void no_such_type(int rank, ot_shards_item *items)
{
    ot_tensor *tensor;

    (void)rank;
    RANK_MUST(ot_tensor_create(OT_C128, &OT_SHAPE(1), &tensor));
    RANK_MUST(ot_dict_take_tensor(items[0].dict, "z", tensor));
}

static void too_deep(int rank, ot_shards_item *items)
{
    ot_dict *at = items[1].dict;

    (void)rank;
    for (int i = 0; i < 20; i++)
        RANK_MUST(ot_dict_set_dict(at, "d", &at));
}

static void saves_that_do_not_fit_are_refused_on_all_ranks(void **state)
{
    static const struct {
        void (*spoil)(int rank, ot_shards_item *items);
        ot_status status;
        const char *message;
    } cases[] = {
        {take_away, OT_ERR_INVALID,
         "rank 0: the parts of 'model.conv' on all ranks: 12 of 24 elements are in no box"},
        {overlap, OT_ERR_INVALID,
         "the parts of 'model.conv' on all ranks: boxes 0 and 1 have elements in common"},
        {other_shape, OT_ERR_MISMATCH,
         "ranks 0 and 1 differ in the names, types and shapes of tensors"},
        {other_value, OT_ERR_MISMATCH, "ranks 0 and 1 differ in the names and values"},
        {other_item, OT_ERR_MISMATCH, "ranks 0 and 1 differ in the names and values"},
        {bad_item, OT_ERR_INVALID, "rank 1: the name of item 1 is 'a/b', expected letters"},
        {same_item, OT_ERR_INVALID, "rank 0: item 'model' is there twice"},
        {no_dict, OT_ERR_INVALID, "rank 1: item 'train' has no dict"},
        {bad_text, OT_ERR_INVALID, "rank 1: item 'train': 'note': the text '?' is not UTF-8"},
        {same_key, OT_ERR_INVALID, "rank 0: two tensors have the name 'model.fc.bias'"},
        {no_such_type, OT_ERR_UNSUPPORTED,
         "rank 0: 'model.z': checkpoint directories have no tensors of c128"},
        {too_deep, OT_ERR_UNSUPPORTED, "more than 13 dicts and lists inside each other"},
    };

    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        refusal f = {.call = CALL_INIT, .spoil = cases[i].spoil};

        f.call.path = in_folder(state, "a");
        f.call.how = SPREAD_ROWS;
        f.call.status = cases[i].status;
        f.call.message = cases[i].message;
        run_ranks(2, save_spoiled, &f);
        assert_int_equal(count_entries(*state), 0);
    }
}

static void places_that_are_taken_are_refused(void **state)
{
    call c = CALL_INIT;

    c.path = in_folder(state, "a");
    run_ranks(2, save_rank, &c);
    c.status = OT_ERR_IO;
    c.message = "rank 0: ";
    c.add = 1;
    run_ranks(2, save_rank, &c);
    c.add = 0;
    c.status = OT_OK;
    c.message = NULL;
    run_ranks(2, load_rank, &c);
    assert_int_equal(mkdir(in_folder(state, "mine"), 0777), 0);
    assert_int_equal(mkdir(in_folder(state, "mine/photos"), 0777), 0);
    c.path = in_folder(state, "mine");
    c.options.replaces = 1;
    c.status = OT_ERR_IO;
    c.message = "mine: is no checkpoint, and is not replaced";
    run_ranks(2, save_rank, &c);
    c.path = in_folder(state, "none/a");
    c.message = "No such file or directory";
    run_ranks(2, save_rank, &c);
    c.path = in_folder(state, "b");
    c.options.step = 0;
    c.add = -1;
    c.status = OT_ERR_INVALID;
    c.message = "step is -1, expected 0 to 2^53 - 1";
    run_ranks(2, save_rank, &c);
}

// ---- trees and checkpoints ----

static void more_names(int rank, ot_shards_item *items)
{
    (void)rank;
    RANK_MUST(ot_dict_set_int(items[1].dict, "more", 1));
}

static void fewer_names(int rank, ot_shards_item *items)
{
    if (rank == 1)
        RANK_MUST(ot_dict_remove(items[0].dict, "mask"));
}

static void value_for_tensor(int rank, ot_shards_item *items)
{
    if (rank == 1)
        RANK_MUST(ot_dict_set_int(items[0].dict, "mask", 1));
}

static void wider_type(int rank, ot_shards_item *items)
{
    (void)rank;
    RANK_MUST(ot_dict_take_shards(items[0].dict, "fc.weight", OT_F64, &state_tensors[0].shape,
                                  &(const ot_box){2, {0, 0}, {1, 1}}, NULL, 1));
}

static void unlike_type(int rank, ot_shards_item *items)
{
    (void)rank;
    RANK_MUST(
        ot_dict_take_shards(items[0].dict, "step", OT_F32, &state_tensors[2].shape, NULL, NULL, 0));
}

static void trees_that_do_not_fit_are_refused_on_all_ranks(void **state)
{
    static const struct {
        void (*spoil)(int rank, ot_shards_item *items);
        ot_status status;
        const char *message;
    } cases[] = {
        {more_names, OT_ERR_NOT_FOUND, "rank 0: the checkpoint has no 'train.more'"},
        {fewer_names, OT_ERR_NOT_FOUND,
         "rank 1: the tree has no 'model.mask', which the checkpoint has"},
        {value_for_tensor, OT_ERR_INVALID,
         "rank 1: 'model.mask' is a tensor in the checkpoint, expected a value"},
        {other_shape, OT_ERR_INVALID,
         "rank 1: 'model.mask' has shape [6] in the checkpoint, expected [7]"},
        {wider_type, OT_ERR_INVALID,
         "rank 0: 'model.fc.weight' is of f32 in the checkpoint, expected f64; the option `casts`"},
        {unlike_type, OT_ERR_INVALID,
         "rank 0: 'model.step' is of i64 in the checkpoint, expected f32"},
        {other_item, OT_ERR_NOT_FOUND,
         "rank 1: the checkpoint has no item 'other', it has: model, train"},
    };
    call c = CALL_INIT;

    c.path = in_folder(state, "a");
    run_ranks(2, save_rank, &c);
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        refusal f = {.call = CALL_INIT, .spoil = cases[i].spoil};

        f.call.path = c.path;
        f.call.how = SPREAD_ROWS;
        f.call.status = cases[i].status;
        f.call.message = cases[i].message;
        run_ranks(2, load_spoiled, &f);
        f.call.status = OT_OK;
        f.call.message = NULL;
        if (cases[i].spoil == more_names) {
            f.call.load_options.allows_missing = 1;
            run_ranks(2, load_spoiled, &f);
        }
        if (cases[i].spoil == fewer_names) {
            f.call.load_options.allows_unexpected = 1;
            run_ranks(2, load_spoiled, &f);
        }
    }
    c.path = in_folder(state, "b");
    c.status = OT_ERR_NOT_FOUND;
    c.message = "b: no checkpoint directory: it has neither 'otckpt.index.json' nor 'latest'";
    run_ranks(2, load_rank, &c);
}

static void types_are_converted_where_that_is_wanted(void **state)
{
    const ot_shape shape = state_tensors[0].shape;
    const ot_box box = {2, {1, 1}, {5, 3}};
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    const ot_shards *shards;
    call c = CALL_INIT;

    c.path = in_folder(state, "a");
    c.how = SPREAD_RANGE;
    run_ranks(3, save_rank, &c);
    item.name = "model";
    assert_int_equal(ot_dict_create(&item.dict), OT_OK);
    assert_int_equal(ot_dict_take_shards(item.dict, "fc.weight", OT_F64, &shape, &box, NULL, 1),
                     OT_OK);
    options.casts = 1;
    options.allows_unexpected = 1;
    assert_int_equal(ot_shards_load(NULL, c.path, &item, 1, &options), OT_OK);
    assert_int_equal(ot_dict_get_shards(item.dict, "fc.weight", &shards), OT_OK);
    assert_int_equal(walk_box(OT_F64, &shape, &box, shards->parts[0]->data, 0, true), -1);
    ot_dict_destroy(item.dict);
}

static const ot_dtype all_types[] = {OT_BOOL, OT_U8,  OT_I8,  OT_U16,  OT_I16, OT_U32, OT_I32,
                                     OT_U64,  OT_I64, OT_F16, OT_BF16, OT_F32, OT_F64};
static const int numbers[] = {0, 1, 2, 3, 4};
enum { N_NUMBERS = OT_COUNT(numbers) };

// The numbers as elements of a type, by their bits where C has no such type.
static void put_numbers(ot_dtype dtype, void *data)
{
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400},
                          brains[] = {0, 0x3f80, 0x4000, 0x4040, 0x4080};

    for (int k = 0; k < N_NUMBERS; k++) {
        const size_t size = ot_dtype_size(dtype);
        const float single = (float)numbers[k];
        const double wide = numbers[k];
        const int64_t integer = dtype == OT_BOOL ? numbers[k] & 1 : numbers[k];
        const void *from = dtype == OT_F16    ? (const void *)&halves[k]
                           : dtype == OT_BF16 ? (const void *)&brains[k]
                           : dtype == OT_F32  ? (const void *)&single
                           : dtype == OT_F64  ? (const void *)&wide
                                              : (const void *)&integer;

        memcpy((char *)data + (size_t)k * size, from, size); // little-endian
    }
}

static ot_dict *make_numbers(ot_dtype name, ot_dtype dtype)
{
    ot_tensor *tensor;
    ot_dict *dict;

    assert_int_equal(ot_dict_create(&dict), OT_OK);
    assert_int_equal(ot_tensor_create(dtype, &OT_SHAPE(N_NUMBERS), &tensor), OT_OK);
    put_numbers(dtype, ot_tensor_data(tensor));
    assert_int_equal(ot_dict_take_tensor(dict, ot_dtype_name(name), tensor), OT_OK);
    return dict;
}

static bool is_cast(ot_dtype from, ot_dtype to)
{
    static const ot_dtype casts[][2] = {
        {OT_F16, OT_F32}, {OT_BF16, OT_F32}, {OT_F16, OT_F64}, {OT_BF16, OT_F64}, {OT_F32, OT_F64},
        {OT_F32, OT_F16}, {OT_F32, OT_BF16}, {OT_I8, OT_I16},  {OT_I8, OT_I32},   {OT_I16, OT_I32},
        {OT_I8, OT_I64},  {OT_I16, OT_I64},  {OT_I32, OT_I64}, {OT_U8, OT_U16},   {OT_U8, OT_U32},
        {OT_U16, OT_U32}, {OT_U8, OT_U64},   {OT_U16, OT_U64}, {OT_U32, OT_U64},
    };

    for (size_t i = 0; i < OT_COUNT(casts); i++)
        if (casts[i][0] == from && casts[i][1] == to)
            return true;
    return false;
}

// From each type to each other one: the same numbers, or a refusal that changes nothing.
static void expect_cast(const char *path, ot_dtype from, ot_dtype to)
{
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    char expected[N_NUMBERS * sizeof(double)] = "";
    const ot_tensor *tensor;
    ot_status st;

    item.name = ot_dtype_name(from);
    item.dict = make_numbers(from, to);
    assert_int_equal(ot_dict_get_tensor(item.dict, ot_dtype_name(from), &tensor), OT_OK);
    memset((void *)(uintptr_t)ot_tensor_data_const(tensor), 0, ot_tensor_bytes(tensor));
    options.casts = 1;
    st = ot_shards_load(NULL, path, &item, 1, &options);
    if (st != (from == to || is_cast(from, to) ? OT_OK : OT_ERR_INVALID))
        fail_msg("%s -> %s: %s", ot_dtype_name(from), ot_dtype_name(to), ot_status_name(st));
    if (st == OT_OK)
        put_numbers(to, expected);
    if (memcmp(ot_tensor_data_const(tensor), expected, ot_tensor_bytes(tensor)) != 0)
        fail_msg("%s -> %s: other numbers", ot_dtype_name(from), ot_dtype_name(to));
    ot_dict_destroy(item.dict);
}

static void types_are_converted_where_nothing_or_rounding_is_lost(void **state)
{
    ot_shards_item items[OT_COUNT(all_types)];

    for (size_t i = 0; i < OT_COUNT(all_types); i++) {
        items[i] = (ot_shards_item)OT_SHARDS_ITEM_INIT;
        items[i].name = ot_dtype_name(all_types[i]);
        items[i].dict = make_numbers(all_types[i], all_types[i]);
    }
    assert_int_equal(ot_shards_save(NULL, in_folder(state, "a"), items, (int)OT_COUNT(items), NULL),
                     OT_OK);
    for (size_t i = 0; i < OT_COUNT(all_types); i++) {
        ot_dict_destroy(items[i].dict);
        for (size_t k = 0; k < OT_COUNT(all_types); k++)
            expect_cast(in_folder(state, "a"), all_types[i], all_types[k]);
    }
}

// ---- the file `latest` ----

// What `latest` names is beside it.
static void a_file_latest_that_leads_elsewhere_is_refused(void **state)
{
    static const struct {
        const char *text;
        ot_status status;
        const char *message;
    } cases[] = {
        {"../a\n", OT_ERR_FORMAT, "'../a' is not the name of a directory beside it"},
        {"/etc\n", OT_ERR_FORMAT, "'/etc' is not the name of a directory beside it"},
        {"..\n", OT_ERR_FORMAT, "'..' is not the name of a directory beside it"},
        {"\n", OT_ERR_FORMAT, "'' is not the name of a directory beside it"},
        {"", OT_ERR_FORMAT, "is not the name of a directory beside it"},
        {"step-7\n", OT_ERR_NOT_FOUND, "names 'step-7', where there is no checkpoint"},
    };
    call c = CALL_INIT;

    c.path = in_folder(state, "a");
    run_ranks(2, save_rank, &c);
    c.path = *state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        FILE *file = fopen(in_folder(state, "latest"), "wb");

        assert_non_null(file);
        assert_true(fputs(cases[i].text, file) >= 0);
        assert_int_equal(fclose(file), 0);
        c.status = cases[i].status;
        c.message = cases[i].message;
        run_ranks(2, load_rank, &c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHARDS_TEST(saves_that_do_not_fit_are_refused_on_all_ranks),
        SHARDS_TEST(places_that_are_taken_are_refused),
        SHARDS_TEST(trees_that_do_not_fit_are_refused_on_all_ranks),
        SHARDS_TEST(types_are_converted_where_that_is_wanted),
        SHARDS_TEST(types_are_converted_where_nothing_or_rounding_is_lost),
        SHARDS_TEST(a_file_latest_that_leads_elsewhere_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
