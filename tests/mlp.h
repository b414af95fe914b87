// SPDX-License-Identifier: Apache-2.0
// A two-layer network with softmax cross entropy as ONNX Runtime writes its artifacts, and the same
// mathematics in f64 written down directly. Shared by the tests of `session` and of resuming.
#ifndef TESTS_MLP_H
#define TESTS_MLP_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/ckpt.h"
#include "onnxtrain/runner.h"
#include "onnxtrain/session.h"

enum { IN = 3, HIDDEN = 4, CLASSES = 2, ROWS = 5 };
enum { W1 = 0, B1 = W1 + IN * HIDDEN, W2 = B1 + HIDDEN, B2 = W2 + HIDDEN * CLASSES };
enum { N_ELEMENTS = B2 + CLASSES };

// The word T stands for the element type.
#define MLP_HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>\n"
#define MLP_PARAMETERS                                                                             \
    "T[3,4] \"fc1.weight\", T[4] \"fc1.bias\", T[4,2] \"fc2.weight\", T[2] \"fc2.bias\""
#define MLP_BUFFERS                                                                                \
    "T[3,4] \"fc1.weight_grad.accumulation.buffer\", T[4] \"fc1.bias_grad.accumulation.buffer\", " \
    "T[4,2] \"fc2.weight_grad.accumulation.buffer\", T[2] \"fc2.bias_grad.accumulation.buffer\""
#define MLP_INPUTS                                                                                 \
    "(T[batch,3] x, int64[batch] labels, " MLP_PARAMETERS ", " MLP_BUFFERS                         \
    ", bool[1] lazy_reset_grad)\n"
#define MLP_OUTPUTS                                                                                \
    "(T \"onnx::loss::3\", bool[1] \"fc1.weight_grad.accumulation.out\", bool[1] "                 \
    "\"fc1.bias_grad.accumulation.out\", bool[1] \"fc2.weight_grad.accumulation.out\", bool[1] "   \
    "\"fc2.bias_grad.accumulation.out\")\n"
#define MLP_FORWARD                                                                                \
    "  h = Gemm(x, \"fc1.weight\", \"fc1.bias\")\n"                                                \
    "  a = Relu(h)\n"                                                                              \
    "  \"output-0\" = Gemm(a, \"fc2.weight\", \"fc2.bias\")\n"                                     \
    "  \"onnx::loss::3\", log_prob = SoftmaxCrossEntropyLoss<reduction = \"mean\">(\"output-0\", " \
    "labels)\n"
#define MLP_ACCUMULATE(name)                                                                       \
    "  \"" name "_grad.accumulation.out\" = com.microsoft.InPlaceAccumulatorV2(\"" name            \
    "_grad.accumulation.buffer\", \"" name "_grad\", lazy_reset_grad)\n"

static const char mlp_training_text[] = MLP_HEAD
    "training " MLP_INPUTS "=> " MLP_OUTPUTS
    "<T \"onnx::loss::3_grad\" = {1}, int64[1] rows = {0}>\n"
    "{\n" MLP_FORWARD "  dz = com.microsoft.SoftmaxCrossEntropyLossGrad<reduction = "
    "\"mean\">(\"onnx::loss::3_grad\", "
    "log_prob, labels)\n"
    "  db2 = ReduceSum<keepdims = 0>(dz, rows)\n"
    "  \"fc2.bias_grad\" = Identity(db2)\n"
    "  \"fc2.weight_grad\" = Gemm<transA = 1, beta = 0.0>(a, dz)\n"
    "  da = Gemm<transB = 1, beta = 0.0>(dz, \"fc2.weight\")\n"
    "  dh = com.microsoft.ReluGrad(da, a)\n"
    "  db1 = ReduceSum<keepdims = 0>(dh, rows)\n"
    "  \"fc1.bias_grad\" = Identity(db1)\n"
    "  \"fc1.weight_grad\" = Gemm<transA = 1, beta = 0.0>(x, dh)\n" MLP_ACCUMULATE("fc1.weight")
        MLP_ACCUMULATE("fc1.bias") MLP_ACCUMULATE("fc2.weight") MLP_ACCUMULATE("fc2.bias") "}\n";

// The same with half of the hidden layer dropped.
static const char mlp_dropout_text[] = MLP_HEAD
    "training " MLP_INPUTS "=> " MLP_OUTPUTS
    "<T \"onnx::loss::3_grad\" = {1}, int64[1] rows = {0}, float ratio = {0.5}, bool on = {1}>\n"
    "{\n"
    "  h = Gemm(x, \"fc1.weight\", \"fc1.bias\")\n"
    "  a = Relu(h)\n"
    "  d, mask = Dropout(a, ratio, on)\n"
    "  z = Gemm(d, \"fc2.weight\", \"fc2.bias\")\n"
    "  \"onnx::loss::3\", log_prob = SoftmaxCrossEntropyLoss<reduction = \"mean\">(z, labels)\n"
    "  dz = com.microsoft.SoftmaxCrossEntropyLossGrad<reduction = "
    "\"mean\">(\"onnx::loss::3_grad\", "
    "log_prob, labels)\n"
    "  \"fc2.bias_grad\" = ReduceSum<keepdims = 0>(dz, rows)\n"
    "  \"fc2.weight_grad\" = Gemm<transA = 1, beta = 0.0>(d, dz)\n"
    "  dd = Gemm<transB = 1, beta = 0.0>(dz, \"fc2.weight\")\n"
    "  da = com.microsoft.DropoutGrad(dd, mask, ratio, on)\n"
    "  dh = com.microsoft.ReluGrad(da, a)\n"
    "  \"fc1.bias_grad\" = ReduceSum<keepdims = 0>(dh, rows)\n"
    "  \"fc1.weight_grad\" = Gemm<transA = 1, beta = 0.0>(x, dh)\n" MLP_ACCUMULATE("fc1.weight")
        MLP_ACCUMULATE("fc1.bias") MLP_ACCUMULATE("fc2.weight") MLP_ACCUMULATE("fc2.bias") "}\n";

