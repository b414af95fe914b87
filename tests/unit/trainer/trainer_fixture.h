// SPDX-License-Identifier: Apache-2.0
// A linear model whose loss is one of its outputs, trained by plain SGD, and the same in f64 by
// hand.
#ifndef TESTS_UNIT_TRAINER_FIXTURE_H
#define TESTS_UNIT_TRAINER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "onnxtrain/onnxtrain.h"

enum { N_ROWS = 4, N_IN = 3 };

// loss = mean over rows of (x w + b - t)^2
static const char linear_text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                  "linear (float[N,3] x, float[N] t, float[2] unused)\n"
                                  "    => (float[N] y, float loss, float[N] d)\n"
                                  "<float[3] w = {0.5, -1, 0.25}, float b = {0.125}>\n"
                                  "{\n"
                                  "  p = MatMul(x, w)\n"
                                  "  y = Add(p, b)\n"
                                  "  d = Sub(y, t)\n"
                                  "  q = Mul(d, d)\n"
                                  "  loss = ReduceMean<keepdims = 0>(q)\n"
                                  "}\n";

static inline void need(ot_status st)
{
    if (st != OT_OK)
        fail_msg("%s: %s", ot_status_name(st), ot_error_message());
}

// ---- by hand ----

typedef struct hand {
    double w[N_IN], b, dw[N_IN], db;
    int64_t n; // micro-batches in dw and db
    double loss;
} hand;

static inline hand hand_begin(void)
{
    return (hand){.w = {0.5, -1, 0.25}, .b = 0.125};
}

static inline void hand_add(hand *h, const float *x, const float *t)
{
    h->loss = 0;
    for (int r = 0; r < N_ROWS; r++) {
        double d = h->b - (double)t[r];

        for (int i = 0; i < N_IN; i++)
            d += (double)x[r * N_IN + i] * h->w[i];
        h->loss += d * d / N_ROWS;
        for (int i = 0; i < N_IN; i++)
            h->dw[i] += 2 * d * (double)x[r * N_IN + i] / N_ROWS;
        h->db += 2 * d / N_ROWS;
    }
    h->n++;
}

static inline void hand_update(hand *h, double lr)
{
    for (int i = 0; i < N_IN; i++) {
        h->w[i] -= lr * h->dw[i] / (double)h->n;
        h->dw[i] = 0;
    }
    h->b -= lr * h->db / (double)h->n;
    h->db = 0;
    h->n = 0;
}

// ---- data ----

// Numbers of no pattern, the same each time.
static inline void batch_of(int64_t seed, float x[N_ROWS * N_IN], float t[N_ROWS])
{
    uint32_t s = (uint32_t)seed * 2654435761u + 12345u;

    for (int i = 0; i < N_ROWS * N_IN + N_ROWS; i++) {
        s = s * 1664525u + 1013904223u;
        *(i < N_ROWS * N_IN ? &x[i] : &t[i - N_ROWS * N_IN]) =
            (float)((double)(s >> 8) / (1 << 24) - 0.5);
    }
}

static inline ot_tensor *tensor_of(float *data, ot_shape shape)
{
    size_t n_bytes = sizeof *data;
    ot_tensor *t;

    for (int k = 0; k < shape.ndim; k++)
        n_bytes *= (size_t)shape.dim[k];
    need(ot_tensor_wrap(OT_F32, &shape, data, n_bytes, &t));
    return t;
}

// ---- trainers ----

// The model's output 'loss' is what it is trained by.
static inline void end_in_loss(ot_artifacts_options *how, ot_loss_options *loss)
{
    loss->loss = OT_LOSS_NONE;
    loss->input = "loss";
    how->losses = loss;
    how->n_losses = 1;
}

static inline ot_model *linear_model(void)
{
    ot_model *model;

    need(ot_model_load_buffer(linear_text, sizeof linear_text - 1, NULL, &model));
    return model;
}

static const ot_dim_description rows_by_3[] = {{"rows", 0}, {NULL, N_IN}}, rows[] = {{"rows", 0}};
static const ot_value_description linear_inputs[] = {{"t", rows, 1, 0}, {"x", rows_by_3, 2, 0}};
static const ot_value_description linear_outputs[] = {{"y", rows, 1, 0}, {"loss", NULL, 0, 1}};
static const ot_model_description linear_description = {sizeof(ot_model_description), linear_inputs,
                                                        linear_outputs, 2, 2};

static inline ot_trainer *linear_trainer(const ot_trainer_options *options)
{
    ot_optimizer_options sgd = OT_OPTIMIZER_OPTIONS_INIT;
    ot_model *model = linear_model();
    ot_trainer *trainer;

    sgd.name = "SGDOptimizerV2";
    sgd.lr = 0.25;
    need(ot_trainer_create(model, &linear_description, &sgd, options, &trainer));
    ot_model_destroy(model);
    return trainer;
}

static inline ot_step_info info_of(const ot_trainer *trainer)
{
    ot_step_info info = OT_STEP_INFO_INIT;

    need(ot_trainer_info(trainer, &info));
    return info;
}

// One step over batch `seed`; returns the loss.
static inline double step_over(ot_trainer *trainer, int64_t seed)
{
    float x[N_ROWS * N_IN], t[N_ROWS];
    ot_tensor *outputs[2] = {NULL, NULL};
    const ot_tensor *inputs[2];
    double loss;

    batch_of(seed, x, t);
    inputs[0] = tensor_of(t, OT_SHAPE(N_ROWS));
    inputs[1] = tensor_of(x, OT_SHAPE(N_ROWS, N_IN));
    need(ot_trainer_train_step(trainer, inputs, 2, outputs, 2));
    loss = (double)*(const float *)ot_tensor_data_const(outputs[1]);
    for (int i = 0; i < 2; i++) {
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
        ot_tensor_destroy(outputs[i]);
    }
    return loss;
}

static inline void assert_parameters(ot_trainer *trainer, const hand *h)
{
    float got[N_IN + 1];
    ot_session *session = ot_trainer_session(trainer);

    assert_int_equal(ot_session_parameters_size(session, OT_PARAMETERS_ALL), N_IN + 1);
    need(ot_session_get_parameters(session, OT_PARAMETERS_ALL, got, N_IN + 1));
    for (int i = 0; i < N_IN; i++)
        assert_float_equal(got[i], h->w[i], 2e-6);
    assert_float_equal(got[N_IN], h->b, 2e-6);
}

#endif
