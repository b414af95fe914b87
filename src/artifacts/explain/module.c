// SPDX-License-Identifier: Apache-2.0
// Names that are those of a framework's module: what the model has of them, and what it has
// instead.
#include "artifacts/parameters.h"

static bool is_named(const char *const *names, int n, const ot_value *value)
{
    for (int i = 0; i < n; i++)
        if (ot__pattern_has(names[i], value))
            return true;
    return false;
}

static bool has(const ot__candidates *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (ot__pattern_has(name, c->items[i].value))
            return true;
    return false;
}

// The first parameter that the model lacks; NULL: it has all.
static const char *find_missing(const ot__candidates *c, const ot_artifacts_options *options)
{
    for (int i = 0; i < options->n_trainable; i++)
        if (!has(c, options->trainable[i]))
            return options->trainable[i];
    return NULL;
}

// A parameter that the model lacks is one that it does not use, unless there is something else that
// it was computed into.
ot_status ot__candidates_check_module(const ot__candidates *c, const ot_artifacts_options *options)
{
    const char *missing = find_missing(c, options);

    for (int i = 0; missing && i < c->n; i++) {
        const ot__candidate *item = &c->items[i];

        if (!item->could_train || is_named(options->trainable, options->n_trainable, item->value) ||
            is_named(options->frozen, options->n_frozen, item->value))
            continue;
        return ot__error(
            OT_ERR_INVALID,
            "the model has no '%s' of the module, but '%s', which is none of it: the "
            "exporter computed parameters away; torch.onnx.export with optimize=False, "
            "or dynamo=False with training=TrainingMode.TRAINING and "
            "do_constant_folding=False, keeps them",
            missing, item->value->name);
    }
    return OT_OK;
}