// The parameters stand in another order than in training.
static const char mlp_eval_text[] =
    MLP_HEAD "eval (T[batch,3] x, int64[batch] labels, T[2] \"fc2.bias\", T[4,2] \"fc2.weight\", "
             "T[4] \"fc1.bias\", T[3,4] \"fc1.weight\") => (T \"onnx::loss::3\")\n"
             "{\n" MLP_FORWARD "}\n";

#define MLP_OPTIMIZER_INPUTS                                                                       \
    "float[1] learning_rate, int64[1] step, seq(T[]) params, seq(T[]) gradients, seq(T[]) "        \
    "first_order_moments"

static const char mlp_adamw_text[] = MLP_HEAD
    "adamw (" MLP_OPTIMIZER_INPUTS ", seq(T[]) second_order_moments) => (bool[1] flag)\n"
    "{\n"
    "  flag = com.microsoft.AdamWOptimizer<alpha = 0.9, beta = 0.999, epsilon = 0.000001, "
    "weight_decay = 0.01, adam_mode = 1, correct_bias = 1>(learning_rate, step, params, gradients, "
    "first_order_moments, second_order_moments)\n"
    "}\n";

static const char mlp_sgd_text[] =
    MLP_HEAD "sgd (" MLP_OPTIMIZER_INPUTS ") => (bool[1] flag)\n"
             "{\n"
             "  flag = com.microsoft.SGDOptimizerV2(learning_rate, params, gradients)\n"
             "}\n";

static const char mlp_clipped_sgd_text[] =
    MLP_HEAD "sgd (" MLP_OPTIMIZER_INPUTS ") => (bool[1] flag)\n"
             "{\n"
             "  clipped = com.microsoft.InplaceClipGradNorm<max_norm = 0.05>(gradients)\n"
             "  flag = com.microsoft.SGDOptimizerV2(learning_rate, params, clipped)\n"
             "}\n";

// ---- models ----

static inline bool mlp_is_word_byte(char c)
{
    return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

// A model from text in which the word T is an element type ("float", "double").
static inline ot_model *mlp_model(const char *text, const char *type)
{
    char *out = calloc(strlen(text) + 1, 8);
    size_t n = 0;
    ot_model *model;
    ot_status st;

    for (const char *c = text; *c != '\0'; c++) {
        const bool is_word =
            *c == 'T' && (c == text || !mlp_is_word_byte(c[-1])) && !mlp_is_word_byte(c[1]);

        if (is_word)
            n += (size_t)sprintf(out + n, "%s", type);
        else
            out[n++] = *c;
    }
    st = ot_model_load_buffer(out, n, NULL, &model);
    free(out);
    if (st != OT_OK)
        fail_msg("%s", ot_error_message());
    return model;
}

static const struct {
    const char *name;
    int first, ndim;
    int64_t dim[2];
} mlp_parts[] = {
    {"fc1.weight", W1, 2, {IN, HIDDEN}},
    {"fc1.bias", B1, 1, {HIDDEN, 0}},
    {"fc2.weight", W2, 2, {HIDDEN, CLASSES}},
    {"fc2.bias", B2, 1, {CLASSES, 0}},
};
enum { N_PARTS = 4 };

static inline ot_shape mlp_shape(int part)
{
    return (ot_shape){mlp_parts[part].ndim, {mlp_parts[part].dim[0], mlp_parts[part].dim[1]}};
}

static inline double mlp_initial(int i)
{
    return sin(1.0 + 3.0 * i) * 0.6; // anything without symmetry
}

static inline ot_tensor *mlp_tensor(ot_dtype dtype, ot_shape shape, const double *elements)
{
    ot_tensor *t;

    assert_int_equal(ot_tensor_create(dtype, &shape, &t), OT_OK);
    if (elements != NULL)
        assert_true(ot__convert(t->data, dtype, elements, OT_F64, ot_tensor_count(t)));
    return t;
}

static inline ot_checkpoint *mlp_checkpoint(ot_dtype dtype)
{
    ot_checkpoint *checkpoint;
    double all[N_ELEMENTS];

    for (int i = 0; i < N_ELEMENTS; i++)
        all[i] = mlp_initial(i);
    assert_int_equal(ot_checkpoint_create(&checkpoint), OT_OK);
    for (int k = 0; k < N_PARTS; k++) {
        ot_tensor *t = mlp_tensor(dtype, mlp_shape(k), all + mlp_parts[k].first);

        assert_int_equal(
            ot_checkpoint_add_parameter(checkpoint, mlp_parts[k].name, t, OT_PARAMETER_TRAINABLE),
            OT_OK);
        ot_tensor_destroy(t);
    }
    return checkpoint;
}

// ---- data: a batch of ROWS rows per number ----

static inline double mlp_x(int batch, int row, int column)
{
    return cos(0.7 * batch + 2.1 * row + 5.3 * column);
}

static inline int mlp_label(int batch, int row)
{
    return mlp_x(batch, row, 0) + mlp_x(batch, row, 2) > 0.0 ? 1 : 0;
}

static inline void mlp_batch(ot_dtype dtype, int batch, int rows, ot_tensor *inputs[2])
{
    double x[ROWS * IN], labels[ROWS];

    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < IN; c++)
            x[r * IN + c] = mlp_x(batch, r, c);
        labels[r] = mlp_label(batch, r);
    }
    inputs[0] = mlp_tensor(dtype, OT_SHAPE(rows, IN), x);
    inputs[1] = mlp_tensor(OT_I64, OT_SHAPE(rows), labels);
}

