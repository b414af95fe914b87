// SPDX-License-Identifier: Apache-2.0
// Options, descriptions and configurations: the table of options, reading JSON, checking, writing.
#ifndef OT_TRAINER_OPTIONS_H
#define OT_TRAINER_OPTIONS_H

#include "base/base.h"
#include "onnxtrain/optimizer.h"
#include "onnxtrain/trainer_options.h"

struct json_t;

// ---- the table (option_table.c) ----

typedef enum ot__option_kind {
    OT_OPTION_BOOL,     // int
    OT_OPTION_INT,      // int64_t
    OT_OPTION_BYTES,    // size_t; in JSON a number, or "unlimited"
    OT_OPTION_DECAY,    // double, 0 <= x < 1
    OT_OPTION_CHOICE,   // enum, position in `choices`
    OT_OPTION_FLAGS,    // int, choices[i] is bit i - 1, choices[0] none of them; -1: null
    OT_OPTION_TEXT,     // const char *, NULL: empty
    OT_OPTION_NAMES,    // const char *const *, and a count behind it
    OT_OPTION_MAP,      // const char *, JSON: objects by name; NULL: {}
    OT_OPTION_INT_MAP,  // integers by name
    OT_OPTION_INTS_MAP, // lists of integers by name
    OT_OPTION_LR,       // const ot_schedule *, and a function behind it
    OT_OPTION_SCALER,   // ot_loss_scaler *
    OT_OPTION_SESSION,  // const ot_session_options *; in JSON null alone
    OT_OPTION_NONE,     // no member: in JSON null alone
} ot__option_kind;

typedef enum ot__option_effect {
    OT_EFFECT_HONOURED,
    OT_EFFECT_WITHOUT, // accepted; a warning where it is set to something else than the default
    OT_EFFECT_REFUSED, // unless it is the default
} ot__option_effect;

typedef struct ot__option {
    const char *path; // "batch.gradient_accumulation_steps"
    ot__option_kind kind;
    ot__option_effect effect;
    const char *fallback;       // of the reference, as JSON
    double low, high;           // of numbers
    const char *const *choices; // ended by NULL; of a text: what counts as its default
    size_t offset;              // of the member in ot_trainer_options
    const char *help;
    bool is_nullable;
} ot__option;

extern const ot__option ot__options[]; // ended by {0}; those of a section stand together
const ot__option *ot__option_find(const char *path);      // NULL: there is none
size_t ot__option_count_offset(const ot__option *option); // of a list's count
const char *ot__option_effect_text(ot__option_effect effect);
bool ot__option_is_ours(const ot__option *option); // below "onnxtrain."
bool ot__option_is_default(const ot__option *option, const ot_trainer_options *options);

// ---- what is wrong with an input, all of it (violations.c) ----

typedef struct ot__violation ot__violation;
typedef struct ot__violations {
    ot__arena *arena;
    ot__violation *root; // NULL: there is none
    struct {
        const char *name; // NULL: an element
        size_t index;
    } path[OT_JSON_DEPTH_MAX + 2]; // where we are
    int depth, count;
    ot__buf text;     // "options.batch: must be of dict type; ..."
    ot_status status; // OT_ERR_NO_MEMORY: some are missing
} ot__violations;
ot_status ot__violations_init(ot__violations *v);
void ot__violations_deinit(ot__violations *v);
// One level down, to the member or the element `name`, which is borrowed; and up again.
void ot__violations_enter(ot__violations *v, const char *name);
void ot__violations_enter_index(ot__violations *v, size_t index);
void ot__violations_leave(ot__violations *v);
// Of where we are. `hint` goes into the text alone: "; did you mean 'batch'?".
void ot__violate(ot__violations *v, const char *hint, const char *format, ...) OT_PRINTF(3, 4);
// Levels down to "mixed_precision.loss_scaler"; up again to the depth that it returns.
int ot__violations_enter_path(ot__violations *v, const char *path);
void ot__violations_leave_to(ot__violations *v, int depth);
// {"mixed_precision":[{"enabled":["must be of boolean type"]}]}
void ot__violations_write(const ot__violations *v, ot__buf *out);
// OT_ERR_INVALID with the text, "`what`: 2 violations: ...", when there are any.
ot_status ot__violations_status(const ot__violations *v, const char *what);

