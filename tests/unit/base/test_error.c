// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void an_error_returns_its_status_and_keeps_its_message(void **state)
{
    (void)state;
    assert_int_equal(ot__error(OT_ERR_FORMAT, "byte %d of '%s'", 7, "x"), OT_ERR_FORMAT);
    assert_string_equal(ot_error_message(), "byte 7 of 'x'");
    ot__error_clear();
    assert_string_equal(ot_error_message(), "");
}

static void a_prefix_goes_before_the_present_message(void **state)
{
    (void)state;
    ot__error(OT_ERR_FORMAT, "is short");
    assert_int_equal(ot__error_prefix(OT_ERR_INVALID, "file %s", "m.onnx"), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "file m.onnx: is short");
}

static void the_present_message_may_be_an_argument(void **state)
{
    (void)state;
    ot__error(OT_ERR_IO, "inner");
    ot__error(OT_ERR_IO, "outer (%s)", ot_error_message());
    assert_string_equal(ot_error_message(), "outer (inner)");
}

static void control_and_malformed_bytes_are_made_printable(void **state)
{
    (void)state;
    ot__error(OT_ERR_FORMAT, "a\nb\x1b[2J\x7f\xff\xc3x");
    assert_string_equal(ot_error_message(), "a?b?[2J???x");
}

static void nan_has_no_sign(void **state)
{
    const double negative = copysign(NAN, -1.0);

    (void)state;
    ot__error(OT_ERR_INVALID, "the loss is %g (%g, %g) of '-nan' and x-nano", negative, negative,
              -1.0);
    assert_string_equal(ot_error_message(), "the loss is nan (nan, -1) of '-nan' and x-nano");
    ot__error(OT_ERR_INVALID, "%g", negative);
    assert_string_equal(ot_error_message(), "nan");
}

static void a_long_message_is_cut_and_stays_well_formed(void **state)
{
    char text[4096];

    (void)state;
    // Two bytes each: the buffer's end falls inside one of them for one of the two starts.
    for (size_t start = 0; start < 2; start++) {
        memset(text, 'a', start);
        for (size_t i = start; i + 2 < sizeof(text); i += 2)
            memcpy(text + i, "\xc3\xa9", 3);
        ot__error(OT_ERR_FORMAT, "%s", text);
        const size_t n = strlen(ot_error_message());
        const unsigned char last = (unsigned char)ot_error_message()[n - 1];
        assert_in_range(n, 256, 4000);
        assert_true(last == 0xa9 || last == '?');
    }
}

static void a_prefix_of_any_length_leaves_a_terminated_message(void **state)
{
    char text[4096];

    (void)state;
    memset(text, 'p', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    ot__error(OT_ERR_IO, "%s", text);
    for (int i = 0; i < 5; i++)
        ot__error_prefix(OT_ERR_IO, "%s", text);
    assert_in_range(strlen(ot_error_message()), 256, 4000);
}

static void a_system_error_names_the_path_and_the_cause(void **state)
{
    char expected[256];

    (void)state;
    errno = ENOSPC;
    assert_int_equal(ot__error_errno("out.ckpt", "cannot be written"), OT_ERR_IO);
    snprintf(expected, sizeof(expected), "out.ckpt: cannot be written: %s", strerror(ENOSPC));
    assert_string_equal(ot_error_message(), expected);
}

static void a_memory_error_names_the_size(void **state)
{
    (void)state;
    assert_int_equal(ot__error_memory(12345), OT_ERR_NO_MEMORY);
    assert_non_null(strstr(ot_error_message(), "12345"));
}

typedef struct worker {
    pthread_barrier_t *barrier;
    int number;
    bool saw_its_own;
} worker;

static void *fail_and_look(void *argument)
{
    worker *w = argument;
    char expected[32];

    w->saw_its_own = ot_error_message()[0] == '\0';
    snprintf(expected, sizeof(expected), "thread %d", w->number);
    for (int i = 0; i < 100; i++) {
        ot__error(OT_ERR_STATE, "thread %d", w->number);
        pthread_barrier_wait(w->barrier); // every thread has failed before any looks
        w->saw_its_own = w->saw_its_own && strcmp(ot_error_message(), expected) == 0;
        pthread_barrier_wait(w->barrier);
    }
    return NULL;
}

static void every_thread_has_its_own_message(void **state)
{
    enum { N = 4 };
    pthread_barrier_t barrier;
    pthread_t threads[N];
    worker workers[N];

    (void)state;
    ot__error(OT_ERR_STATE, "main");
    pthread_barrier_init(&barrier, NULL, N);
    for (int i = 0; i < N; i++) {
        workers[i] = (worker){&barrier, i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, fail_and_look, &workers[i]), 0);
    }
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < N; i++)
        assert_true(workers[i].saw_its_own);
    assert_string_equal(ot_error_message(), "main");
}

static void every_status_has_a_name_and_a_text(void **state)
{
    (void)state;
    assert_string_equal(ot_status_name(OT_OK), "OT_OK");
    assert_string_equal(ot_status_name(OT_ERR_FORMAT), "OT_ERR_FORMAT");
    assert_string_equal(ot_status_text(OT_ERR_FORMAT), "malformed file");
    assert_string_equal(ot_status_name(OT_ERR_MISMATCH), "OT_ERR_MISMATCH");
    assert_string_equal(ot_status_text(OT_ERR_TIMEOUT), "a process did not answer in time");
    assert_int_equal(OT_N_STATUSES, OT_ERR_TIMEOUT + 1); // new ones come last
    for (int i = 0; i < OT_N_STATUSES; i++) {
        assert_memory_equal(ot_status_name((ot_status)i), "OT_", 3);
        assert_true(strlen(ot_status_text((ot_status)i)) > 0);
    }
    assert_string_equal(ot_status_name((ot_status)99), "unknown status");
    assert_string_equal(ot_status_text((ot_status)-1), "unknown status");
}

static void the_version_is_that_of_the_header(void **state)
{
    char expected[32];

    (void)state;
    snprintf(expected, sizeof(expected), "%d.%d.%d", OT_VERSION_MAJOR, OT_VERSION_MINOR,
             OT_VERSION_PATCH);
    assert_string_equal(ot_version(), expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_returns_its_status_and_keeps_its_message),
        cmocka_unit_test(a_prefix_goes_before_the_present_message),
        cmocka_unit_test(the_present_message_may_be_an_argument),
        cmocka_unit_test(control_and_malformed_bytes_are_made_printable),
        cmocka_unit_test(nan_has_no_sign),
        cmocka_unit_test(a_long_message_is_cut_and_stays_well_formed),
        cmocka_unit_test(a_prefix_of_any_length_leaves_a_terminated_message),
        cmocka_unit_test(a_system_error_names_the_path_and_the_cause),
        cmocka_unit_test(a_memory_error_names_the_size),
        cmocka_unit_test(every_thread_has_its_own_message),
        cmocka_unit_test(every_status_has_a_name_and_a_text),
        cmocka_unit_test(the_version_is_that_of_the_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
