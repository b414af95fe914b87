// Make the artifacts of a model, train a few steps on them, and leave both for compare.py.
//
//   steps MODEL FOLDER LOSS OPTIMIZER STEPS BATCH CLASSES [LEARNING_RATE]
//
// LOSS "-": the artifacts are in FOLDER already. Models are written as .onnx and as .ort.
// Elements of step s: input i is sin(0.37 k + i + 0.1 s), integers are (7 k + 3 + s) mod CLASSES.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/onnxtrain.h"

enum { MAX_ENDS = 16 };

static void need(ot_status status)
{
    if (status == OT_OK)
        return;
    fprintf(stderr, "steps: %s: %s\n", ot_status_name(status), ot_error_message());
    exit(1);
}

static ot_artifacts *generate(const char *path, const char *loss, const char *optimizer)
{
    static const struct {
        const char *name;
        ot_loss loss;
    } losses[] = {{"cross-entropy", OT_LOSS_CROSS_ENTROPY},
                  {"mse", OT_LOSS_MSE},
                  {"l1", OT_LOSS_L1},
                  {"bce", OT_LOSS_BCE_WITH_LOGITS}};
    ot_loss_options term = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_model *model;

    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
        if (strcmp(loss, losses[i].name) == 0)
            term.loss = losses[i].loss;
    options.ort_format = 1;
    options.losses = &term;
    options.n_losses = 1;
    if (strcmp(optimizer, "sgd") == 0)
        options.optimizer.optimizer = OT_OPTIMIZER_SGD;
    need(ot_model_load(path, NULL, &model));
    need(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

static ot_tensor *make_input(const ot_session *session, int i, int step, int64_t batch,
                             int64_t classes)
{
    ot_dtype dtype;
    ot_shape shape;
    ot_tensor *tensor;

    need(ot_session_input_info(session, OT_MODE_TRAIN, i, &dtype, &shape));
    for (int k = 0; k < shape.ndim; k++)
        if (shape.dim[k] < 0)
            shape.dim[k] = batch;
    need(ot_tensor_create(dtype, &shape, &tensor));
    for (int64_t k = 0; k < ot_tensor_count(tensor); k++) {
        if (dtype == OT_F32)
            ((float *)ot_tensor_data(tensor))[k] =
                (float)sin(0.37 * (double)k + i + 0.1 * (double)step);
        else
            ((int64_t *)ot_tensor_data(tensor))[k] = (7 * k + 3 + step) % classes;
    }
    return tensor;
}

static double train_step(ot_session *session, int step, int64_t batch, int64_t classes)
{
    const int n_inputs = ot_session_input_count(session, OT_MODE_TRAIN);
    const int n_outputs = ot_session_output_count(session, OT_MODE_TRAIN);
    ot_tensor *inputs[MAX_ENDS] = {0}, *outputs[MAX_ENDS] = {0};
    double loss;

    if (n_inputs > MAX_ENDS || n_outputs > MAX_ENDS)
        exit(1);
    for (int i = 0; i < n_inputs; i++)
        inputs[i] = make_input(session, i, step, batch, classes);
    need(ot_session_train_step(session, (const ot_tensor *const *)inputs, n_inputs, outputs,
                               n_outputs));
    loss = (double)*(const float *)ot_tensor_data_const(outputs[0]);
    need(ot_session_optimizer_step(session));
    ot_session_reset_gradients(session);
    for (int i = 0; i < n_inputs; i++)
        ot_tensor_destroy(inputs[i]);
    for (int i = 0; i < n_outputs; i++)
        ot_tensor_destroy(outputs[i]);
    return loss;
}

int main(int argc, char **argv)
{
    ot_artifacts *artifacts;
    ot_session *session;
    char path[4096];

    if (argc < 8) {
        fprintf(stderr, "usage: steps MODEL FOLDER LOSS OPTIMIZER STEPS BATCH CLASSES [RATE]\n");
        return 2;
    }
    if (strcmp(argv[3], "-") == 0) {
        need(ot_artifacts_load(argv[2], NULL, &artifacts));
    } else {
        artifacts = generate(argv[1], argv[3], argv[4]);
        need(ot_artifacts_save(artifacts, argv[2], NULL));
    }
    need(ot_session_create_from_artifacts(artifacts, NULL, &session));
    need(ot_session_set_learning_rate(session, argc > 8 ? atof(argv[8]) : 1e-3));
    for (int step = 0; step < atoi(argv[5]); step++)
        printf("%.9g\n", train_step(session, step, atoll(argv[6]), atoll(argv[7])));
    snprintf(path, sizeof path, "%s/trained", argv[2]);
    need(ot_checkpoint_save(ot_artifacts_checkpoint(artifacts), path,
                            OT_CHECKPOINT_OPTIMIZER_STATE));
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    return 0;
}
