// SPDX-License-Identifier: Apache-2.0
// JSON: jansson reads it, within limits that hold before it looks at the text; writing needs no
// more than a buffer.
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/base.h"

// ---- reading ----

// jansson calls itself for every bracket, as deep as 2048.
static ot_status check_json_depth(const char *text, size_t n_bytes)
{
    int depth = 0, line = 1;
    size_t line_start = 0;
    bool is_string = false;

    for (size_t i = 0; i < n_bytes; i++) {
        const char c = text[i];

        if (c == '\n') {
            line++;
            line_start = i + 1;
        }
        if (c == '\\' && is_string)
            i++;
        else if (c == '"')
            is_string = !is_string;
        else if (!is_string && (c == '{' || c == '['))
            depth++;
        else if (!is_string && (c == '}' || c == ']'))
            depth--;
        if (depth > OT_JSON_DEPTH_MAX)
            return ot__error(OT_ERR_FORMAT,
                             "line %d, column %zu: more than %d objects and arrays inside each "
                             "other",
                             line, i - line_start + 1, OT_JSON_DEPTH_MAX);
    }
    return OT_OK;
}

ot_status ot__json_read(const char *text, size_t n_bytes, json_t **out)
{
    json_error_t error;

    *out = NULL;
    if (n_bytes > OT_JSON_BYTES_MAX)
        return ot__error(OT_ERR_FORMAT, "has %zu bytes of JSON, expected at most %d", n_bytes,
                         OT_JSON_BYTES_MAX);
    OT_TRY(check_json_depth(text, n_bytes));
    *out = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (*out)
        return OT_OK;
    if (json_error_code(&error) == json_error_out_of_memory)
        return ot__error_memory(n_bytes);
    return ot__error(OT_ERR_FORMAT, "line %d, column %d: %s", error.line, OT_MAX(error.column, 0),
                     error.text);
}

// ---- writing ----

static void write_quoted(ot__buf *out, const char *text)
{
    static const char controls[] = "\b\f\n\r\t", letters[] = "bfnrt";

    ot__buf_text(out, "\"");
    while (*text) {
        const unsigned char first = (unsigned char)*text;
        uint32_t code;
        const int n = ot__utf8_read(text, &code);

        if (n == 0) // a lone surrogate, as Python has such bytes in names of files
            ot__buf_printf(out, "\\udc%02x", first);
        else if (first == '"' || first == '\\')
            ot__buf_printf(out, "\\%c", first);
        else if (first < 0x20 && strchr(controls, first))
            ot__buf_printf(out, "\\%c", letters[strchr(controls, first) - controls]);
        else if (first < 0x20 || first == 0x7f)
            ot__buf_printf(out, "\\u%04x", first);
        else
            ot__buf_append(out, text, (size_t)n);
        text += OT_MAX(n, 1);
    }
    ot__buf_text(out, "\"");
}

static void begin_json(ot__buf *out, const char *name)
{
    const char last = out->length > 0 ? out->data[out->length - 1] : '\n';

    if (strchr("{[\n", last) == NULL)
        ot__buf_text(out, ",");
    if (name) {
        write_quoted(out, name);
        ot__buf_text(out, ":");
    }
}

void ot__json_open(ot__buf *out, const char *name, char bracket)
{
    begin_json(out, name);
    ot__buf_append(out, &bracket, 1);
}

void ot__json_close(ot__buf *out, char bracket)
{
    ot__buf_append(out, &bracket, 1);
}

void ot__json_raw(ot__buf *out, const char *name, const char *json)
{
    begin_json(out, name);
    ot__buf_text(out, json);
}

void ot__json_string(ot__buf *out, const char *name, const char *text)
{
    if (!text) {
        ot__json_raw(out, name, "null");
        return;
    }
    begin_json(out, name);
    write_quoted(out, text);
}

void ot__json_int(ot__buf *out, const char *name, int64_t value)
{
    begin_json(out, name);
    ot__buf_printf(out, "%" PRId64, value);
}

void ot__json_float(ot__buf *out, const char *name, double value)
{
    size_t start;

    if (!isfinite(value)) {
        ot__json_raw(out, name, "null");
        return;
    }
    begin_json(out, name);
    start = out->length;
    ot__buf_float(out, value, false);
    if (!out->failed && strpbrk(out->data + start, ".e") == NULL)
        ot__buf_text(out, ".0"); // "1" would read back as an integer
}

void ot__json_bool(ot__buf *out, const char *name, bool value)
{
    ot__json_raw(out, name, value ? "true" : "false");
}

void ot__json_value(ot__buf *out, const char *name, const json_t *value)
{
    const char *key;
    const json_t *member;
    size_t i;

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        ot__json_open(out, name, '{');
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            ot__json_value(out, key, member);
        }
        ot__json_close(out, '}');
        break;
    case JSON_ARRAY:
        ot__json_open(out, name, '[');
        json_array_foreach(value, i, member)
        {
            ot__json_value(out, NULL, member);
        }
        ot__json_close(out, ']');
        break;
    case JSON_STRING:
        ot__json_string(out, name, json_string_value(value));
        break;
    case JSON_INTEGER:
        ot__json_int(out, name, json_integer_value(value));
        break;
    case JSON_REAL:
        ot__json_float(out, name, json_real_value(value));
        break;
    default:
        ot__json_raw(out, name,
                     json_is_null(value)   ? "null"
                     : json_is_true(value) ? "true"
                                           : "false");
    }
}
