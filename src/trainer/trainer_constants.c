// SPDX-License-Identifier: Apache-2.0
// Float initializers that nothing trains and that fusions read: other values of them are another
// graph, over the same parameters.
#include <string.h>

#include "artifacts/artifacts.h"
#include "trainer/state.h"

// The value that a state has for a constant, when it is another; it has the same type and shape.
static ot_status find_other(const ot_value *value, const ot_model *forward,
                            const ot_checkpoint *checkpoint, const ot_dict *values,
                            const ot_tensor **out)
{
    const ot_tensor *theirs = ot__state_tensor(values, value->name);
    ot_tensor *mine;

    *out = NULL;
    if (theirs == NULL || ot__ckpt_find(checkpoint, value->name) != NULL ||
        !ot__dtype_is_float(value->dtype))
        return OT_OK;
    OT_TRY(ot__constant_clone(forward, value->constant, &mine));
    if (mine->n_bytes > 0 && memcmp(mine->data, theirs->data, mine->n_bytes) != 0)
        *out = theirs;
    ot_tensor_destroy(mine);
    return OT_OK;
}

// In a copy of the trainer's graph, which the first one makes.
static ot_status set_constant(const ot_trainer *trainer, int i, const ot_tensor *theirs,
                              ot_model **forward)
{
    ot_tensor *copy;

    if (*forward == NULL)
        OT_TRY(ot__model_clone(trainer->forward, forward));
    OT_TRY(ot_tensor_clone(theirs, &copy));
    OT_TRY(ot__model_hold_tensor(*forward, copy));
    (*forward)->graph->initializers[i]->constant = copy;
    return OT_OK;
}

static ot_status set_constants(const ot_trainer *trainer, const ot_dict *values, ot_model **forward)
{
    const ot_graph *graph = trainer->forward->graph;
    const ot_checkpoint *checkpoint = ot_session_checkpoint(trainer->session);

    for (int i = 0; i < graph->n_initializers; i++) {
        const ot_tensor *theirs;

        OT_TRY(find_other(graph->initializers[i], trainer->forward, checkpoint, values, &theirs));
        if (theirs != NULL)
            OT_TRY(set_constant(trainer, i, theirs, forward));
    }
    return OT_OK;
}

static ot_status rebuild(const ot_trainer *trainer, const ot_model *forward, ot__replacement **out)
{
    ot_artifacts *artifacts;
    ot_status st = ot__trainer_generate_again(trainer, forward, &artifacts);

    OT_THEN(st, ot__replacement_make(trainer->session, artifacts->training, artifacts->eval, out));
    ot_artifacts_destroy(artifacts);
    return st == OT_OK ? st : ot__error_prefix(st, "with the constants of the state");
}

ot_status ot__constants_make(const ot_trainer *trainer, const ot_dict *values,
                             ot__other_constants *out)
{
    ot_status st;

    *out = (ot__other_constants){0};
    if (trainer->forward == NULL || values == NULL)
        return OT_OK;
    st = set_constants(trainer, values, &out->forward);
    if (out->forward != NULL)
        OT_THEN(st, rebuild(trainer, out->forward, &out->models));
    if (out->models == NULL)
        ot__constants_drop(out);
    return st;
}

void ot__constants_take(ot_trainer *trainer, ot__other_constants *constants)
{
    if (constants->models == NULL)
        return;
    ot__session_replace(trainer->session, constants->models);
    ot_model_destroy(trainer->forward);
    trainer->forward = constants->forward;
    *constants = (ot__other_constants){0};
}

void ot__constants_drop(ot__other_constants *constants)
{
    ot__replacement_destroy(constants->models);
    ot_model_destroy(constants->forward);
    *constants = (ot__other_constants){0};
}
