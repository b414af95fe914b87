// SPDX-License-Identifier: Apache-2.0
// The models of record_trained.py, their optimizers and their data.
#ifndef TESTS_DIST_TRAINED_H
#define TESTS_DIST_TRAINED_H

#include "golden/golden.h"
#include "unit/dist/ranks.h"
#include "whole.h"

// Of parallel_options.zero: what each of them changes is who keeps what, and never a value.
static const int zero_stages[] = {0, 1, 2, 3};

// Of all combinations, which `i` counts, one in `one_in` is run, such that each number of ranks and
// each stage has its turn; a quarter of these where every access is checked, which takes long. With
// OT_TEST_ALL in the environment all are run.
static inline bool is_left_out(size_t i, size_t one_in)
{
#ifdef __SANITIZE_ADDRESS__
    one_in *= 4;
#endif
    return getenv("OT_TEST_ALL") == NULL && i % one_in != 0;
}

static const struct {
    const char *name, *file; // of its recorded values, and of its text
} models[] = {
    {"mlp", "../../golden/data/mlp"},
    {"cnn", "cnn"},
    {"lstm", "../../golden/data/lstm"},
    {"transformer", "../../golden/data/transformer"},
    {"gpt", "gpt"},
};

enum { HYPER_MAX = 5 };
static const struct {
    const char *name, *optimizer;
    double learning_rate, max_norm;
    int n_hyper;
    ot_hyper hyper[HYPER_MAX];
} kinds[] = {
    {"sgd", "SGDOptimizerV2", 0.1, 0, 0, {{0}}},
    {"momentum",
     "SGDOptimizer",
     0.02,
     0,
     3,
     {{"weight_decay", 0.01}, {"nesterov", 1}, {"momentum", 0.9}}},
    {"adamw",
     "AdamWOptimizer",
     0.01,
     0,
     3,
     {{"weight_decay", 0.01}, {"adam_mode", 0}, {"epsilon", 1e-6}}},
    {"adam", "AdamOptimizer", 0.01, 0.5, 2, {{"lambda", 0.01}, {"epsilon", 1e-6}}},
    {"lamb",
     "LambOptimizer",
     0.02,
     0.5,
     3,
     {{"lambda", 0.01}, {"epsilon", 1e-6}, {"do_bias_correction", 1}}},
};

// By the main thread.
static inline ot_artifacts *make_artifacts_with(const ot_model *model,
                                                const ot_optimizer_options *optimizer)
{
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *artifacts;

    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = optimizer;
    if (ot_artifacts_generate(model, &options, &artifacts) != OT_OK)
        fail_msg("%s", ot_error_message());
    return artifacts;
}

static inline ot_artifacts *make_artifacts(const ot_model *model, int kind)
{
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;

    optimizer.name = kinds[kind].optimizer;
    optimizer.max_norm = kinds[kind].max_norm;
    optimizer.hyper = kinds[kind].hyper;
    optimizer.n_hyper = kinds[kind].n_hyper;
    return make_artifacts_with(model, &optimizer);
}

// Rows [first, first + rows) of input i of a micro-batch, as generate.py makes them.
static inline ot_status make_rows(const ot_session *session, int i, int micro_batch, int64_t first,
                                  int64_t rows, uint32_t below, ot_tensor **out)
{
    int64_t width;
    ot_dtype dtype;
    ot_shape shape;

    OT_TRY(ot_session_input_info(session, OT_MODE_TRAIN, i, &dtype, &shape));
    shape.dim[0] = rows;
    OT_TRY(ot_tensor_create(dtype, &shape, out));
    width = ot_tensor_count(*out) / rows;
    for (int64_t k = 0; k < rows * width; k++) {
        const uint32_t word = hashed_24_bits((uint64_t)(2 * micro_batch + i), first * width + k);

        if (dtype == OT_F32)
            ((float *)ot_tensor_data(*out))[k] = (float)(word / 0x1p23 - 1);
        else
            ((int64_t *)ot_tensor_data(*out))[k] = word % below;
    }
    return OT_OK;
}

#endif
