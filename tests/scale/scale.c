// SPDX-License-Identifier: Apache-2.0
// Time and memory in proportion to size: every command runs on a model of half the size n and of
// twice that size, and must not take more than eight times the processor time or 4.4 times the
// memory. (Caches that no longer hold a model make time grow by five or six instead of four; a
// square makes it sixteen.)
//   scale ONNXTRAIN small|full [CASE..]
// The models lie in a folder below TMPDIR, which goes away at the end.
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models.h"
#include "onnxtrain/onnxtrain.h"

enum { MAX_STEPS = 8, MAX_WORDS = 24, MAX_RUNS = 12, CPU_SECONDS = 60, WALL_SECONDS = 600 };

typedef struct scale_case {
    const char *name;
    ot_write_model write;
    long small, full; // n
    const char *steps[MAX_STEPS];
    enum { FEW_ROWS, MANY_ROWS, MANY_COLUMNS } data;
} scale_case;

#define SAVE "save model.onnx"
#define INFO "onnxtrain info model.onnx"
#define CHECK "onnxtrain check model.onnx --loss mse"
#define TEXT "onnxtrain info model.onnx --text"
#define ARTIFACTS "onnxtrain artifacts model.onnx --loss mse --out artifacts"
#define TRAIN                                                                                      \
    "onnxtrain train artifacts --data train.csv --batch-size 2 --max-steps 1 --checkpoint-dir "    \
    "run --overwrite"
#define RESUME                                                                                     \
    "onnxtrain train artifacts --data train.csv --batch-size 2 --max-steps 2 --checkpoint-dir "    \
    "run --resume"
#define EXPORT                                                                                     \
    "onnxtrain export artifacts --checkpoint run/checkpoint --output y --out trained.onnx"
#define ALL SAVE, INFO, CHECK, ARTIFACTS, TRAIN, RESUME, EXPORT

static const scale_case cases[] = {
    {"parameters", write_parameters, 1000, 20000, {ALL}, FEW_ROWS},
    {"exponents", write_exponents, 1000, 20000, {SAVE, CHECK}, FEW_ROWS},
    {"wide sum", write_wide_sum, 10000, 1000000, {ALL}, FEW_ROWS},
    {"sum of parameters", write_distinct_sum, 1000, 20000, {ALL}, FEW_ROWS},
    {"fan", write_fan, 2500, 100000, {ALL}, FEW_ROWS},
    {"inputs", write_inputs, 2500, 100000, {SAVE, INFO, CHECK, ARTIFACTS}, FEW_ROWS},
    {"outputs", write_outputs, 2500, 100000, {SAVE, INFO, CHECK, ARTIFACTS}, FEW_ROWS},
    {"shared parameter", write_shared, 1000, 50000, {ALL}, FEW_ROWS},
    {"long names", write_long_name, 1000000, 100000000, {ALL}, FEW_ROWS},
    {"chain", write_chain, 2500, 100000, {ALL}, FEW_ROWS},
    {"long chain", write_chain, 10000, 500000, {SAVE, TEXT}, FEW_ROWS},
    // An .ort file has four values a node, of at most 4 million.
    {"long chain in .ort",
     write_chain,
     10000,
     250000,
     {SAVE, "save model.ort", "onnxtrain info model.ort --text"},
     FEW_ROWS},
    {"layers", write_layers, 500, 15000, {ALL}, FEW_ROWS},
    {"branches", write_branches, 1000, 25000, {ALL}, FEW_ROWS},
    {"split", write_split, 1000, 50000, {ALL}, FEW_ROWS},
    {"merged parameters", write_merged, 1000, 25000, {ALL}, FEW_ROWS},
    {"copies", write_copies, 1000, 20000, {ALL}, FEW_ROWS},
    {"functions", write_functions, 1000, 50000, {ALL}, FEW_ROWS},
    {"calls", write_calls, 1000, 50000, {ALL}, FEW_ROWS},
    {"branching", write_branching, 1000, 20000, {SAVE, INFO}, FEW_ROWS},
    {"long branches", write_deep, 2500, 100000, {SAVE, INFO, ARTIFACTS}, FEW_ROWS},
    {"norms", write_norms, 250, 5000, {ALL}, FEW_ROWS},
    {"fixed batch", write_fixed_batch, 1000, 20000, {SAVE, INFO, CHECK, ARTIFACTS}, FEW_ROWS},
    {"shared norm", write_shared_norm, 250, 8000, {ALL}, FEW_ROWS}, // twice: 64,000 parameters
    {"quantized", write_quantized, 1000, 50000, {ALL}, FEW_ROWS},
    {"shapes", write_shapes, 500, 20000, {ALL}, FEW_ROWS},
    {"sequences", write_sequences, 1000, 50000, {SAVE, INFO, ARTIFACTS}, FEW_ROWS},
    {"symbols", write_symbols, 1000, 50000, {SAVE, INFO, CHECK, ARTIFACTS}, FEW_ROWS},
    {"metadata", write_metadata, 2500, 200000, {ALL}, FEW_ROWS},
    {"rows", write_plain, 10000, 500000, {SAVE, ARTIFACTS, TRAIN}, MANY_ROWS},
    {"columns", write_wide_data, 2500, 200000, {SAVE, ARTIFACTS, TRAIN, EXPORT}, MANY_COLUMNS},
    {0},
};

