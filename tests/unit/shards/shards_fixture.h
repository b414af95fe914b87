// SPDX-License-Identifier: Apache-2.0
// States that are spread over threads as ranks: every element is its own place in its whole.
#ifndef TESTS_UNIT_SHARDS_SHARDS_FIXTURE_H
#define TESTS_UNIT_SHARDS_SHARDS_FIXTURE_H

#include <sched.h>

#include "onnxtrain/shards.h"
#include "shards/shards.h"
#include "unit/base/temporary_folder.h"
#include "unit/dist/ranks.h"

// How a state lies on the ranks.
typedef enum spread {
    SPREAD_REPLICATED,
    SPREAD_ROWS,    // of axis 0, rounded up: the last ranks may have nothing
    SPREAD_COLUMNS, // of the last axis
    SPREAD_RANGE,   // of all elements in a row: several boxes
    SPREAD_BLOCKS,  // of axis 0, cut in 2 blocks, each cut over the ranks: two boxes
    N_SPREADS,
} spread;

static const struct {
    const char *name;
    ot_dtype dtype;
    ot_shape shape;
} state_tensors[] = {
    {"fc.weight", OT_F32, {2, {8, 5}}}, {"fc.bias", OT_F16, {1, {13}}},
    {"step", OT_I64, {0, {0}}},         {"none", OT_F32, {2, {0, 3}}},
    {"conv", OT_F64, {3, {4, 3, 2}}},   {"mask", OT_BOOL, {1, {6}}},
};
enum { N_STATE_TENSORS = OT_COUNT(state_tensors) };

// What an element is: its number, as its type can hold it.
static inline void put_element(ot_dtype dtype, void *data, int64_t at, int64_t number, int64_t add)
{
    const int64_t value = number + add;

    switch (dtype) {
    case OT_F32:
        ((float *)data)[at] = (float)value;
        break;
    case OT_F64:
        ((double *)data)[at] = (double)value;
        break;
    case OT_F16:
        ((uint16_t *)data)[at] = ot__f32_to_f16((float)value);
        break;
    case OT_I64:
        ((int64_t *)data)[at] = value;
        break;
    default:
        ((uint8_t *)data)[at] = (uint8_t)(value & 1);
    }
}

// The numbers of a box's elements in the whole, as elements; or the first that differs: -1, all are
// right.
static inline int64_t walk_box(ot_dtype dtype, const ot_shape *shape, const ot_box *box, void *data,
                               int64_t add, bool checks)
{
    const int64_t count = ot__box_count(box);
    const size_t size = ot_dtype_size(dtype);

    for (int64_t at = 0; at < count; at++) {
        int64_t rest = at, number = 0, stride = 1;
        char expected[8] = "";

        for (int k = shape->ndim - 1; k >= 0; k--) {
            number += (box->offset[k] + rest % box->size[k]) * stride;
            rest /= box->size[k];
            stride *= shape->dim[k];
        }
        put_element(dtype, checks ? (void *)expected : data, checks ? 0 : at, number, add);
        if (checks && memcmp(expected, (const char *)data + (size_t)at * size, size) != 0)
            return at;
    }
    return -1;
}

static inline ot_box whole_box(const ot_shape *shape)
{
    ot_box box = {.ndim = shape->ndim};

    memcpy(box.size, shape->dim, sizeof box.size);
    return box;
}

// Part `part` of n of axis `axis`, within [from, to) of it.
static inline int cut_axis(const ot_shape *shape, int axis, int64_t from, int64_t to, int part,
                           int n, ot_box *box)
{
    const int64_t step = (to - from + n - 1) / n;
    const int64_t begin = OT_MIN(from + step * part, to), end = OT_MIN(begin + step, to);

    *box = whole_box(shape);
    box->offset[axis] = begin;
    box->size[axis] = end - begin;
    return ot__box_count(box) > 0;
}

// What rank r of n has; returns the number of boxes.
static inline int boxes_of(spread how, const ot_shape *shape, int r, int n, ot_box *boxes)
{
    int64_t count = 0;
    int n_boxes = 0;

    (void)ot__shape_count(shape, &count);
    if (how == SPREAD_REPLICATED || shape->ndim == 0) {
        boxes[0] = whole_box(shape);
        return count > 0;
    }
    switch (how) {
    case SPREAD_ROWS:
        return cut_axis(shape, 0, 0, shape->dim[0], r, n, boxes);
    case SPREAD_COLUMNS:
        return cut_axis(shape, shape->ndim - 1, 0, shape->dim[shape->ndim - 1], r, n, boxes);
    case SPREAD_RANGE:
        RANK_MUST(ot_box_of_range(shape, count * r / n, count * (r + 1) / n, boxes, &n_boxes));
        return n_boxes;
    default:
        n_boxes += cut_axis(shape, 0, 0, shape->dim[0] / 2, r, n, &boxes[n_boxes]);
        n_boxes += cut_axis(shape, 0, shape->dim[0] / 2, shape->dim[0], r, n, &boxes[n_boxes]);
        return n_boxes;
    }
}

