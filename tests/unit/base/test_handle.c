// SPDX-License-Identifier: Apache-2.0
// Release builds keep no list of handles: there these tests have nothing to ask.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "forked.h"

struct ot_session {
    int number;
};

static void skip_in_release_builds(void)
{
    if (!OT_KNOWS_HANDLES)
        skip(); // a release build: no list of handles
}

static void a_handle_is_live_from_entering_to_its_end(void **state)
{
    struct ot_session here = {0}, *s = &here;

    (void)state;
    skip_in_release_builds();
    assert_false(OT_IS_LIVE(s));
    OT_ENTER(s);
    assert_true(OT_IS_LIVE(s));
    assert_int_equal(ot__handle_check(s, "session"), OT_OK);
    assert_int_equal(ot__handle_check(s, "model"), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "invalid or destroyed model handle");
    assert_true(OT_ENDS(s));
    assert_false(OT_ENDS(s));
    assert_string_equal(ot_error_message(), "invalid or destroyed session handle");
    assert_false(OT_IS_LIVE(s));
    s = NULL;
    assert_false(OT_IS_LIVE(s));
    assert_false(OT_ENDS(s));
}

static ot_status given(const struct ot_session *session)
{
    return OT_GIVEN(session);
}

static void arguments_that_are_no_handles_are_named(void **state)
{
    struct ot_session *volatile s = malloc(sizeof *s); // compilers warn of using what is freed

    (void)state;
    skip_in_release_builds();
    OT_ENTER(s);
    assert_int_equal(given(s), OT_OK);
    assert_int_equal(OT_OPTIONAL(s, "data"), OT_OK);
    assert_true(OT_ENDS(s));
    free(s); // its memory is not looked at
    assert_int_equal(given(s), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "given: session: invalid or destroyed session handle");
    assert_int_equal(OT_OPTIONAL(s, "data"), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "data: invalid or destroyed session handle");
    assert_int_equal(OT_OPTIONAL((struct ot_session *)NULL, "data"), OT_OK);
    assert_int_equal(given(NULL), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "given: session is NULL");
}

// Enters and ends in an order of its own; what is live is compared with a list.
static void exercise(uint64_t seed, struct ot_session *all, bool *is_live, int n, int n_steps)
{
    const ot__rng_key key = ot__rng_key_make(seed, 0, 0, "handles");

    for (int step = 0; step < n_steps; step++) {
        const int i = (int)(ot__rng_uniform(key, (uint64_t)step) * n);
        struct ot_session *s = &all[i];

        assert_int_equal(OT_IS_LIVE(s), is_live[i]);
        if (is_live[i])
            assert_true(OT_ENDS(s));
        else
            OT_ENTER(s);
        is_live[i] = !is_live[i];
    }
    for (int i = 0; i < n; i++) {
        struct ot_session *s = &all[i];

        assert_int_equal(OT_IS_LIVE(s), is_live[i]);
        if (is_live[i])
            assert_true(OT_ENDS(s));
    }
}

enum { N_HANDLES = 4000, N_STEPS = 40000 };

static void many_come_and_go_in_any_order(void **state)
{
    struct ot_session *all = calloc(N_HANDLES, sizeof *all);
    bool *is_live = calloc(N_HANDLES, sizeof *is_live);

    (void)state;
    skip_in_release_builds();
    exercise(1, all, is_live, N_HANDLES, N_STEPS);
    free(all);
    free(is_live);
}

static void handles_of_an_arena_end_with_it(void **state)
{
    ot__arena *arena = ot__arena_create();
    struct ot_session *s = ot__arena_alloc(arena, sizeof *s);

    (void)state;
    skip_in_release_builds();
    assert_true(ot__arena_enter(arena, s, OT_KIND_OF(s)));
    assert_true(OT_IS_LIVE(s));
    ot__arena_destroy(arena);
    assert_false(OT_IS_LIVE(s));
}

typedef struct own {
    struct ot_session all[500];
    bool is_live[500];
    uint64_t seed;
} own;

static void *work(void *o)
{
    own *mine = o;

    exercise(mine->seed, mine->all, mine->is_live, (int)OT_COUNT(mine->all), 4 * N_STEPS);
    return NULL;
}

static int ends_once(void *handle)
{
    struct ot_session *s = handle;

    return OT_ENDS(s) && !OT_ENDS(s);
}

enum { N_CHILDREN = 20 };

// A child has the handles of its parent, and no lock of a thread that it has not.
static void threads_and_children_have_them_at_once(void **state)
{
    own *o = calloc(2, sizeof *o);
    struct ot_session here = {0}, *s = &here;
    pthread_t threads[2];

    (void)state;
    skip_in_release_builds();
    skip_under_an_emulator();
    OT_ENTER(s);
    for (int t = 0; t < 2; t++) {
        o[t].seed = (uint64_t)t;
        assert_int_equal(pthread_create(&threads[t], NULL, work, &o[t]), 0);
    }
    for (int k = 0; k < N_CHILDREN; k++) {
        assert_int_equal(in_child(ends_once, s), 1);
        assert_true(OT_IS_LIVE(s));
    }
    for (int t = 0; t < 2; t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
    assert_true(OT_ENDS(s));
    free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_is_live_from_entering_to_its_end),
        cmocka_unit_test(arguments_that_are_no_handles_are_named),
        cmocka_unit_test(many_come_and_go_in_any_order),
        cmocka_unit_test(handles_of_an_arena_end_with_it),
        cmocka_unit_test(threads_and_children_have_them_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