// ---- the mathematics ----

typedef struct mlp_reference {
    double p[N_ELEMENTS], g[N_ELEMENTS], m[N_ELEMENTS], v[N_ELEMENTS];
    int step;
} mlp_reference;

static inline void mlp_reference_init(mlp_reference *r)
{
    memset(r, 0, sizeof *r);
    for (int i = 0; i < N_ELEMENTS; i++)
        r->p[i] = mlp_initial(i);
}

static inline void mlp_scores(const mlp_reference *r, int batch, int row, double h[HIDDEN],
                              double z[CLASSES])
{
    for (int j = 0; j < HIDDEN; j++) {
        h[j] = r->p[B1 + j];
        for (int c = 0; c < IN; c++)
            h[j] += mlp_x(batch, row, c) * r->p[W1 + c * HIDDEN + j];
    }
    for (int k = 0; k < CLASSES; k++) {
        z[k] = r->p[B2 + k];
        for (int j = 0; j < HIDDEN; j++)
            z[k] += (h[j] > 0 ? h[j] : 0) * r->p[W2 + j * CLASSES + k];
    }
}

// Adds the gradients of the mean loss over the rows to r->g and returns the loss.
static inline double mlp_step(mlp_reference *r, int batch, int rows)
{
    double loss = 0;

    for (int row = 0; row < rows; row++) {
        double h[HIDDEN], z[CLASSES], sum = 0;
        const int label = mlp_label(batch, row);

        mlp_scores(r, batch, row, h, z);
        for (int k = 0; k < CLASSES; k++)
            sum += exp(z[k]);
        loss += log(sum) - z[label];
        for (int k = 0; k < CLASSES; k++) {
            const double dz = (exp(z[k]) / sum - (k == label)) / rows;

            r->g[B2 + k] += dz;
            for (int j = 0; j < HIDDEN; j++) {
                if (h[j] <= 0)
                    continue;
                r->g[W2 + j * CLASSES + k] += h[j] * dz;
                r->g[B1 + j] += r->p[W2 + j * CLASSES + k] * dz;
                for (int c = 0; c < IN; c++)
                    r->g[W1 + c * HIDDEN + j] +=
                        mlp_x(batch, row, c) * r->p[W2 + j * CLASSES + k] * dz;
            }
        }
    }
    return loss / rows;
}

// The optimizer's hyper-parameters are f32 attributes.
static inline void mlp_adamw(mlp_reference *r, float lr)
{
    const double a = (double)0.9f, b = (double)0.999f, eps = (double)1e-6f, decay = (double)0.01f;
    double c1, c2;

    r->step++;
    c1 = 1 - pow(a, r->step);
    c2 = 1 - pow(b, r->step);
    for (int i = 0; i < N_ELEMENTS; i++) {
        r->m[i] = a * r->m[i] + (1 - a) * r->g[i];
        r->v[i] = b * r->v[i] + (1 - b) * r->g[i] * r->g[i];
        r->p[i] -= (double)lr * sqrt(c2) / c1 * r->m[i] / (sqrt(r->v[i]) + eps);
        r->p[i] -= (double)lr * decay * r->p[i];
    }
}

static inline void mlp_sgd(mlp_reference *r, float lr)
{
    r->step++;
    for (int i = 0; i < N_ELEMENTS; i++)
        r->p[i] -= (double)lr * r->g[i];
}

static inline void mlp_clip(mlp_reference *r, double max_norm)
{
    double sum = 0, factor;

    for (int i = 0; i < N_ELEMENTS; i++)
        sum += r->g[i] * r->g[i];
    factor = fmin(max_norm / (sqrt(sum) + 1e-6), 1.0);
    for (int i = 0; i < N_ELEMENTS; i++)
        r->g[i] *= factor;
}

#endif
