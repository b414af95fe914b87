// SPDX-License-Identifier: Apache-2.0
// What training a transformer, with values made again or under a ceiling, gives and takes.
#ifndef OT_TESTS_EXPORTERS_RUNS_H
#define OT_TESTS_EXPORTERS_RUNS_H

#include <stdlib.h>

#include "losses.h"

enum {
    ROWS = 4,
    TOKENS = 8,
    N_STEPS = 4,
    MAX_INPUTS = 3,
    MAX_PARAMETERS = 100000,
    VOCABULARY = 11,
    CLASSES = 3,
};

typedef struct run {
    float losses[N_STEPS];
    float *parameters;
    size_t n_parameters, plan_bytes, state_bytes;
    char warning[512];
} run;

static char warning[512]; // the last one
static int n_warnings;

static inline void keep_warning(void *context, ot_log_level level, const char *message)
{
    (void)context;
    if (level != OT_LOG_WARNING)
        return;
    snprintf(warning, sizeof warning, "%s", message);
    n_warnings++;
}

// `model` is destroyed.
static inline ot_artifacts *artifacts_of_model(ot_model *model)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *artifacts;

    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    if (ot_artifacts_generate(model, &options, &artifacts) != OT_OK)
        fail_msg("%s", ot_error_message());
    ot_model_destroy(model);
    return artifacts;
}

static inline ot_artifacts *artifacts_of(const char *file)
{
    return artifacts_of_model(load("recompute", file));
}

// x, a mask if there is one, and labels. *n: how many.
static inline void inputs_of(const ot_session *session, ot_tensor **inputs, int *n)
{
    *n = ot_session_input_count(session, OT_MODE_TRAIN);
    assert_in_range(*n, 2, MAX_INPUTS);
    for (int i = 0; i < *n; i++) {
        const int64_t bound = i == 0 ? VOCABULARY : i == *n - 1 ? CLASSES : 2;
        ot_dtype dtype;
        ot_shape shape;

        assert_int_equal(ot_session_input_info(session, OT_MODE_TRAIN, i, &dtype, &shape), OT_OK);
        shape.dim[0] = ROWS;
        assert_int_equal(ot_tensor_create(dtype, &shape, &inputs[i]), OT_OK);
        for (int64_t k = 0; k < ot_tensor_count(inputs[i]); k++)
            if (dtype == OT_F32)
                ((float *)ot_tensor_data(inputs[i]))[k] = (float)(k * 37 % 101 - 50) / 40;
            else
                ((int64_t *)ot_tensor_data(inputs[i]))[k] = k % bound;
    }
}

static inline void destroy_inputs(ot_tensor **inputs, int n)
{
    for (int i = 0; i < n; i++)
        ot_tensor_destroy(inputs[i]);
}

static inline float train_once(ot_session *session, ot_tensor **inputs, int n)
{
    ot_tensor *loss = NULL;
    float value;

    if (ot_session_train_step(session, (const ot_tensor *const *)inputs, n, &loss, 1) != OT_OK ||
        ot_session_optimizer_step(session) != OT_OK)
        fail_msg("%s", ot_error_message());
    ot_session_reset_gradients(session);
    value = *(const float *)ot_tensor_data(loss);
    ot_tensor_destroy(loss);
    return value;
}

static inline void keep_parameters(ot_session *session, run *r)
{
    ot_checkpoint *checkpoint = ot_session_checkpoint(session);

    r->parameters = calloc(MAX_PARAMETERS, sizeof *r->parameters);
    for (int i = 0; i < ot_checkpoint_parameter_count(checkpoint); i++) {
        ot_tensor *t;
        size_t n;

        assert_int_equal(ot_checkpoint_get_parameter(
                             checkpoint, ot_checkpoint_parameter_name(checkpoint, i), &t),
                         OT_OK);
        n = (size_t)ot_tensor_count(t);
        assert_true(r->n_parameters + n <= MAX_PARAMETERS);
        memcpy(r->parameters + r->n_parameters, ot_tensor_data(t), n * sizeof(float));
        r->n_parameters += n;
        ot_tensor_destroy(t);
    }
}

static inline void train_artifacts(ot_artifacts *artifacts, const ot_session_options *how, run *r)
{
    ot_tensor *inputs[MAX_INPUTS];
    ot_session *session;
    int n_inputs;

    *r = (run){.n_parameters = 0};
    warning[0] = '\0';
    n_warnings = 0;
    ot_set_log(keep_warning, NULL);
    if (ot_session_create_from_artifacts(artifacts, how, &session) != OT_OK)
        fail_msg("%s", ot_error_message());
    inputs_of(session, inputs, &n_inputs);
    for (int step = 0; step < N_STEPS; step++)
        r->losses[step] = train_once(session, inputs, n_inputs);
    ot_set_log(NULL, NULL);
    memcpy(r->warning, warning, sizeof warning);
    r->plan_bytes = ot_session_plan_bytes(session);
    r->state_bytes = ot_session_state_bytes(session);
    keep_parameters(session, r);
    destroy_inputs(inputs, n_inputs);
    ot_session_destroy(session);
}

static inline void train_model(const char *file, const ot_session_options *how, run *r)
{
    ot_artifacts *artifacts = artifacts_of(file);

    train_artifacts(artifacts, how, r);
    ot_artifacts_destroy(artifacts);
}

static inline void train_text(const char *text, const ot_session_options *how, run *r)
{
    ot_artifacts *artifacts;
    ot_model *model;

    if (ot_model_load_buffer(text, strlen(text), NULL, &model) != OT_OK)
        fail_msg("%s", ot_error_message());
    artifacts = artifacts_of_model(model);
    train_artifacts(artifacts, how, r);
    ot_artifacts_destroy(artifacts);
}

static inline void assert_same_bits(const char *file, const run *found, const run *expected)
{
    if (memcmp(found->losses, expected->losses, sizeof found->losses) != 0)
        fail_msg("%s: the losses differ", file);
    assert_int_equal(found->n_parameters, expected->n_parameters);
    if (memcmp(found->parameters, expected->parameters, found->n_parameters * sizeof(float)) != 0)
        fail_msg("%s: the parameters differ", file);
}

static inline void forget(run *r)
{
    free(r->parameters);
}

static inline ot_session_options making_again(unsigned what, int n_layers)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;

    options.n_threads = 1;
    options.recompute = what;
    options.recompute_layers = n_layers;
    return options;
}

#endif
