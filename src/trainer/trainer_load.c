// SPDX-License-Identifier: Apache-2.0
// A state against a trainer: all of it is checked before any of it is taken.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "trainer/state.h"

// ---- looking into a state ----

bool ot__state_has(const ot_dict *dict, const char *name)
{
    ot_dict_kind kind;

    return dict != NULL && ot_dict_kind_of(dict, name, &kind) == OT_OK;
}

// NULL: it is not given.
static ot_status find_dict(const ot_dict *dict, const char *name, const ot_dict **out)
{
    ot_dict *found = NULL;
    const ot_status st = ot__state_has(dict, name)
                             ? ot_dict_get_dict((ot_dict *)(uintptr_t)dict, name, &found)
                             : OT_OK;

    *out = found;
    return st;
}

const ot_dict *ot__state_dict(const ot_dict *dict, const char *name)
{
    const ot_dict *found;

    return find_dict(dict, name, &found) == OT_OK ? found : NULL;
}

const ot_tensor *ot__state_tensor(const ot_dict *dict, const char *name)
{
    const ot_tensor *found = NULL;

    return ot__state_has(dict, name) && ot_dict_get_tensor(dict, name, &found) == OT_OK ? found
                                                                                        : NULL;
}

// ---- the same names ----

static void list_keys(const ot_dict *of, const ot_dict *without, ot__buf *out)
{
    for (int i = 0; i < ot_dict_count(of); i++) {
        const char *name = ot_dict_name(of, i);

        if (!ot__state_has(without, name))
            ot__buf_printf(out, "%s'%s'", out->length > 0 ? ", " : "", name);
    }
}

static ot_status refuse_keys(ot__buf *keys, const char *which, const char *where)
{
    ot_status st = ot__buf_status(keys);

    if (st == OT_OK && keys->length > 0)
        st = ot__error(OT_ERR_INVALID, "%s keys: %s in state_dict%s", which, keys->data, where);
    ot__buf_deinit(keys);
    return st;
}

static ot_status compare_state_keys(const ot_trainer *trainer, const ot_dict *own,
                                    const ot_dict *given, const char *where)
{
    ot__buf missing = {0}, unexpected = {0};

    list_keys(own, given, &missing);
    OT_TRY(refuse_keys(&missing, "Missing", where));
    if (trainer->recorded.zero_stage > 0) // where a state is one of several
        return OT_OK;
    list_keys(given, own, &unexpected);
    return refuse_keys(&unexpected, "Unexpected", where);
}

// One level, then those below it.
static ot_status compare_levels(const ot_trainer *trainer, const ot_dict *own, const ot_dict *given,
                                const char *section)
{
    ot__buf where = {0};
    ot_status st;

    ot__buf_printf(&where, "[%s]", section);
    st = ot__buf_status(&where);
    OT_THEN(st, compare_state_keys(trainer, own, given, where.data));
    for (int i = 0; st == OT_OK && i < ot_dict_count(own); i++) {
        const char *name = ot_dict_name(own, i);
        const ot_dict *inner = NULL;

        where.length = 0;
        ot__buf_printf(&where, "[%s][%s]", section, name);
        st = ot__buf_status(&where);
        OT_THEN(st, find_dict(given, name, &inner));
        if (inner != NULL)
            OT_THEN(st, compare_state_keys(trainer, ot__state_dict(own, name), inner, where.data));
    }
    ot__buf_deinit(&where);
    return st;
}

static ot_status compare_section(const ot_trainer *trainer, const ot_dict *own,
                                 const ot_dict *state, const char *section)
{
    const ot_dict *given;

    OT_TRY(find_dict(state, section, &given));
    if (given != NULL)
        return compare_levels(trainer, ot__state_dict(own, section), given, section);
    ot__log(OT_LOG_WARNING, "the state has no '%s': what the trainer has of it stays", section);
    return OT_OK;
}

// ---- the same types and shapes ----

static ot_status check_tensor(const ot_dict *own, const ot_dict *given, const char *name,
                              const char *what, const char *of)
{
    const ot_tensor *expected = ot__state_tensor(own, name), *found;

    if (expected == NULL)
        return OT_OK; // it is not taken
    OT_TRY(ot_dict_get_tensor(given, name, &found));
    if (found->dtype == expected->dtype && ot__shape_equal(&found->shape, &expected->shape))
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "%s '%s'%s of the state is %s%s, expected %s%s", what, name,
                     of, ot_dtype_name(found->dtype), OT_SHAPE_TEXT(&found->shape),
                     ot_dtype_name(expected->dtype), OT_SHAPE_TEXT(&expected->shape));
}

