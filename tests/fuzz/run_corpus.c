// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over every file of the folders and files named on the command line: the corpus
// as a plain test.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Number of files run; -1 when one could not be read.
static int run_path(const char *path);

static int run_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    // Exactly as large as the file, so that the sanitizer sees a read past its end.
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    int n_run = -1;

    if (file && bytes && fread(bytes, 1, size, file) == size) {
        LLVMFuzzerTestOneInput(bytes, size);
        n_run = 1;
    } else {
        fprintf(stderr, "run_corpus: cannot read '%s'\n", path);
    }
    free(bytes);
    if (file)
        fclose(file);
    return n_run;
}

static int run_folder(const char *path)
{
    struct dirent **entries;
    int n_entries = scandir(path, &entries, NULL, alphasort);
    int n_run = 0;

    for (int i = 0; i < n_entries; i++) {
        char inner[4096];
        int n_inner = 0;

        snprintf(inner, sizeof(inner), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            n_inner = run_path(inner);
        n_run = n_run < 0 || n_inner < 0 ? -1 : n_run + n_inner;
        free(entries[i]);
    }
    if (n_entries >= 0)
        free(entries);
    return n_entries < 0 ? -1 : n_run;
}

static int run_path(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0) {
        fprintf(stderr, "run_corpus: no file '%s'\n", path);
        return -1;
    }
    return S_ISDIR(status.st_mode) ? run_folder(path) : run_file(path, (size_t)status.st_size);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int n_run = run_path(argv[i]);

        if (n_run <= 0) { // an empty corpus would test nothing
            fprintf(stderr, "run_corpus: nothing was run in '%s'\n", argv[i]);
            return 1;
        }
        printf("%s: %d files\n", argv[i], n_run);
    }
    return argc > 1 ? 0 : 2;
}