// A tree with these tensors; of zeros where `fills` is not set. `add` differs from save to save.
static inline ot_dict *make_state(spread how, int r, int n, int64_t add, bool fills)
{
    ot_dict *dict;

    RANK_MUST(ot_dict_create(&dict));
    for (int i = 0; i < N_STATE_TENSORS; i++) {
        const ot_shape *shape = &state_tensors[i].shape;
        const ot_dtype dtype = state_tensors[i].dtype;
        ot_box boxes[OT_MAX_RANGE_BOXES];
        const int n_boxes = boxes_of(how, shape, r, n, boxes);
        const ot_shards *shards;

        if (how == SPREAD_REPLICATED && i % 2 == 0) { // as a tensor, too
            ot_tensor *tensor;

            RANK_MUST(ot_tensor_create(dtype, shape, &tensor));
            if (fills && n_boxes > 0)
                (void)walk_box(dtype, shape, &boxes[0], tensor->data, add, false);
            RANK_MUST(ot_dict_take_tensor(dict, state_tensors[i].name, tensor));
            continue;
        }
        RANK_MUST(
            ot_dict_take_shards(dict, state_tensors[i].name, dtype, shape, boxes, NULL, n_boxes));
        RANK_MUST(ot_dict_get_shards(dict, state_tensors[i].name, &shards));
        for (int k = 0; fills && k < n_boxes; k++)
            (void)walk_box(dtype, shape, &boxes[k], shards->parts[k]->data, add, false);
    }
    return dict;
}

// All elements of a tree are what make_state() puts there.
static inline void check_state(ot_dict *dict, int64_t add)
{
    for (int i = 0; i < N_STATE_TENSORS; i++) {
        const ot_shape *shape = &state_tensors[i].shape;
        const ot_shards *shards = NULL;
        const ot_tensor *tensor = NULL;
        ot_dict_kind kind;

        RANK_MUST(ot_dict_kind_of(dict, state_tensors[i].name, &kind));
        if (kind == OT_DICT_TENSOR) {
            const ot_box box = whole_box(shape);

            RANK_MUST(ot_dict_get_tensor(dict, state_tensors[i].name, &tensor));
            RANK_CHECK(walk_box(state_tensors[i].dtype, shape, &box, tensor->data, add, true) < 0,
                       "%s", state_tensors[i].name);
            continue;
        }
        RANK_MUST(ot_dict_get_shards(dict, state_tensors[i].name, &shards));
        for (int k = 0; shards != NULL && k < shards->n_parts; k++) {
            const int64_t wrong = walk_box(state_tensors[i].dtype, shape, &shards->boxes[k],
                                           shards->parts[k]->data, add, true);

            RANK_CHECK(wrong < 0, "element %d of part %d of %s", (int)wrong, k,
                       state_tensors[i].name);
        }
    }
}

// Numbers of a training, the same on all ranks.
static inline ot_dict *make_values(int64_t step)
{
    ot_dict *dict, *groups, *group, *names;

    RANK_MUST(ot_dict_create(&dict));
    RANK_MUST(ot_dict_set_int(dict, "step", step));
    RANK_MUST(ot_dict_set_float(dict, "lr", 0.1));
    RANK_MUST(ot_dict_set_list(dict, "groups", &groups));
    RANK_MUST(ot_dict_set_dict(groups, "0", &group));
    RANK_MUST(ot_dict_set_list(group, "params", &names));
    RANK_MUST(ot_dict_set_string(names, "0", "fc.weight"));
    return dict;
}

typedef struct call {
    const char *path;
    spread how;
    int64_t add; // to elements, and the step
    ot_shards_save_options options;
    ot_shards_load_options load_options;
    ot_status status; // that is expected
    const char *message;
    int allocations_of_rank; // -1: all succeed; else this rank fails after
    int64_t allocations;
} call;
#define CALL_INIT                                                                                  \
    {                                                                                              \
        .options = OT_SHARDS_SAVE_OPTIONS_INIT, .load_options = OT_SHARDS_LOAD_OPTIONS_INIT,       \
        .allocations_of_rank = -1                                                                  \
    }

