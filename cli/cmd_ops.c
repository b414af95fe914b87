// SPDX-License-Identifier: Apache-2.0
// onnxtrain ops: the operators that models may have, and what the tests have measured of each.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "onnxtrain/onnxtrain.h"
#include "op_libraries.h"
#include "report.h"

typedef struct ops_values {
    text_list op_libraries;
    bool json;
} ops_values;

#define AT(member) offsetof(ops_values, member)

static const option_spec ops_table[] = {
    {.help = "Operators"},
    OP_LIBRARY_OPTION(AT(op_libraries)),
    {.help = "Output"},
    {"json", OPTION_FLAG, AT(json), NULL, "print one JSON array", NULL, NULL, 0},
    {0},
};

enum { N_COLUMNS = 8, CELL_MAX = 200 };
static const char *const titles[N_COLUMNS] = {"operator", "opsets", "gradient", "kernels",
                                              "error",    "cases",  "tests",    "types"};

static const char *text_at(const json_t *op, const char *key)
{
    return json_string_value(json_object_get(op, key));
}

// "1, 6"; of a single text, that.
static void list_text(const json_t *list, char text[CELL_MAX])
{
    size_t used = 0, i;
    json_t *item;

    text[0] = '\0';
    if (json_is_string(list))
        snprintf(text, CELL_MAX, "%s", json_string_value(list));
    json_array_foreach(list, i, item)
    {
        const char *comma = i > 0 ? ", " : "";

        if (used >= CELL_MAX)
            break;
        used +=
            (size_t)(json_is_integer(item) ? snprintf(text + used, CELL_MAX - used, "%s%lld", comma,
                                                      (long long)json_integer_value(item))
                                           : snprintf(text + used, CELL_MAX - used, "%s%s", comma,
                                                      json_string_value(item)));
    }
}

static void number_text(const json_t *number, char text[CELL_MAX])
{
    text[0] = '\0';
    if (json_is_integer(number))
        snprintf(text, CELL_MAX, "%lld", (long long)json_integer_value(number));
    else if (json_is_real(number) && json_real_value(number) == 0)
        snprintf(text, CELL_MAX, "0");
    else if (json_is_real(number))
        snprintf(text, CELL_MAX, "%.1e", json_real_value(number));
}

static void fill_row(const json_t *op, char cells[N_COLUMNS][CELL_MAX])
{
    snprintf(cells[0], CELL_MAX, "%s%s", text_at(op, "name"),
             json_is_true(json_object_get(op, "internal")) ? " (internal)" : "");
    list_text(json_object_get(op, "opsets"), cells[1]);
    list_text(json_object_get(op, "gradient"), cells[2]);
    list_text(json_object_get(op, "kernels"), cells[3]);
    number_text(json_object_get(op, "worst_error"), cells[4]);
    number_text(json_object_get(op, "cases"), cells[5]);
    number_text(json_object_get(op, "node_tests"), cells[6]);
    snprintf(cells[7], CELL_MAX, "%s", text_at(op, "types"));
}

static bool is_of(const json_t *op, const char *domain)
{
    return strcmp(text_at(op, "domain"), domain) == 0;
}

static void print_domain(const json_t *ops, const char *domain)
{
    char cells[N_COLUMNS][CELL_MAX];
    int width[N_COLUMNS];
    json_t *op;
    size_t i;

    for (int c = 0; c < N_COLUMNS; c++)
        width[c] = (int)strlen(titles[c]);
    json_array_foreach(ops, i, op)
    {
        fill_row(op, cells);
        for (int c = 0; is_of(op, domain) && c < N_COLUMNS; c++)
            width[c] = (int)strlen(cells[c]) > width[c] ? (int)strlen(cells[c]) : width[c];
    }
    printf("%s\n", domain);
    for (int c = 0; c < N_COLUMNS; c++)
        printf("  %-*s", c + 1 < N_COLUMNS ? width[c] : 0, titles[c]);
    printf("\n");
    json_array_foreach(ops, i, op)
    {
        if (!is_of(op, domain))
            continue;
        fill_row(op, cells);
        for (int c = 0; c < N_COLUMNS; c++)
            printf("  %-*s", c + 1 < N_COLUMNS ? width[c] : 0, cells[c]);
        printf("\n");
    }
}

