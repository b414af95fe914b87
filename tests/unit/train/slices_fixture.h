// SPDX-License-Identifier: Apache-2.0
// Small models of f64, their data, and runs of the training loop over them by slices.
#ifndef TESTS_UNIT_TRAIN_SLICES_FIXTURE_H
#define TESTS_UNIT_TRAIN_SLICES_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/ckpt.h"
#include "dist/dist.h"
#include "onnxtrain/onnxtrain.h"
#include "session/session.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]>\n"
#define MODEL "net (double[N,6] x, double[N,1] t) => (double[N,1] y, double loss)\n"
#define LOSS                                                                                       \
    "  d = Sub(y, t)\n"                                                                            \
    "  q = Mul(d, d)\n"                                                                            \
    "  loss = ReduceMean<keepdims = 0>(q)\n"

static const char perceptron[] = HEAD MODEL "{\n"
                                            "  w = RandomNormal<shape = [6, 5], dtype = 11>()\n"
                                            "  v = RandomNormal<shape = [5, 1], dtype = 11>()\n"
                                            "  a = MatMul(x, w)\n"
                                            "  h = Tanh(a)\n"
                                            "  y = MatMul(h, v)\n" LOSS "}\n";

static const char convolution[] =
    HEAD MODEL "<double[2] scale = {1, 0.5}, double[2] bias = {0.25, 0}, double[2] mean = {0, 0},\n"
               " double[2] var = {1, 1}, int64[4] image = {0, 1, 2, 3}>\n"
               "{\n"
               "  w = RandomNormal<shape = [2, 1, 2, 2], dtype = 11>()\n"
               "  v = RandomNormal<shape = [4, 1], dtype = 11>()\n"
               "  i = Reshape(x, image)\n"
               "  c = Conv(i, w)\n"
               "  n = BatchNormalization<momentum = 0.5>(c, scale, bias, mean, var)\n"
               "  h = Tanh(n)\n"
               "  f = Flatten(h)\n"
               "  y = MatMul(f, v)\n" LOSS "}\n";

static const char recurrent[] = HEAD MODEL "<int64[3] sequence = {0, 3, 2}, int64[1] first = {0}>\n"
                                           "{\n"
                                           "  w = RandomNormal<shape = [1, 8, 2], dtype = 11>()\n"
                                           "  r = RandomNormal<shape = [1, 8, 2], dtype = 11>()\n"
                                           "  v = RandomNormal<shape = [2, 1], dtype = 11>()\n"
                                           "  s = Reshape(x, sequence)\n"
                                           "  z = Transpose<perm = [1, 0, 2]>(s)\n"
                                           "  all, last = LSTM<hidden_size = 2>(z, w, r)\n"
                                           "  h = Squeeze(last, first)\n"
                                           "  y = MatMul(h, v)\n" LOSS "}\n";

static const char dropped[] = HEAD MODEL "<double ratio = {0.5}, bool on = {1}>\n"
                                         "{\n"
                                         "  w = RandomNormal<shape = [6, 9], dtype = 11>()\n"
                                         "  v = RandomNormal<shape = [9, 1], dtype = 11>()\n"
                                         "  a = MatMul(x, w)\n"
                                         "  h = Dropout(a, ratio, on)\n"
                                         "  y = MatMul(h, v)\n" LOSS "}\n";

// Ten rows in batches of four: the last one has two.
enum { ROWS = 10, BATCH = 4, FEATURES = 6, EPOCHS = 2, PARAMETERS_MAX = 8, ELEMENTS_MAX = 64 };
static const double rate = 0.0625; // which is an f32, too

typedef struct world {
    ot_artifacts *artifacts;
    ot_session *session;
    ot_checkpoint *checkpoint;
    ot_checkpoint *saved; // that the session has instead of that of the artifacts
    ot_dataset *dataset;
    int64_t batch_size;
    ot_tensor *tensors[2];
    double x[ROWS * FEATURES], t[ROWS];
} world;

// ---- data and models ----

