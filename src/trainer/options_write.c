// SPDX-License-Identifier: Apache-2.0
// Options as JSON, in the order of the table.
#include <string.h>

#include "trainer/options.h"

static void write_option_flags(ot__buf *out, const char *name, const ot__option *option, int flags)
{
    char text[64] = "";
    size_t n = 0;

    if (flags < 0) {
        ot__json_raw(out, name, "null");
        return;
    }
    for (int i = 1; option->choices[i]; i++)
        if (flags >> (i - 1) & 1)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n > 0 ? "|" : "",
                                  option->choices[i]);
    ot__json_string(out, name, n > 0 ? text : option->choices[0]);
}

static void write_option_names(ot__buf *out, const char *name, const char *const *names, int n)
{
    ot__json_open(out, name, '[');
    for (int i = 0; i < n; i++)
        ot__json_string(out, NULL, names[i]);
    ot__json_close(out, ']');
}

static void write_option_text(ot__buf *out, const char *name, const ot__option *option,
                              const char *text)
{
    // What is not given, of a text that has choices, is the first of them.
    ot__json_string(out, name, text ? text : option->choices ? option->choices[0] : "");
}

// Functions have no JSON; "custom" says that there is one.
static void write_option_lr(ot__buf *out, const char *name, const ot_trainer_options *options)
{
    if (options->lr_schedule)
        ot__schedule_write_json(out, name, options->lr_schedule);
    else
        ot__json_raw(out, name, options->lr_function ? "{\"type\":\"custom\"}" : "null");
}

void ot__option_write_json(ot__buf *out, const char *name, const ot__option *option,
                           const ot_trainer_options *options)
{
    const void *at = (const char *)options + option->offset;

    switch (option->kind) {
    case OT_OPTION_BOOL:
        ot__json_bool(out, name, *(const int *)at != 0);
        break;
    case OT_OPTION_INT:
        ot__json_int(out, name, *(const int64_t *)at);
        break;
    case OT_OPTION_BYTES:
        if (*(const size_t *)at == OT_MEMORY_UNLIMITED)
            ot__json_string(out, name, "unlimited");
        else
            ot__json_int(out, name, (int64_t) * (const size_t *)at);
        break;
    case OT_OPTION_DECAY:
        ot__json_float(out, name, *(const double *)at);
        break;
    case OT_OPTION_CHOICE:
        ot__json_string(out, name, option->choices[*(const int *)at]);
        break;
    case OT_OPTION_FLAGS:
        write_option_flags(out, name, option, *(const int *)at);
        break;
    case OT_OPTION_TEXT:
        write_option_text(out, name, option, *(const char *const *)at);
        break;
    case OT_OPTION_NAMES:
        write_option_names(
            out, name, *(const char *const *const *)at,
            *(const int *)(const void *)((const char *)options + ot__option_count_offset(option)));
        break;
    case OT_OPTION_MAP:
    case OT_OPTION_INT_MAP:
    case OT_OPTION_INTS_MAP:
        ot__json_raw(out, name, *(const char *const *)at ? *(const char *const *)at : "{}");
        break;
    case OT_OPTION_LR:
        write_option_lr(out, name, options);
        break;
    case OT_OPTION_SCALER:
        if (options->loss_scaler)
            ot__scaler_write_json(out, name, options->loss_scaler);
        else
            ot__json_raw(out, name, "null");
        break;
    case OT_OPTION_SESSION:
    case OT_OPTION_NONE:
        ot__json_raw(out, name, "null");
        break;
    }
}

// ---- the tree ----

// The sections that two paths have in common: bytes up to and with the last dot.
static size_t common_sections(const char *a, const char *b)
{
    size_t common = 0;

    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == '.')
            common = i + 1;
    return common;
}

// From the section of `before` to that of `path`, of which the first `common` bytes are both's.
static const char *change_section(ot__buf *out, const char *before, const char *path, size_t common)
{
    for (const char *rest = before + common; (rest = strchr(rest, '.')) != NULL; rest++)
        ot__json_close(out, '}');
    for (const char *end; (end = strchr(path + common, '.')) != NULL;
         common = (size_t)(end - path) + 1) {
        char section[64];

        snprintf(section, sizeof section, "%.*s", (int)(end - path - (ptrdiff_t)common),
                 path + common);
        ot__json_open(out, section, '{');
    }
    return path + common;
}

static bool has_ours(const ot_trainer_options *options)
{
    for (const ot__option *o = ot__options; o->path; o++)
        if (ot__option_is_ours(o) && !ot__option_is_default(o, options))
            return true;
    return false;
}

// The precision stands in two members, of which one is enough.
static ot_trainer_options resolved(const ot_trainer_options *options)
{
    ot_trainer_options all = *options;

    if (all.mixed_precision && all.precision == OT_PRECISION_F32)
        all.precision = OT_PRECISION_F16;
    all.mixed_precision = all.precision != OT_PRECISION_F32;
    return all;
}

void ot__options_write_json(ot__buf *out, const char *name, const ot_trainer_options *options,
                            ot__options_style style)
{
    const ot_trainer_options all = resolved(options);
    const bool with_ours = style == OT_OPTIONS_EFFECTIVE || has_ours(options);
    const char *before = "";

    ot__json_open(out, name, '{');
    for (const ot__option *o = ot__options; o->path; o++) {
        const char *member;

        if (ot__option_is_ours(o) && !with_ours)
            continue;
        member = change_section(out, before, o->path, common_sections(before, o->path));
        if (style == OT_OPTIONS_FILLED && o->kind == OT_OPTION_TEXT && o->choices &&
            !*(const char *const *)(const void *)((const char *)&all + o->offset))
            ot__json_raw(out, member, o->fallback);
        else
            ot__option_write_json(out, member, o, &all);
        before = o->path;
    }
    change_section(out, before, "", 0);
    ot__json_close(out, '}');
}
