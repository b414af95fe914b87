// SPDX-License-Identifier: Apache-2.0
// A state as several processes save it, cut by the rules of ZeRO and of splits by rows and columns.
#ifndef TESTS_UNIT_TRAINER_SHARDS_FIXTURE_H
#define TESTS_UNIT_TRAINER_SHARDS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "onnxtrain/onnxtrain.h"
#include "trainer/aggregate.h"

enum { MAX_SHARDS = 8, N_WEIGHTS = 5, N_UPDATES = 7, MAX_ELEMENTS = 24 };

typedef enum split { WHOLE = -1, BY_COLUMNS = 0, BY_ROWS = 1 } split;

// In the order of their names, which is that in which ZeRO deals them out.
static const struct {
    const char *name;
    ot_shape shape;
    split split;
    bool is_frozen;
} known[N_WEIGHTS] = {
    {"a.bias", {1, {6}}, BY_COLUMNS, false},   {"b.weight", {2, {4, 6}}, BY_COLUMNS, false},
    {"c.weight", {2, {6, 4}}, BY_ROWS, false}, {"d/scale", {0, {0}}, WHOLE, false},
    {"e.statistics", {1, {3}}, WHOLE, true},
};

typedef struct cutting {
    int d, h;
    bool is_zero, is_mixed;
    ot_dtype dtype;
} cutting;

typedef struct shards {
    ot_dict *state[MAX_SHARDS];
    const char *path[MAX_SHARDS];
    int n;
} shards;

static const char *const shard_paths[MAX_SHARDS] = {"zero", "one",  "two", "three",
                                                    "four", "five", "six", "seven"};

static inline void must(ot_status st)
{
    if (st != OT_OK)
        fail_msg("%s: %s", ot_status_name(st), ot_error_message());
}

// ---- the whole, by hand ----

static inline int count_of(int w)
{
    int n = 1;

    for (int i = 0; i < known[w].shape.ndim; i++)
        n *= (int)known[w].shape.dim[i];
    return n;
}

// `what`: 0 the weight, 1 and 2 its moments. Small whole numbers are the same in f16.
static inline float element_of(int w, int what, int i)
{
    return (float)(100 * what + 30 * w + i + 1);
}

static inline ot_tensor *values_tensor(ot_dtype dtype, ot_shape shape, const float *values, int n)
{
    ot_tensor *tensor;

    must(ot_tensor_create(dtype, &shape, &tensor));
    assert_int_equal(ot_tensor_count(tensor), n);
    assert_true(ot__convert(tensor->data, dtype, values, OT_F32, n));
    return tensor;
}

static inline void put_tensor(ot_dict *dict, const char *name, ot_tensor *tensor)
{
    must(ot_dict_take_tensor(dict, name, tensor));
}

static inline ot_dict *put_dict(ot_dict *dict, const char *name)
{
    ot_dict *made;

    must(ot_dict_set_dict(dict, name, &made));
    return made;
}

static inline ot_dict *below(ot_dict *dict, const char *name)
{
    ot_dict *found;

    must(ot_dict_get_dict(dict, name, &found));
    return found;
}

static inline ot_tensor *count_tensor(int64_t n)
{
    ot_tensor *tensor;

    must(ot_tensor_create(OT_I64, &OT_SHAPE(1), &tensor));
    *(int64_t *)tensor->data = n;
    return tensor;
}

static inline void put_options(ot_dict *state, bool is_mixed, int zero_stage, int rank, int d,
                               int h)
{
    ot_dict *options = put_dict(state, "trainer_options");

    must(ot_dict_set_bool(options, "mixed_precision", is_mixed));
    must(ot_dict_set_int(options, "zero_stage", zero_stage));
    must(ot_dict_set_int(options, "world_rank", rank));
    must(ot_dict_set_int(options, "world_size", (int64_t)d * h));
    must(ot_dict_set_string(options, "optimizer_name", "AdamOptimizer"));
    must(ot_dict_set_int(options, "data_parallel_size", d));
    must(ot_dict_set_int(options, "horizontal_parallel_size", h));
}

