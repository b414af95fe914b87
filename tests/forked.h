// SPDX-License-Identifier: Apache-2.0
// For tests: what a child of this process does. It ends by a signal when it hangs.
#ifndef TESTS_FORKED_H
#define TESTS_FORKED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { HANGS_AFTER_SECONDS = 100 };

// qemu-user may end a program that forks while it has several threads: its own locks are not made
// for that. CTest says whether tests run under it.
static inline void skip_under_an_emulator(void)
{
    if (getenv("OT_TEST_EMULATED") != NULL)
        skip(); // runs under qemu-user
}

// Runs `work` in a child; its result is returned, 0 .. 255, or -1 when a signal ended the child.
static inline int in_child(int (*work)(void *context), void *context)
{
    const pid_t child = fork();
    int status;

    assert_int_not_equal(child, -1);
    if (child == 0) {
        alarm(HANGS_AFTER_SECONDS);
        _exit(work(context));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
