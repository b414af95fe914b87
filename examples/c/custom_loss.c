// SPDX-License-Identifier: Apache-2.0
// Trains MODEL with a loss of its own, Huber's: d^2 / 2 where |d| <= 1, |d| - 1/2 elsewhere.
#include <math.h>
#include <onnxtrain/onnxtrain.h>
#include <stdio.h>
#include <stdlib.h>

static void must(ot_status status)
{
    if (status != OT_OK)
        fprintf(stderr, "%s\n", ot_error_message()), exit(1);
}

// With c = min(|d|, 1): mean of c * (|d| - c / 2). An error in any of the calls waits for the end.
static ot_status huber(const ot_model *model, ot_artifacts **out)
{
    ot_block *b;
    ot_status status = ot_block_create(model, NULL, &b);
    if (status != OT_OK)
        return status;
    ot_value *y = ot_block_output(b, 0), *target = ot_block_input_like(b, y, "target");
    ot_value *d = ot_block_abs(b, ot_block_sub(b, y, target));
    ot_value *c = ot_block_clip(b, d, -INFINITY, 1.0);
    ot_value *half = ot_block_mul(b, c, ot_block_constant(b, 0.5, OT_F32));
    ot_value *each = ot_block_mul(b, c, ot_block_sub(b, d, half));
    ot_value *loss = ot_block_reduce_mean(b, each, OT_SCALAR);
    status = ot_block_finish_training(b, &loss, 1, NULL, out);
    ot_block_destroy(b);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return fprintf(stderr, "usage: custom_loss MODEL\n"), 2;
    ot_model *model;
    ot_artifacts *artifacts;
    ot_session *session;
    ot_tensor *x, *target, *loss = NULL;
    float rows[] = {0, 0, 0, 1, 1, 0, 1, 1}, wanted[] = {1, 0, 3, 2}; // 1 + 2a - b
    must(ot_model_load(argv[1], NULL, &model));
    must(huber(model, &artifacts));
    must(ot_session_create_from_artifacts(artifacts, NULL, &session));
    must(ot_tensor_wrap(OT_F32, &OT_SHAPE(4, 2), rows, sizeof rows, &x));
    must(ot_tensor_wrap(OT_F32, &OT_SHAPE(4, 1), wanted, sizeof wanted, &target));
    must(ot_session_set_learning_rate(session, 0.02));
    for (int step = 0; step < 600; step++) {
        must(ot_session_train_step(session, (const ot_tensor *[]){x, target}, 2, &loss, 1));
        must(ot_session_optimizer_step(session));
        ot_session_reset_gradients(session);
    }
    printf("loss %g\n", (double)*(const float *)ot_tensor_data_const(loss));
    ot_tensor_destroy(loss), ot_tensor_destroy(target), ot_tensor_destroy(x);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}
