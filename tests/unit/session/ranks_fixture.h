// SPDX-License-Identifier: Apache-2.0
// Sessions of ranks, which are threads: each steps over its rows of the same numbers.
#ifndef TESTS_UNIT_SESSION_RANKS_FIXTURE_H
#define TESTS_UNIT_SESSION_RANKS_FIXTURE_H

#include <math.h>

#include "onnxtrain/onnxtrain.h"
#include "session/ranks.h"
#include "unit/dist/ranks.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]>\n"
#define MODEL "net (double[N,6] x, double[N,1] t) => (double[N,1] y, double loss)\n"
#define LOSS                                                                                       \
    "  d = Sub(y, t)\n"                                                                            \
    "  q = Mul(d, d)\n"                                                                            \
    "  loss = ReduceMean<keepdims = 0>(q)\n"

static const char perceptron[] = HEAD MODEL "{\n"
                                            "  w = RandomNormal<shape = [6, 50], dtype = 11>()\n"
                                            "  u = RandomNormal<shape = [50, 7], dtype = 11>()\n"
                                            "  v = RandomNormal<shape = [7, 1], dtype = 11>()\n"
                                            "  a = MatMul(x, w)\n"
                                            "  h = Tanh(a)\n"
                                            "  b = MatMul(h, u)\n"
                                            "  i = Tanh(b)\n"
                                            "  y = MatMul(i, v)\n" LOSS "}\n";

enum { FEATURES = 6, ROWS = 2, STEPS = 6, ELEMENTS_MAX = 1024 }; // rows of a rank

static inline double number_at(uint32_t i)
{
    i = (i + 1) * 2654435761u;
    i ^= i >> 15;
    i *= 2246822519u;
    return (double)(i >> 8) / (1 << 23) - 1;
}

// ---- one rank's session ----

typedef struct own {
    ot_artifacts *artifacts;
    ot_session *session;
    double x[8 * ROWS * FEATURES], t[8 * ROWS];
} own;

static _Thread_local int n_threads = 1, zero;
static int syncs_norms; // of all ranks

static inline ot_status open_own(own *w, const char *text, ot_comm *comm, uint64_t seed)
{
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_model *model;
    ot_status st;

    *w = (own){0};
    adam.max_norm = 0.5;
    loss.loss = OT_LOSS_NONE;
    loss.input = "loss";
    how.losses = &loss;
    how.n_losses = 1;
    how.optimizer = &adam;
    how.seed = seed;
    parallel.comm = comm;
    parallel.bucket_bytes = 512; // several buckets
    parallel.zero = zero;
    parallel.sync_batch_norm = syncs_norms;
    options.parallel = &parallel;
    options.n_threads = n_threads;
    OT_TRY(ot_model_load_buffer(text, strlen(text), NULL, &model));
    st = ot_artifacts_generate(model, &how, &w->artifacts);
    ot_model_destroy(model);
    OT_THEN(st, ot_session_create_from_artifacts(w->artifacts, &options, &w->session));
    OT_THEN(st, ot_session_set_learning_rate(w->session, 0.01));
    return st;
}

static inline void close_own(own *w)
{
    ot_session_destroy(w->session);
    ot_artifacts_destroy(w->artifacts);
}

// Rows [first, first + n) of a micro-batch.
static inline ot_status step_own(own *w, int micro_batch, int first, int n, double *loss)
{
    ot_tensor *inputs[2], *out = NULL;
    ot_status st;

    for (int i = 0; i < n * FEATURES; i++)
        w->x[i] = number_at((uint32_t)(micro_batch * 1000 + first * FEATURES + i));
    for (int i = 0; i < n; i++)
        w->t[i] = number_at((uint32_t)(900000 + micro_batch * 1000 + first + i));
    OT_TRY(ot_tensor_wrap(OT_F64, &OT_SHAPE(n, FEATURES), w->x,
                          (size_t)(n * FEATURES) * sizeof(double), &inputs[0]));
    OT_TRY(ot_tensor_wrap(OT_F64, &OT_SHAPE(n, 1), w->t, (size_t)n * sizeof(double), &inputs[1]));
    st = ot_session_train_step(w->session, (const ot_tensor *const *)inputs, 2, &out, 1);
    if (st == OT_OK)
        *loss = ot__tensor_get_f64(out, 0);
    ot_tensor_destroy(out);
    ot_tensor_destroy(inputs[0]);
    ot_tensor_destroy(inputs[1]);
    return st;
}

// Values that are cut over the ranks, from all of them.
static inline int64_t gathered_values(own *w, double *out)
{
    const ot_checkpoint *checkpoint = ot_session_checkpoint(w->session);
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *all, *in;
    int64_t n = 0;

    options.gather = OT_GATHER_ALL;
    if (ot_session_get_shards(w->session, OT_STATE_MODEL, &options, &all) != OT_OK ||
        ot_dict_get_dict(all, "model", &in) != OT_OK)
        return -1;
    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const ot_tensor *value = NULL;

        if (ot_dict_get_tensor(in, checkpoint->parameters[i]->name, &value) != OT_OK)
            return -1;
        for (int64_t k = 0; k < ot_tensor_count(value) && n < ELEMENTS_MAX; k++)
            out[n++] = ot__tensor_get_f64(value, k);
    }
    ot_dict_destroy(all);
    return n;
}

static inline int64_t values_of(own *w, double *out)
{
    ot_checkpoint *checkpoint = ot_session_checkpoint(w->session);
    int64_t n = 0;

    if (w->session->ranks != NULL && w->session->ranks->cuts_values)
        return gathered_values(w, out);
    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const ot_tensor *value = checkpoint->parameters[i]->value;

        ot__ckpt_unpack(checkpoint, checkpoint->parameters[i]);
        for (int64_t k = 0; k < ot_tensor_count(value) && n < ELEMENTS_MAX; k++)
            out[n++] = ot__tensor_get_f64(value, k);
    }
    return n;
}

#endif
