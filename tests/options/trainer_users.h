// SPDX-License-Identifier: Apache-2.0
// Who takes the options of trainers.
#ifndef TESTS_OPTIONS_TRAINER_USERS_H
#define TESTS_OPTIONS_TRAINER_USERS_H

#include "options/users.h"

static const char net_with_loss[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                    "net (float[N, 2] x) => (float loss)\n"
                                    "<float[2, 3] w = {1, 2, 3, 4, 5, 6}>\n"
                                    "{ y = MatMul(x, w) loss = ReduceMean<keepdims = 0>(y) }";
static const ot_value_description described_loss[] = {{"loss", NULL, 0, 1}};
static const ot_dim_description x_dims[] = {{"N", 0}, {NULL, 2}};
static const ot_value_description described_inputs[] = {{"x", x_dims, 2, 0}};
static const ot_model_description description_init = {sizeof(ot_model_description),
                                                      described_inputs, described_loss, 1, 1};

static inline ot_status make_trainer(const ot_model_description *description,
                                     const ot_optimizer_options *optimizer,
                                     const ot_trainer_options *options, ot_trainer **out)
{
    ot_model *model;
    ot_status st;

    must(ot_model_load_buffer(net_with_loss, sizeof net_with_loss - 1, NULL, &model));
    st = ot_trainer_create(model, description, optimizer, options, out);
    ot_model_destroy(model);
    return st;
}

static inline ot_status try_trainer(const ot_model_description *description,
                                    const ot_optimizer_options *optimizer,
                                    const ot_trainer_options *options)
{
    ot_trainer *trainer;
    const ot_status st = make_trainer(description, optimizer, options, &trainer);

    ot_trainer_destroy(trainer);
    return st;
}

static inline ot_status use_trainer(world *w, void *options)
{
    (void)w;
    return try_trainer(NULL, NULL, options);
}

static inline ot_status use_session_trainer(world *w, void *options)
{
    ot_trainer *trainer;
    const ot_status st = ot_trainer_create_from_session(w->session, NULL, options, &trainer);

    ot_trainer_destroy(trainer);
    return st;
}

static inline ot_status use_trainer_optimizer(world *w, void *options)
{
    (void)w;
    return try_trainer(NULL, options, NULL);
}

static inline ot_status use_trainer_session(world *w, void *options)
{
    ot_trainer_options trainer = OT_TRAINER_OPTIONS_INIT;

    (void)w;
    trainer.session = options;
    return try_trainer(NULL, NULL, &trainer);
}

static inline ot_status use_trainer_schedule(world *w, void *options)
{
    ot_trainer *trainer;
    ot_status st;

    (void)w;
    must(make_trainer(NULL, NULL, NULL, &trainer));
    st = ot_trainer_set_schedule(trainer, options);
    ot_trainer_destroy(trainer);
    return st;
}

static inline ot_status fill_trainer_info(world *w, void *options)
{
    ot_trainer *trainer;
    ot_status st;

    (void)w;
    must(make_trainer(NULL, NULL, NULL, &trainer));
    st = ot_trainer_info(trainer, options);
    ot_trainer_destroy(trainer);
    return st;
}

static inline ot_status fill_memory(world *w, void *options)
{
    ot_trainer *trainer;
    ot_status st;

    (void)w;
    must(make_trainer(NULL, NULL, NULL, &trainer));
    st = ot_trainer_memory(trainer, &OT_SHAPE(4, 2), 1, options);
    ot_trainer_destroy(trainer);
    return st;
}

static inline ot_status predict(const ot_parallel_ranks *ranks, ot_memory *memory)
{
    int64_t n_sent;
    ot_trainer *trainer;
    ot_status st;

    must(make_trainer(NULL, NULL, NULL, &trainer));
    st = ot_trainer_predict(trainer, ranks, &OT_SHAPE(4, 2), 1, memory, &n_sent);
    ot_trainer_destroy(trainer);
    return st;
}

static inline ot_status fill_prediction(world *w, void *options)
{
    const ot_parallel_ranks ranks = OT_PARALLEL_RANKS_INIT;

    (void)w;
    return predict(&ranks, options);
}

static inline ot_status use_ranks(world *w, void *options)
{
    ot_memory memory = OT_MEMORY_INIT;

    (void)w;
    return predict(options, &memory);
}

static inline ot_status fill_session(world *w, void *options)
{
    (void)w;
    return ot_trainer_session_options(NULL, options);
}

static inline ot_status use_session_options(world *w, void *options)
{
    ot_session_options session = OT_SESSION_OPTIONS_INIT;

    (void)w;
    return ot_trainer_session_options(options, &session);
}

static inline ot_status use_description(world *w, void *description)
{
    (void)w;
    return try_trainer(description, NULL, NULL);
}

#endif
