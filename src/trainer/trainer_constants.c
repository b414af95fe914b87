// SPDX-License-Identifier: Apache-2.0
// Float initializers that nothing trains and that fusions read: other values of them are another
// graph, over the same parameters.
#include <string.h>

#include "artifacts/artifacts.h"
#include "trainer/state.h"

static bool is_other(const ot_tensor *mine, const ot_tensor *theirs)
{
    return theirs != NULL && mine->n_bytes > 0 &&
           memcmp(mine->data, theirs->data, mine->n_bytes) != 0;
}

// Of constants that a state has with another value; it has the same types and shapes.
static ot_status set_constants(ot_model *forward, const ot_checkpoint *checkpoint,
                               const ot_dict *values, int *n)
{
    *n = 0;
    for (int i = 0; i < forward->graph->n_initializers; i++) {
        ot_value *value = forward->graph->initializers[i];
        const ot_tensor *theirs = ot__state_tensor(values, value->name);
        ot_tensor *mine, *copy;
        bool is_changed;

        if (theirs == NULL || ot__ckpt_find(checkpoint, value->name) != NULL ||
            !ot__dtype_is_float(value->dtype))
            continue;
        OT_TRY(ot__constant_clone(forward, value->constant, &mine));
        is_changed = is_other(mine, theirs);
        ot_tensor_destroy(mine);
        if (!is_changed)
            continue;
        OT_TRY(ot_tensor_clone(theirs, &copy));
        OT_TRY(ot__model_hold_tensor(forward, copy));
        value->constant = copy;
        (*n)++;
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
    int n;
    ot_status st;

    *out = (ot__other_constants){0};
    if (trainer->forward == NULL || values == NULL)
        return OT_OK;
    OT_TRY(ot__model_clone(trainer->forward, &out->forward));
    st = set_constants(out->forward, ot_session_checkpoint(trainer->session), values, &n);
    if (n > 0)
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
