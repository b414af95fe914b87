// SPDX-License-Identifier: Apache-2.0
// Runs the fuzz target that is named over every file of the folders and files behind it: the corpus
// as a plain test.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OT_FUZZ_TARGET(name) int name(const uint8_t *data, size_t size);
#include OT_FUZZ_TARGETS
#undef OT_FUZZ_TARGET

typedef struct fuzz_target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} fuzz_target;

#define OT_FUZZ_TARGET(name) {#name, name},
static const fuzz_target targets[] = {
#include OT_FUZZ_TARGETS
};
#undef OT_FUZZ_TARGET
enum { N_TARGETS = sizeof targets / sizeof targets[0] };

// Number of files run; -1 when one could not be read.
static int run_path(const fuzz_target *target, const char *path);

static int run_file(const fuzz_target *target, const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    // Exactly as large as the file, so that the sanitizer sees a read past its end.
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    int n_run = -1;

    if (file && bytes && fread(bytes, 1, size, file) == size) {
        target->run(bytes, size);
        n_run = 1;
    } else {
        fprintf(stderr, "run_corpora: cannot read '%s'\n", path);
    }
    free(bytes);
    if (file)
        fclose(file);
    return n_run;
}

static int run_folder(const fuzz_target *target, const char *path)
{
    struct dirent **entries;
    int n_entries = scandir(path, &entries, NULL, alphasort);
    int n_run = 0;

    for (int i = 0; i < n_entries; i++) {
        char inner[4096];
        int n_inner = 0;

        snprintf(inner, sizeof(inner), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            n_inner = run_path(target, inner);
        n_run = n_run < 0 || n_inner < 0 ? -1 : n_run + n_inner;
        free(entries[i]);
    }
    if (n_entries >= 0)
        free(entries);
    return n_entries < 0 ? -1 : n_run;
}

static int run_path(const fuzz_target *target, const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0) {
        fprintf(stderr, "run_corpora: no file '%s'\n", path);
        return -1;
    }
    return S_ISDIR(status.st_mode) ? run_folder(target, path)
                                   : run_file(target, path, (size_t)status.st_size);
}

int main(int argc, char **argv)
{
    const fuzz_target *target = NULL;

    for (int i = 0; i < N_TARGETS && argc > 2; i++)
        if (strcmp(argv[1], targets[i].name) == 0)
            target = &targets[i];
    if (target == NULL) {
        fprintf(stderr, "usage: %s TARGET PATH..\n", argv[0]);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        const int n_run = run_path(target, argv[i]);

        if (n_run <= 0) { // an empty corpus would test nothing
            fprintf(stderr, "run_corpora: nothing was run in '%s'\n", argv[i]);
            return 1;
        }
        printf("%s: %d files\n", argv[i], n_run);
    }
    return 0;
}
