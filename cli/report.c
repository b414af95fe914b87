// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

static const char prefix[] = "onnxtrain: ";
static FILE *kept; // NULL: messages are not kept
static char *kept_text;
static size_t kept_length;

static FILE *message_stream(void)
{
    return kept ? kept : stderr;
}

static void write_line(const char *format, va_list args)
{
    FILE *out = message_stream();

    fputs(prefix, out);
    vfprintf(out, format, args);
    fputc('\n', out);
}

// Without memory for it, all is told at once.
void report_hold(void)
{
    if (!kept)
        kept = open_memstream(&kept_text, &kept_length);
}

static void drop(void)
{
    if (kept) {
        fclose(kept);
        free(kept_text);
        kept = NULL;
    }
}

const char *report_held(void)
{
    return kept && fflush(kept) == 0 ? kept_text : "";
}

void report_release(void)
{
    fputs(report_held(), stderr);
    drop();
}

void report_take(char *text, size_t size)
{
    const char *from = report_held();

    if (strncmp(from, prefix, sizeof(prefix) - 1) == 0)
        from += sizeof(prefix) - 1;
    snprintf(text, size, "%s", from);
    if (kept) {
        drop();
        report_hold();
    }
}

void report_told(const char *text, int rank)
{
    if (!*text)
        return;
    fputs(prefix, stderr);
    if (rank >= 0)
        fprintf(stderr, "rank %d: ", rank);
    fputs(text, stderr);
}

static void (*make_room)(const void *context);

static void tell_warning(void *context, ot_log_level level, const char *line)
{
    if (level != OT_LOG_WARNING)
        return;
    if (make_room)
        make_room(context);
    fprintf(stderr, "%snote: %s\n", prefix, line);
}

void report_warnings(void (*clear)(const void *context), void *context)
{
    make_room = clear;
    if (!getenv("OT_LOG"))
        ot_set_log(tell_warning, context);
}

void report_no_warnings(void)
{
    ot_set_log(NULL, NULL);
}

int report_error(void)
{
    return report_text("%s", ot_error_message());
}

int report_text(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line(format, args);
    va_end(args);
    return EXIT_FAILED;
}

int report_usage(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line(format, args);
    va_end(args);
    return EXIT_USAGE;
}

void report_notes(const ot_artifacts *artifacts)
{
    for (int i = 0; i < ot_artifacts_note_count(artifacts); i++)
        report_text("note: %s", ot_artifacts_note(artifacts, i, NULL));
}

int report_unknown(const char *const *names, int n_names, const char *name, const char *format, ...)
{
    const char *nearest = ot_nearest_name(name, names, n_names);
    FILE *out = message_stream();
    va_list args;

    fputs(prefix, out);
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    for (int i = 0; i < n_names; i++)
        fprintf(out, "%s%s", i == 0 ? " " : ", ", names[i]);
    if (nearest)
        fprintf(out, "; did you mean '%s'?", nearest);
    fputc('\n', out);
    return EXIT_USAGE;
}

json_t *text_json(const char *text)
{
    json_t *string = json_string(text);
    char *copy = string ? NULL : strdup(text);

    for (char *p = copy; p && *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    if (copy)
        string = json_string(copy);
    free(copy);
    return string;
}

json_t *shape_json(const ot_shape *shape)
{
    json_t *dims = json_array();

    for (int k = 0; k < shape->ndim; k++)
        json_array_append_new(dims, json_integer(shape->dim[k]));
    return dims;
}

void write_json(FILE *out, json_t *object, size_t flags)
{
    json_dumpf(object, out, flags);
    fputc('\n', out);
    json_decref(object);
}

const char *bytes_text(size_t n_bytes, char *text, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)n_bytes;
    int unit = 0;

    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    snprintf(text, size, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}
