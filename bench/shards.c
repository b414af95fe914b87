// SPDX-License-Identifier: Apache-2.0
// What checkpoint directories cost beside their bytes: ./dev bench shards [DIRECTORY]. Every line
// is of a process of its own, so that its peak of memory is.
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shards/shards.h"

enum { COLUMNS = 512, ROWS = 3, MIB = 1 << 20 };

static void must(ot_status st)
{
    if (st != OT_OK) {
        fprintf(stderr, "%s\n", ot_error_message());
        exit(1);
    }
}

static double peak_mib(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_maxrss / 1024;
}

static void tell(const char *what, double seconds)
{
    printf("%-58s %7.3f s, peak %4.0f MiB\n", what, seconds, peak_mib());
    fflush(stdout);
}

// ---- the index ----

static void make_chunks(ot__index *index, ot__index_tensor *t, int i, int n_chunks)
{
    ot__index_chunk *chunks = ot__arena_alloc(index->arena, (size_t)n_chunks * sizeof *chunks);
    int64_t *box = ot__arena_alloc(index->arena, (size_t)n_chunks * 4 * sizeof *box);

    *t = (ot__index_tensor){
        .key = ot__arena_printf(index->arena, "model.decoder.layers.%06d.weight", i),
        .dtype = OT_F32,
        .shape = {2, {(int64_t)n_chunks * ROWS, COLUMNS}},
        .n_chunks = n_chunks,
        .chunks = chunks};
    for (int k = 0; k < n_chunks; k++, box += 4) {
        memcpy(box, (const int64_t[]){(int64_t)k * ROWS, 0, ROWS, COLUMNS}, 4 * sizeof *box);
        chunks[k] = (ot__index_chunk){
            .file = k, .begin = (uint64_t)i * ROWS * COLUMNS * 4, .box = box, .crc = (uint32_t)i};
    }
}

static void make_index(ot__index *index, int n_tensors, int n_chunks, ot__buf *tree)
{
    *index = (ot__index){.arena = ot__arena_create(), .save_id = "0123456789abcdef", .writer = "-"};
    index->items = ot__arena_alloc(index->arena, sizeof *index->items);
    index->tensors = ot__arena_alloc(index->arena, (size_t)n_tensors * sizeof *index->tensors);
    index->files = ot__arena_alloc(index->arena, (size_t)n_chunks * sizeof *index->files);
    for (int k = 0; k < n_chunks; k++)
        index->files[index->n_files++] =
            (ot__index_file){ot__arena_printf(index->arena, "data-%05d-00000.safetensors", k),
                             (uint64_t)n_tensors * ROWS * COLUMNS * 4 + 4096, 4096, 0};
    ot__json_open(tree, NULL, '{');
    for (int i = 0; i < n_tensors; i++) {
        make_chunks(index, &index->tensors[index->n_tensors++], i, n_chunks);
        ot__json_raw(tree, index->tensors[i].key + strlen("model."), "[\"tensor\"]");
    }
    ot__json_close(tree, '}');
    index->items[index->n_items++] = (ot__index_item){"model", tree->data};
}

static void time_index(int n_tensors, int n_chunks)
{
    ot__buf tree = {0}, first = {0}, parts[OT_INDEX_CHUNKS_MAX / OT_INDEX_PART_CHUNKS] = {{0}};
    int n_first = 0, at, n_parts = 0;
    ot__index index, again;
    char what[80];
    double began;

    make_index(&index, n_tensors, n_chunks, &tree);
    began = ot__clock_seconds();
    ot__index_write_tensors(&index, &n_first, NULL);
    ot__index_write(&index, n_first, &first);
    for (at = n_first; at < n_tensors;)
        ot__index_write_tensors(&index, &at, &parts[n_parts++]);
    snprintf(what, sizeof what, "index of %d tensors in %d chunks each, written", n_tensors,
             n_chunks);
    tell(what, ot__clock_seconds() - began);
    ot__index_deinit(&index);
    began = ot__clock_seconds();
    must(ot__index_read(first.data, first.length, &again));
    for (int i = 0; i < n_parts; i++)
        must(ot__index_read_part(&again, parts[i].data, parts[i].length));
    must(ot__index_check(&again));
    tell("  read and checked", ot__clock_seconds() - began);
}

