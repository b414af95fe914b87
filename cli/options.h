// SPDX-License-Identifier: Apache-2.0
// Options of a command: one table from which parsing, --help and the man page come.
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

typedef enum option_kind {
    OPTION_FLAG,   // bool
    OPTION_TEXT,   // const char *
    OPTION_INT,    // int64_t >= minimum
    OPTION_REAL,   // double >= minimum
    OPTION_PART,   // double >= minimum and below 1
    OPTION_BYTES,  // int64_t, with K, M or G behind it; none: INT64_MAX
    OPTION_CHOICE, // int, position in `choices`
    OPTION_LIST,   // text_list, may be given several times
} option_kind;

#define ANY_NUMBER (-1e300) // as a minimum: none

typedef struct text_list {
    const char **items;
    int count;
} text_list;

typedef struct option_spec {
    const char *name; // without the two dashes; NULL: a heading, in `help`
    option_kind kind;
    size_t offset;              // of the member in the command's values
    const char *argument;       // "FILE"; NULL for flags
    const char *help;           // what it does
    const char *fallback;       // the default, as text; NULL: none is stated
    const char *const *choices; // OPTION_CHOICE, ended by NULL
    double minimum;
} option_spec;

enum { MAX_TABLES = 6 };

// A table whose offsets count from `base` in the command's values.
typedef struct option_table {
    const option_spec *specs; // ended by {0}
    size_t base;
} option_table;

typedef struct command {
    const char *name, *summary;
    const char *arguments;   // "MODEL"
    int n_arguments;         // exactly so many
    const char *description; // a paragraph
    const char *example;
    option_table tables[MAX_TABLES];
    size_t values_size;
    // What the options alone show to be wrong: EXIT_SUCCESS, or EXIT_USAGE after a message. Nothing
    // is opened or looked up before. NULL: nothing is.
    int (*check)(const void *values, const char *const *arguments);
    // From here on nothing ends with EXIT_USAGE.
    int (*run)(const void *values, const char *const *arguments);
} command;

// Parses, runs, frees; returns the exit code. Defaults come from the tables.
int command_main(const command *c, int argc, char **argv);
bool option_parse_int(const char *text, int64_t *out); // the whole text, without overflow
bool option_is_given(const char *name);                // of the command that runs
// The first option of a table that was given and is not among `except` (ended by NULL); NULL: none.
const char *option_given(const option_spec *specs, const char *const *except);
void command_help(const command *c, FILE *out);
void command_man(const command *c, FILE *out);

#endif
