// SPDX-License-Identifier: Apache-2.0
// What checkpoint directories cost beside their bytes: ./dev bench shards [DIRECTORY]. Every line
// is of a process of its own, so that its peak of memory is.
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

static void time_bytes(const char *folder, int64_t mib)
{
    const ot_shape shape = OT_SHAPE(mib, MIB / 4);
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    char *path = ot__path_join(folder, "bench-shards"),
         *plain = ot__path_join(folder, "bench-plain");
    ot__file_writer *file;
    ot__file_input input;
    ot_shards_job *job;
    ot_tensor *tensor;
    double began;

    item.name = "model";
    must(ot_dict_create(&item.dict));
    must(ot_tensor_create(OT_F32, &shape, &tensor));
    memset(ot_tensor_data(tensor), 1, ot_tensor_bytes(tensor));
    must(ot_dict_take_tensor(item.dict, "w", tensor));
    printf("%" PRId64 " MiB:\n", mib);
    began = ot__clock_seconds();
    must(ot__file_writer_open_within(&file, plain));
    must(ot__file_writer_write(file, ot_tensor_data(tensor), ot_tensor_bytes(tensor)));
    must(ot__file_writer_commit(file));
    tell("  plain file written and synchronised", ot__clock_seconds() - began);
    began = ot__clock_seconds();
    must(ot_shards_save(NULL, path, &item, 1, NULL));
    tell("  saved", ot__clock_seconds() - began);
    began = ot__clock_seconds();
    must(ot__file_input_open(&input, plain));
    must(ot__file_input_read(&input, plain, 0, ot_tensor_data(tensor), ot_tensor_bytes(tensor)));
    tell("  plain file read", ot__clock_seconds() - began);
    ot__file_input_close(&input);
    began = ot__clock_seconds();
    must(ot_shards_load(NULL, path, &item, 1, NULL));
    tell("  loaded and checked", ot__clock_seconds() - began);
    must(ot_shards_job_create(&job));
    for (int i = 0; i < 2; i++) {
        ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;

        options.replaces = 1;
        began = ot__clock_seconds();
        must(ot_shards_job_start(job, NULL, path, &item, 1, &options));
        tell(i == 0 ? "  job started, with new memory" : "  job started again",
             ot__clock_seconds() - began);
        must(ot_shards_job_wait(job));
    }
    ot_shards_job_destroy(job);
    (void)ot__directory_remove(path);
    ot__file_remove(plain);
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