// ---- the plan of a save ----

static void time_plan(int n_tensors, int n_ranks)
{
    enum { WORDS = 5 };
    const size_t n = (size_t)n_tensors * (size_t)n_ranks;
    ot__leaf *leaves = calloc((size_t)n_tensors, sizeof *leaves);
    ot__save_record *records = calloc(n, sizeof *records);
    int64_t *words = calloc(n * WORDS, sizeof *words);
    const ot__leaves tensors = {.items = leaves, .n = n_tensors};
    char what[80];
    double began;

    if (leaves == NULL || records == NULL || words == NULL)
        exit(1);
    for (int i = 0; i < n_tensors; i++)
        leaves[i] = (ot__leaf){.key = "w", .dtype = OT_F32, .shape = {2, {n_ranks, COLUMNS}}};
    for (size_t k = 0; k < n; k++) {
        const int rank = (int)(k / (size_t)n_tensors), i = (int)(k % (size_t)n_tensors);

        memcpy(words + k * WORDS, (const int64_t[]){4, rank, 0, 1, COLUMNS}, WORDS * sizeof *words);
        records[k] =
            (ot__save_record){.tensor = i, .rank = rank, .number = i, .box = words + k * WORDS + 1};
    }
    began = ot__clock_seconds();
    must(ot__plan_save(&tensors, records, (int64_t)n, n_ranks));
    snprintf(what, sizeof what, "save of %d tensors by %d ranks, planned", n_tensors, n_ranks);
    tell(what, ot__clock_seconds() - began);
}

// ---- bytes ----

enum { PLAIN_WRITTEN, SAVED, PLAIN_READ, LOADED, PLAIN_CACHED, CACHED, COPIED, STARTED, N_TIMES };
enum { N_ROUNDS = 9 };

typedef struct bytes {
    ot_shards_item item;
    ot_tensor *tensor;
    void *copy; // of its elements
    char *path, *plain;
    ot_shards_job *job;
    double seconds[N_TIMES][N_ROUNDS];
} bytes;

// What the kernel has of a file in memory, which is on the disk too.
static void drop_cached(const char *path)
{
    const int file = open(path, O_RDONLY);

    if (file < 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0)
        exit(1);
    close(file);
}

static void drop_directory(const char *path)
{
    DIR *directory = opendir(path);

    for (struct dirent *e = NULL; directory != NULL && (e = readdir(directory)) != NULL;)
        if (e->d_name[0] != '.') {
            char *file = ot__path_join(path, e->d_name);

            drop_cached(file);
            ot__free(file);
        }
    closedir(directory);
}

static double time_plain_write(bytes *b)
{
    ot__file_writer *file;
    double began;

    ot__file_remove(b->plain);
    began = ot__clock_seconds();
    must(ot__file_writer_open_within(&file, b->plain));
    must(ot__file_writer_write(file, ot_tensor_data(b->tensor), ot_tensor_bytes(b->tensor)));
    must(ot__file_writer_commit(file));
    return ot__clock_seconds() - began;
}

// Pieces as `dd bs=1M` has them, into memory that a load would fill.
static double time_plain_read(bytes *b)
{
    const double began = ot__clock_seconds();
    const size_t n_bytes = ot_tensor_bytes(b->tensor);
    ot__file_input input;

    must(ot__file_input_open(&input, b->plain));
    for (size_t at = 0; at < n_bytes; at += MIB)
        must(ot__file_input_read(&input, b->plain, at, (char *)b->copy + at, MIB));
    ot__file_input_close(&input);
    return ot__clock_seconds() - began;
}

static double time_load(bytes *b)
{
    const double began = ot__clock_seconds();

    must(ot_shards_load(NULL, b->path, &b->item, 1, NULL));
    return ot__clock_seconds() - began;
}

