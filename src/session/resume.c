// SPDX-License-Identifier: Apache-2.0
// What resuming bit for bit needs and the checkpoint format has no place for: seed, counter, exact
// learning rate and schedule, as properties.
#include <string.h>

#include "session/session_internal.h"

static const char *const kind_names[] = {
    [OT_SCHEDULE_CONSTANT] = "constant",       [OT_SCHEDULE_LINEAR] = "linear",
    [OT_SCHEDULE_COSINE] = "cosine",           [OT_SCHEDULE_STEP] = "step",
    [OT_SCHEDULE_EXPONENTIAL] = "exponential", [OT_SCHEDULE_POLYNOMIAL] = "polynomial",
};

// "cosine 0.001 0 100 1 0.1 1 0 2": kind, initial_lr, warm-up, total, step size, gamma, power, end,
// cycles; the last is missing where it is 0, which earlier versions read.
enum { FIELDS = 9 };

// ---- writing ----

void ot__schedule_text(const ot_schedule *s, ot__buf *out)
{
    const double last[] = {s->gamma, s->power, s->end_factor, s->cycles};
    const size_t n_last = OT_COUNT(last) - (s->cycles == 0);

    ot__buf_printf(out, "%s ", kind_names[s->kind]);
    ot__buf_float(out, s->initial_lr, false);
    ot__buf_text(out, " ");
    ot__buf_float(out, s->warmup_steps, false);
    ot__buf_printf(out, " %" PRId64 " %" PRId64, s->total_steps, s->step_size);
    for (size_t i = 0; i < n_last; i++) {
        ot__buf_text(out, " ");
        ot__buf_float(out, last[i], false);
    }
}

// Which optimizer it is, also where no moments say so.
static ot_status put_optimizer(ot_session *session)
{
    ot_checkpoint *checkpoint = session->checkpoint;
    const ot__optimizer *o = &session->optimizer;

    if (o->moments_of != NULL)
        OT_TRY(ot_checkpoint_set_string(checkpoint, OT_PROPERTY_OPTIMIZER, o->moments_of));
    else if (o->rule != NULL)
        return ot_checkpoint_set_string(checkpoint, OT_PROPERTY_RULE, o->rule->op_type);
    return ot__ckpt_property(checkpoint, OT_PROPERTY_RULE)
               ? ot_checkpoint_remove_property(checkpoint, OT_PROPERTY_RULE)
               : OT_OK;
}

static ot_status put_properties(ot_session *session)
{
    ot_checkpoint *checkpoint = session->checkpoint;
    ot__buf rate = {0}, schedule = {0};

    OT_TRY(ot_checkpoint_set_int(checkpoint, OT_PROPERTY_SEED, (int64_t)session->seed));
    OT_TRY(ot_checkpoint_set_int(checkpoint, OT_PROPERTY_COUNTER, (int64_t)session->counter));
    ot__buf_float(&rate, session->learning_rate, false);
    OT_TRY(ot__ckpt_set_text(checkpoint, OT_PROPERTY_LEARNING_RATE, &rate));
    OT_TRY(put_optimizer(session));
    if (!session->has_schedule)
        return OT_OK;
    ot__schedule_text(&session->schedule, &schedule);
    return ot__ckpt_set_text(checkpoint, OT_PROPERTY_SCHEDULE, &schedule);
}

static ot_status save_session(ot_session *session, const char *path, unsigned flags)
{
    OT_TRY(put_properties(session));
    return ot_checkpoint_save(session->checkpoint, path, flags);
}

ot_status ot_session_save(ot_session *session, const char *path)
{
    OT_TRY(OT_GIVEN(path));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, save_session(session, path, OT_CHECKPOINT_OPTIMIZER_STATE));
}

ot_status ot__session_save_accumulating(ot_session *session, const char *path,
                                        int64_t n_micro_batches, unsigned flags)
{
    ot_checkpoint *checkpoint = session->checkpoint;
    const int64_t before = checkpoint->n_accumulated;
    ot_status st;

    OT_TRY(ot__session_enter(session));
    checkpoint->n_accumulated = n_micro_batches;
    st = save_session(session, path, flags);
    checkpoint->n_accumulated = before;
    return ot__session_leave(session, st);
}

ot_status ot_session_save_buffer(ot_session *session, void *to, size_t capacity, size_t *n_bytes)
{
    ot_status st;

    OT_TRY(OT_GIVEN(n_bytes));
    *n_bytes = 0;
    OT_TRY(ot__session_enter(session));
    st = put_properties(session);
    OT_THEN(st, ot_checkpoint_save_buffer(session->checkpoint, OT_CHECKPOINT_OPTIMIZER_STATE, to,
                                          capacity, n_bytes));
    return ot__session_leave(session, st);
}

// ---- reading ----

// Splits a copy of `text` at blanks; false unless there are FIELDS words, of which the last may be
// missing.
static bool split(char *text, const char *words[FIELDS])
{
    int n = 0;

    for (char *at = text; at != NULL && *at != '\0'; at = ot__cut(at, ' ')) {
        if (n == FIELDS)
            return false;
        words[n++] = at;
    }
    if (n == FIELDS - 1)
        words[n++] = "0";
    return n == FIELDS;
}

