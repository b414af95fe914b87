// SPDX-License-Identifier: Apache-2.0
// Shardings against a model that follows every element through every cut.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "onnxtrain/sharding.h"
#include "tensor/tensor.h"

enum { BOXES_MAX = 64, ALL_BOXES_MAX = 4096 };

#define CUT(...) ((ot_cut){.size = sizeof(ot_cut), __VA_ARGS__})

static ot_sharding *make(const ot_shape *shape, const ot_cut *cuts, int n_cuts)
{
    ot_sharding *sharding;

    if (ot_sharding_create(OT_F32, shape, cuts, n_cuts, -1, &sharding) != OT_OK)
        fail_msg("%s", ot_error_message());
    return sharding;
}

// ---- where an element is, by the definition of each rule ----

// An element of an axis goes to one member of the group, and has a place in what that one has.
static void follow_cut(const ot_cut *cut, int64_t size, int64_t *at, int *member, int64_t *left)
{
    const int64_t block = size / cut->blocks, b = *at / block, i = *at % block;
    int64_t begin = 0, end = block;

    *member = 0;
    if (cut->rule == OT_CUT_POINTS) {
        while (i >= cut->points[*member + 1])
            ++*member;
        begin = cut->points[*member];
        end = cut->points[*member + 1];
    } else if (cut->rule != OT_CUT_REPLICATE) {
        const int64_t part = (block + cut->n_parts - 1) / cut->n_parts;

        *member = (int)(i / part);
        begin = *member * part;
        end = begin + part > block ? block : begin + part;
    }
    *left = cut->blocks * (end - begin);
    *at = b * (end - begin) + i - begin;
}

typedef struct spot {
    int places[OT_MAX_CUT_GROUPS]; // -1: all of them
    int64_t local[OT_MAX_NDIM], shape[OT_MAX_NDIM];
} spot;

static spot find_element(const ot_shape *shape, const ot_cut *cuts, int n_cuts,
                         const int64_t *index)
{
    spot s;

    for (int g = 0; g < OT_MAX_CUT_GROUPS; g++)
        s.places[g] = -1;
    memcpy(s.local, index, sizeof s.local);
    memcpy(s.shape, shape->dim, sizeof s.shape);
    for (int i = 0; i < n_cuts; i++)
        if (cuts[i].rule != OT_CUT_REPLICATE)
            follow_cut(&cuts[i], s.shape[cuts[i].axis], &s.local[cuts[i].axis],
                       &s.places[cuts[i].group], &s.shape[cuts[i].axis]);
    return s;
}

// ---- random shardings ----

typedef struct draw {
    ot__rng_key key;
    uint64_t n;
} draw;

static int64_t below(draw *d, int64_t n)
{
    return (int64_t)((double)n * (double)ot__rng_uniform(d->key, d->n++)) % n;
}

typedef struct random_sharding {
    ot_shape shape;
    ot_cut cuts[OT_MAX_CUT_GROUPS];
    int64_t points[OT_MAX_CUT_GROUPS][17];
    int n_cuts, n_members[OT_MAX_CUT_GROUPS];
    ot_sharding *sharding;
} random_sharding;

static void draw_points(draw *d, ot_cut *cut, int64_t *points, int64_t size)
{
    for (int i = 0; i <= cut->n_parts; i++)
        points[i] = i == 0 ? 0 : i == cut->n_parts ? size : below(d, size + 1);
    for (int i = 1; i < cut->n_parts; i++) // in order
        for (int k = i; k > 1 && points[k] < points[k - 1]; k--) {
            const int64_t lower = points[k];

            points[k] = points[k - 1];
            points[k - 1] = lower;
        }
    cut->points = points;
}

// Of the first axis each cut may divide what an earlier one has left, when that is the same for
// all members.
static void draw_cut(draw *d, random_sharding *r, int i, int n_parts)
{
    ot_cut *cut = &r->cuts[i];
    int64_t size;

    *cut = CUT(.group = i, .axis = (int)below(d, r->shape.ndim), .n_parts = n_parts, .blocks = 1);
    size = r->shape.dim[cut->axis];
    for (int k = 0; k < i; k++)
        if (r->cuts[k].axis == cut->axis && r->cuts[k].rule != OT_CUT_REPLICATE)
            size = r->cuts[k].rule == OT_CUT_EVEN ? size / r->cuts[k].n_parts : -1;
    if (size > 0 && size % 2 == 0 && below(d, 3) == 0)
        cut->blocks = size % 4 == 0 && below(d, 2) == 0 ? 4 : 2;
    cut->rule = (ot_cut_rule)below(d, 4);
    if (cut->rule == OT_CUT_POINTS && size >= 0)
        draw_points(d, cut, r->points[i], size / cut->blocks);
    else if (cut->rule == OT_CUT_POINTS ||
             (cut->rule == OT_CUT_EVEN && (size < 0 || size / cut->blocks % n_parts != 0)))
        cut->rule = OT_CUT_CEIL;
}

