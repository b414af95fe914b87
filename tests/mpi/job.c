// SPDX-License-Identifier: Apache-2.0
// One rank of a job that mpirun starts: run.sh says what all do, and looks at what they print.
//   job CASE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_calls.h"
#include "onnxtrain/onnxtrain.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition,                     \
                    ot_error_message());                                                           \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

static int work(ot_comm *comm)
{
    enum { N = 700001 };
    const int n = ot_comm_world_size(comm), rank = ot_comm_rank(comm);
    ot_comm *half, *again;
    ot_agreement a = OT_AGREEMENT_INIT;
    int64_t *numbers = malloc(N * sizeof *numbers);
    double sum = rank + 0.5;

    CHECK(ot_comm_local_size(comm) == n && ot_comm_local_rank(comm) == rank);
    CHECK(ot_comm_threads(comm) >= 1);
    for (int root = 0; root < n; root++) {
        for (int64_t i = 0; i < N; i++)
            numbers[i] = rank == root ? i * (root + 1) : 0;
        CHECK(ot_comm_broadcast(comm, root, numbers, N * sizeof *numbers) == OT_OK);
        for (int64_t i = 0; i < N; i++)
            CHECK(numbers[i] == i * (root + 1));
    }
    CHECK(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_I64, numbers, N) == OT_OK);
    for (int64_t i = 0; i < N; i++)
        CHECK(numbers[i] == i * n * n);
    CHECK(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_F64, &sum, 1) == OT_OK);
    CHECK(sum == n * n / 2.0);
    CHECK(ot_comm_split(comm, rank % 2, -rank, &half) == OT_OK);
    CHECK(ot_comm_world_size(half) == (n + 1 - rank % 2) / 2);
    CHECK(ot_comm_split(half, 0, 0, &again) == OT_OK);
    CHECK(ot_comm_barrier(again) == OT_OK);
    a.any = UINT64_C(1) << rank;
    CHECK(ot_comm_agree(comm, &a) == OT_OK);
    CHECK(a.any == (UINT64_C(1) << n) - 1);
    ot_comm_destroy(again);
    ot_comm_destroy(half);
    free(numbers);
    printf("rank %d of %d ends\n", rank, n);
    return 0;
}

// One rank fails; all say the same and go on.
static int fail_on_one(ot_comm *comm)
{
    ot_agreement a = OT_AGREEMENT_INIT;

    if (ot_comm_rank(comm) == 1)
        a.status = ot__error(OT_ERR_FORMAT, "row 7 is bad");
    CHECK(ot_comm_agree(comm, &a) == OT_ERR_FORMAT);
    printf("%s\n", ot_error_message());
    CHECK(ot_comm_barrier(comm) == OT_OK);
    return 0;
}

enum { ROWS = 7, COLUMNS = 3 };

// Rows of a matrix whose elements are their numbers; of zeros for what is loaded.
static ot_dict *make_rows(ot_comm *comm, bool fills)
{
    const int n = ot_comm_world_size(comm), rank = ot_comm_rank(comm);
    ot_box box = {2, {ROWS * rank / n, 0}, {0, COLUMNS}};
    const ot_shards *shards;
    ot_dict *dict;

    box.size[0] = ROWS * (rank + 1) / n - box.offset[0];
    CHECK(ot_dict_create(&dict) == OT_OK);
    CHECK(ot_dict_take_shards(dict, "w", OT_F32, &OT_SHAPE(ROWS, COLUMNS), &box, NULL,
                              box.size[0] > 0) == OT_OK);
    CHECK(ot_dict_get_shards(dict, "w", &shards) == OT_OK);
    for (int64_t i = 0; fills && i < box.size[0] * COLUMNS; i++)
        ((float *)ot_tensor_data(shards->parts[0]))[i] = (float)(box.offset[0] * COLUMNS + i);
    return dict;
}

static void check_rows(ot_dict *dict)
{
    const ot_shards *shards;

    CHECK(ot_dict_get_shards(dict, "w", &shards) == OT_OK);
    for (int k = 0; k < shards->n_parts; k++)
        for (int64_t i = 0; i < ot_tensor_count(shards->parts[k]); i++)
            CHECK(((const float *)ot_tensor_data_const(shards->parts[k]))[i] ==
                  (float)(shards->boxes[k].offset[0] * COLUMNS + i));
}

// Loads what a job before has saved, of any number of ranks, and saves it again.
static int save_and_load(ot_comm *comm)
{
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    char path[512];
    ot_status st;

    snprintf(path, sizeof path, "%s/shards", getenv("OT_JOB_DIRECTORY"));
    item.name = "m";
    item.dict = make_rows(comm, false);
    st = ot_shards_load(comm, path, &item, 1, NULL);
    CHECK(st == OT_OK || (ot_comm_world_size(comm) == 3 && st == OT_ERR_NOT_FOUND));
    if (st == OT_OK)
        check_rows(item.dict);
    ot_dict_destroy(item.dict);
    item.dict = make_rows(comm, true);
    options.replaces = 1;
    CHECK(ot_shards_save(comm, path, &item, 1, &options) == OT_OK);
    ot_dict_destroy(item.dict);
    return 0;
}

