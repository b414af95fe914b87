// SPDX-License-Identifier: Apache-2.0
// Lists of strings as Python's repr() writes them, from files that anybody may have written.
#include <stdlib.h>

#include "unit/graph/model_text.h"

static void assert_list(const char *text, int n, const char *const *items)
{
    ot__arena *arena = ot__arena_create();
    const char *const *found;
    int n_found;

    assert_non_null(arena);
    found = ot__metadata_list(arena, text, &n_found);
    assert_non_null(found);
    if (n_found != n)
        fail_msg("%s: %d strings", text, n_found);
    for (int i = 0; i < n; i++)
        assert_string_equal(found[i], items[i]);
    ot__arena_destroy(arena);
}

static void lists_are_read_as_python_prints_them(void **state)
{
    (void)state;
    assert_list("[]", 0, NULL);
    assert_list("['']", 1, (const char *const[]){""});
    assert_list("['', '']", 2, (const char *const[]){"", ""});
    assert_list("['', 'e2', 'e2.layers.1']", 3, (const char *const[]){"", "e2", "e2.layers.1"});
    assert_list("[\"it's\", 'a\\'b']", 2, (const char *const[]){"it's", "a'b"});
    assert_list("['\\\\', '\\\\\\'', '\\'']", 3, (const char *const[]){"\\", "\\'", "'"});
    assert_list("['], [', \", '\"]", 2, (const char *const[]){"], [", ", '"});
}

static void malformed_lists_are_none(void **state)
{
    static const char *const strings[] = {
        "",        "[",     "['",        "['a",    "['a'",   "['a', ", "['a',]",  "['a' 'b']",
        "[a]",     "'a'",   "['a', b]",  "['a\\",  "['a\\'", "[,]",    "['a', ]", "['a'; 'b']",
        "[['a']]", "[[]]",  "['a', []]", "[]]",    "[] ",    "['a']]", "[' ",     "['a'], ['b']",
        "['a\\']", "(',')", "['a\"]",    "[\"a']", "]",      "\\",     "['a',",   "['a'\n, 'b']",
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(strings); i++)
        assert_list(strings[i], -1, NULL);
}

enum { MANY = 1000000, ITEM = 4 };

// "['', '', ...": without its end.
static char *many_strings(size_t room)
{
    char *text = malloc(1 + (size_t)MANY * ITEM + room);

    assert_non_null(text);
    text[0] = '[';
    for (size_t i = 0; i < MANY; i++)
        memcpy(text + 1 + i * ITEM, "'', ", ITEM);
    return text;
}

static void a_million_strings_are_read_once(void **state)
{
    char *text = many_strings(sizeof "'z']");
    ot__arena *arena = ot__arena_create();
    const char *const *found;
    int n;

    (void)state;
    memcpy(text + 1 + (size_t)MANY * ITEM, "'z']", sizeof "'z']");
    found = ot__metadata_list(arena, text, &n);
    assert_non_null(found);
    assert_int_equal(n, MANY + 1);
    assert_string_equal(found[0], "");
    assert_string_equal(found[MANY - 1], "");
    assert_string_equal(found[MANY], "z");
    ot__arena_destroy(arena);
    free(text);
}

static void what_is_no_list_takes_no_memory(void **state)
{
    char *text = many_strings(1);
    ot__arena *arena = ot__arena_create();
    const size_t before = ot__arena_bytes(arena);
    int n;

    (void)state;
    text[1 + (size_t)MANY * ITEM] = '\0';
    assert_non_null(ot__metadata_list(arena, text, &n));
    assert_int_equal(n, -1);
    assert_int_equal(ot__arena_bytes(arena), before);
    ot__arena_destroy(arena);
    free(text);
}

static void failing_allocations_are_said(void **state)
{
    const char *const *found = NULL;
    int n_failed = 0;

    (void)state;
    while (!found) {
        char *text = many_strings(sizeof "'z']"); // more than an arena has from the start
        ot__arena *arena = ot__arena_create();
        int n;

        memcpy(text + 1 + (size_t)MANY * ITEM, "'z']", sizeof "'z']");
        ot__alloc_fail_after(n_failed);
        found = ot__metadata_list(arena, text, &n);
        ot__alloc_fail_after(-1);
        n_failed += !found;
        ot__arena_destroy(arena);
        free(text);
    }
    assert_int_equal(n_failed, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_read_as_python_prints_them),
        cmocka_unit_test(malformed_lists_are_none),
        cmocka_unit_test(a_million_strings_are_read_once),
        cmocka_unit_test(what_is_no_list_takes_no_memory),
        cmocka_unit_test(failing_allocations_are_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