static void draw_sharding(draw *d, const ot_shape *shape, int n_members, random_sharding *r)
{
    const int second = n_members % 2 == 0 && below(d, 2) == 0 ? 2 : 1;

    *r = (random_sharding){.shape = *shape, .n_members = {n_members / second, second, 1, 1}};
    r->n_cuts = shape->ndim == 0 ? 0 : second;
    for (int i = 0; i < r->n_cuts; i++)
        draw_cut(d, r, i, r->n_members[i]);
    r->sharding = make(shape, r->cuts, r->n_cuts);
}

static ot_shape draw_shape(draw *d)
{
    ot_shape shape = {.ndim = (int)below(d, 5)};

    for (int k = 0; k < shape.ndim; k++)
        shape.dim[k] = below(d, 8) == 0 ? 16 : below(d, 9) + (below(d, 12) != 0);
    return shape;
}

// ---- what a member has ----

typedef struct member_tensor {
    ot_shape shape;
    int64_t count, n_boxes;
    int64_t *cells; // the number in the whole of each; -1: nobody has written it
    ot_shard_box *boxes;
} member_tensor;

static int64_t cell_at(const ot_shape *shape, const int64_t *index)
{
    int64_t cell = 0;

    for (int k = 0; k < shape->ndim; k++)
        cell = cell * shape->dim[k] + index[k];
    return cell;
}

static void member_init(const random_sharding *r, const int *places, member_tensor *m)
{
    *m = (member_tensor){.boxes = ot__alloc(BOXES_MAX * sizeof *m->boxes)};
    assert_int_equal(ot_sharding_local_shape(r->sharding, places, &m->shape), OT_OK);
    assert_true(ot__shape_count(&m->shape, &m->count));
    assert_int_equal(ot_sharding_boxes(r->sharding, places, BOXES_MAX, m->boxes, &m->n_boxes),
                     OT_OK);
    m->cells = ot__alloc((size_t)m->count * sizeof *m->cells);
    for (int64_t i = 0; i < m->count; i++)
        m->cells[i] = -1;
}

static void member_deinit(member_tensor *m)
{
    ot__free(m->cells);
    ot__free(m->boxes);
}

static bool next_index(const int64_t *size, int ndim, int64_t *index)
{
    for (int k = ndim - 1; k >= 0; k--) {
        if (++index[k] < size[k])
            return true;
        index[k] = 0;
    }
    return false;
}

static bool next_member(const random_sharding *r, int *places)
{
    for (int g = 0; g < OT_MAX_CUT_GROUPS; g++) {
        if (++places[g] < r->n_members[g])
            return true;
        places[g] = 0;
    }
    return false;
}

// Where a cell of a box is in the member's tensor.
static int64_t local_cell(const member_tensor *m, const ot_shard_box *box, const int64_t *in_whole)
{
    int64_t index[OT_MAX_NDIM];

    for (int k = 0; k < m->shape.ndim; k++) {
        index[k] = in_whole[k] - box->box.offset[k] + box->local[k];
        assert_in_range(index[k], 0, m->shape.dim[k] - 1);
    }
    return cell_at(&m->shape, index);
}

// Every element that the model gives a member is where its boxes say, and there are no others.
static void check_member(const random_sharding *r, const int *places, const member_tensor *m)
{
    int64_t index[OT_MAX_NDIM] = {0}, count, n_seen = 0;

    assert_true(ot__shape_count(&r->shape, &count));
    for (int64_t i = 0; i < count; i++, next_index(r->shape.dim, r->shape.ndim, index)) {
        const spot s = find_element(&r->shape, r->cuts, r->n_cuts, index);
        bool is_mine = true;

        for (int g = 0; g < OT_MAX_CUT_GROUPS; g++)
            is_mine = is_mine && (s.places[g] < 0 || s.places[g] == places[g]);
        if (!is_mine)
            continue;
        assert_memory_equal(m->shape.dim, s.shape, sizeof(int64_t) * (size_t)r->shape.ndim);
        assert_int_equal(m->cells[cell_at(&m->shape, s.local)], i);
        n_seen++;
    }
    assert_int_equal(n_seen, m->count);
}

static void fill_member(const random_sharding *r, member_tensor *m)
{
    for (int64_t b = 0; b < m->n_boxes; b++) {
        const ot_box *box = &m->boxes[b].box;
        int64_t at[OT_MAX_NDIM] = {0}, index[OT_MAX_NDIM];

        do {
            for (int k = 0; k < box->ndim; k++)
                index[k] = box->offset[k] + at[k];
            m->cells[local_cell(m, &m->boxes[b], index)] = cell_at(&r->shape, index);
        } while (next_index(box->size, box->ndim, at));
    }
}