static int compare_ops(const void *left, const void *right)
{
    const json_t *const *a = left, *const *b = right;
    const int order = strcmp(text_at(*a, "domain"), text_at(*b, "domain"));

    return order != 0 ? order : strcmp(text_at(*a, "name"), text_at(*b, "name"));
}

// By domain and name; `names` NULL: all.
static json_t *sort_ops(const json_t *all, const char *const *names)
{
    const size_t n = json_array_size(all);
    json_t **ops = calloc(n + 1, sizeof(json_t *)), *sorted = json_array();

    for (size_t i = 0; ops && i < n; i++)
        ops[i] = json_array_get(all, i);
    if (ops)
        qsort(ops, n, sizeof(json_t *), compare_ops);
    for (size_t i = 0; ops && i < n; i++) {
        bool is_wanted = names[0] == NULL;

        for (int k = 0; names[k]; k++)
            is_wanted = is_wanted || strcmp(names[k], text_at(ops[i], "name")) == 0;
        if (is_wanted)
            json_array_append(sorted, ops[i]);
    }
    free(ops);
    return sorted;
}

// Operators that are asked for, and are not there.
static int check_names(const json_t *all, const char *const *names)
{
    const size_t n = json_array_size(all);
    const char **known = calloc(n + 1, sizeof(*known));
    int code = known ? EXIT_SUCCESS : report_text("out of memory");

    for (size_t i = 0; known && i < n; i++)
        known[i] = text_at(json_array_get(all, i), "name");
    for (int k = 0; code == EXIT_SUCCESS && names[k]; k++) {
        const char *nearest = ot_nearest_name(names[k], known, (int)n);
        bool is_known = false;

        for (size_t i = 0; i < n; i++)
            is_known = is_known || strcmp(known[i], names[k]) == 0;
        if (!is_known)
            code = report_text("there is no operator '%s'%s%s%s", names[k],
                               nearest ? "; did you mean '" : "", nearest ? nearest : "",
                               nearest ? "'?" : "");
    }
    free(known);
    return code;
}

static void print_ops(const json_t *ops)
{
    const char *domain = "";
    json_t *op;
    size_t i;

    json_array_foreach(ops, i, op)
    {
        if (is_of(op, domain))
            continue;
        if (i > 0)
            printf("\n");
        domain = text_at(op, "domain");
        print_domain(ops, domain);
    }
}

static int ops_run(const void *values, const char *const *arguments)
{
    const ops_values *v = values;
    char *text = NULL;
    json_t *all, *ops;
    int code = load_op_libraries(&v->op_libraries);

    if (code != EXIT_SUCCESS)
        return code;
    if (ot_operators_json(&text) != OT_OK)
        return report_error();
    all = json_loads(text, 0, NULL);
    ot_string_free(text);
    if (!all)
        return report_text("out of memory");
    code = check_names(all, arguments);
    if (code == EXIT_SUCCESS) {
        ops = sort_ops(all, arguments);
        if (v->json) {
            write_json(stdout, ops, JSON_INDENT(1) | JSON_REAL_PRECISION(2));
        } else {
            print_ops(ops);
            json_decref(ops);
        }
    }
    json_decref(all);
    return code;
}

const command command_ops = {
    .name = "ops",
    .summary = "list the operators, their gradients and kernels, and how exact they are",
    .arguments = "[OPERATOR...]",
    .n_arguments = 0,
    .may_be_more = true,
    .description =
        "Lists the operators that models may have, or those named, with their opsets, whether a "
        "gradient passes them (or which inputs have one), kernels, element types, and what the "
        "tests have measured: the worst error of f32 against f64, over the largest element of a "
        "result, in so many cases, and how many of ONNX's own tests pass.",
    .example = "onnxtrain ops Conv --json",
    .tables = {{ops_table, 0}},
    .values_size = sizeof(ops_values),
    .run = ops_run,
};
