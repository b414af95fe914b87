// SPDX-License-Identifier: Apache-2.0
// Part of base.h: JSON, in and out (json.c).
#ifndef OT_BASE_BASE_JSON_H
#define OT_BASE_BASE_JSON_H

// ---- reading: by jansson, whose json_t it gives ----

enum { OT_JSON_BYTES_MAX = 1 << 20, OT_JSON_DEPTH_MAX = 16 };

struct json_t;
// One JSON value, which is all of the text. OT_ERR_FORMAT "line 2, column 5: ..." for what is no
// JSON: malformed text, bytes after the value, a name twice in an object, a number that no double
// or 64-bit integer holds, more than OT_JSON_BYTES_MAX bytes, more than OT_JSON_DEPTH_MAX objects
// and arrays inside each other. The caller releases it with json_decref().
ot_status ot__json_read(const char *text, size_t n_bytes, struct json_t **out);

// ---- writing: compact, in one line, behind what is in the buffer ----

// A name goes before each member of an object; NULL: there is none, as in arrays. Commas stand
// where something of the same object or array is before. `bracket` is '{' or '[', '}' or ']'.
void ot__json_open(ot__buf *out, const char *name, char bracket);
void ot__json_close(ot__buf *out, char bracket);
// Bytes that are not UTF-8 become \udcXX, lone surrogates, which ot__json_read() refuses and Python
// makes those bytes of a file's name again. NULL: null.
void ot__json_string(ot__buf *out, const char *name, const char *text);
void ot__json_int(ot__buf *out, const char *name, int64_t value);
// The shortest text that reads back the same, as a number with a fraction or an exponent; what is
// not finite, which JSON cannot say, is null.
void ot__json_float(ot__buf *out, const char *name, double value);
void ot__json_bool(ot__buf *out, const char *name, bool value);
// What has been read.
void ot__json_value(ot__buf *out, const char *name, const struct json_t *value);
// JSON that has been written already, as "null".
void ot__json_raw(ot__buf *out, const char *name, const char *json);

#endif
