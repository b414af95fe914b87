// SPDX-License-Identifier: Apache-2.0
// State dicts of sessions over the small network.
#ifndef TESTS_UNIT_SESSION_STATE_DICT_FIXTURE_H
#define TESTS_UNIT_SESSION_STATE_DICT_FIXTURE_H

#include "onnxtrain/state_dict.h"
#include "session_fixture.h"

enum { ALL_SECTIONS = OT_STATE_MODEL | OT_STATE_OPTIMIZER | OT_STATE_OWN };

static inline void must_be(ot_status found, ot_status expected, const char *part)
{
    if (found != expected || (found != OT_OK && strstr(ot_error_message(), part) == NULL))
        fail_msg("%s '%s', expected %s '%s'", ot_status_name(found),
                 found == OT_OK ? "" : ot_error_message(), ot_status_name(expected), part);
}

static inline void must(ot_status found)
{
    must_be(found, OT_OK, "");
}

// A session that has made `n` updates.
static inline void make_trained(fixture *f, const char *optimizer, int n)
{
    make(f, OT_F32, optimizer);
    open_session(f);
    for (int i = 0; i < n; i++) {
        (void)train(f, i);
        optimize(f);
        ot_session_reset_gradients(f->session);
    }
}

static inline ot_dict *state_of(fixture *f, unsigned sections, const ot_state_dict_options *given)
{
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *dict;

    if (given != NULL)
        o = *given;
    o.copy = 1;
    must(ot_session_get_shards(f->session, sections, &o, &dict));
    return dict;
}

// "optim/state/fc1.weight": the dict or list there.
static inline ot_dict *inside(ot_dict *dict, const char *path)
{
    char text[256], *at = text;

    (void)snprintf(text, sizeof text, "%s", path);
    while (at != NULL) {
        char *next = strchr(at, '/');
        ot_dict_kind kind;

        if (next != NULL)
            *next++ = '\0';
        must(ot_dict_kind_of(dict, at, &kind));
        must(kind == OT_DICT_LIST ? ot_dict_get_list(dict, at, &dict)
                                  : ot_dict_get_dict(dict, at, &dict));
        at = next;
    }
    return dict;
}

static inline const ot_tensor *tensor_in(ot_dict *dict, const char *path, const char *name)
{
    const ot_tensor *t;

    must(ot_dict_get_tensor(path == NULL ? dict : inside(dict, path), name, &t));
    return t;
}

static inline double float_in(ot_dict *dict, const char *path, const char *name)
{
    double value;

    must(ot_dict_get_float(inside(dict, path), name, &value));
    return value;
}

static inline void assert_number(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%.17g, expected %.17g", found, expected);
}

// All parameters, moments and counters, as bytes.
typedef struct picture {
    unsigned char bytes[8 * N_ELEMENTS * sizeof(float)];
    size_t n;
    int64_t step, updates[N_PARTS];
    double rate;
} picture;

static inline picture take_picture(const fixture *f)
{
    picture p = {.step = f->checkpoint->step, .rate = ot_session_learning_rate(f->session)};

    for (int i = 0; i < f->checkpoint->n_parameters; i++) {
        ot__parameter *q = f->checkpoint->parameters[i];

        ot__ckpt_unpack(f->checkpoint, q);
        p.updates[i] = q->n_updates;
        memcpy(p.bytes + p.n, q->value->data, q->value->n_bytes);
        p.n += q->value->n_bytes;
        for (int k = 0; k < OT_SLOTS; k++)
            if (q->slots[k] != NULL) {
                memcpy(p.bytes + p.n, q->slots[k]->data, q->slots[k]->n_bytes);
                p.n += q->slots[k]->n_bytes;
            }
    }
    return p;
}

static inline void assert_same_picture(const picture *a, const picture *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->bytes, b->bytes, a->n);
    assert_int_equal(a->step, b->step);
    assert_memory_equal(a->updates, b->updates, sizeof a->updates);
    assert_number(a->rate, b->rate);
}

static inline void expect_report(const ot_shards_report *report, ot_report_category category,
                                 const char *const *names, int n)
{
    if (ot_shards_report_count(report, category) != n)
        fail_msg("category %d has %d names, expected %d; the first is %s", (int)category,
                 ot_shards_report_count(report, category), n,
                 ot_shards_report_name(report, category, 0));
    for (int i = 0; i < n; i++)
        assert_string_equal(ot_shards_report_name(report, category, i), names[i]);
}

#endif