static inline void put_steps(ot_dict *state)
{
    ot_dict *steps = put_dict(state, "train_step_info");

    must(ot_dict_set_int(steps, "optimization_step", N_UPDATES));
    must(ot_dict_set_int(steps, "step", 2 * N_UPDATES));
}

// What a part of a weight is: in `shape`, or without axes; nothing when there are no elements.
typedef struct piece {
    float values[3][MAX_ELEMENTS];
    int n;
    ot_shape shape;
    bool is_whole;
} piece;

static inline void put_moments(ot_dict *optimizer, const char *name, ot_dtype dtype, const piece *p)
{
    ot_dict *of = put_dict(optimizer, name);

    put_tensor(of, "Moment_1", values_tensor(dtype, p->shape, p->values[1], p->n));
    put_tensor(of, "Moment_2", values_tensor(dtype, p->shape, p->values[2], p->n));
    put_tensor(of, "Update_Count", count_tensor(N_UPDATES + 1));
}

static inline piece whole_weight(int w)
{
    piece p = {.n = count_of(w), .shape = known[w].shape, .is_whole = true};

    for (int what = 0; what < 3; what++)
        for (int i = 0; i < p.n; i++)
            p.values[what][i] = element_of(w, what, i);
    return p;
}

static inline ot_dict *whole_state(const cutting *c)
{
    ot_dict *state, *full, *optimizer;

    must(ot_dict_create(&state));
    full = put_dict(put_dict(state, "model"), "full_precision");
    optimizer = put_dict(state, "optimizer");
    for (int w = 0; w < N_WEIGHTS; w++) {
        const piece p = whole_weight(w);

        put_tensor(full, known[w].name, values_tensor(c->dtype, p.shape, p.values[0], p.n));
        if (!known[w].is_frozen)
            put_moments(optimizer, known[w].name, c->dtype, &p);
    }
    put_options(state, c->is_mixed, 0, 0, 1, 1);
    put_steps(state);
    return state;
}

// ---- its parts ----

static inline bool is_split(const cutting *c, int w)
{
    return c->h > 1 && known[w].split != WHOLE;
}

// What a column has of a weight.
static inline piece column_of(const cutting *c, int w, int column)
{
    piece all = whole_weight(w), p = all;
    const int axis = known[w].split == BY_COLUMNS ? all.shape.ndim - 1 : 0;
    int inner = 1, part;

    if (!is_split(c, w))
        return all;
    p.shape.dim[axis] /= c->h;
    p.n /= c->h;
    for (int k = axis; k < all.shape.ndim; k++)
        inner *= (int)all.shape.dim[k];
    part = inner / c->h;
    for (int what = 0; what < 3; what++)
        for (int i = 0; i < p.n; i++)
            p.values[what][i] = all.values[what][i / part * inner + column * part + i % part];
    return p;
}

static inline piece cut_piece(const piece *from, int first, int end)
{
    piece p = {.n = OT_MAX(end - first, 0), .shape = {1, {OT_MAX(end - first, 0)}}};

    if (p.n == from->n)
        return *from;
    for (int what = 0; what < 3; what++)
        for (int i = 0; i < p.n; i++)
            p.values[what][i] = from->values[what][first + i];
    return p;
}

static inline int trained_elements(const cutting *c, int column)
{
    int n = 0;

    for (int w = 0; w < N_WEIGHTS; w++)
        n += known[w].is_frozen ? 0 : column_of(c, w, column).n;
    return n;
}

static inline void put_division(ot_dict *partition, const cutting *c, int w)
{
    const int64_t how = is_split(c, w) ? known[w].split : -1;
    ot_dict *of = put_dict(partition, known[w].name);

    must(ot_dict_set_ints(of, "original_dim", known[w].shape.dim, known[w].shape.ndim));
    if (c->h > 1 || w % 2 == 0) // ZeRO alone may leave it out
        must(ot_dict_set_ints(of, "megatron_row_partition", &how, 1));
}

