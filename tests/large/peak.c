// SPDX-License-Identifier: Apache-2.0
// Runs a command and holds it to a peak of resident memory.
//   peak LIMIT_MIB TITLE COMMAND...      prints what it took; fails when the command fails or takes
//   more
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    long limit, peak;
    struct rusage usage;
    pid_t child;
    int status;

    if (argc < 4 || (limit = strtol(argv[1], NULL, 10)) < 1) {
        fprintf(stderr, "usage: peak LIMIT_MIB TITLE COMMAND...\n");
        return 2;
    }
    child = fork();
    if (child == 0) {
        execv(argv[3], argv + 3);
        perror(argv[3]);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) != child) {
        perror("peak");
        return 1;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "%s: FAILED\n", argv[2]);
        return 1;
    }
    peak = usage.ru_maxrss >> 10; // the process's VmHWM, in KiB
    printf("%-28s %6ld MiB, at most %ld%s\n", argv[2], peak, limit, peak > limit ? ": FAILED" : "");
    return peak > limit;
}