static double time_save(bytes *b, bool is_started_only)
{
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
    double began, took;

    (void)ot__directory_remove(b->path, NULL); // so that all write into nothing
    began = ot__clock_seconds();
    if (is_started_only)
        must(ot_shards_job_start(b->job, NULL, b->path, &b->item, 1, &options));
    else
        must(ot_shards_save(NULL, b->path, &b->item, 1, &options));
    took = ot__clock_seconds() - began;
    must(ot_shards_job_wait(b->job));
    return took;
}

static double time_copy(bytes *b)
{
    const double began = ot__clock_seconds();

    memcpy(b->copy, ot_tensor_data(b->tensor), ot_tensor_bytes(b->tensor));
    return ot__clock_seconds() - began;
}

static void time_round(bytes *b, int round)
{
    b->seconds[PLAIN_WRITTEN][round] = time_plain_write(b);
    b->seconds[SAVED][round] = time_save(b, false);
    drop_cached(b->plain);
    drop_directory(b->path);
    b->seconds[PLAIN_READ][round] = time_plain_read(b);
    b->seconds[LOADED][round] = time_load(b);
    b->seconds[PLAIN_CACHED][round] = time_plain_read(b);
    b->seconds[CACHED][round] = time_load(b);
    b->seconds[COPIED][round] = time_copy(b);
    b->seconds[STARTED][round] = time_save(b, true);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void time_bytes(const char *folder, int64_t mib)
{
    static const char *const names[] = {"plain file written and synchronised",
                                        "saved",
                                        "plain file read from the disk",
                                        "loaded and checked from the disk",
                                        "plain file read from the cache",
                                        "loaded and checked from the cache",
                                        "copied in memory",
                                        "job started"};
    const ot_shape shape = OT_SHAPE(mib, MIB / 4);
    static bytes b;

    b.item = (ot_shards_item)OT_SHARDS_ITEM_INIT;
    b.path = ot__path_join(folder, "bench-shards");
    b.plain = ot__path_join(folder, "bench-plain");
    b.item.name = "model";
    must(ot_dict_create(&b.item.dict));
    must(ot_tensor_create(OT_F32, &shape, &b.tensor));
    b.copy = malloc(ot_tensor_bytes(b.tensor));
    if (b.copy == NULL)
        exit(1);
    memset(ot_tensor_data(b.tensor), 1, ot_tensor_bytes(b.tensor));
    must(ot_dict_take_tensor(b.item.dict, "w", b.tensor));
    must(ot_shards_job_create(&b.job));
    printf("%" PRId64 " MiB, median and least of %d rounds in turn:\n", mib, N_ROUNDS);
    time_round(&b, 0); // memory becomes its own, the job's too
    for (int round = 0; round < N_ROUNDS; round++)
        time_round(&b, round);
    for (int what = 0; what < N_TIMES; what++) {
        qsort(b.seconds[what], N_ROUNDS, sizeof(double), compare_doubles);
        printf("  %-56s %7.1f ms, %7.1f ms\n", names[what], b.seconds[what][N_ROUNDS / 2] * 1e3,
               b.seconds[what][0] * 1e3);
    }
    ot_shards_job_destroy(b.job);
    (void)ot__directory_remove(b.path, NULL);
    ot__file_remove(b.plain);
}

static void run(int which, const char *folder)
{
    if (which == 0)
        time_index(1000, 100);
    else if (which == 1)
        time_index(100000, 1);
    else if (which == 2)
        time_index(10000, 100);
    else if (which == 3)
        time_plan(1000, 100);
    else if (which == 4)
        time_plan(1000, 1024);
    else
        time_bytes(folder, 256);
}

int main(int argc, char **argv)
{
    enum { CASES = 6 };

    for (int i = 0; i < CASES; i++) {
        const pid_t child = fork();
        int status = 1;

        if (child == 0) {
            run(i, argc > 1 ? argv[1] : ".");
            exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    return 0;
}
