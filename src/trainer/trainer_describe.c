// SPDX-License-Identifier: Apache-2.0
// What the steps of a trainer take and give: as a description says it, or as the session has it.
#include <string.h>

#include "trainer/trainer.h"

typedef struct session_values {
    int (*count)(const ot_session *, ot_mode);
    const char *(*name)(const ot_session *, ot_mode, int);
} session_values;
static const session_values inputs_of_session = {ot_session_input_count, ot_session_input_name},
                            outputs_of_session = {ot_session_output_count, ot_session_output_name};

// Positions of names, plus one, in the two models; of an output that is there twice, the last one.
typedef struct positions {
    ot__map train, eval;
} positions;

static ot_status map_names(const ot_session *session, const session_values *values, ot_mode mode,
                           ot__map *out)
{
    for (int i = 0; i < values->count(session, mode); i++)
        OT_TRY(
            ot__made(ot__map_put(out, values->name(session, mode, i), (void *)(uintptr_t)(i + 1))));
    return OT_OK;
}

static ot_status positions_init(positions *of, const ot_session *session,
                                const session_values *values)
{
    *of = (positions){0};
    OT_TRY(map_names(session, values, OT_MODE_TRAIN, &of->train));
    return map_names(session, values, OT_MODE_EVAL, &of->eval);
}

static void positions_deinit(positions *of)
{
    ot__map_deinit(&of->train);
    ot__map_deinit(&of->eval);
}

static int position_in(const ot__map *map, const char *name)
{
    return (int)(uintptr_t)ot__map_get(map, name) - 1;
}

// Where the session has what is described.
static ot_status place_values(const ot_session *session, const session_values *values,
                              ot__described *list, int n)
{
    positions of;
    ot_status st = positions_init(&of, session, values);

    for (int i = 0; st == OT_OK && i < n; i++) {
        list[i].train = position_in(&of.train, list[i].name);
        list[i].eval = position_in(&of.eval, list[i].name);
    }
    positions_deinit(&of);
    return st;
}

// ---- a description against the session ----

static ot_status list_undescribable(const ot_session *session, const session_values *values,
                                    const ot_value_description *described, int n, const char *what,
                                    ot__buf *unknown)
{
    positions of;
    ot_status st = positions_init(&of, session, values);

    for (int i = 0; st == OT_OK && i < n; i++)
        if (position_in(&of.train, described[i].name) < 0 &&
            position_in(&of.eval, described[i].name) < 0)
            ot__buf_printf(unknown, "%s%s '%s'", unknown->length > 0 ? ", " : "", what,
                           described[i].name);
    positions_deinit(&of);
    return st;
}

// The loss may be an output twice.
static ot_status list_known(const ot_session *session, const session_values *values, ot__buf *known)
{
    const char *separator = "";
    positions of;
    ot_status st = positions_init(&of, session, values);

    for (int i = 0; st == OT_OK && i < values->count(session, OT_MODE_TRAIN); i++) {
        const char *name = values->name(session, OT_MODE_TRAIN, i);

        if (position_in(&of.train, name) != i)
            continue;
        ot__buf_printf(known, "%s'%s'", separator, name);
        separator = ", ";
    }
    positions_deinit(&of);
    return st;
}

static ot_status refuse_undescribable(const ot_session *session, const ot__buf *unknown)
{
    ot__buf known = {0};
    ot_status st;

    st = list_known(session, &inputs_of_session, &known);
    ot__buf_text(&known, ", its outputs ");
    OT_THEN(st, list_known(session, &outputs_of_session, &known));
    OT_THEN(st, ot__buf_status(&known));
    if (st == OT_OK)
        st = ot__error(OT_ERR_INVALID,
                       "the description has %s, which the training model lacks: its inputs are %s",
                       unknown->data, known.data);
    ot__buf_deinit(&known);
    return st;
}

static ot_status check_describable(const ot_session *session, const ot_model_description *d)
{
    ot__buf unknown = {0};
    ot_status st;

    st = list_undescribable(session, &inputs_of_session, d->inputs, d->n_inputs, "input", &unknown);
    OT_THEN(st, list_undescribable(session, &outputs_of_session, d->outputs, d->n_outputs, "output",
                                   &unknown));
    OT_THEN(st, ot__buf_status(&unknown));
    if (st == OT_OK && unknown.length > 0)
        st = refuse_undescribable(session, &unknown);
    ot__buf_deinit(&unknown);
    return st;
}

// Inputs are all that will be fed.
static ot_status check_needed(const ot_session *session, const ot_model_description *d)
{
    ot__map described = {0};
    ot__buf missing = {0};
    ot_status st = OT_OK;

    for (int i = 0; st == OT_OK && i < d->n_inputs; i++)
        st = ot__made(ot__map_put(&described, d->inputs[i].name, &described));
    for (int i = 0; st == OT_OK && i < ot_session_input_count(session, OT_MODE_TRAIN); i++) {
        const char *name = ot_session_input_name(session, OT_MODE_TRAIN, i);

        if (ot__map_get(&described, name) == NULL)
            ot__buf_printf(&missing, "%s'%s'", missing.length > 0 ? ", " : "", name);
    }
    OT_THEN(st, ot__buf_status(&missing));
    if (st == OT_OK && missing.length > 0)
        st = ot__error(OT_ERR_INVALID,
                       "the training model takes inputs that the description lacks: %s",
                       missing.data);
    ot__buf_deinit(&missing);
    ot__map_deinit(&described);
    return st;
}

