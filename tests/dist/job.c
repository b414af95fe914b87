// SPDX-License-Identifier: Apache-2.0
// One rank of a job that mpirun starts: trains over the rows of a file, in their order.
//   job MODEL DATA.npz OUT.onnx OPTIMIZER RATE DECAY BATCH ACCUMULATION ZERO
// DATA has the fields x and labels; OPTIMIZER is the operator's name.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/onnxtrain.h"

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != OT_OK) {                                                                     \
            fprintf(stderr, "job: %s: %s\n", #call, ot_error_message());                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { MODEL = 1, DATA, OUT, OPTIMIZER, RATE, DECAY, BATCH, ACCUMULATION, ZERO, N_ARGUMENTS };

static ot_artifacts *make_artifacts(char **argv)
{
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    const ot_hyper adamw[] = {{"weight_decay", strtod(argv[DECAY], NULL)}, {"adam_mode", 0}};
    const ot_hyper sgd[] = {{"weight_decay", strtod(argv[DECAY], NULL)}, {"momentum", 0.9}};
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_model *model;

    optimizer.name = argv[OPTIMIZER];
    optimizer.hyper = strcmp(argv[OPTIMIZER], "AdamWOptimizer") == 0 ? adamw : sgd;
    optimizer.n_hyper = 2;
    how.optimizer = &optimizer;
    how.losses = &loss;
    how.n_losses = 1;
    MUST(ot_model_load(argv[MODEL], NULL, &model));
    MUST(ot_artifacts_generate(model, &how, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

static ot_batches *make_batches(ot_session *session, const ot_dataset *data, int64_t rows)
{
    static const char *const names[] = {"x", "labels"};
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_binding bindings[2] = {{.scale = 1}, {.scale = 1}};
    ot_batches *batches;

    for (int i = 0; i < 2; i++) {
        ot_binding *b = &bindings[i];

        b->input = ot_session_input_name(session, OT_MODE_TRAIN, i);
        b->fields = names[i];
        MUST(ot_session_input_info(session, OT_MODE_TRAIN, i, &b->dtype, &b->shape));
        b->shape.ndim--; // of a row
        memmove(b->shape.dim, b->shape.dim + 1, (size_t)b->shape.ndim * sizeof b->shape.dim[0]);
    }
    options.batch_size = rows;
    MUST(ot_batches_create(data, bindings, 2, &options, &batches));
    return batches;
}

static void train(char **argv, ot_session *session)
{
    const char *path = argv[DATA];
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot_trainer_options how = OT_TRAINER_OPTIONS_INIT;
    ot_dataset *data;
    ot_batches *batches;
    ot_trainer *trainer;

    MUST(ot_dataset_open(&path, 1, NULL, &data));
    batches = make_batches(session, data, strtol(argv[BATCH], NULL, 10));
    how.gradient_accumulation_steps = strtol(argv[ACCUMULATION], NULL, 10);
    options.epochs = 1;
    MUST(ot_trainer_create_from_session(session, NULL, &how, &trainer));
    MUST(ot_train_run(trainer, batches, NULL, &options, NULL));
    ot_trainer_destroy(trainer);
    ot_batches_destroy(batches);
    ot_dataset_destroy(data);
}

// All ranks export, for with zero 3 it takes the parts of all; rank 0 saves.
static void save(ot_session *session, bool is_first, const char *path)
{
    ot_model *model;

    MUST(ot_session_export(session, NULL, 0, &model));
    if (is_first)
        MUST(ot_model_save(model, path, NULL));
    ot_model_destroy(model);
}

int main(int argc, char **argv)
{
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_session *session;
    ot_comm *comm;

    if (argc != N_ARGUMENTS)
        return 2;
    MUST(ot_comm_open("auto", NULL, &comm));
    artifacts = make_artifacts(argv);
    parallel.comm = comm;
    parallel.bucket_bytes = 1 << 12; // several buckets
    parallel.zero = (int)strtol(argv[ZERO], NULL, 10);
    how.parallel = &parallel;
    how.n_threads = 1;
    MUST(ot_session_create_from_artifacts(artifacts, &how, &session));
    MUST(ot_session_set_learning_rate(session, strtod(argv[RATE], NULL)));
    train(argv, session);
    save(session, ot_comm_rank(comm) == 0, argv[OUT]);
    MUST(ot_comm_barrier(comm));
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    ot_comm_destroy(comm);
    return 0;
}