static void save_step(ot_comm *comm, int step)
{
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    char path[512];

    snprintf(path, sizeof path, "%s/step-%d", getenv("OT_JOB_DIRECTORY"), step);
    item.name = "m";
    item.dict = make_rows(comm, true);
    options.step = step;
    options.replaces = options.sets_latest = options.n_kept = 1;
    CHECK(ot_shards_save(comm, path, &item, 1, &options) == OT_OK);
    ot_dict_destroy(item.dict);
}

// One rank alone is killed before a call of its second save.
static int save_and_die(ot_comm *comm)
{
    save_step(comm, 1);
    if (ot_comm_rank(comm) == atoi(getenv("OT_JOB_RANK")))
        ot__file_fault_after(atoi(getenv("OT_JOB_CALL")), OT_FILE_KILL);
    save_step(comm, 2);
    return 0;
}

// What is there after that: the first or the second, whole.
static int load_latest(ot_comm *comm)
{
    ot_shards_item item = OT_SHARDS_ITEM_INIT;

    item.name = "m";
    item.dict = make_rows(comm, false);
    CHECK(ot_shards_load(comm, getenv("OT_JOB_DIRECTORY"), &item, 1, NULL) == OT_OK);
    check_rows(item.dict);
    ot_dict_destroy(item.dict);
    return 0;
}

// A trainer that is told how many processes there are, and finds them itself. The gradient of
// mean(w x) is the mean of x, which is rank + 1 here.
static int train_by_options(ot_comm *comm)
{
    static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                               "net (float[N] x) => (float loss) <float w = {2}>\n"
                               "{ y = Mul(x, w) loss = ReduceMean<keepdims = 0>(y) }\n";
    const int n = ot_comm_world_size(comm);
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_optimizer_options sgd = OT_OPTIMIZER_OPTIONS_INIT;
    float x = (float)(ot_comm_rank(comm) + 1), w = 0;
    ot_tensor *input, *loss = NULL;
    ot_trainer *trainer;
    ot_model *model;

    sgd.name = "SGDOptimizerV2";
    sgd.lr = 0.5;
    options.world_size = n;
    options.allreduce_post_accumulation = 1;
    CHECK(ot_model_load_buffer(text, sizeof text - 1, NULL, &model) == OT_OK);
    CHECK(ot_trainer_create(model, NULL, &sgd, &options, &trainer) == OT_OK);
    CHECK(ot_tensor_wrap(OT_F32, &OT_SHAPE(1), &x, sizeof x, &input) == OT_OK);
    CHECK(ot_trainer_train_step(trainer, (const ot_tensor *const *)&input, 1, &loss, 1) == OT_OK);
    CHECK(*(const float *)ot_tensor_data_const(loss) == 2 * x);
    CHECK(ot_session_get_parameters(ot_trainer_session(trainer), OT_PARAMETERS_ALL, &w, 1) ==
          OT_OK);
    CHECK(w == 2 - 0.5f * (float)(n + 1) / 2);
    ot_tensor_destroy(input);
    ot_tensor_destroy(loss);
    ot_trainer_destroy(trainer);
    options.world_size = n + 1;
    CHECK(ot_trainer_create(model, NULL, &sgd, &options, &trainer) == OT_ERR_INVALID);
    ot_model_destroy(model);
    printf("%s\n", ot_error_message());
    return 0;
}

// The last rank stops, and the others end the job.
static int fall_silent(ot_comm *comm)
{
    CHECK(ot_comm_barrier(comm) == OT_OK);
    if (ot_comm_rank(comm) == ot_comm_world_size(comm) - 1)
        raise(SIGSTOP);
    CHECK(ot_comm_barrier(comm) == OT_ERR_TIMEOUT);
    fprintf(stderr, "%s\n", ot_error_message());
    fflush(stderr);
    ot_comm_abort(comm, 1);
    return 4;
}

// One rank leaves without a word; nobody waits for it.
static int leave_early(ot_comm *comm)
{
    CHECK(ot_comm_barrier(comm) == OT_OK);
    if (ot_comm_rank(comm) == 0)
        exit(5);
    CHECK(ot_comm_barrier(comm) != OT_OK);
    return 4;
}

static const struct {
    const char *name;
    int (*run)(ot_comm *comm);
} cases[] = {{"work", work},          {"fail", fail_on_one},
             {"save", save_and_load}, {"trainer", train_by_options},
             {"silent", fall_silent}, {"leave", leave_early},
             {"kill", save_and_die},  {"latest", load_latest}};

int main(int argc, char **argv)
{
    ot_comm *comm;
    int status = 2;

    if (ot_comm_open("auto", NULL, &comm) != OT_OK) {
        fprintf(stderr, "%s\n", ot_error_message());
        return 1;
    }
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        if (argc == 2 && strcmp(argv[1], cases[i].name) == 0)
            status = cases[i].run(comm);
    ot_comm_destroy(comm);
    return status;
}
