// SPDX-License-Identifier: Apache-2.0
// Parameters that an exporter computed away: named with how to export instead.
#include <string.h>

#include "artifacts/forward.h"

#define KEY_FOLDED "pkg.onnxscript.optimizer.folded_from"

static const char how_to_keep[] =
    "torch.onnx.export(model.train(), ..., optimize=False), or with dynamo=False, "
    "training=TrainingMode.TRAINING and do_constant_folding=False";

// An initializer of the name, or one that is this parameter alone in another form.
static bool is_there(const ot__candidates *c, const char *name)
{
    const ot_value *value = ot__graph_find(c->graph, name);
    const size_t length = strlen(name);

    if (value && value->is_initializer)
        return true;
    for (int i = 0; i < c->n; i++) {
        const char *list = ot__value_metadata(c->items[i].value, KEY_FOLDED);

        if (list && strlen(list) == length + strlen("['']") &&
            strncmp(list + strlen("['"), name, length) == 0)
            return true;
    }
    return false;
}

// *first: of those that are gone, the first by name.
static int count_gone(const ot__candidates *c, const ot__origins *origins, const char **first)
{
    size_t position = 0;
    const char *name;
    void *origin;
    int n = 0;

    *first = NULL;
    while (ot__map_next(&origins->names, &position, &name, &origin)) {
        if ((ot__origin)(uintptr_t)origin != OT_ORIGIN_PARAMETER || is_there(c, name))
            continue;
        if (n++ == 0 || strcmp(name, *first) < 0)
            *first = name;
    }
    return n;
}

static const ot_value *first_folded(const ot__forward *forward, int *n)
{
    const ot__candidates *c = &forward->candidates;
    const ot_value *first = NULL;

    *n = 0;
    for (int i = 0; i < c->n; i++)
        if (c->items[i].role == OT_ROLE_TRAINABLE && !c->items[i].is_blocked &&
            ot__candidate_is_folded(&c->items[i], forward->model) && (*n)++ == 0)
            first = c->items[i].value;
    return first;
}

static ot_status say_gone(ot__forward *forward, const char *name, int n)
{
    char *others = ot__arena_printf(forward->model->arena, " and %d other parameter%s are", n - 1,
                                    n == 2 ? "" : "s");

    return ot__forward_note(
        forward, OT_LOG_INFO,
        others ? ot__arena_printf(forward->model->arena,
                                  "'%s'%s gone: computed away by the exporter, or dropped by it as "
                                  "zeros; to train all, export with %s",
                                  name, n > 1 ? others : " is", how_to_keep)
               : NULL);
}

static ot_status say_folded(ot__forward *forward, const char *name, int n)
{
    return ot__forward_note(
        forward, OT_LOG_INFO,
        ot__arena_printf(forward->model->arena,
                         "'%s'%s by name what an exporter computed from parameters that are gone, "
                         "and trains in their place; to train those, export with %s",
                         name, n > 1 ? " and others are" : " is", how_to_keep));
}

ot_status ot__forward_note_gone(ot__forward *forward)
{
    ot__origins origins = {0};
    const char *first;
    ot_status st = ot__origins_init(&origins, forward->model->graph);

    if (st == OT_OK) {
        const int n = count_gone(&forward->candidates, &origins, &first);
        int n_folded;
        const ot_value *folded = first_folded(forward, &n_folded);

        if (n > 0)
            st = say_gone(forward, first, n);
        else if (folded)
            st = say_folded(forward, folded->name, n_folded);
    }
    ot__origins_deinit(&origins);
    return st;
}
