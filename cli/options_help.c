// SPDX-License-Identifier: Apache-2.0
// Help and manual page of a command, from its tables.
#include <stdlib.h>
#include <string.h>

#include "options.h"

enum { HELP_COLUMN = 30, HELP_WIDTH = 100, MAX_HELP = 1024 };

// ---- help ----

static const struct {
    int code;
    const char *meaning;
} exits[] = {
    {EXIT_SUCCESS, "done"},
    {EXIT_FAILED, "failed: a message on standard error says why"},
    {EXIT_USAGE, "the command line is wrong by itself; nothing was opened"},
    {EXIT_INTERRUPTED, "stopped by SIGINT, SIGTERM or SIGHUP, with the state saved as far as the "
                       "options say where"},
};
enum { N_EXITS = sizeof(exits) / sizeof(exits[0]), EXIT_COLUMN = 8 };

// Text in lines of at most HELP_WIDTH, the first continuing a line that stands at `column`.
static void wrap(FILE *out, const char *text, int column)
{
    int at = column;

    while (*text) {
        int length = (int)strcspn(text, " ");
        if (at > column && at + 1 + length > HELP_WIDTH) {
            fprintf(out, "\n%*s", column, "");
            at = column;
        }
        if (at > column)
            at += fprintf(out, " ");
        at += fprintf(out, "%.*s", length, text);
        text += length;
        text += strspn(text, " ");
    }
}

static void describe(const option_spec *spec, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "%s", spec->help);

    for (int i = 0; spec->choices && spec->choices[i] && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : ": ", spec->choices[i]);
    if (spec->fallback && n < size)
        snprintf(text + n, size - n, " (default: %s)", spec->fallback);
}

void command_help(const command *c, FILE *out)
{
    char text[MAX_HELP];

    fprintf(out, "onnxtrain %s %s [OPTION]...\n\n", c->name, c->arguments);
    wrap(out, c->description, 0);
    fprintf(out, "\n");
    for (int t = 0; t < MAX_TABLES && c->tables[t].specs; t++)
        for (const option_spec *spec = c->tables[t].specs; !option_is_end(spec); spec++) {
            int column;
            if (!spec->name) {
                fprintf(out, "\n%s\n", spec->help);
                continue;
            }
            column = fprintf(out, "  --%s%s%s", spec->name, spec->argument ? " " : "",
                             spec->argument ? spec->argument : "");
            if (column >= HELP_COLUMN)
                fprintf(out, "\n%*s", HELP_COLUMN, "");
            else
                fprintf(out, "%*s", HELP_COLUMN - column, "");
            describe(spec, text, sizeof(text));
            wrap(out, text, HELP_COLUMN);
            fprintf(out, "\n");
        }
    fprintf(out, "\nExample\n  %s\n\nExit status\n", c->example);
    for (int i = 0; i < N_EXITS; i++) {
        const int column = fprintf(out, "  %-*d", EXIT_COLUMN - 2, exits[i].code);
        wrap(out, exits[i].meaning, column);
        fprintf(out, "\n");
    }
}

// ---- man page ----

static void roff(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '-' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
}

void command_man(const command *c, FILE *out)
{
    char text[MAX_HELP];

    fprintf(out, ".TH ONNXTRAIN-%s 1\n.SH NAME\nonnxtrain\\-%s \\- ", c->name, c->name);
    roff(out, c->summary);
    fprintf(out, "\n.SH SYNOPSIS\n.B onnxtrain %s\n%s [OPTION]...\n.SH DESCRIPTION\n", c->name,
            c->arguments);
    roff(out, c->description);
    fprintf(out, "\n.SH OPTIONS\n");
    for (int t = 0; t < MAX_TABLES && c->tables[t].specs; t++)
        for (const option_spec *spec = c->tables[t].specs; !option_is_end(spec); spec++) {
            if (!spec->name) {
                fprintf(out, ".SS ");
                roff(out, spec->help);
                fprintf(out, "\n");
                continue;
            }
            fprintf(out, ".TP\n.B \\-\\-");
            roff(out, spec->name);
            if (spec->argument)
                fprintf(out, " \\fI%s\\fR", spec->argument);
            fprintf(out, "\n");
            describe(spec, text, sizeof(text));
            roff(out, text);
            fprintf(out, "\n");
        }
    fprintf(out, ".SH EXAMPLE\n.nf\n");
    roff(out, c->example);
    fprintf(out, "\n.fi\n.SH EXIT STATUS\n");
    for (int i = 0; i < N_EXITS; i++)
        fprintf(out, ".TP\n.B %d\n%s\n", exits[i].code, exits[i].meaning);
}
