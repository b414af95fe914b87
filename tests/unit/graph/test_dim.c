// SPDX-License-Identifier: Apache-2.0
#include "unit/graph/model_text.h"

typedef struct fixture {
    ot_model *model;
    int64_t n, h, w;
} fixture;

static int set_up(void **state)
{
    static fixture f;

    if (ot__model_create(&f.model) != OT_OK)
        return -1;
    f.n = ot__dim_symbol(f.model, "n");
    f.h = ot__dim_symbol(f.model, "h");
    f.w = ot__dim_symbol(f.model, "w");
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    ot_model_destroy(((fixture *)*state)->model);
    return 0;
}

static void assert_text(const fixture *f, int64_t dim, const char *expected)
{
    char text[300];

    assert_string_equal(ot__dim_text(f->model, dim, text, sizeof text), expected);
}

static void a_name_is_one_symbol(void **state)
{
    const fixture *f = *state;

    assert_true(ot__dim_is_symbol(f->n));
    assert_true(f->n == ot__dim_symbol(f->model, "n"));
    assert_false(f->n == f->h);
    assert_true(ot__dim_symbol(f->model, "") == OT_DIM_UNKNOWN);
    assert_true(ot__dim_symbol(f->model, NULL) == OT_DIM_UNKNOWN);
    assert_string_equal(ot__dim_name(f->model, f->n), "n");
    assert_null(ot__dim_name(f->model, 3));
    assert_null(ot__dim_name(f->model, OT_DIM_UNKNOWN));
}

static void texts_are_canonical(void **state)
{
    const fixture *f = *state;
    int64_t nh = ot__dim_mul(f->model, f->n, f->h);

    assert_text(f, 3, "3");
    assert_text(f, OT_DIM_UNKNOWN, "?");
    assert_text(f, nh, "h*n");
    assert_text(f, ot__dim_mul(f->model, 11, f->n), "11*n");
    assert_text(f, ot__dim_add(f->model, f->n, -1), "n-1");
    assert_text(f, ot__dim_sub(f->model, 4, f->n), "-n+4");
    assert_text(f, ot__dim_add(f->model, ot__dim_mul(f->model, 2, f->w), nh), "h*n+2*w");
    assert_text(f, ot__dim_div(f->model, ot__dim_add(f->model, f->h, 1), 2), "(h+1)/2");
    assert_text(f, ot__dim_mod(f->model, f->h, 3), "h%3");
}

static void the_same_expression_is_the_same_symbol_however_it_was_made(void **state)
{
    const fixture *f = *state;
    ot_model *m = f->model;
    int64_t product = ot__dim_mul(m, ot__dim_add(m, f->n, 1), ot__dim_sub(m, f->n, 1));
    int64_t square = ot__dim_sub(m, ot__dim_mul(m, f->n, f->n), 1);

    assert_true(product == square); // (n+1)(n-1) = n^2-1
    assert_true(ot__dim_mul(m, f->n, f->h) == ot__dim_mul(m, f->h, f->n));
    assert_true(ot__dim_sub(m, ot__dim_add(m, f->n, f->h), f->h) == f->n);
    assert_true(ot__dim_sub(m, f->n, f->n) == 0);
    assert_true(ot__dim_div(m, ot__dim_add(m, f->h, 1), 2) ==
                ot__dim_div(m, ot__dim_add(m, 1, f->h), 2));
    assert_true(ot__dim_mul(m, f->n, 1) == f->n);
    assert_true(ot__dim_mul(m, f->n, 0) == 0);
}

static void division_is_exact_where_it_can_be(void **state)
{
    const fixture *f = *state;
    ot_model *m = f->model;
    int64_t twelve_nh = ot__dim_mul(m, 12, ot__dim_mul(m, f->n, f->h));

    assert_true(ot__dim_div(m, twelve_nh, 12) == ot__dim_mul(m, f->n, f->h));
    assert_true(ot__dim_div(m, twelve_nh, f->h) == ot__dim_mul(m, 12, f->n));
    assert_true(ot__dim_div(m, twelve_nh, twelve_nh) == 1);
    assert_true(ot__dim_div(m, ot__dim_mul(m, f->n, f->n), f->n) == f->n);
    assert_true(ot__dim_mod(m, twelve_nh, 4) == 0);
    assert_text(f, ot__dim_div(m, f->n, f->h), "n/h");
    assert_text(f, ot__dim_div(m, twelve_nh, 5), "(12*h*n)/5");
}

static void numbers_divide_downwards(void **state)
{
    const fixture *f = *state;

    assert_true(ot__dim_div(f->model, 7, 2) == 3);
    assert_true(ot__dim_div(f->model, -7, 2) == -4);
    assert_true(ot__dim_mod(f->model, -7, 2) == 1);
    assert_true(ot__dim_mod(f->model, 7, -2) == -1);
    assert_true(ot__dim_div(f->model, 7, 0) == OT_DIM_UNKNOWN);
    assert_true(ot__dim_mod(f->model, f->n, 0) == OT_DIM_UNKNOWN);
}