static inline ot_dict *cut_state(const cutting *c, int rank)
{
    const int column = rank % c->h, replica = rank / c->h;
    const int share = (trained_elements(c, column) + c->d - 1) / c->d;
    ot_dict *state, *full, *optimizer, *partition;
    int at = 0;

    must(ot_dict_create(&state));
    full = put_dict(put_dict(state, "model"), "full_precision");
    optimizer = put_dict(state, "optimizer");
    partition = put_dict(state, "partition_info");
    for (int w = 0; w < N_WEIGHTS; w++) {
        const piece all = column_of(c, w, column);
        const bool deals = c->is_zero && !known[w].is_frozen;
        const int first = OT_MAX(replica * share - at, 0),
                  end = OT_MIN((replica + 1) * share - at, all.n);
        const piece mine = deals ? cut_piece(&all, first, end) : all;
        const piece *weight = c->is_mixed ? &mine : &all;

        if (weight->n > 0)
            put_tensor(full, known[w].name,
                       values_tensor(c->dtype, weight->shape, weight->values[0], weight->n));
        if (!known[w].is_frozen && mine.n > 0)
            put_moments(optimizer, known[w].name, c->dtype, &mine);
        if (is_split(c, w) || (mine.n > 0 && !mine.is_whole))
            put_division(partition, c, w);
        at += known[w].is_frozen ? 0 : all.n;
    }
    put_options(state, c->is_mixed, c->is_zero, rank, c->d, c->h);
    put_steps(state);
    return state;
}

static inline shards cut_all(const cutting *c)
{
    shards s = {.n = c->d * c->h};

    for (int r = 0; r < s.n; r++) {
        s.state[r] = cut_state(c, r);
        s.path[r] = shard_paths[r];
    }
    return s;
}

static inline void destroy_shards(shards *s)
{
    for (int r = 0; r < s->n; r++)
        ot_dict_destroy(s->state[r]);
}

static inline ot_status join_shards(const shards *s, ot_dict **out)
{
    return ot__state_aggregate((const ot_dict *const *)s->state, s->path, s->n, -1, out);
}

// ---- comparing ----

static inline void assert_same_tensor(const char *name, const ot_tensor *a, const ot_tensor *b)
{
    if (a->dtype != b->dtype || !ot__shape_equal(&a->shape, &b->shape))
        fail_msg("'%s' is %s%s, expected %s%s", name, ot_dtype_name(a->dtype),
                 OT_SHAPE_TEXT(&a->shape), ot_dtype_name(b->dtype), OT_SHAPE_TEXT(&b->shape));
    if (memcmp(a->data, b->data, a->n_bytes) != 0)
        fail_msg("'%s' has other elements", name);
}

static inline void assert_same_state(ot_dict *a, ot_dict *b)
{
    assert_int_equal(ot_dict_count(a), ot_dict_count(b));
    for (int i = 0; i < ot_dict_count(b); i++) {
        const char *name = ot_dict_name(b, i), *text, *other_text;
        ot_dict_kind kind, other_kind;
        const ot_tensor *tensor, *other_tensor;
        int64_t number, other_number;
        int flag, other_flag;

        must(ot_dict_kind_of(b, name, &kind));
        must(ot_dict_kind_of(a, name, &other_kind));
        assert_int_equal(other_kind, kind);
        if (kind == OT_DICT_DICT) {
            assert_same_state(below(a, name), below(b, name));
        } else if (kind == OT_DICT_TENSOR) {
            must(ot_dict_get_tensor(a, name, &tensor));
            must(ot_dict_get_tensor(b, name, &other_tensor));
            assert_same_tensor(name, tensor, other_tensor);
        } else if (kind == OT_DICT_INT) {
            must(ot_dict_get_int(a, name, &number));
            must(ot_dict_get_int(b, name, &other_number));
            if (number != other_number)
                fail_msg("'%s' is %" PRId64 ", expected %" PRId64, name, number, other_number);
        } else if (kind == OT_DICT_BOOL) {
            must(ot_dict_get_bool(a, name, &flag));
            must(ot_dict_get_bool(b, name, &other_flag));
            assert_int_equal(flag, other_flag);
        } else {
            assert_int_equal(kind, OT_DICT_STRING);
            must(ot_dict_get_string(a, name, &text));
            must(ot_dict_get_string(b, name, &other_text));
            assert_string_equal(text, other_text);
        }
    }
}

#endif
