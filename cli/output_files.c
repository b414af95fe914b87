// SPDX-License-Identifier: Apache-2.0
#include "output_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

static bool standard_output_is_closed;

void open_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) == fd)
            standard_output_is_closed = standard_output_is_closed || fd == STDOUT_FILENO;
}

char *path_in(const char *folder, const char *prefix, const char *name)
{
    char *path = malloc(strlen(folder) + strlen(prefix) + strlen(name) + 2);

    if (path)
        sprintf(path, "%s/%s%s", folder, prefix, name);
    else
        report_text("out of memory");
    return path;
}

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

static bool is_same_name(const char *output, const char *input)
{
    const char *equals = strchr(input, '=');

    return strcmp(output, input) == 0 || (equals && strcmp(output, equals + 1) == 0);
}

#define IS_READ "--%s: '%s' is what is read; it would be lost"

int check_output_name(const char *option, const char *path, const char *const *inputs, int n_inputs)
{
    if (!path || strcmp(path, "-") == 0)
        return EXIT_SUCCESS;
    if (!*path)
        return report_usage("--%s: the name is empty", option);
    for (int i = 0; i < n_inputs; i++)
        if (is_same_name(path, inputs[i]))
            return report_usage(IS_READ, option, path);
    return EXIT_SUCCESS;
}

static int check_not_read(const char *option, const char *path, const char *const *inputs,
                          int n_inputs)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return EXIT_SUCCESS;
    for (int i = 0; i < n_inputs; i++)
        if (is_same_file(&info, inputs[i]))
            return report_text(IS_READ, option, path);
    return EXIT_SUCCESS;
}

int check_output(const char *option, const char *path, const char *const *inputs, int n_inputs)
{
    struct stat info;
    int code;

    if (path && strcmp(path, "-") == 0 && standard_output_is_closed)
        return report_text("--%s: standard output is closed", option);
    if (!path || strcmp(path, "-") == 0)
        return EXIT_SUCCESS;
    if (stat(path, &info) != 0)
        return check_folder(path);
    if (S_ISDIR(info.st_mode))
        return report_text("--%s: %s: is a directory, expected a file", option, path);
    code = check_not_read(option, path, inputs, n_inputs);
    return code == EXIT_SUCCESS && S_ISREG(info.st_mode) ? check_folder(path) : code;
}

int check_artifact_files(const char *folder, const char *prefix, const char *const *paths,
                         int n_paths)
{
    static const char *const files[] = {
        "training_model.onnx", "eval_model.onnx", "optimizer_model.onnx", "checkpoint",
        "training_model.ort",  "eval_model.ort",  "optimizer_model.ort"};
    int code = EXIT_SUCCESS;

    for (size_t i = 0; code == EXIT_SUCCESS && i < sizeof(files) / sizeof(files[0]); i++) {
        char *path = path_in(folder, prefix, files[i]);

        if (!path)
            return EXIT_FAILED;
        code = check_not_read("out", path, paths, n_paths);
        free(path);
    }
    return code;
}
