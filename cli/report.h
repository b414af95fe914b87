// SPDX-License-Identifier: Apache-2.0
// What the command says: messages on standard error, results on standard output.
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "onnxtrain/artifacts.h"

// "onnxtrain: <the library's last message>"; returns EXIT_FAILED.
int report_error(void);
int report_text(const char *format, ...) OT_PRINTF(1, 2);  // the same with a text of the command's
int report_usage(const char *format, ...) OT_PRINTF(1, 2); // returns EXIT_USAGE
void report_notes(const ot_artifacts *artifacts);          // "onnxtrain: note: ...", a line each
// "... is none of adamw, sgd, none; did you mean 'adamw'?": what there is instead of `name`.
// Returns EXIT_USAGE.
int report_unknown(const char *const *names, int n_names, const char *name, const char *format, ...)
    OT_PRINTF(4, 5);

// From now on messages are kept, until they are taken or released.
void report_hold(void);
void report_release(void);                    // what is kept is said now, and what follows at once
const char *report_held(void);                // what is kept; until the next message
void report_take(char *text, size_t size);    // what is kept, without its "onnxtrain: "
void report_told(const char *text, int rank); // of a rank that is named; -1: of none

// Warnings of the library are said at once from now on, as notes, after `clear` (NULL: nothing is)
// has made room. Where OT_LOG is set, the library says them itself.
void report_warnings(void (*clear)(const void *context), void *context);
void report_no_warnings(void);

// A name or message for JSON, which is UTF-8: other bytes become '?'.
json_t *text_json(const char *text);
json_t *shape_json(const ot_shape *shape);
void write_json(FILE *out, json_t *object, size_t flags); // and a new line; the object is freed

const char *bytes_text(size_t n_bytes, char *text, size_t size); // "1.5 MiB"

#endif
