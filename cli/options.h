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

bool option_is_end(const option_spec *spec); // of a table

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
    bool may_be_more;        // and these, which end with NULL
    bool is_file_enough;     // or fewer, which are NULL then: `check` knows whether that is right
    const char *description; // a paragraph
    const char *example;
    option_table tables[MAX_TABLES];
    size_t values_size;
    // What the options alone show to be wrong: EXIT_SUCCESS, or EXIT_USAGE after a message. Nothing
    // is opened or looked up before. NULL: nothing is.
    int (*check)(const void *values, const char *const *arguments);
    // For a command line that is wrong: other processes learn of it. With its exit code, and what
    // is said is held until then; NULL: there are no others.
    int (*refused)(const void *values, int code);
    // From here on nothing ends with EXIT_USAGE.
    int (*run)(const void *values, const char *const *arguments);
} command;

// Parses, runs, frees; returns the exit code. Defaults come from the tables.
int command_main(const command *c, int argc, char **argv);
bool option_parse_int(const char *text, int64_t *out); // the whole text, without overflow
bool option_is_given(const char *name);                // of the command that runs
int report_arguments(const command *c, int n);         // got `n`; returns EXIT_USAGE

// Options of the command that runs by position, as a file has them; a flag is true or false.
enum { OPTION_WHY_MAX = 512 };
int option_find(const char *name); // -1: there is none
// `at` receives where the value is; NULL behind the last.
const option_spec *option_at(int index, const void **at);
// What is wrong with a value: "'x' is not a number".
bool option_check(int index, const char *text, char why[OPTION_WHY_MAX]);
bool option_is_on_line(int index); // given there
// A value that option_check() takes; of a list one more. It counts as given. False: out of memory.
bool option_set(int index, const char *text);
const char *option_nearest(const char *name); // that may be meant; NULL: none
// The first option of a table that was given and is not among `except` (ended by NULL); NULL: none.
const char *option_given(const option_spec *specs, const char *const *except);
void command_help(const command *c, FILE *out);
void command_man(const command *c, FILE *out);

#endif