static ot_status check_tensors(const ot_dict *own, const ot_dict *given, const char *what,
                               const char *of)
{
    for (int i = 0; i < ot_dict_count(given); i++)
        OT_TRY(check_tensor(own, given, ot_dict_name(given, i), what, of));
    return OT_OK;
}

static ot_status check_count(const ot_dict *given, const char *name)
{
    const ot_tensor *count = ot__state_tensor(given, name);

    if (count == NULL || *(const int64_t *)count->data > 0)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "%s of the state is %" PRId64 ", expected at least 1", name,
                     *(const int64_t *)count->data);
}

static ot_status check_state_moments(const ot_dict *own, const ot_dict *given)
{
    for (int i = 0; i < ot_dict_count(given); i++) {
        const char *name = ot_dict_name(given, i);
        const ot_dict *mine = ot__state_dict(own, name), *theirs;
        ot__buf of = {0};
        ot_status st;

        if (mine == NULL)
            continue;
        OT_TRY(find_dict(given, name, &theirs));
        ot__buf_printf(&of, " of '%s'", name);
        st = ot__buf_status(&of);
        OT_THEN(st, check_tensors(mine, theirs, "", of.data));
        ot__buf_deinit(&of);
        OT_TRY(st);
        if (ot__state_has(mine, OT_KEY_UPDATE_COUNT))
            OT_TRY(check_count(theirs, OT_KEY_UPDATE_COUNT));
        if (ot__state_has(mine, OT_KEY_STEP))
            OT_TRY(check_count(theirs, OT_KEY_STEP));
    }
    return OT_OK;
}

static ot_status check_optimizer_name(const ot_trainer *trainer, const ot_dict *state)
{
    const char *mine = ot__session_optimizer(trainer->session).name, *theirs;
    const ot_dict *options;

    OT_TRY(find_dict(state, OT_KEY_OPTIONS, &options));
    if (mine == NULL || !ot__state_has(options, OT_KEY_OPTIMIZER_NAME))
        return OT_OK;
    OT_TRY(ot_dict_get_string(options, OT_KEY_OPTIMIZER_NAME, &theirs));
    if (ot__optimizer_is_same(mine, theirs))
        return OT_OK;
    return ot__error(OT_ERR_STATE, "the state is that of %s, the trainer has %s", theirs, mine);
}

// ---- numbers ----

static ot_status read_count(const ot_dict *dict, const char *name, bool *has_it, int64_t *out)
{
    int64_t value;

    if (!ot__state_has(dict, name))
        return OT_OK;
    OT_TRY(ot_dict_get_int(dict, name, &value));
    if (value < 0 || value == INT64_MAX)
        return ot__error(OT_ERR_INVALID, "%s of the state is %" PRId64, name, value);
    *has_it = true;
    *out = value;
    return OT_OK;
}

static ot_status read_number(const ot_dict *dict, const char *name, bool *has_it, uint64_t *out)
{
    int64_t value;

    if (!ot__state_has(dict, name))
        return OT_OK;
    OT_TRY(ot_dict_get_int(dict, name, &value));
    *has_it = true;
    *out = (uint64_t)value;
    return OT_OK;
}

static ot_status read_rate(const ot_dict *own, ot__resume *out)
{
    const char *text;

    if (ot__state_has(own, OT_KEY_LEARNING_RATE)) {
        out->has_rate = true;
        OT_TRY(ot_dict_get_float(own, OT_KEY_LEARNING_RATE, &out->learning_rate));
        if (!ot__is_learning_rate(out->learning_rate))
            return ot__error(OT_ERR_INVALID, "the learning rate of the state is %g",
                             out->learning_rate);
    }
    if (!ot__state_has(own, OT_KEY_SCHEDULE))
        return OT_OK;
    out->has_schedule = true;
    OT_TRY(ot_dict_get_string(own, OT_KEY_SCHEDULE, &text));
    return ot__schedule_parse(text, &out->schedule);
}

static ot_status read_scale(const ot_dict *own, const char *name, double *out)
{
    if (!ot__state_has(own, name))
        return OT_OK;
    OT_TRY(ot_dict_get_float(own, name, out));
    return ot__loss_scale_check(*out);
}

static ot_status read_scales(const ot_dict *own, ot__scale_position *out)
{
    bool has_count;

    out->is_there = ot__state_has(own, OT_KEY_LOSS_SCALE);
    OT_TRY(read_scale(own, OT_KEY_LOSS_SCALE, &out->loss_scale));
    OT_TRY(read_scale(own, OT_KEY_GRADIENT_SCALE, &out->of_gradients));
    return read_count(own, OT_KEY_STABLE_UPDATES, &has_count, &out->n_stable);
}

