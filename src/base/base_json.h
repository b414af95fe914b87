// SPDX-License-Identifier: Apache-2.0
// Part of base.h: JSON, in and out (json.c, json_scan.c).
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

// ---- reading one value after the other, for what is too large for a tree ----

typedef struct ot__json_scan {
    const char *text; // not closed by a NUL
    size_t n_bytes, at;
    ot__buf string; // the latest
    int depth;
    char close[OT_JSON_DEPTH_MAX];     // per object and array around here: its closing bracket,
    bool has_items[OT_JSON_DEPTH_MAX]; // and whether one of its items has been read
} ot__json_scan;
// The text outlives the scan. It takes what ot__json_read() takes, of any length; names that are
// there twice are for the caller to find. Failures are OT_ERR_FORMAT "byte 17: ...".
ot_status ot__json_scan_init(ot__json_scan *scan, const char *text, size_t n_bytes);
void ot__json_scan_deinit(ot__json_scan *scan);
// What comes next: one of { [ " t f n, or '0' for numbers; '\0': nothing that begins a value.
char ot__json_scan_kind(ot__json_scan *scan);
// An object or array, as `bracket` says; then, before each of its items, ot__json_scan_next(),
// which is false in *has_more at its end. *name: of a member, until the next string is read.
ot_status ot__json_scan_open(ot__json_scan *scan, char bracket);
ot_status ot__json_scan_next(ot__json_scan *scan, const char **name, bool *has_more);
// Strings without NUL, until the next one is read; whole numbers from 0 to `max`.
ot_status ot__json_scan_string(ot__json_scan *scan, const char **out);
ot_status ot__json_scan_count(ot__json_scan *scan, uint64_t max, uint64_t *value);
ot_status ot__json_scan_skip(ot__json_scan *scan); // a value of any kind
ot_status ot__json_scan_end(ot__json_scan *scan);  // nothing is behind it

ot_status ot__json_scan_error(const ot__json_scan *scan, const char *format, ...) OT_PRINTF(2, 3);

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
