// SPDX-License-Identifier: Apache-2.0
// A large model and data to train it with: a chain of square Gemm layers with Relu between them.
//   make_model FOLDER MIB [embedded]
// writes FOLDER/model.onnx of about so many MiB, with external data unless told otherwise, and
// FOLDER/train.csv.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/onnxtrain.h"

enum { N_FEATURES = 8, N_CLASSES = 3, N_ROWS = 16, PATH_MAX_LENGTH = 1000 };

// Layers of 64 MiB at most, so that the largest single tensor is a small part of the whole.
static int width_for(long mib)
{
    return mib >= 1024 ? 4096 : mib >= 128 ? 2048 : 512;
}

static FILE *create(const char *folder, const char *name)
{
    char path[PATH_MAX_LENGTH];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

static void finish(FILE *file, const char *name)
{
    if (ferror(file) | fclose(file)) {
        fprintf(stderr, "%s: cannot be written\n", name);
        exit(1);
    }
}

// Uniform in -bound..bound, cheap: what is written is never compressed or compared.
static void write_weights(FILE *file, size_t count, float bound)
{
    static float block[1 << 14];
    static unsigned long long state = 1;

    while (count > 0) {
        const size_t n =
            count < sizeof block / sizeof *block ? count : sizeof block / sizeof *block;

        for (size_t i = 0; i < n; i++) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            block[i] = ((float)(state >> 40) / (float)(1 << 23) - 1.0f) * bound;
        }
        if (fwrite(block, sizeof *block, n, file) != n)
            return; // seen by finish()
        count -= n;
    }
}

static void write_layer(FILE *text, FILE *data, size_t *offset, const char *name, int rows,
                        int columns)
{
    const size_t count = (size_t)rows * (size_t)columns, n_bytes = count * sizeof(float);

    fprintf(text,
            "  float[%d, %d] %s = [\"location\": \"weights\", \"offset\": \"%zu\", "
            "\"length\": \"%zu\"]",
            rows, columns, name, *offset, n_bytes);
    write_weights(data, count, sqrtf(6.0f / (float)rows));
    *offset += n_bytes;
}

static void write_text(FILE *text, FILE *data, int width, int n_layers)
{
    size_t offset = 0;
    char name[32];

    fprintf(text,
            "<ir_version: 8, opset_import: [\"\" : 17]>\nchain (float[batch, %d] x) => "
            "(float[batch, %d] scores)\n<\n",
            N_FEATURES, N_CLASSES);
    write_layer(text, data, &offset, "first", N_FEATURES, width);
    for (int i = 0; i < n_layers; i++) {
        fprintf(text, ",\n");
        snprintf(name, sizeof name, "w%d", i);
        write_layer(text, data, &offset, name, width, width);
    }
    fprintf(text, ",\n");
    write_layer(text, data, &offset, "last", width, N_CLASSES);
    fprintf(text, "\n>\n{\n  h0 = Gemm (x, first)\n");
    for (int i = 0; i < n_layers; i++)
        fprintf(text, "  g%d = Gemm (h%d, w%d)\n  h%d = Relu (g%d)\n", i, i, i, i + 1, i);
    fprintf(text, "  scores = Gemm (h%d, last)\n}\n", n_layers);
}

static void write_rows(FILE *csv)
{
    for (int k = 0; k < N_FEATURES; k++)
        fprintf(csv, "x%d,", k);
    fprintf(csv, "label\n");
    for (int i = 0; i < N_ROWS; i++) {
        for (int k = 0; k < N_FEATURES; k++)
            fprintf(csv, "%g,", (double)((i * 7 + k * 3) % 11) / 11.0);
        fprintf(csv, "%d\n", i % N_CLASSES);
    }
}

static int fail(void)
{
    fprintf(stderr, "%s\n", ot_error_message());
    return 1;
}

int main(int argc, char **argv)
{
    char text_path[PATH_MAX_LENGTH], data_path[PATH_MAX_LENGTH], path[PATH_MAX_LENGTH];
    const long mib = argc >= 3 ? strtol(argv[2], NULL, 10) : 0;
    const int width = width_for(mib);
    const long layer_bytes = (long)width * width * (long)sizeof(float);
    FILE *text, *data, *csv;
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    ot_model *model;

    if (mib < 1 || argc > 4 || (argc == 4 && strcmp(argv[3], "embedded") != 0)) {
        fprintf(stderr, "usage: make_model FOLDER MIB [embedded]\n");
        return 2;
    }
    text = create(argv[1], "model.onnxtxt");
    data = create(argv[1], "weights");
    write_text(text, data, width, (int)((mib << 20) / layer_bytes));
    finish(text, "model.onnxtxt");
    finish(data, "weights");
    csv = create(argv[1], "train.csv");
    write_rows(csv);
    finish(csv, "train.csv");

    snprintf(text_path, sizeof text_path, "%s/model.onnxtxt", argv[1]);
    snprintf(data_path, sizeof data_path, "%s/weights", argv[1]);
    snprintf(path, sizeof path, "%s/model.onnx", argv[1]);
    if (ot_model_load(text_path, NULL, &model) != OT_OK)
        return fail();
    options.external_from = argc == 4 ? SIZE_MAX : 1024;
    if (ot_model_save(model, path, &options) != OT_OK)
        return fail();
    ot_model_destroy(model);
    remove(text_path);
    remove(data_path);
    return 0;
}
