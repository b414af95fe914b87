// SPDX-License-Identifier: Apache-2.0
// Trainers of the linear model over ranks, which are threads.
#ifndef TESTS_UNIT_TRAINER_RANKS_FIXTURE_H
#define TESTS_UNIT_TRAINER_RANKS_FIXTURE_H

#include "trainer_fixture.h"
#include "unit/dist/ranks.h"

static const double learning_rate = 0.25;

static inline ot_trainer_options of_replicas(int64_t n)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;

    options.world_size = n;
    options.allreduce_post_accumulation = 1;
    return options;
}

// `comm` NULL: it gets no communicator.
static inline ot_status make_by(const char *rule, const ot_model *model, ot_comm *comm,
                                ot_trainer_options *options, ot_trainer **out)
{
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_session_options session = OT_SESSION_OPTIONS_INIT;

    parallel.comm = comm;
    session.parallel = &parallel;
    session.n_threads = 1;
    options->session = &session;
    optimizer.name = rule;
    optimizer.lr = learning_rate;
    return ot_trainer_create(model, &linear_description, &optimizer, options, out);
}

static inline ot_status make(const ot_model *model, ot_comm *comm, ot_trainer_options *options,
                             ot_trainer **out)
{
    return make_by("SGDOptimizerV2", model, comm, options, out);
}

static inline ot_status step_of_rank(ot_trainer *trainer, int64_t seed)
{
    float x[N_ROWS * N_IN], t[N_ROWS];
    ot_tensor *outputs[2] = {NULL, NULL}, *inputs[2] = {NULL, NULL};
    ot_status st;

    batch_of(seed, x, t);
    st = ot_tensor_wrap(OT_F32, &OT_SHAPE(N_ROWS), t, sizeof t, &inputs[0]);
    OT_THEN(st, ot_tensor_wrap(OT_F32, &OT_SHAPE(N_ROWS, N_IN), x, sizeof x, &inputs[1]));
    OT_THEN(st, ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, 2, outputs, 2));
    for (int i = 0; i < 2; i++) {
        ot_tensor_destroy(inputs[i]);
        ot_tensor_destroy(outputs[i]);
    }
    return st;
}

#endif