static void overflow_is_unknown(void **state)
{
    const fixture *f = *state;
    ot_model *m = f->model;

    assert_true(ot__dim_mul(m, INT64_MAX, 2) == OT_DIM_UNKNOWN);
    assert_true(ot__dim_add(m, INT64_MAX, 1) == OT_DIM_UNKNOWN);
    assert_true(ot__dim_sub(m, OT_DIM_SYMBOL_END, 1) == OT_DIM_UNKNOWN);
    assert_true(ot__dim_add(m, OT_DIM_SYMBOL_END, 0) == OT_DIM_SYMBOL_END);
    assert_true(ot__dim_mul(m, -1, INT64_MAX) == -INT64_MAX ||
                ot__dim_mul(m, -1, INT64_MAX) == OT_DIM_UNKNOWN);
    assert_true(ot__dim_mul(m, ot__dim_mul(m, INT64_MAX, f->n), 2) == OT_DIM_UNKNOWN);
    assert_true(ot__dim_add(m, f->n, OT_DIM_UNKNOWN) == OT_DIM_UNKNOWN);
}

static void expressions_without_end_become_unknown(void **state)
{
    const fixture *f = *state;
    int64_t dim = f->n;
    int n_steps = 0;

    while (dim != OT_DIM_UNKNOWN && n_steps < 1000) {
        dim = ot__dim_div(f->model, ot__dim_add(f->model, dim, 1), 2);
        n_steps++;
    }
    assert_in_range(n_steps, 10, 999);
}

static void a_name_that_looks_like_an_expression_is_not_one(void **state)
{
    const fixture *f = *state;
    int64_t named = ot__dim_symbol(f->model, "2*n");
    int64_t made = ot__dim_mul(f->model, 2, f->n);

    assert_false(named == made);
    assert_text(f, ot__dim_mul(f->model, 3, named), "3*(2*n)");
}

static int64_t lookup(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "n") == 0 ? 5 : strcmp(name, "h") == 0 ? 7 : OT_DIM_UNKNOWN;
}

static void expressions_have_the_value_of_their_names(void **state)
{
    const fixture *f = *state;
    ot_model *m = f->model;
    int64_t sum = ot__dim_add(m, ot__dim_mul(m, f->n, f->h), -2); // 33
    int64_t half = ot__dim_div(m, sum, 2);                        // 16

    assert_true(ot__dim_evaluate(m, sum, lookup, NULL) == 33);
    assert_true(ot__dim_evaluate(m, half, lookup, NULL) == 16);
    assert_true(ot__dim_evaluate(m, ot__dim_mod(m, half, 5), lookup, NULL) == 1);
    assert_true(ot__dim_evaluate(m, 9, lookup, NULL) == 9);
    assert_true(ot__dim_evaluate(m, ot__dim_add(m, f->n, f->w), lookup, NULL) == OT_DIM_UNKNOWN);
}

static void texts_of_shapes_keep_their_symbols(void **state)
{
    const fixture *f = *state;
    char text[64];
    ot_shape shape = OT_SHAPE(f->n, 3, 4);

    assert_false(ot__shape_is_static(&shape));
    assert_string_equal(ot__dims_text(f->model, &shape, text, sizeof text), "[n,3,4]");
    assert_string_equal(ot__dims_text(f->model, &OT_SHAPE_SCALAR, text, sizeof text), "[]");
    assert_string_equal(ot__dims_text(f->model, &shape, text, 4), "[n,");
}

static void broadcasting_keeps_symbols(void **state)
{
    const fixture *f = *state;
    const ot_shape a = OT_SHAPE(f->n, 1, f->h, f->h, OT_DIM_UNKNOWN);
    const ot_shape b = OT_SHAPE(f->w, f->h, 4, 1);
    ot_shape y;

    assert_int_equal(ot__dims_broadcast(&a, &b, &y), OT_OK);
    assert_int_equal(y.ndim, 5);
    assert_true(y.dim[0] == f->n);
    assert_true(y.dim[1] == f->w);
    assert_true(y.dim[2] == f->h);
    assert_true(y.dim[3] == 4);
    assert_true(y.dim[4] == OT_DIM_UNKNOWN);
}

static void different_symbols_broadcast_to_an_unknown_extent(void **state)
{
    const fixture *f = *state;
    ot_shape y;

    assert_int_equal(ot__dims_broadcast(&OT_SHAPE(f->n), &OT_SHAPE(f->h), &y), OT_OK);
    assert_true(y.dim[0] == OT_DIM_UNKNOWN);
}

static void different_numbers_do_not_broadcast(void **state)
{
    const fixture *f = *state;
    ot_shape y;

    assert_int_equal(ot__dims_broadcast(&OT_SHAPE(f->n, 3), &OT_SHAPE(4), &y), OT_ERR_INVALID);
    assert_message_has("shapes [?,3] and [4] do not broadcast");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_name_is_one_symbol),
        TEST(texts_are_canonical),
        TEST(the_same_expression_is_the_same_symbol_however_it_was_made),
        TEST(division_is_exact_where_it_can_be),
        TEST(numbers_divide_downwards),
        TEST(overflow_is_unknown),
        TEST(expressions_without_end_become_unknown),
        TEST(a_name_that_looks_like_an_expression_is_not_one),
        TEST(expressions_have_the_value_of_their_names),
        TEST(texts_of_shapes_keep_their_symbols),
        TEST(broadcasting_keeps_symbols),
        TEST(different_symbols_broadcast_to_an_unknown_extent),
        TEST(different_numbers_do_not_broadcast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
