// SPDX-License-Identifier: Apache-2.0
// What training will take, before it does.
#include "trainer/trainer.h"

static ot_status lay_shapes(ot_trainer *trainer, const ot_shape *inputs, ot_shape **out)
{
    const int n = ot_session_input_count(trainer->session, OT_MODE_TRAIN);
    ot_shape *laid = ot__alloc_zero((size_t)n + 1, sizeof *laid);

    *out = laid;
    OT_TRY(ot__made(laid));
    for (int i = 0; i < trainer->n_inputs; i++)
        if (trainer->inputs[i].train >= 0)
            laid[trainer->inputs[i].train] = inputs[i];
    return OT_OK;
}

static void sum_memory(const ot_trainer *trainer, const ot__session_bytes *bytes, ot_memory *memory)
{
    memory->parameters = bytes->parameters;
    memory->gradients = bytes->gradients;
    memory->moments = bytes->moments;
    memory->derived = bytes->derived;
    memory->activations = bytes->activations;
    memory->scratch = bytes->scratch;
    memory->outputs = bytes->outputs;
    memory->structure = bytes->structure + sizeof *trainer + ot__arena_taken(trainer->arena);
    memory->staging = bytes->staging;
    memory->total = memory->parameters + memory->gradients + memory->moments + memory->derived +
                    memory->activations + memory->scratch + memory->outputs + memory->structure +
                    memory->staging;
}

// `ranks` NULL: as the session is.
static ot_status measure_trainer(ot_trainer *trainer, const ot_parallel_ranks *ranks,
                                 const ot_shape *inputs, int n_inputs, ot_memory *memory,
                                 int64_t *n_sent)
{
    ot_session *session = trainer->session;
    ot__session_bytes bytes;
    ot_shape *laid = NULL;
    ot_status st = ot__trainer_check_shapes(trainer, inputs, n_inputs);

    ot__trainer_ask_inside(trainer);
    OT_THEN(st, lay_shapes(trainer, inputs, &laid));
    OT_THEN(st, ranks == NULL
                    ? ot__session_measure(session, laid, trainer->forward, &bytes)
                    : ot__session_predict(session, ranks, laid, trainer->forward, &bytes, n_sent));
    ot__free(laid);
    if (st == OT_OK)
        sum_memory(trainer, &bytes, memory);
    return st;
}

static ot_status measure_into(ot_trainer *trainer, const ot_parallel_ranks *ranks,
                              const ot_shape *inputs, int n_inputs, ot_memory *out, int64_t *n_sent)
{
    ot_memory own;
    ot_status st;

    OT_TRY(OT_OPTIONS_READ(ot_memory, OT_MEMORY_INIT, out, &own));
    own = (ot_memory)OT_MEMORY_INIT;
    OT_TRY(ot__trainer_enter(trainer));
    st = measure_trainer(trainer, ranks, inputs, n_inputs, &own, n_sent);
    if (st == OT_OK)
        ot__options_write(out, &own, sizeof own);
    return ot__trainer_leave(trainer, st);
}

ot_status ot_trainer_memory(ot_trainer *trainer, const ot_shape *inputs, int n_inputs,
                            ot_memory *out)
{
    OT_TRY(OT_GIVEN_MANY(inputs, n_inputs));
    OT_TRY(OT_GIVEN(out));
    return measure_into(trainer, NULL, inputs, n_inputs, out, NULL);
}

ot_status ot_trainer_predict(ot_trainer *trainer, const ot_parallel_ranks *ranks,
                             const ot_shape *inputs, int n_inputs, ot_memory *out, int64_t *n_sent)
{
    ot_parallel_ranks own;

    OT_TRY(OT_GIVEN(ranks));
    OT_TRY(OT_GIVEN_MANY(inputs, n_inputs));
    OT_TRY(OT_GIVEN(out));
    OT_TRY(OT_GIVEN(n_sent));
    OT_TRY(OT_OPTIONS_READ(ot_parallel_ranks, OT_PARALLEL_RANKS_INIT, ranks, &own));
    return measure_into(trainer, &own, inputs, n_inputs, out, n_sent);
}