static inline void check_status(const call *c, ot_status st)
{
    RANK_CHECK(st == c->status, "%s: %s", ot_status_name(st), ot_error_message());
    if (c->message != NULL)
        RANK_CHECK(strstr(ot_error_message(), c->message) != NULL, "%s", ot_error_message());
}

// Both run on a rank, with comm NULL too.
static inline ot_status save_call(ot_comm *comm, const call *c)
{
    const int r = comm != NULL ? ot_comm_rank(comm) : 0;
    const int n = comm != NULL ? ot_comm_world_size(comm) : 1;
    ot_shards_item items[] = {OT_SHARDS_ITEM_INIT, OT_SHARDS_ITEM_INIT};
    ot_shards_save_options options = c->options;
    ot_status st;

    items[0].name = "model";
    items[0].dict = make_state(c->how, r, n, c->add, true);
    items[1].name = "train";
    items[1].dict = make_values(c->add);
    options.step = c->add;
    if (c->allocations_of_rank == r)
        ot__alloc_fail_after(c->allocations);
    st = ot_shards_save(comm, c->path, items, 2, &options);
    ot__alloc_fail_after(-1);
    ot_dict_destroy(items[0].dict);
    ot_dict_destroy(items[1].dict);
    return st;
}

// As save_call(), by a job that is asked again and again until its end.
static inline ot_status save_by_job_call(ot_comm *comm, const call *c)
{
    const int r = comm != NULL ? ot_comm_rank(comm) : 0;
    const int n = comm != NULL ? ot_comm_world_size(comm) : 1;
    ot_shards_item items[] = {OT_SHARDS_ITEM_INIT, OT_SHARDS_ITEM_INIT};
    ot_shards_save_options options = c->options;
    ot_shards_job *job;
    ot_status st;
    int done = 0;

    RANK_MUST(ot_shards_job_create(&job));
    items[0].name = "model";
    items[0].dict = make_state(c->how, r, n, c->add, true);
    items[1].name = "train";
    items[1].dict = make_values(c->add);
    options.step = c->add;
    st = ot_shards_job_start(job, comm, c->path, items, 2, &options);
    ot_dict_destroy(items[0].dict); // nothing of it is needed any more
    ot_dict_destroy(items[1].dict);
    while (st == OT_OK && !done) {
        st = ot_shards_job_poll(job, &done);
        sched_yield();
    }
    ot_shards_job_destroy(job);
    return st;
}

static inline ot_status load_call(ot_comm *comm, const call *c)
{
    const int r = comm != NULL ? ot_comm_rank(comm) : 0;
    const int n = comm != NULL ? ot_comm_world_size(comm) : 1;
    ot_shards_item items[] = {OT_SHARDS_ITEM_INIT, OT_SHARDS_ITEM_INIT};
    int64_t step = -1;
    ot_status st;

    items[0].name = "model";
    items[0].dict = make_state(c->how, r, n, 0, false);
    items[1].name = "train";
    items[1].dict = make_values(0);
    if (c->allocations_of_rank == r)
        ot__alloc_fail_after(c->allocations);
    st = ot_shards_load(comm, c->path, items, 2, &c->load_options);
    ot__alloc_fail_after(-1);
    if (st == OT_OK) {
        check_state(items[0].dict, c->add);
        RANK_MUST(ot_dict_get_int(items[1].dict, "step", &step));
        RANK_CHECK(step == c->add, "step %d", (int)step);
    }
    ot_dict_destroy(items[0].dict);
    ot_dict_destroy(items[1].dict);
    return st;
}

static inline void save_rank(ot_comm *comm, void *context)
{
    check_status(context, save_call(comm, context));
}

static inline void load_rank(ot_comm *comm, void *context)
{
    check_status(context, load_call(comm, context));
}

// A checkpoint of one process; messages of the main thread go here.
static char main_finding[FINDING_LENGTH];

static inline void expect_no_finding(void)
{
    if (main_finding[0] != '\0')
        fail_msg("%s", main_finding);
}

static inline int fixture_make(void **state)
{
    rank_finding = main_finding;
    main_finding[0] = '\0';
    return temporary_folder_make(state);
}

#define SHARDS_TEST(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, fixture_make, temporary_folder_remove)

#endif