static inline double number_at(uint32_t i)
{
    i = (i + 1) * 2654435761u;
    i ^= i >> 15;
    i *= 2246822519u;
    return (double)(i >> 8) / (1 << 23) - 1;
}

static inline ot_status make_artifacts(const char *text, ot_artifacts **out)
{
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options sgd = OT_OPTIMIZER_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_model *model;
    ot_status st;

    sgd.name = "SGDOptimizerV2";
    loss.loss = OT_LOSS_NONE;
    loss.input = "loss";
    how.losses = &loss;
    how.n_losses = 1;
    how.optimizer = &sgd;
    how.seed = 9;
    OT_TRY(ot_model_load_buffer(text, strlen(text), NULL, &model));
    st = ot_artifacts_generate(model, &how, out);
    ot_model_destroy(model);
    return st;
}

// `options` of the session; NULL: those of one process.
static inline ot_status open_world_over(world *w, const char *text,
                                        const ot_session_options *options)
{
    static const char *const names[] = {"x", "t"};

    *w = (world){.batch_size = BATCH};
    for (uint32_t i = 0; i < ROWS * FEATURES; i++)
        w->x[i] = number_at(i);
    for (uint32_t i = 0; i < ROWS; i++)
        w->t[i] = number_at(1000 + i);
    OT_TRY(make_artifacts(text, &w->artifacts));
    OT_TRY(ot_session_create_from_artifacts(w->artifacts, options, &w->session));
    OT_TRY(ot_session_set_learning_rate(w->session, rate));
    w->checkpoint = ot_session_checkpoint(w->session);
    OT_TRY(ot_tensor_wrap(OT_F64, &OT_SHAPE(ROWS, FEATURES), w->x, sizeof w->x, &w->tensors[0]));
    OT_TRY(ot_tensor_wrap(OT_F64, &OT_SHAPE(ROWS, 1), w->t, sizeof w->t, &w->tensors[1]));
    return ot_dataset_from_tensors(names, (const ot_tensor *const *)w->tensors, 2, &w->dataset);
}

static inline void close_world(world *w)
{
    ot_session_destroy(w->session);
    ot_checkpoint_destroy(w->saved);
    ot_artifacts_destroy(w->artifacts);
    ot_dataset_destroy(w->dataset);
    ot_tensor_destroy(w->tensors[0]);
    ot_tensor_destroy(w->tensors[1]);
}

static inline ot_status make_batches(const world *w, ot_batches **out)
{
    const ot_binding bindings[] = {
        {.input = "x", .dtype = OT_F64, .shape = OT_SHAPE(FEATURES), .fields = "x", .scale = 1},
        {.input = "t", .dtype = OT_F64, .shape = OT_SHAPE(1), .fields = "t", .scale = 1},
    };
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;

    options.batch_size = w->batch_size;
    return ot_batches_create(w->dataset, bindings, 2, &options, out);
}

// `validates`: on the rows that it trains on. `fail_at`: allocation of the run that fails, and all
// after it; 0: none does.
static inline ot_status train_with(world *w, int64_t accumulation, bool validates,
                                   const ot_train_options *options, int64_t fail_at,
                                   ot_metrics *last)
{
    ot_trainer_options how = OT_TRAINER_OPTIONS_INIT;
    ot_trainer *trainer = NULL;
    ot_batches *batches = NULL, *validation = NULL;
    ot_status st = make_batches(w, &batches);

    how.gradient_accumulation_steps = accumulation;
    OT_THEN(st, validates ? make_batches(w, &validation) : OT_OK);
    OT_THEN(st, ot_trainer_create_from_session(w->session, NULL, &how, &trainer));
    if (st == OT_OK) {
        ot__alloc_fail_after(fail_at - 1);
        st = ot_train_run(trainer, batches, validation, options, last);
        ot__alloc_fail_after(-1);
    }
    ot_trainer_destroy(trainer);
    ot_batches_destroy(batches);
    ot_batches_destroy(validation);
    return st;
}

#endif