static void boxes_have_the_elements_that_the_rules_give_a_member(void **state)
{
    draw d = {ot__rng_key_make(11, 0, 0, ""), 0};

    (void)state;
    for (int i = 0; i < 1500; i++) {
        const ot_shape shape = draw_shape(&d);
        int places[OT_MAX_CUT_GROUPS] = {0};
        random_sharding r;

        draw_sharding(&d, &shape, 1 + (int)below(&d, 16), &r);
        do {
            member_tensor m;

            member_init(&r, places, &m);
            fill_member(&r, &m);
            check_member(&r, places, &m);
            member_deinit(&m);
        } while (next_member(&r, places));
        ot_sharding_destroy(r.sharding);
    }
}

// The first members with the same elements; the others have copies.
static bool is_first_holder(const random_sharding *r, const int *places)
{
    for (int g = 0; g < OT_MAX_CUT_GROUPS; g++)
        if (places[g] > 0 && ot_sharding_parts(r->sharding, g) == 1)
            return false;
    return true;
}

// All that `to` needs comes out of what the members of `from` have, each cell from one of them.
static void copy_from_members(const random_sharding *from, member_tensor *to)
{
    int places[OT_MAX_CUT_GROUPS] = {0};

    do {
        member_tensor m;

        if (!is_first_holder(from, places))
            continue;
        member_init(from, places, &m);
        fill_member(from, &m);
        for (int64_t i = 0; i < m.n_boxes; i++)
            for (int64_t k = 0; k < to->n_boxes; k++) {
                int64_t at[OT_MAX_NDIM] = {0}, index[OT_MAX_NDIM], *cell;
                ot_box both;

                if (!ot_box_intersect(&m.boxes[i].box, &to->boxes[k].box, &both))
                    continue;
                do {
                    for (int a = 0; a < both.ndim; a++)
                        index[a] = both.offset[a] + at[a];
                    cell = &to->cells[local_cell(to, &to->boxes[k], index)];
                    assert_int_equal(*cell, -1);
                    *cell = m.cells[local_cell(&m, &m.boxes[i], index)];
                } while (next_index(both.size, both.ndim, at));
            }
        member_deinit(&m);
    } while (next_member(from, places));
}

static void any_sharding_can_be_made_from_any_other(void **state)
{
    draw d = {ot__rng_key_make(12, 0, 0, ""), 0};

    (void)state;
    for (int n = 1; n <= 16; n++)
        for (int m = 1; m <= 16; m++) {
            const ot_shape shape = draw_shape(&d);
            int places[OT_MAX_CUT_GROUPS] = {0};
            random_sharding from, to;

            draw_sharding(&d, &shape, n, &from);
            draw_sharding(&d, &shape, m, &to);
            do {
                member_tensor own;

                member_init(&to, places, &own);
                copy_from_members(&from, &own);
                check_member(&to, places, &own);
                member_deinit(&own);
            } while (next_member(&to, places));
            ot_sharding_destroy(from.sharding);
            ot_sharding_destroy(to.sharding);
        }
}

static void the_boxes_of_all_members_are_a_partition(void **state)
{
    draw d = {ot__rng_key_make(13, 0, 0, ""), 0};
    ot_box *all = ot__alloc(ALL_BOXES_MAX * sizeof *all);

    (void)state;
    for (int i = 0; i < 500; i++) {
        const ot_shape shape = draw_shape(&d);
        int places[OT_MAX_CUT_GROUPS] = {0};
        random_sharding r;
        int64_t n = 0;

        draw_sharding(&d, &shape, 1 + (int)below(&d, 16), &r);
        do {
            member_tensor m;

            if (!is_first_holder(&r, places))
                continue;
            member_init(&r, places, &m);
            for (int64_t b = 0; b < m.n_boxes; b++)
                all[n++] = m.boxes[b].box;
            member_deinit(&m);
        } while (next_member(&r, places));
        assert_int_equal(ot_box_check_partition(&shape, all, n), OT_OK);
        if (n > 0) // one is missing, one is there twice
            assert_int_equal(ot_box_check_partition(&shape, all, n - 1), OT_ERR_INVALID);
        if (n > 0) {
            all[n] = all[below(&d, n)];
            assert_int_equal(ot_box_check_partition(&shape, all, n + 1), OT_ERR_INVALID);
            assert_non_null(strstr(ot_error_message(), "have elements in common"));
        }
        ot_sharding_destroy(r.sharding);
    }
    ot__free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_have_the_elements_that_the_rules_give_a_member),
        cmocka_unit_test(any_sharding_can_be_made_from_any_other),
        cmocka_unit_test(the_boxes_of_all_members_are_a_partition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
