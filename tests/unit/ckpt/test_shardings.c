// SPDX-License-Identifier: Apache-2.0
// Parameters that are cut over ranks: what a checkpoint says of them, and what it refuses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/ckpt.h"
#include "unit/base/temporary_folder.h"

enum { ROWS = 5, COLUMNS = 2, RANKS = 4 };

// Element i of a tensor has the value i.
static ot_tensor *numbered(ot_shape shape)
{
    ot_tensor *t;

    assert_int_equal(ot_tensor_create(OT_F32, &shape, &t), OT_OK);
    for (int64_t i = 0; i < ot_tensor_count(t); i++)
        ((float *)t->data)[i] = (float)i;
    return t;
}

static ot_sharding *cut_rows(ot_shape shape, int axis)
{
    ot_cut cut = OT_CUT_INIT;
    ot_sharding *sharding;

    cut.axis = axis;
    cut.rule = OT_CUT_CEIL;
    cut.n_parts = RANKS;
    assert_int_equal(ot_sharding_create(OT_F32, &shape, &cut, 1, -1, &sharding), OT_OK);
    return sharding;
}

static ot_checkpoint *one_parameter(ot__parameter **out)
{
    ot_checkpoint *checkpoint;

    assert_int_equal(ot_checkpoint_create(&checkpoint), OT_OK);
    assert_int_equal(ot__ckpt_add(checkpoint, "w", numbered(OT_SHAPE(ROWS, COLUMNS)), true, out),
                     OT_OK);
    return checkpoint;
}

static void assert_cut(ot_status found, const char *what)
{
    assert_int_equal(found, OT_ERR_STATE);
    if (strstr(ot_error_message(), what) == NULL ||
        strstr(ot_error_message(), "ot_session_get_shards()") == NULL)
        fail_msg("'%s' lacks '%s' or the remedy", ot_error_message(), what);
}

// ---- parts ----

// Five rows over four ranks, rounded up: two, two, one, none.
static void a_rank_has_its_rows(void **state)
{
    static const int64_t first[RANKS] = {0, 2, 4, 5}, n[RANKS] = {2, 2, 1, 0};
    ot__parameter *p;
    ot_checkpoint *checkpoint = one_parameter(&p);
    ot_sharding *rows = cut_rows(OT_SHAPE(ROWS, COLUMNS), 0);

    (void)state;
    for (int rank = 0; rank < RANKS; rank++) {
        ot_tensor *part;
        ot_shape shape;

        checkpoint->places[OT_CUT_DATA] = rank;
        assert_int_equal(ot__ckpt_cut(checkpoint, rows, p->value, &part), OT_OK);
        assert_int_equal(part->shape.dim[0], n[rank]);
        for (int64_t i = 0; i < n[rank] * COLUMNS; i++)
            assert_int_equal((int64_t)((float *)part->data)[i], first[rank] * COLUMNS + i);
        p->state_sharding = rows;
        assert_int_equal(ot__ckpt_state_shape(checkpoint, p, &shape), OT_OK);
        assert_true(ot__shape_equal(&shape, &part->shape));
        ot_tensor_destroy(part);
    }
    ot_checkpoint_destroy(checkpoint);
    ot_sharding_destroy(rows);
}

static void columns_are_no_piece_of_memory(void **state)
{
    const ot_shape shape = OT_SHAPE(3, 5, 2);
    ot__parameter *p;
    ot_checkpoint *checkpoint = one_parameter(&p);
    ot_sharding *columns = cut_rows(shape, 1);
    ot_tensor *whole = numbered(shape), *part;

    (void)state;
    checkpoint->places[OT_CUT_DATA] = 1; // 2 and 3 of axis 1
    assert_int_equal(ot__ckpt_cut(checkpoint, columns, whole, &part), OT_OK);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 2; k++)
                assert_int_equal((int)((float *)part->data)[(i * 2 + j) * 2 + k],
                                 (i * 5 + j + 2) * 2 + k);
    ot_tensor_destroy(part);
    ot_tensor_destroy(whole);
    ot_checkpoint_destroy(checkpoint);
    ot_sharding_destroy(columns);
}

// ---- what is whole ----

static void cut_values_are_told_whole_and_not_given_out(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot__parameter *p;
    ot_checkpoint *checkpoint = one_parameter(&p);
    ot_sharding *rows = cut_rows(OT_SHAPE(ROWS, COLUMNS), 0);
    ot_tensor *whole = p->value, *got;
    ot_dtype dtype;
    ot_shape shape;
    size_t n_bytes;

    checkpoint->places[OT_CUT_DATA] = 2;
    assert_int_equal(ot__ckpt_cut(checkpoint, rows, whole, &p->value), OT_OK);
    p->value_sharding = p->state_sharding = rows;
    assert_int_equal(ot_checkpoint_parameter_info(checkpoint, "w", &dtype, &shape), OT_OK);
    assert_true(ot__shape_equal(&shape, &whole->shape));
    assert_cut(ot_checkpoint_get_parameter(checkpoint, "w", &got), "parameter 'w' is cut");
    assert_null(got);
    assert_cut(ot_checkpoint_set_parameter(checkpoint, "w", p->value), "parameter 'w' is cut");
    assert_cut(ot_checkpoint_save(checkpoint, path, 0), "parameter 'w' is cut");
    assert_int_not_equal(access(path, F_OK), 0);
    assert_cut(ot_checkpoint_save_buffer(checkpoint, 0, NULL, 0, &n_bytes), "'w' is cut");
    assert_int_equal(ot_checkpoint_save(checkpoint, path, OT_CHECKPOINT_NOMINAL), OT_OK);
    ot_tensor_destroy(whole);
    ot_checkpoint_destroy(checkpoint);
    ot_sharding_destroy(rows);
}

// As with ZeRO 1: the values can be saved, without what the optimizer keeps.
static void cut_state_is_not_saved_in_one_file(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot__parameter *p;
    ot_checkpoint *checkpoint = one_parameter(&p);
    ot_sharding *rows = cut_rows(OT_SHAPE(ROWS, COLUMNS), 0);
    ot_tensor *got;

    p->state_sharding = rows;
    assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(2, COLUMNS), &p->gradient), OT_OK);
    assert_cut(ot_checkpoint_save(checkpoint, path, OT_CHECKPOINT_OPTIMIZER_STATE),
               "the optimizer's state of parameter 'w'");
    assert_int_equal(ot_checkpoint_save(checkpoint, path, 0), OT_OK);
    assert_int_equal(ot_checkpoint_get_parameter(checkpoint, "w", &got), OT_OK);
    ot_tensor_destroy(got);
    assert_cut(ot_checkpoint_get_gradient(checkpoint, "w", &got), "the gradient of parameter 'w'");
    assert_cut(ot_checkpoint_set_gradient(checkpoint, "w", p->value),
               "the gradient of parameter 'w'");
    ot_checkpoint_destroy(checkpoint);
    ot_sharding_destroy(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_has_its_rows),
        cmocka_unit_test(columns_are_no_piece_of_memory),
        cmocka_unit_test_setup_teardown(cut_values_are_told_whole_and_not_given_out,
                                        temporary_folder_make, temporary_folder_remove),
        cmocka_unit_test_setup_teardown(cut_state_is_not_saved_in_one_file, temporary_folder_make,
                                        temporary_folder_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
