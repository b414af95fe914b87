// SPDX-License-Identifier: Apache-2.0
// Options and descriptions from JSON, and what is wrong with them as JSON.
#ifndef TESTS_UNIT_TRAINER_OPTIONS_FIXTURE_H
#define TESTS_UNIT_TRAINER_OPTIONS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "trainer/options.h"

typedef struct reading {
    ot__violations v;
    ot__reader r;
    ot_trainer_options options;
    ot_model_description description;
    char payload[4096];
} reading;

static inline void must(ot_status status)
{
    if (status != OT_OK)
        fail_msg("%s", ot_error_message());
}

static inline json_t *json_of(const char *text)
{
    json_t *json;

    must(ot__json_read(text, strlen(text), &json));
    return json;
}

static inline void reading_begin(reading *in)
{
    *in = (reading){.options = OT_TRAINER_OPTIONS_INIT, .description = OT_MODEL_DESCRIPTION_INIT};
    must(ot__violations_init(&in->v));
    in->r = (ot__reader){.arena = ot__arena_create(), .v = &in->v, .lr = 0.001};
    assert_non_null(in->r.arena);
}

static inline void reading_note(reading *in)
{
    ot__buf payload = {0};

    assert_int_equal(in->r.status, OT_OK);
    assert_int_equal(in->v.status, OT_OK);
    assert_int_equal(in->v.depth, 0);
    ot__violations_write(&in->v, &payload);
    must(ot__buf_status(&payload));
    assert_true(payload.length < sizeof in->payload);
    memcpy(in->payload, payload.data, payload.length + 1);
    ot__buf_deinit(&payload);
}

static inline void read_options(reading *in, const char *text)
{
    json_t *json = json_of(text);

    reading_begin(in);
    ot__options_from_json(&in->r, json, &in->options);
    ot__options_violations(&in->v, &in->options);
    json_decref(json);
    reading_note(in);
}

static inline void read_description(reading *in, const char *text)
{
    json_t *json = json_of(text);

    reading_begin(in);
    ot__description_from_json(&in->r, json, &in->description);
    json_decref(json);
    reading_note(in);
}

static inline void reading_end(reading *in)
{
    ot__arena_destroy(in->r.arena);
    ot__violations_deinit(&in->v);
}

// What is wrong with options is exactly `payload`, and the message says `text` of it.
static inline void assert_options_refused(const char *json, const char *payload, const char *text)
{
    reading in;

    read_options(&in, json);
    if (strcmp(in.payload, payload) != 0)
        fail_msg("%s: %s, expected %s", json, in.payload, payload);
    assert_int_equal(ot__violations_status(&in.v, "options"), OT_ERR_INVALID);
    if (!strstr(ot_error_message(), text))
        fail_msg("%s: '%s', expected '%s'", json, ot_error_message(), text);
    reading_end(&in);
}

// The options as they are written.
static inline char *options_text(const ot_trainer_options *options, ot__options_style style)
{
    ot__buf out = {0};

    ot__options_write_json(&out, NULL, options, style);
    must(ot__buf_status(&out));
    return out.data;
}

#endif