// ---- JSON in: what is wrong goes to `v`; memory is the arena's (options_read.c) ----

typedef struct ot__reader {
    ot__arena *arena; // of what is read
    ot__violations *v;
    double lr;        // of the optimizer
    ot_status status; // OT_ERR_NO_MEMORY: something is missing
} ot__reader;
void ot__options_from_json(ot__reader *r, const struct json_t *json, ot_trainer_options *options);
// description.c; what it read is checked too.
void ot__description_from_json(ot__reader *r, const struct json_t *json,
                               ot_model_description *description);
// optimizer_json.c; what it read is checked too.
void ot__optimizer_from_json(ot__reader *r, const struct json_t *json,
                             ot_optimizer_options *optimizer);
const ot_schedule *ot__schedule_from_json(ot__reader *r,
                                          const struct json_t *json); // schedule_json.c
ot_loss_scaler *ot__scaler_from_json(ot__reader *r, const struct json_t *json);
// Parts: where the value is none of that type they violate, and return false.
bool ot__reader_object(ot__reader *r, const struct json_t *json);
bool ot__reader_list(ot__reader *r, const struct json_t *json);
bool ot__reader_text(ot__reader *r, const struct json_t *json, const char **text);
bool ot__reader_int(ot__reader *r, const struct json_t *json, int64_t *value);
bool ot__reader_number(ot__reader *r, const struct json_t *json, double *value);
bool ot__reader_bool(ot__reader *r, const struct json_t *json, int *value);
bool ot__reader_names(ot__reader *r, const struct json_t *json, const char *const **names, int *n);
void *ot__reader_alloc(ot__reader *r, size_t n_bytes); // NULL: out of memory
// "unknown field" of where we are, with the name that may have been meant.
void ot__unknown_field(ot__reader *r, ot__names *names);

// ---- checks of structs, from C or JSON ----

// Limits, and the rules between members that need no model (options_check.c).
void ot__options_violations(ot__violations *v, const ot_trainer_options *options);
// What a caller gave (NULL: the defaults): OT_ERR_INVALID with all violations, OT_ERR_UNSUPPORTED
// naming all options that are refused.
ot_status ot__trainer_options_check(const ot_trainer_options *given, ot_trainer_options *own);
// And a warning for each that has no effect.
ot_status ot__trainer_options_take(const ot_trainer_options *given, ot_trainer_options *own);
ot_status ot__model_description_take(const ot_model_description *given, ot_model_description *own);
// The element type of steps: that of `mixed_precision` or `precision`; and whether losses are
// scaled (trainer_scaler.c).
ot_precision ot__options_precision(const ot_trainer_options *options);
bool ot__options_scale(const ot_trainer_options *options);

// ---- JSON out (options_write.c) ----

typedef enum ot__options_style {
    OT_OPTIONS_EFFECTIVE, // what counts, with our own options
    OT_OPTIONS_FILLED,    // the reference's tree with its defaults; ours only where they are set
} ot__options_style;
void ot__options_write_json(ot__buf *out, const char *name, const ot_trainer_options *options,
                            ot__options_style style);
void ot__option_write_json(ot__buf *out, const char *name, const ot__option *option,
                           const ot_trainer_options *options);
void ot__description_write_json(ot__buf *out, const char *name,
                                const ot_model_description *description);
void ot__optimizer_write_json(ot__buf *out, const char *name,
                              const ot_optimizer_options *optimizer);
void ot__schedule_write_json(ot__buf *out, const char *name, const ot_schedule *schedule);
void ot__scaler_write_json(ot__buf *out, const char *name, const ot_loss_scaler *scaler);

#endif
