// SPDX-License-Identifier: Apache-2.0
#include "output_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

static bool is_same_file(const struct stat *output, const char *input)
{
    const char *equals = strchr(input, '=');
    struct stat info;

    if (stat(input, &info) != 0 && (!equals || stat(equals + 1, &info) != 0))
        return false;
    return S_ISREG(info.st_mode) && info.st_dev == output->st_dev && info.st_ino == output->st_ino;
}

static int check_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = strdup(slash ? path : ".");
    int code = EXIT_SUCCESS;

    if (!folder)
        return report_text("out of memory");
    if (slash)
        folder[slash == path ? 1 : slash - path] = '\0';
    if (access(folder, W_OK | X_OK) != 0)
        code = report_text("%s: cannot be written: %s", path, strerror(errno));
    free(folder);
    return code;
}

int check_output(const char *option, const char *path, const char *const *inputs, int n_inputs)
{
    struct stat info;

    if (!path || strcmp(path, "-") == 0)
        return EXIT_SUCCESS;
    if (!*path)
        return report_usage("--%s: the name is empty", option);
    if (stat(path, &info) != 0)
        return check_folder(path);
    if (S_ISDIR(info.st_mode))
        return report_text("%s: is a folder", path);
    for (int i = 0; i < n_inputs; i++)
        if (is_same_file(&info, inputs[i]))
            return report_usage("--%s: '%s' is what is read; it would be lost", option, path);
    return S_ISREG(info.st_mode) ? check_folder(path) : EXIT_SUCCESS;
}
