// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { MAX_OPTIONS = 128 };

bool option_is_end(const option_spec *spec)
{
    return !spec->name && !spec->help;
}

// ---- parsing ----

static bool parse_real(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*out);
}

static bool parse_int(const char *text, int64_t *out, bool with_unit)
{
    char *end;
    int shift = 0;

    errno = 0;
    *out = strtoll(text, &end, 10);
    if (end == text || errno != 0)
        return false;
    if (with_unit && *end && strchr("KMG", *end))
        shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30, end++;
    return *end == '\0' && !__builtin_mul_overflow(*out, INT64_C(1) << shift, out);
}

bool option_parse_int(const char *text, int64_t *out)
{
    return parse_int(text, out, false);
}

static bool add_item(text_list *list, const char *text)
{
    const char **grown = realloc(list->items, (size_t)(list->count + 1) * sizeof(*grown));

    if (!grown)
        return false;
    list->items = grown;
    list->items[list->count++] = text;
    return true;
}

static int choice_of(const option_spec *spec, const char *text)
{
    for (int i = 0; spec->choices[i]; i++)
        if (strcmp(spec->choices[i], text) == 0)
            return i;
    return -1;
}

// "'x' is not a whole number of at least 1"
static void describe_refusal(const option_spec *spec, const char *text, char why[OPTION_WHY_MAX])
{
    const char *kind = spec->kind == OPTION_REAL || spec->kind == OPTION_PART ? "" : "whole ";
    const char *nearest;
    char least[64] = "";
    int n = 0, at;

    if (spec->kind == OPTION_FLAG) {
        snprintf(why, OPTION_WHY_MAX, "'%.64s' is neither true nor false", text);
        return;
    }
    if (spec->kind != OPTION_CHOICE) {
        if (spec->minimum > ANY_NUMBER)
            snprintf(least, sizeof(least), " of at least %g", spec->minimum);
        snprintf(why, OPTION_WHY_MAX, "'%.64s' is not a %snumber%s%s", text, kind, least,
                 spec->kind == OPTION_BYTES  ? ", perhaps with K, M or G, or none"
                 : spec->kind == OPTION_PART ? " and below 1"
                                             : "");
        return;
    }
    at = snprintf(why, OPTION_WHY_MAX, "'%.64s' is not one of", text);
    for (; spec->choices[n]; n++)
        at += snprintf(why + at, OPTION_WHY_MAX - (size_t)at, "%s%s", n ? ", " : " ",
                       spec->choices[n]);
    nearest = ot_nearest_name(text, spec->choices, n);
    if (nearest)
        snprintf(why + at, OPTION_WHY_MAX - (size_t)at, "; did you mean '%s'?", nearest);
}