static bool parse_schedule(const char *const words[FIELDS], ot_schedule *s)
{
    size_t kind = 0;

    while (kind < OT_COUNT(kind_names) && strcmp(words[0], kind_names[kind]) != 0)
        kind++;
    s->kind = (ot_schedule_kind)kind;
    return kind < OT_COUNT(kind_names) && ot__parse_float(words[1], &s->initial_lr) &&
           ot__parse_float(words[2], &s->warmup_steps) &&
           ot__parse_int(words[3], &s->total_steps) && ot__parse_int(words[4], &s->step_size) &&
           ot__parse_float(words[5], &s->gamma) && ot__parse_float(words[6], &s->power) &&
           ot__parse_float(words[7], &s->end_factor) && ot__parse_float(words[8], &s->cycles) &&
           ot__schedule_check(s) == OT_OK;
}

ot_status ot__schedule_parse(const char *text, ot_schedule *out)
{
    const ot_schedule defaults = OT_SCHEDULE_INIT;
    const char *words[FIELDS];
    char *copy = ot__strdup(text);
    bool ok;

    OT_TRY(ot__made(copy != NULL));
    *out = defaults;
    ok = split(copy, words) && parse_schedule(words, out);
    ot__free(copy);
    return ok ? OT_OK : ot__error(OT_ERR_FORMAT, "not a schedule: '%s'", text);
}

static ot_status read_schedule(const ot_checkpoint *checkpoint, ot__resume *out)
{
    const char *text;
    ot_status st;

    if (!ot__ckpt_property(checkpoint, OT_PROPERTY_SCHEDULE))
        return OT_OK;
    OT_TRY(ot_checkpoint_get_string(checkpoint, OT_PROPERTY_SCHEDULE, &text));
    out->has_schedule = true;
    st = ot__schedule_parse(text, &out->schedule);
    if (st == OT_ERR_FORMAT)
        return ot__error(st, "property '%s' is %s", OT_PROPERTY_SCHEDULE, ot_error_message());
    return st;
}

static ot_status read_resume_int(const ot_checkpoint *checkpoint, const char *name, bool *has,
                                 uint64_t *out)
{
    int64_t value;

    if (!ot__ckpt_property(checkpoint, name))
        return OT_OK;
    OT_TRY(ot_checkpoint_get_int(checkpoint, name, &value));
    *has = true;
    *out = (uint64_t)value;
    return OT_OK;
}

static ot_status read_learning_rate(const ot_checkpoint *checkpoint, ot__resume *out)
{
    const char *text;

    if (!ot__ckpt_property(checkpoint, OT_PROPERTY_LEARNING_RATE))
        return OT_OK;
    OT_TRY(ot_checkpoint_get_string(checkpoint, OT_PROPERTY_LEARNING_RATE, &text));
    out->has_rate = true;
    if (!ot__parse_float(text, &out->learning_rate) || !ot__is_learning_rate(out->learning_rate))
        return ot__error(OT_ERR_FORMAT, "property '%s' is not a learning rate: '%s'",
                         OT_PROPERTY_LEARNING_RATE, text);
    return OT_OK;
}

ot_status ot__resume_read(const ot_checkpoint *checkpoint, ot__resume *out)
{
    *out = (ot__resume){0};
    OT_TRY(read_resume_int(checkpoint, OT_PROPERTY_SEED, &out->has_seed, &out->seed));
    OT_TRY(read_resume_int(checkpoint, OT_PROPERTY_COUNTER, &out->has_counter, &out->counter));
    OT_TRY(read_learning_rate(checkpoint, out));
    return read_schedule(checkpoint, out);
}

ot__resume ot__session_position(const ot_session *session)
{
    return (ot__resume){.has_seed = true,
                        .seed = session->seed,
                        .has_counter = true,
                        .counter = session->counter,
                        .has_rate = true,
                        .learning_rate = session->learning_rate,
                        .has_schedule = session->has_schedule,
                        .schedule = session->schedule};
}

void ot__session_go_to(ot_session *session, const ot__resume *position)
{
    session->is_half_updated = false; // it has the parameters of a state
    if (position->has_seed)
        session->seed = position->seed;
    if (position->has_counter)
        session->counter = position->counter;
    if (position->has_rate) {
        session->learning_rate = position->learning_rate;
        session->optimizer.has_rates = false;
    }
    if (position->has_schedule) {
        session->schedule = position->schedule;
        session->has_schedule = true;
    }
}

int64_t ot__session_resume_accumulation(ot_session *session)
{
    const int64_t n = session->checkpoint->n_accumulated;

    if (n > 0) {
        ot__undo_resume(session, n);
        ot__ranks_forget_sums(session);
    }
    return n;
}

ot_status ot__session_resume(ot_session *session)
{
    ot__resume position;

    OT_TRY(ot__resume_read(session->checkpoint, &position));
    ot__session_go_to(session, &position);
    return OT_OK;
}

void ot_session_set_seed(ot_session *session, uint64_t seed)
{
    if (ot__session_enter(session) != OT_OK)
        return;
    session->seed = seed;
    ot__session_leave(session, OT_OK);
}
