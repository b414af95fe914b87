// SPDX-License-Identifier: Apache-2.0
// A model with what a state must carry: dropout, running statistics, a weight frozen by name and
// constants that nothing trains.
#ifndef TESTS_UNIT_TRAINER_DROPOUT_FIXTURE_H
#define TESTS_UNIT_TRAINER_DROPOUT_FIXTURE_H

#include "trainer_fixture.h"

enum { N_HIDDEN = 4 };

static const char dropout_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "net (float[N,3] x, float[N] t) => (float[N] y, float loss)\n"
    "<float[3,4] w1 = {0.5, -1, 0.25, 0.75, -0.5, 1, 0.3, -0.2, 0.1, 0.6, -0.7, 0.4},\n"
    " float[4] b1 = {0.1, 0.2, 0.3, 0.4}, float[4] scale = {1, 1, 1, 1},\n"
    " float[4] bias = {0, 0, 0, 0}, float[4] mean = {0, 0, 0, 0}, float[4] var = {1, 1, 1, 1},\n"
    " float ratio = {0.25}, bool mode = {0}, float[4] w2 = {0.5, -0.5, 0.25, 1},\n"
    " float[1] factor = {0.75}, float power = {2}>\n"
    "{\n"
    "  h = MatMul(x, w1)\n"
    "  a = Add(h, b1)\n"
    "  n = BatchNormalization(a, scale, bias, mean, var)\n"
    "  d = Dropout(n, ratio, mode)\n"
    "  p = MatMul(d, w2)\n"
    "  y = Mul(p, factor)\n"
    "  e = Sub(y, t)\n"
    "  q = Pow(e, power)\n"
    "  loss = ReduceMean<keepdims = 0>(q)\n"
    "}\n";

static inline ot_model *dropout_model(void)
{
    ot_model *model;

    need(ot_model_load_buffer(dropout_text, sizeof dropout_text - 1, NULL, &model));
    return model;
}

// What is left out has the rule's default, but that it keeps moments where it can.
static inline ot_optimizer_options dropout_rule(const char *rule)
{
    static const ot_hyper momentum[] = {{"momentum", 0.875}};
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_hyper_info info = {.size = sizeof info};

    optimizer.name = rule;
    optimizer.lr = 0.0625;
    for (int i = 0; ot_optimizer_hyper(rule, i, &info) == OT_OK; i++)
        if (strcmp(info.name, momentum[0].name) == 0) {
            optimizer.hyper = momentum;
            optimizer.n_hyper = 1;
        }
    return optimizer;
}

// `model` is destroyed.
static inline ot_trainer *dropout_trainer_on(ot_model *model, const ot_optimizer_options *optimizer,
                                             ot_precision precision, int64_t accumulation)
{
    static const char *const frozen[] = {"factor"};
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_schedule schedule = OT_SCHEDULE_INIT;
    ot_trainer *trainer;

    schedule.kind = OT_SCHEDULE_LINEAR;
    schedule.initial_lr = optimizer->lr;
    schedule.total_steps = 100;
    options.lr_schedule = &schedule;
    options.gradient_accumulation_steps = accumulation;
    options.frozen_weights = frozen;
    options.n_frozen_weights = 1;
    options.n_threads = 1;
    options.precision = precision;
    need(ot_trainer_create(model, NULL, optimizer, &options, &trainer));
    ot_model_destroy(model);
    return trainer;
}

static inline ot_trainer *dropout_trainer_of(const ot_optimizer_options *optimizer,
                                             int64_t accumulation)
{
    return dropout_trainer_on(dropout_model(), optimizer, OT_PRECISION_F32, accumulation);
}

static inline ot_trainer *dropout_trainer(const char *rule, int64_t accumulation)
{
    const ot_optimizer_options optimizer = dropout_rule(rule);

    return dropout_trainer_of(&optimizer, accumulation);
}

