// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static const char *const losses[] = {"cross-entropy", "mse", "l1", "bce-with-logits", "none"};

static void slips_find_the_name_that_was_meant(void **state)
{
    static const struct {
        const char *wrong, *meant;
    } cases[] = {
        {"mse", "mse"},
        {"MSE", "mse"},                     // case
        {"cross_entropy", "cross-entropy"}, // sign between words
        {"crossentropy", "cross-entropy"},  // missing
        {"cross-entropie", "cross-entropy"},
        {"corss-entropy", "cross-entropy"}, // exchanged
        {"msse", "mse"},                    // too many
        {"nome", "none"},                   // wrong
        {"bce", "bce-with-logits"},         // cut short
        {"mse-loss", "mse"},                // too long
        {"cross_entropy_loss", "cross-entropy"},
        {"l2", NULL}, // another loss, not a slip
        {"hinge", NULL},
        {"b", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        const char *found = ot_nearest_name(cases[i].wrong, losses, (int)OT_COUNT(losses));

        if (cases[i].meant == NULL)
            assert_null(found);
        else
            assert_string_equal(found, cases[i].meant);
    }
}

static void the_last_part_of_a_name_is_near_it(void **state)
{
    static const char *const names[] = {"model.fc1.weight", "model.fc1.bias", "/layers/0/Relu"};

    (void)state;
    assert_string_equal(ot_nearest_name("fc1.bias", names, 3), "model.fc1.bias");
    assert_string_equal(ot_nearest_name("0/Relu", names, 3), "/layers/0/Relu");
    assert_null(ot_nearest_name("c1.bias", (const char *const[]){"model.fc1.bias"}, 1));
}

static void the_nearest_of_several_is_taken(void **state)
{
    static const char *const names[] = {"sepal_length", "sepal_width", "petal_length"};

    (void)state;
    assert_string_equal(ot_nearest_name("petal_lenght", names, 3), "petal_length");
    assert_string_equal(ot_nearest_name("sepal_widht", names, 3), "sepal_width");
    assert_null(ot_nearest_name("x", NULL, 3));
    assert_null(ot_nearest_name(NULL, names, 3));
}

static void names_of_any_length_are_taken(void **state)
{
    char a[1001], b[1001];
    const char *const names[] = {b};

    (void)state;
    memset(a, 'a', sizeof a);
    memset(b, 'a', sizeof b);
    a[1000] = b[1000] = '\0';
    assert_string_equal(ot_nearest_name(a, names, 1), b);
    a[500] = 'b';
    assert_null(ot_nearest_name(a, names, 1)); // too long to be compared letter by letter
    a[128] = b[128] = '\0';
    a[100] = 'b';
    assert_string_equal(ot_nearest_name(a, names, 1), b);
}

static void few_names_are_listed_and_many_are_counted(void **state)
{
    ot__names few = {.wanted = "clas"}, many = {.wanted = "x"}, none = {.wanted = "x"};
    ot__names long_ones = {.wanted = "x"};
    char name[20][16], long_name[400];

    (void)state;
    ot__names_add(&few, "a");
    ot__names_add(&few, "class");
    assert_string_equal(ot__names_list(&few, "fields"), "a, class");
    assert_string_equal(ot__names_hint(&few), "; did you mean 'class'?");
    for (int i = 0; i < 20; i++) {
        snprintf(name[i], sizeof name[i], "c%d", i);
        ot__names_add(&many, name[i]);
    }
    assert_string_equal(ot__names_list(&many, "columns"), "c0 to c19 (20 columns)");
    assert_string_equal(ot__names_hint(&many), "");
    assert_string_equal(ot__names_list(&none, "fields"), "none");
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    ot__names_add(&long_ones, long_name);
    ot__names_add(&long_ones, "z");
    assert_true(ot__ends_with(ot__names_list(&long_ones, "fields"), "nnn to z (2 fields)"));
}

static void expect_names(int n, const char *expected)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    ot__buf text = {0};

    ot__buf_names(&text, names, n);
    assert_string_equal(text.data, expected);
    ot__buf_deinit(&text);
}

static void several_names_are_listed_in_a_sentence(void **state)
{
    (void)state;
    expect_names(1, "'a'");
    expect_names(2, "'a' and 'b'");
    expect_names(4, "'a', 'b', 'c' and 'd'");
    expect_names(5, "'a', 'b', 'c' and 2 more");
    expect_names(1000, "'a', 'b', 'c' and 997 more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slips_find_the_name_that_was_meant),
        cmocka_unit_test(the_last_part_of_a_name_is_near_it),
        cmocka_unit_test(the_nearest_of_several_is_taken),
        cmocka_unit_test(names_of_any_length_are_taken),
        cmocka_unit_test(few_names_are_listed_and_many_are_counted),
        cmocka_unit_test(several_names_are_listed_in_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
