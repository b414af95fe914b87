// SPDX-License-Identifier: Apache-2.0
// Trains MODEL (.onnx or .onnxtxt) on the rows of DATA (.csv, .npz, ...) and writes OUT.
#include <onnxtrain/onnxtrain.h>
#include <stdio.h>
#include <stdlib.h>

static void must(ot_status status)
{
    if (status != OT_OK)
        fprintf(stderr, "%s\n", ot_error_message()), exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return fprintf(stderr, "usage: train MODEL DATA OUT\n"), 2;
    ot_model *model, *trained;
    ot_artifacts *artifacts; // loss, gradients and optimizer as graphs, and the parameters
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    loss.loss = OT_LOSS_MSE; // its target becomes the input "target"
    options.losses = &loss;
    options.n_losses = 1;
    must(ot_model_load(argv[1], NULL, &model));
    must(ot_artifacts_generate(model, &options, &artifacts));

    // Data: columns a and b are the model's input x, column c is the target.
    ot_dataset *data;
    ot_batches *batches;
    ot_binding bindings[] = {{"x", OT_F32, {1, {2}}, "a,b", 1.0, NULL, NULL, 1, 0, 0},
                             {"target", OT_F32, {1, {1}}, "c", 1.0, NULL, NULL, 1, 0, 0}};
    must(ot_dataset_open((const char *const *)&argv[2], 1, NULL, &data));
    must(ot_batches_create(data, bindings, 2, NULL, &batches));

    // Run time: step by step. ot_train_run() is this loop with validation, early stop and saving.
    ot_session *session;
    const ot_tensor *inputs[2];
    ot_tensor *value = NULL; // of the loss; made by the first step, reused by the others
    must(ot_session_create_from_artifacts(artifacts, NULL, &session));
    must(ot_session_set_learning_rate(session, 0.05));
    for (int epoch = 0; epoch < 100; epoch++) {
        must(ot_batches_seek(batches, epoch, 0));
        while (must(ot_batches_next(batches, inputs, 2)), inputs[0]) {
            must(ot_session_train_step(session, inputs, 2, &value, 1));
            must(ot_session_optimizer_step(session));
            ot_session_reset_gradients(session);
        }
    }
    printf("loss %g\n", (double)*(const float *)ot_tensor_data_const(value));
    must(ot_session_export(session, (const char *[]){"y"}, 1, &trained));
    must(ot_model_save(trained, argv[3], NULL));
    ot_model_destroy(trained);
    ot_tensor_destroy(value);
    ot_session_destroy(session);
    ot_batches_destroy(batches);
    ot_dataset_destroy(data);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}