typedef struct usage {
    double seconds;
    double mib;
} usage;

static bool is_full;

// What processes take however small their model is, and what is bounded, as placing few values in
// memory.
static const double least_seconds = 0.15;
static const double least_mib = 24;

// ---- the folder ----

static char folder[1000];

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void stop(int number)
{
    remove_folder();
    _exit(128 + number);
}

static bool make_folder(void)
{
    const char *above = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%s/onnxtrain-scale.XXXXXX", above ? above : "/tmp");
    if (!mkdtemp(folder) || chdir(folder) != 0) {
        perror(folder);
        return false;
    }
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    return true;
}

// ---- making what the commands read ----

static FILE *create(const char *path)
{
    FILE *file = fopen(path, "w");

    if (!file) {
        perror(path);
        stop(0);
    }
    return file;
}

static bool finish(FILE *file)
{
    return (ferror(file) | fclose(file)) == 0;
}

static bool write_files(const scale_case *c, long n)
{
    FILE *model = create("model.onnxtxt"), *csv = create("train.csv");

    c->write(model, n);
    write_rows(csv, c->data == MANY_ROWS ? n : 4, c->data == MANY_COLUMNS ? n : 4);
    return finish(model) && finish(csv);
}

static int save(const char *path)
{
    ot_model *model;

    if (ot_model_load("model.onnxtxt", NULL, &model) != OT_OK ||
        ot_model_save(model, path, NULL) != OT_OK) {
        fprintf(stderr, "%s\n", ot_error_message());
        return 1;
    }
    ot_model_destroy(model);
    return 0;
}

// ---- running and measuring ----

static int run_step(const char *onnxtrain, const char *step)
{
    char text[512], *words[MAX_WORDS + 1] = {0};
    int n = 0;

    snprintf(text, sizeof text, "%s", step);
    for (char *word = strtok(text, " "); word && n < MAX_WORDS; word = strtok(NULL, " "))
        words[n++] = word;
    if (strcmp(words[0], "save") == 0)
        return save(words[1]);
    execv(onnxtrain, words);
    perror(onnxtrain);
    return 127;
}

// False: it failed, or took too long.
static bool measure(const char *onnxtrain, const char *step, usage *out)
{
    const struct rlimit limit = {CPU_SECONDS, CPU_SECONDS};
    struct rusage used;
    int status;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CPU, &limit);
        alarm(WALL_SECONDS);
        if (!freopen("../out", "w", stdout) || !freopen("../err", "w", stderr))
            _exit(127);
        _exit(run_step(onnxtrain, step));
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child) {
        perror("scale");
        return false;
    }
    out->seconds = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec * 1e-6;
    out->mib = (double)used.ru_maxrss / 1024;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void print_error(void)
{
    char line[300] = "";
    FILE *file = fopen("../err", "r");

    if (file && fgets(line, sizeof line, file))
        printf("    %s%s", line, strchr(line, '\n') ? "" : "\n");
    if (file)
        fclose(file);
}