// What a program has said when it made the trainer stays.
static void keep_given(const ot_trainer *trainer, ot__resume *position)
{
    position->has_seed = position->has_seed && !trainer->keeps_seed;
    position->has_rate = position->has_rate && !trainer->keeps_rate;
    position->has_schedule = position->has_schedule && !trainer->keeps_rate;
}

static ot_status read_position(const ot_trainer *trainer, const ot_dict *state, ot__pending *out)
{
    ot__trainer_position *at = &out->position;
    const ot_dict *steps, *own;
    bool has_optimization_step = false, has_step = false, has_phase = false;
    bool is_accumulating = false;

    OT_TRY(find_dict(state, OT_KEY_STEPS, &steps));
    OT_TRY(find_dict(state, OT_KEY_OWN, &own));
    OT_TRY(read_count(steps, OT_KEY_OPTIMIZATION_STEP, &has_optimization_step,
                      &at->optimization_step));
    OT_TRY(read_count(steps, OT_KEY_TRAIN_STEP, &has_step, &at->step));
    out->has_position = has_optimization_step && has_step;
    if (!out->has_position)
        ot__log(OT_LOG_WARNING, "the state has no '%s': the trainer's step counts stay",
                OT_KEY_STEPS);
    OT_TRY(read_number(own, OT_KEY_SEED, &at->session.has_seed, &at->session.seed));
    OT_TRY(read_number(own, OT_KEY_COUNTER, &at->session.has_counter, &at->session.counter));
    OT_TRY(read_rate(own, &at->session));
    OT_TRY(read_scales(own, &at->scale));
    OT_TRY(read_count(own, OT_KEY_PHASE, &has_phase, &at->phase));
    OT_TRY(read_count(own, OT_KEY_OPTIMIZER_STEP, &out->has_optimizer_step, &out->optimizer_step));
    OT_TRY(read_count(own, OT_KEY_ACCUMULATED, &is_accumulating, &at->n_accumulated));
    if (!at->session.has_counter && out->has_position) {
        at->session.has_counter = true;
        at->session.counter = (uint64_t)at->step;
    }
    if (!has_phase)
        at->phase = (out->has_position ? at->step : trainer->info.step) % trainer->accumulation;
    at->phase = OT_MAX(at->phase, at->n_accumulated);
    keep_given(trainer, &at->session);
    return OT_OK;
}

// ---- what is our own ----

static ot_status check_updates(const ot_dict *updates)
{
    bool is_there;
    int64_t n;

    for (int i = 0; i < ot_dict_count(updates); i++)
        OT_TRY(read_count(updates, ot_dict_name(updates, i), &is_there, &n));
    return OT_OK;
}

// Gradients of a part of the parameters are nothing to go on with.
static ot_status check_gradients(const ot_trainer *trainer, ot_strictness strictness,
                                 ot__pending *out)
{
    const ot_checkpoint *checkpoint = ot_session_checkpoint(trainer->session);

    for (int i = 0; out->position.n_accumulated > 0 && i < checkpoint->n_parameters; i++) {
        const ot__parameter *p = checkpoint->parameters[i];

        if (!p->trainable || ot__state_has(out->gradients, p->name))
            continue;
        if (strictness == OT_STRICTNESS_ALL)
            return ot__error(OT_ERR_INVALID,
                             "the state has no gradient of '%s', but is in an accumulation of "
                             "%" PRId64 " micro-batches",
                             p->name, out->position.n_accumulated);
        ot__log(OT_LOG_WARNING,
                "the state has no gradient of '%s': the accumulation of %" PRId64
                " micro-batches is dropped",
                p->name, out->position.n_accumulated);
        out->position.n_accumulated = 0;
    }
    return OT_OK;
}

static ot_status check_own(const ot_trainer *trainer, const ot_dict *own_model,
                           const ot_dict *state, ot_strictness strictness, ot__pending *out)
{
    const ot_dict *own;

    OT_TRY(find_dict(state, OT_KEY_OWN, &own));
    OT_TRY(find_dict(own, OT_KEY_AVERAGES, &out->averages));
    OT_TRY(find_dict(own, OT_KEY_GRADIENTS, &out->gradients));
    OT_TRY(find_dict(own, OT_KEY_UPDATES, &out->updates));
    OT_TRY(check_tensors(own_model, out->averages, "average", ""));
    OT_TRY(check_tensors(own_model, out->gradients, "gradient", ""));
    OT_TRY(check_updates(out->updates));
    return check_gradients(trainer, strictness, out);
}

