// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

typedef struct lines {
    int n;
    ot_log_level level;
    char text[4096];
} lines;

static void keep_line(void *context, ot_log_level level, const char *line)
{
    lines *l = context;

    l->n++;
    l->level = level;
    snprintf(l->text, sizeof(l->text), "%s", line);
}

static void a_log_function_gets_every_line(void **state)
{
    lines l = {0};

    (void)state;
    ot_set_log(keep_line, &l);
    assert_true(ot__log_wants(OT_LOG_DEBUG));
    ot__log(OT_LOG_DEBUG, "step %d", 3);
    assert_string_equal(l.text, "step 3");
    assert_int_equal(l.level, OT_LOG_DEBUG);
    ot__log(OT_LOG_WARNING, "name 'a\nb'");
    assert_string_equal(l.text, "name 'a?b'");
    assert_int_equal(l.level, OT_LOG_WARNING);
    assert_int_equal(l.n, 2);
    ot_set_log(NULL, NULL);
    ot__log(OT_LOG_DEBUG, "no more");
    assert_int_equal(l.n, 2);
}

static void a_long_line_is_cut(void **state)
{
    char text[8192];
    lines l = {0};

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    ot_set_log(keep_line, &l);
    ot__log(OT_LOG_INFO, "%s", text);
    ot_set_log(NULL, NULL);
    assert_in_range(strlen(l.text), 1000, 4095);
}

// What a process with this OT_LOG (NULL: none) writes to standard error.
static void default_output(const char *ot_log, char *text, size_t size)
{
    int ends[2], status;
    size_t used = 0;
    ssize_t n;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        if (ot_log)
            setenv("OT_LOG", ot_log, 1);
        else
            unsetenv("OT_LOG");
        ot__log(OT_LOG_DEBUG, "one");
        ot__log(OT_LOG_INFO, "two");
        ot__log(OT_LOG_WARNING, "three");
        _exit(0);
    }
    close(ends[1]);
    while (used < size - 1 && (n = read(ends[0], text + used, size - 1 - used)) > 0)
        used += (size_t)n;
    text[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void the_environment_says_what_is_written_to_standard_error(void **state)
{
    char text[256];

    (void)state;
    default_output(NULL, text, sizeof(text));
    assert_string_equal(text, "");
    default_output("loud", text, sizeof(text));
    assert_string_equal(text, "");
    default_output("warning", text, sizeof(text));
    assert_string_equal(text, "onnxtrain: warning: three\n");
    default_output("info", text, sizeof(text));
    assert_string_equal(text, "onnxtrain: info: two\nonnxtrain: warning: three\n");
    default_output("debug", text, sizeof(text));
    assert_string_equal(text,
                        "onnxtrain: debug: one\nonnxtrain: info: two\nonnxtrain: warning: three\n");
}

static void the_clock_never_goes_back(void **state)
{
    double before = ot__clock_seconds();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        const double now = ot__clock_seconds();
        assert_true(now >= before);
        before = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        // First: a process reads OT_LOG once, and the forks of this test must not have it read.
        cmocka_unit_test(the_environment_says_what_is_written_to_standard_error),
        cmocka_unit_test(a_log_function_gets_every_line),
        cmocka_unit_test(a_long_line_is_cut),
        cmocka_unit_test(the_clock_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