// Store one value; `text` NULL: of a flag that was given. False: `why` says what is wrong.
static bool read_value(const option_spec *spec, void *at, const char *text,
                       char why[OPTION_WHY_MAX])
{
    int64_t whole = 0;
    double real = 0;
    int choice;

    switch (spec->kind) {
    case OPTION_FLAG:
        if (text && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            break;
        *(bool *)at = !text || strcmp(text, "true") == 0;
        return true;
    case OPTION_TEXT:
        *(const char **)at = text;
        return true;
    case OPTION_LIST:
        if (add_item(at, text))
            return true;
        snprintf(why, OPTION_WHY_MAX, "out of memory");
        return false;
    case OPTION_BYTES:
        if (strcmp(text, "none") == 0) {
            *(int64_t *)at = INT64_MAX;
            return true;
        }
        // fall through
    case OPTION_INT:
        if (!parse_int(text, &whole, spec->kind == OPTION_BYTES) || (double)whole < spec->minimum)
            break;
        *(int64_t *)at = whole;
        return true;
    case OPTION_REAL:
    case OPTION_PART:
        if (!parse_real(text, &real) || real < spec->minimum ||
            (spec->kind == OPTION_PART && real >= 1))
            break;
        *(double *)at = real;
        return true;
    case OPTION_CHOICE:
        choice = choice_of(spec, text);
        if (choice < 0)
            break;
        *(int *)at = choice;
        return true;
    }
    describe_refusal(spec, text, why);
    return false;
}

typedef struct parser {
    struct option longs[MAX_OPTIONS + 2];
    const option_spec *specs[MAX_OPTIONS];
    char *base[MAX_OPTIONS];                             // the values the spec's offset counts from
    bool is_on_line[MAX_OPTIONS], is_given[MAX_OPTIONS]; // on the command line; there, or set
    int count;
} parser;

enum { HELP_CODE = 1000, FIRST_CODE = 2000 }; // beyond all letters

static parser *current; // of the one command this process runs

static void *value_at(const parser *p, int i)
{
    return p->base[i] + p->specs[i]->offset;
}

int option_find(const char *name)
{
    for (int i = 0; i < current->count; i++)
        if (strcmp(current->specs[i]->name, name) == 0)
            return i;
    return -1;
}

bool option_is_given(const char *name)
{
    const int i = option_find(name);

    return i >= 0 && current->is_given[i];
}

// ---- options that a file has ----

const option_spec *option_at(int index, const void **at)
{
    if (index < 0 || index >= current->count)
        return NULL;
    *at = value_at(current, index);
    return current->specs[index];
}

bool option_check(int index, const char *text, char why[OPTION_WHY_MAX])
{
    union {
        bool is;
        const char *text;
        int64_t whole;
        double real;
        int choice;
    } value;
    const option_spec *spec = current->specs[index];

    return spec->kind == OPTION_LIST || read_value(spec, &value, text, why);
}

bool option_is_on_line(int index)
{
    return current->is_on_line[index];
}

bool option_set(int index, const char *text)
{
    char why[OPTION_WHY_MAX];

    current->is_given[index] = true;
    return read_value(current->specs[index], value_at(current, index), text, why);
}

const char *option_nearest(const char *name)
{
    const char *names[MAX_OPTIONS];

    for (int i = 0; i < current->count; i++)
        names[i] = current->specs[i]->name;
    return ot_nearest_name(name, names, current->count);
}

// ---- the command line ----

const char *option_given(const option_spec *specs, const char *const *except)
{
    for (int i = 0; i < current->count; i++) {
        const option_spec *spec = specs;
        bool is_excepted = false;
        while (!option_is_end(spec) && spec != current->specs[i])
            spec++;
        for (int k = 0; except[k]; k++)
            is_excepted = is_excepted || strcmp(except[k], current->specs[i]->name) == 0;
        if (current->is_given[i] && !option_is_end(spec) && !is_excepted)
            return spec->name;
    }
    return NULL;
}

static void parser_init(parser *p, const command *c, char *values)
{
    char why[OPTION_WHY_MAX];

    memset(p, 0, sizeof(*p));
    for (int t = 0; t < MAX_TABLES && c->tables[t].specs; t++)
        for (const option_spec *spec = c->tables[t].specs; !option_is_end(spec); spec++) {
            if (!spec->name || p->count == MAX_OPTIONS)
                continue;
            p->specs[p->count] = spec;
            p->base[p->count] = values + c->tables[t].base;
            p->longs[p->count] = (struct option){
                spec->name, spec->kind == OPTION_FLAG ? no_argument : required_argument, NULL,
                FIRST_CODE + p->count};
            p->count++;
            if (spec->fallback && spec->kind != OPTION_FLAG && spec->kind != OPTION_LIST &&
                spec->kind != OPTION_TEXT)
                (void)read_value(spec, value_at(p, p->count - 1), spec->fallback, why);
        }
    p->longs[p->count] = (struct option){"help", no_argument, NULL, HELP_CODE};
}

static void free_lists(const parser *p)
{
    for (int i = 0; i < p->count; i++)
        if (p->specs[i]->kind == OPTION_LIST)
            free(((text_list *)value_at(p, i))->items);
}

// The option whose description begins with the name: --learning-rate for --lr.
static const char *option_described(const parser *p, const char *name)
{
    const size_t length = strlen(name);

    for (int i = 0; i < p->count; i++) {
        const char *help = p->specs[i]->help;
        size_t k = 0;
        while (k < length && help[k] &&
               (help[k] == name[k] || (help[k] == ' ' && strchr("-_", name[k]))))
            k++;
        if (length > 1 && k == length && (help[k] == '\0' || help[k] == ' ' || help[k] == ','))
            return p->specs[i]->name;
    }
    return NULL;
}

// An option that getopt does not know: misspelt, the beginning of several, or a flag with a value.
static int refuse_option(const command *c, const parser *p, const char *given)
{
    enum { MOST_LETTERS = 64, MOST_SHOWN = 160 };
    const char *name = given + strspn(given, "-"), *names[MAX_OPTIONS], *nearest;
    const size_t length = strcspn(name, "=");
    char text[MOST_LETTERS], meant[MOST_SHOWN] = "";
    int n_begun = 0;

    snprintf(text, sizeof(text), "%.*s", (int)length, name);
    for (int i = 0; i < p->count; i++) {
        names[i] = p->specs[i]->name;
        if (strcmp(names[i], text) == 0)
            return report_usage("--%s takes no value, got '%s'", text, name + length + 1);
        if (strncmp(names[i], text, length) != 0)
            continue;
        if (strlen(meant) + strlen(names[i]) + sizeof(", --") <= sizeof(meant))
            sprintf(meant + strlen(meant), "%s--%s", n_begun ? ", " : "", names[i]);
        n_begun++;
    }
    if (length > 0 && n_begun > 1)
        return report_usage("option '%.*s' is unclear: %s", (int)(name - given + (int)length),
                            given, meant);
    nearest = ot_nearest_name(text, names, p->count);
    if (!nearest)
        nearest = option_described(p, text);
    return report_usage("unknown option '%.*s'; %s%s%s`onnxtrain %s --help` lists the options",
                        (int)(name - given + (int)length), given, nearest ? "did you mean '--" : "",
                        nearest ? nearest : "", nearest ? "'? " : "", c->name);
}

int report_arguments(const command *c, int n)
{
    return report_usage("%s takes %s, got %d argument%s; `onnxtrain %s --help` tells more", c->name,
                        c->arguments, n, n == 1 ? "" : "s", c->name);
}

// The exit code, or -1 to go on.
static int parse(const command *c, parser *p, int argc, char **argv)
{
    char why[OPTION_WHY_MAX];
    int code;

    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, ":h", p->longs, NULL)) != -1) {
        if (code == HELP_CODE || code == 'h') {
            command_help(c, stdout);
            return EXIT_SUCCESS;
        }
        if (code == ':')
            return report_usage("a value is missing after '%s'; `onnxtrain %s --help` lists the "
                                "options",
                                argv[optind - 1], c->name);
        if (code == '?' && optopt != 0 && optopt < FIRST_CODE) {
            const char letter[] = {'-', (char)optopt, '\0'};
            return refuse_option(c, p, letter);
        }
        if (code == '?')
            return refuse_option(c, p, argv[optind - 1]);
        code -= FIRST_CODE;
        if (!read_value(p->specs[code], value_at(p, code), optarg, why))
            return report_usage("--%s: %s", p->specs[code]->name, why);
        p->is_on_line[code] = p->is_given[code] = true;
    }
    if ((argc - optind > c->n_arguments && !c->may_be_more) ||
        (argc - optind < c->n_arguments && !c->is_file_enough))
        return report_arguments(c, argc - optind);
    for (int i = optind; i < argc; i++)
        if (!*argv[i])
            return report_usage("%s: the name is empty", c->arguments);
    return -1;
}

static int execute(const command *c, parser *p, const char *values, int argc, char **argv)
{
    int code;

    if (c->refused)
        report_hold();
    code = parse(c, p, argc, argv);
    if (code < 0) {
        const char *const *arguments = (const char *const *)argv + optind;

        code = c->check ? c->check(values, arguments) : EXIT_SUCCESS;
        if (code == EXIT_SUCCESS)
            return c->run(values, arguments);
    }
    return code != EXIT_SUCCESS && c->refused ? c->refused(values, code) : code;
}

int command_main(const command *c, int argc, char **argv)
{
    char *values = calloc(1, c->values_size);
    parser p;
    int code;

    if (!values)
        return report_text("out of memory");
    parser_init(&p, c, values);
    current = &p;
    code = execute(c, &p, values, argc, argv);
    report_release();
    current = NULL;
    free_lists(&p);
    free(values);
    if (fflush(stdout) != 0 && code == EXIT_SUCCESS)
        return report_text("standard output cannot be written");
    return code;
}
