// SPDX-License-Identifier: Apache-2.0
// Which pixels the model looks at: the gradient of the score of a digit's own class, for one digit.
#include <math.h>
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
        return fprintf(stderr, "usage: saliency MODEL DIGITS ROW\n"), 2;
    ot_model *model;
    ot_dataset *data;
    ot_batches *digits;
    ot_batches_options row = OT_BATCHES_OPTIONS_INIT; // one image and its class
    ot_binding bindings[] = {{"image", OT_F32, {3, {1, 8, 8}}, "0:63", 0.0625, NULL, NULL, 1, 0, 0},
                             {"class", OT_I64, {0, {0}}, "64", 1.0, NULL, NULL, 1, 1, 0}};
    const ot_tensor *digit[2];
    row.first = atoi(argv[3]);
    row.last = row.first + 1;
    must(ot_model_load(argv[1], NULL, &model));
    must(ot_dataset_open((const char *const *)&argv[2], 1, NULL, &data));
    must(ot_batches_create(data, bindings, 2, &row, &digits));
    must(ot_batches_next(digits, digit, 2));

    // The gradient of all ten scores by the image, weighted by a vector: 1 for the class, else 0.
    ot_gradients *gradients;
    ot_tensor *seed, *outputs[2] = {NULL}; // the scores, and the gradient by the image
    must(ot_gradients_create(model, "scores", (const char *[]){"image"}, 1, NULL, &gradients));
    must(ot_tensor_create(OT_F32, &OT_SHAPE(1, 10), &seed));
    ((float *)ot_tensor_data(seed))[*(const int64_t *)ot_tensor_data_const(digit[1])] = 1.0f;
    must(ot_gradients_run(gradients, (const ot_tensor *[]){digit[0], seed}, 2, outputs, 2));

    const float *slope = ot_tensor_data_const(outputs[1]);
    float most = 0;
    for (int k = 0; k < 64; k++)
        most = fmaxf(most, fabsf(slope[k]));
    for (int k = 0; k < 64; k++)
        printf("%c%s", " .:-=+*#%@"[most > 0 ? (int)(fabsf(slope[k]) / most * 9) : 0],
               k % 8 == 7 ? "\n" : "");

    // The same as a model, which any runtime for ONNX can run: ot_model_save() writes it.
    printf("the gradient model has %d nodes\n", ot_model_node_count(ot_gradients_model(gradients)));
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(outputs[i]);
    ot_tensor_destroy(seed);
    ot_gradients_destroy(gradients);
    ot_batches_destroy(digits);
    ot_dataset_destroy(data);
    ot_model_destroy(model);
}
