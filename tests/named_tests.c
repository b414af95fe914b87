// SPDX-License-Identifier: Apache-2.0
// Runs the test that is named: all test_*.c are one program, in which main() of each has another
// name.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OT_NAMED_TEST(name) int main_of_##name(void);
#include OT_NAMED_TESTS
#undef OT_NAMED_TEST

typedef struct named_test {
    const char *name;
    int (*run)(void);
} named_test;

#define OT_NAMED_TEST(name) {#name, main_of_##name},
static const named_test tests[] = {
#include OT_NAMED_TESTS
};
#undef OT_NAMED_TEST
enum { N_TESTS = sizeof tests / sizeof tests[0] };

// Nothing waits for the disk: what a power cut leaves is told from the calls that are logged.
int fsync(int fd)
{
    (void)fd;
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < N_TESTS && argc == 2; i++)
        if (strcmp(argv[1], tests[i].name) == 0)
            return tests[i].run();
    fprintf(stderr, "usage: %s TEST, one of:", argv[0]);
    for (int i = 0; i < N_TESTS; i++)
        fprintf(stderr, "\n  %s", tests[i].name);
    fputc('\n', stderr);
    return EXIT_FAILURE;
}