static bool is_in_proportion(const usage *half, const usage *twice)
{
    const double seconds = half->seconds > least_seconds ? half->seconds : least_seconds;
    const double mib = half->mib > least_mib ? half->mib : least_mib;

    return twice->seconds <= 8 * seconds && twice->mib <= 4.4 * mib;
}

static void keep_least(usage *least, const usage *other)
{
    if (other->seconds < least->seconds)
        least->seconds = other->seconds;
    if (other->mib < least->mib)
        least->mib = other->mib;
}

static bool measure_both(const char *onnxtrain, const char *step, usage *half, usage *twice)
{
    bool is_well = chdir("1") == 0 && measure(onnxtrain, step, half);

    if (is_well)
        is_well = chdir("../2") == 0 && measure(onnxtrain, step, twice);
    if (!is_well)
        print_error();
    return chdir(folder) == 0 && is_well;
}

// Whatever else runs here can only add to a time, so the least of several is nearest to the truth.
static bool check_step(const char *onnxtrain, const scale_case *c, long n, const char *step)
{
    usage half, twice, other_half, other_twice;
    bool is_well = measure_both(onnxtrain, step, &half, &twice), is_bad;

    for (int i = 1; is_well && i < MAX_RUNS && !is_in_proportion(&half, &twice); i++) {
        is_well = measure_both(onnxtrain, step, &other_half, &other_twice);
        keep_least(&half, &other_half);
        keep_least(&twice, &other_twice);
    }
    if (!is_well) {
        printf("%-18s %8ld  %.28s: FAILED, more than %d s of processor time, or as above\n",
               c->name, n, step, CPU_SECONDS);
        return false;
    }
    is_bad = !is_in_proportion(&half, &twice);
    printf("%-18s %8ld  %-24.24s %7.2f s %7.2f s %6.0f MiB %6.0f MiB%s\n", c->name, n, step,
           half.seconds, twice.seconds, half.mib, twice.mib, is_bad ? "  FAILED" : "");
    return !is_bad;
}

static bool write_both(const scale_case *c, long n)
{
    bool is_well = mkdir("1", 0700) == 0 && mkdir("2", 0700) == 0 && chdir("1") == 0 &&
                   write_files(c, n / 2) && chdir("../2") == 0 && write_files(c, 2 * n);

    if (!is_well)
        perror(folder);
    return chdir(folder) == 0 && is_well;
}

// What a step leaves is read by the next, so the first that fails is the last.
static int check_case(const char *onnxtrain, const scale_case *c)
{
    // The larger model has twice as many; of full size it takes what a machine has.
    const long n = is_full ? c->full / 2 : c->small;
    int n_failed = 0;

    if (!write_both(c, n))
        return 1;
    for (int i = 0; i < MAX_STEPS && c->steps[i]; i++)
        n_failed += !check_step(onnxtrain, c, n, c->steps[i]);
    return n_failed;
}

static bool is_asked_for(const char *name, char **names, int n_names)
{
    for (int i = 0; i < n_names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return n_names == 0;
}

int main(int argc, char **argv)
{
    char onnxtrain[4096];
    int n_failed = 0;

    if (argc < 3 || !realpath(argv[1], onnxtrain)) {
        fprintf(stderr, "usage: scale ONNXTRAIN small|full [CASE..]\n");
        return 2;
    }
    is_full = strcmp(argv[2], "full") == 0;
    setenv("OMP_NUM_THREADS", "1", 1); // threads that wait take processor time
    for (int i = 0; cases[i].name; i++) {
        if (!is_asked_for(cases[i].name, argv + 3, argc - 3))
            continue;
        if (!make_folder())
            return 1;
        n_failed += check_case(onnxtrain, &cases[i]);
        remove_folder();
    }
    if (n_failed > 0)
        printf("%d failed\n", n_failed);
    return n_failed > 0;
}