// ---- all checks ----

static ot_status check_trainer_state(const ot_trainer *trainer, const ot_dict *own,
                                     const ot_dict *state, ot_strictness strictness,
                                     ot__pending *out)
{
    const ot_dict *own_model =
        ot__state_dict(ot__state_dict(own, OT_KEY_MODEL), OT_KEY_FULL_PRECISION);
    const ot_dict *model;

    OT_TRY(read_position(trainer, state, out));
    if (strictness == OT_STRICTNESS_ALL) {
        OT_TRY(compare_section(trainer, own, state, OT_KEY_MODEL));
        OT_TRY(compare_section(trainer, own, state, OT_KEY_OPTIMIZER));
    }
    OT_TRY(find_dict(state, OT_KEY_MODEL, &model));
    OT_TRY(find_dict(model, OT_KEY_FULL_PRECISION, &out->parameters));
    OT_TRY(check_tensors(own_model, out->parameters, "parameter", ""));
    OT_TRY(find_dict(state, OT_KEY_OPTIMIZER, &out->moments));
    if (out->moments != NULL)
        OT_TRY(check_optimizer_name(trainer, state));
    OT_TRY(check_state_moments(ot__state_dict(own, OT_KEY_OPTIMIZER), out->moments));
    return check_own(trainer, own_model, state, strictness, out);
}

static ot_status check_strictness(ot_strictness strictness)
{
    if (strictness == OT_STRICTNESS_ALL || strictness == OT_STRICTNESS_SUBSET)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "strictness %d, expected %d (all) or %d (a subset)",
                     (int)strictness, (int)OT_STRICTNESS_ALL, (int)OT_STRICTNESS_SUBSET);
}

// What does not fit one rank is taken by none.
static ot_status agree_on_state(const ot_trainer *trainer, ot_status st)
{
    return ot__session_agree(trainer->session, st, "ot_trainer_set_state");
}

static ot_status compare_with_own(const ot_trainer *trainer, const ot__state_source *source,
                                  const ot_dict *state, ot_strictness strictness, ot__pending *out)
{
    ot_dict *own = NULL;
    ot_status st = ot__state_make(source, OT_STATE_MODEL | OT_STATE_OPTIMIZER, &own);

    OT_THEN(st, check_trainer_state(trainer, own, state, strictness, out));
    ot_dict_destroy(own);
    OT_THEN(st, ot__constants_make(trainer, out->parameters, &out->constants));
    return st;
}

// Gradients are given to those who have shares of them, before the first train step too.
static ot_status make_own_parts(const ot_trainer *trainer, ot__pending *out)
{
    if (out->position.n_accumulated > 0)
        OT_TRY(ot__session_cut_gradients(trainer->session));
    return agree_on_state(trainer, ot__pending_cut(trainer, out));
}

ot_status ot__pending_make(ot_trainer *trainer, ot_status given, const ot_dict *state,
                           ot_strictness strictness, ot__pending *out)
{
    ot__state_source source;
    ot_status st = given;

    *out = (ot__pending){.trainer = trainer};
    OT_THEN(st, check_strictness(strictness));
    OT_TRY(agree_on_state(trainer, st));
    OT_TRY(ot__state_of_trainer(trainer, true, &source));
    st = agree_on_state(trainer, compare_with_own(trainer, &source, state, strictness, out));
    ot__state_source_end(&source);
    OT_THEN(st, make_own_parts(trainer, out));
    return st;
}

void ot__pending_drop(ot__pending *pending)
{
    for (int i = 0; i < pending->n_parts; i++)
        ot_tensor_destroy(pending->parts[i].from);
    ot__free(pending->parts);
    pending->parts = NULL;
    pending->n_parts = 0;
    ot__constants_drop(&pending->constants);
}

// ---- public ----

static ot_status set_trainer_state(ot_trainer *trainer, const ot_dict *state,
                                   ot_strictness strictness)
{
    ot__pending pending;
    const ot_status st = ot__pending_make(trainer, OT_GIVEN(state), state, strictness, &pending);

    if (st == OT_OK)
        ot__pending_take(trainer, &pending);
    ot__pending_drop(&pending);
    return st;
}

ot_status ot_trainer_set_state(ot_trainer *trainer, const ot_dict *state, ot_strictness strictness)
{
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(trainer, set_trainer_state(trainer, state, strictness));
}
