// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"

enum { LINE_MAX_LENGTH = 2048, LEVEL_OFF = OT_LOG_WARNING + 1 };

static const char *const level_names[] = {"debug", "info", "warning"};
static ot_log_function hook;
static void *hook_context;

// The least level that OT_LOG lets through.
static int wanted_level(void)
{
    static _Atomic int level = -1;
    const char *text;
    int found = atomic_load(&level);

    if (found >= 0)
        return found;
    text = getenv("OT_LOG");
    found = LEVEL_OFF;
    for (int i = 0; text && i < (int)OT_COUNT(level_names); i++)
        if (strcmp(text, level_names[i]) == 0)
            found = i;
    atomic_store(&level, found);
    return found;
}

void ot_set_log(ot_log_function function, void *context)
{
    hook = function;
    hook_context = context;
}

bool ot__log_wants(ot_log_level level)
{
    return hook || (int)level >= wanted_level();
}

static void write_line(ot_log_level level, const char *level_name, const char *format, va_list args)
{
    char line[LINE_MAX_LENGTH];

    if (vsnprintf(line, sizeof(line), format, args) < 0)
        line[0] = '\0';
    ot__text_printable(line);
    if (hook)
        hook(hook_context, level, line);
    else
        fprintf(stderr, "onnxtrain: %s%s%s\n", level_name, level_name[0] ? ": " : "", line);
}

void ot__log(ot_log_level level, const char *format, ...)
{
    va_list args;

    if (!ot__log_wants(level))
        return;
    va_start(args, format);
    write_line(level, level_names[level], format, args);
    va_end(args);
}

void ot__log_asked(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line(OT_LOG_INFO, "", format, args);
    va_end(args);
}

double ot__clock_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
