// SPDX-License-Identifier: Apache-2.0
// Names that are those of a framework's module: what the model has of them, and what it has
// instead.
#include "artifacts/parameters.h"

// A parameter that the model lacks is one that it does not use, unless there is something else that
// it was computed into.
ot_status ot__candidates_check_module(const ot__candidates *c, const ot__selection *selection)
{
    const char *missing = NULL; // the first parameter that the model lacks
    const ot__pattern_matches *matches;

    OT_TRY(ot__patterns_matches(&selection->trainable, c, &matches));
    for (int i = 0; i < selection->trainable.n && !missing; i++)
        if (!matches[i].first)
            missing = selection->trainable.items[i];
    for (int i = 0; missing && i < c->n; i++) {
        const ot__candidate *item = &c->items[i];

        if (!item->could_train || ot__patterns_match(&selection->trainable, item->value) ||
            ot__patterns_match(&selection->frozen, item->value))
            continue;
        return ot__error(
            OT_ERR_INVALID,
            "the model has no '%s' of the module, but '%s', which is not in it: the "
            "exporter computed parameters away; torch.onnx.export with optimize=False, "
            "or dynamo=False with training=TrainingMode.TRAINING and "
            "do_constant_folding=False, keeps them",
            missing, item->value->name);
    }
    return OT_OK;
}