// What an evaluation or a train step over batch `seed` gives as loss.
static inline float dropout_step(ot_trainer *trainer, int64_t seed, int is_training)
{
    float x[N_ROWS * N_IN], t[N_ROWS], loss;
    ot_tensor *outputs[2] = {NULL, NULL};
    const ot_tensor *inputs[2];
    const int n_outputs = ot_trainer_output_count(trainer);

    batch_of(seed, x, t);
    inputs[0] = tensor_of(x, OT_SHAPE(N_ROWS, N_IN));
    inputs[1] = tensor_of(t, OT_SHAPE(N_ROWS));
    need(is_training ? ot_trainer_train_step(trainer, inputs, 2, outputs, n_outputs)
                     : ot_trainer_eval_step(trainer, inputs, 2, outputs, n_outputs));
    loss = 0;
    for (int i = 0; i < 2; i++) {
        if (outputs[i] != NULL && ot_tensor_count(outputs[i]) == 1)
            loss = *(const float *)ot_tensor_data_const(outputs[i]);
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
        ot_tensor_destroy(outputs[i]);
    }
    return loss;
}

// ---- states ----

static inline uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(1099511628211);
    return hash;
}

static inline uint64_t mix_dict(uint64_t hash, ot_dict *dict);

static inline uint64_t mix_entry(uint64_t hash, ot_dict *dict, const char *name)
{
    const ot_tensor *tensor;
    const char *text;
    ot_dict_kind kind;
    ot_dict *inner;
    int64_t i;
    double f;
    int b;

    need(ot_dict_kind_of(dict, name, &kind));
    switch (kind) {
    case OT_DICT_DICT:
        need(ot_dict_get_dict(dict, name, &inner));
        return mix_dict(hash, inner);
    case OT_DICT_TENSOR:
        need(ot_dict_get_tensor(dict, name, &tensor));
        return mix(hash, ot_tensor_data_const(tensor), ot_tensor_bytes(tensor));
    case OT_DICT_INT:
        need(ot_dict_get_int(dict, name, &i));
        return mix(hash, &i, sizeof i);
    case OT_DICT_FLOAT:
        need(ot_dict_get_float(dict, name, &f));
        return mix(hash, &f, sizeof f);
    case OT_DICT_BOOL:
        need(ot_dict_get_bool(dict, name, &b));
        return mix(hash, &b, sizeof b);
    default:
        need(ot_dict_get_string(dict, name, &text));
        return mix(hash, text, strlen(text));
    }
}

static inline uint64_t mix_dict(uint64_t hash, ot_dict *dict)
{
    for (int i = 0; i < ot_dict_count(dict); i++) {
        const char *name = ot_dict_name(dict, i);

        hash = mix_entry(mix(hash, name, strlen(name)), dict, name);
    }
    return hash;
}

static inline ot_dict *state_of(ot_trainer *trainer, unsigned sections)
{
    ot_dict *state;

    need(ot_trainer_get_state(trainer, sections, &state));
    return state;
}

// Of all names and all bits: trainers that will do the same have the same.
static inline uint64_t hash_of(ot_trainer *trainer)
{
    ot_dict *state = state_of(trainer, OT_STATE_ALL | OT_STATE_VIEW);
    const uint64_t hash = mix_dict(UINT64_C(14695981039346656037), state);

    ot_dict_destroy(state);
    return hash;
}

// A file that does not fit is refused and changes nothing.
static inline void refuse(ot_trainer *trainer, const char *path, ot_status expected,
                          const char *says)
{
    const uint64_t hash = hash_of(trainer);

    assert_int_equal(ot_trainer_load(trainer, &path, 1, OT_STRICTNESS_ALL, NULL), expected);
    if (strstr(ot_error_message(), says) == NULL)
        fail_msg("'%s' does not say '%s'", ot_error_message(), says);
    assert_true(hash_of(trainer) == hash);
}

static inline ot_dict *section(ot_dict *dict, const char *name)
{
    ot_dict *inner;

    need(ot_dict_get_dict(dict, name, &inner));
    return inner;
}

#endif