// The first output is the one that the session trains by.
static ot_status check_loss(const ot_session *session, const ot_model_description *d)
{
    const char *loss = ot_session_output_name(session, OT_MODE_TRAIN, 0);

    for (int i = 0; i < d->n_outputs; i++)
        if (d->outputs[i].is_loss && (loss == NULL || strcmp(d->outputs[i].name, loss) != 0))
            return ot__error(OT_ERR_INVALID,
                             "the description says that output '%s' is the loss, the training "
                             "model has '%s'",
                             d->outputs[i].name, loss != NULL ? loss : "none");
    return OT_OK;
}

// ---- as a description says it ----

static ot_status take_dims(ot_trainer *trainer, const ot_value_description *from, ot__described *to,
                           int *n_symbols)
{
    ot_dim_description *dims =
        ot__arena_alloc(trainer->arena, (size_t)(from->n_dims + 1) * sizeof *dims);

    OT_TRY(ot__made(dims));
    for (int k = 0; k < from->n_dims; k++) {
        dims[k] = from->dims[k];
        if (dims[k].symbol == NULL)
            continue;
        dims[k].symbol = ot__arena_strdup(trainer->arena, dims[k].symbol);
        OT_TRY(ot__made(dims[k].symbol));
        (*n_symbols)++;
    }
    to->dims = dims;
    to->n_dims = from->n_dims;
    return OT_OK;
}

static ot_status take_values(ot_trainer *trainer, const ot_value_description *from, int n,
                             ot__described **out, int *n_symbols)
{
    ot__described *list = ot__arena_alloc(trainer->arena, (size_t)(n + 1) * sizeof *list);

    OT_TRY(ot__made(list));
    for (int i = 0; i < n; i++) {
        list[i] = (ot__described){.name = ot__arena_strdup(trainer->arena, from[i].name)};
        OT_TRY(ot__made(list[i].name));
        OT_TRY(take_dims(trainer, &from[i], &list[i], n_symbols));
    }
    *out = list;
    return OT_OK;
}

static void note_symbol(ot_trainer *trainer, const char *name)
{
    for (int i = 0; i < trainer->n_symbols; i++)
        if (strcmp(trainer->symbols[i].name, name) == 0)
            return;
    trainer->symbols[trainer->n_symbols++] = (ot__symbol){.name = name, .size = -1};
}

static ot_status list_symbols(ot_trainer *trainer, int n_at_most)
{
    trainer->symbols =
        ot__arena_alloc(trainer->arena, (size_t)(n_at_most + 1) * sizeof *trainer->symbols);
    OT_TRY(ot__made(trainer->symbols));
    for (int i = 0; i < trainer->n_inputs; i++)
        for (int k = 0; k < trainer->inputs[i].n_dims; k++)
            if (trainer->inputs[i].dims[k].symbol != NULL)
                note_symbol(trainer, trainer->inputs[i].dims[k].symbol);
    return OT_OK;
}

static ot_status describe_as_said(ot_trainer *trainer, const ot_model_description *d)
{
    int n_symbols = 0;

    OT_TRY(check_describable(trainer->session, d));
    OT_TRY(check_needed(trainer->session, d));
    OT_TRY(check_loss(trainer->session, d));
    OT_TRY(take_values(trainer, d->inputs, d->n_inputs, &trainer->inputs, &n_symbols));
    trainer->n_inputs = d->n_inputs;
    OT_TRY(take_values(trainer, d->outputs, d->n_outputs, &trainer->outputs, &n_symbols));
    trainer->n_outputs = d->n_outputs;
    return list_symbols(trainer, n_symbols);
}

// ---- as the session has it ----

static ot_status describe_by_session(ot_trainer *trainer, const session_values *values,
                                     ot__described **out, int *n_out)
{
    const int n = values->count(trainer->session, OT_MODE_TRAIN);
    ot__described *list = ot__arena_alloc(trainer->arena, (size_t)(n + 1) * sizeof *list);

    OT_TRY(ot__made(list));
    for (int i = 0; i < n; i++) {
        list[i].name =
            ot__arena_strdup(trainer->arena, values->name(trainer->session, OT_MODE_TRAIN, i));
        OT_TRY(ot__made(list[i].name));
    }
    *out = list;
    *n_out = n;
    return OT_OK;
}

// ---- the whole ----

static ot_status describe_all_by_session(ot_trainer *trainer)
{
    OT_TRY(describe_by_session(trainer, &inputs_of_session, &trainer->inputs, &trainer->n_inputs));
    return describe_by_session(trainer, &outputs_of_session, &trainer->outputs,
                               &trainer->n_outputs);
}

ot_status ot__trainer_describe(ot_trainer *trainer, const ot_model_description *description)
{
    OT_TRY(description != NULL ? describe_as_said(trainer, description)
                               : describe_all_by_session(trainer));
    OT_TRY(place_values(trainer->session, &inputs_of_session, trainer->inputs, trainer->n_inputs));
    return place_values(trainer->session, &outputs_of_session, trainer->outputs,
                        trainer->n_outputs);
}
