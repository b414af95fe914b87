// SPDX-License-Identifier: Apache-2.0
#include "loss_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report.h"

static const struct {
    const char *name;
    ot_loss loss;
} losses[] = {{"cross-entropy", OT_LOSS_CROSS_ENTROPY},
              {"mse", OT_LOSS_MSE},
              {"l1", OT_LOSS_L1},
              {"bce-with-logits", OT_LOSS_BCE_WITH_LOGITS},
              {"none", OT_LOSS_NONE}};
enum { N_LOSSES = sizeof(losses) / sizeof(losses[0]) };

// OT_LOSS_CUSTOM when there is none.
static ot_loss loss_of_name(const char *name, size_t length)
{
    for (int i = 0; i < N_LOSSES; i++)
        if (strlen(losses[i].name) == length && strncmp(losses[i].name, name, length) == 0)
            return losses[i].loss;
    return OT_LOSS_CUSTOM;
}

// ---- the text alone ----

// Behind "WEIGHT*"; a '*' may also belong to the name of a file, which no weight stands before.
static const char *behind_weight(const char *text)
{
    const char *star = strchr(text, '*');
    char *end;

    if (!star)
        return text;
    (void)strtod(text, &end);
    if ((end != text && end == star) ||
        loss_of_name(star + 1, strcspn(star + 1, ":")) != OT_LOSS_CUSTOM)
        return star + 1;
    return text;
}

static int check_weight(const char *text, const char *rest)
{
    const int length = (int)(rest - text) - 1;
    double weight;
    char *end;

    if (rest == text)
        return EXIT_SUCCESS;
    weight = strtod(text, &end);
    if (end == text || end != rest - 1)
        return report_usage("--loss: '%.*s' in '%s' is not a weight", length, text, text);
    if (!isfinite(weight) || weight == 0)
        return report_usage("--loss: '%s' has weight %g, expected a finite one other than 0", text,
                            weight);
    return EXIT_SUCCESS;
}

static int refuse_loss(const char *text, size_t length)
{
    enum { MOST_LETTERS = 64 };
    const char *names[N_LOSSES + 1];
    char name[MOST_LETTERS];

    snprintf(name, sizeof(name), "%.*s", (int)length, text);
    for (int i = 0; i < N_LOSSES; i++)
        names[i] = losses[i].name;
    return report_unknown(names, N_LOSSES, name,
                          "--loss: '%s' is neither a loss nor a model file; losses are", name);
}

static int check_text(const char *text)
{
    const char *rest = behind_weight(text);
    const size_t length = strcspn(rest, ":");
    const char *names = rest[length] ? rest + length + 1 : NULL;

    if (loss_of_name(rest, length) == OT_LOSS_CUSTOM)
        return strchr(rest, '.') ? EXIT_SUCCESS : refuse_loss(rest, length);
    if (names && (*names == '\0' || *names == '=' || names[strlen(names) - 1] == '='))
        return report_usage("--loss: '%s' lacks a name", text);
    return check_weight(text, rest);
}

int loss_strings_check(const text_list *strings)
{
    for (int i = 0; i < strings->count; i++) {
        const int code = check_text(strings->items[i]);

        if (code != EXIT_SUCCESS)
            return code;
        for (int k = 0; k < i; k++)
            if (strcmp(strings->items[k], strings->items[i]) == 0)
                return report_usage("--loss: '%s' is given twice", strings->items[i]);
    }
    return EXIT_SUCCESS;
}

bool loss_strings_name(const text_list *strings, ot_loss loss)
{
    for (int i = 0; i < strings->count; i++) {
        const char *rest = behind_weight(strings->items[i]);

        if (loss_of_name(rest, strcspn(rest, ":")) == loss)
            return true;
    }
    return strings->count == 0 && loss == OT_LOSS_CROSS_ENTROPY;
}

bool loss_text_has_value(const char *text)
{
    const char *rest = behind_weight(text);
    const size_t length = strcspn(rest, ":");

    return loss_of_name(rest, length) != OT_LOSS_CUSTOM && rest[length] == ':';
}

// The name of the input that a term compares with; NULL: a custom loss, whose inputs have their own
// names, or none.
static const char *loss_target(const ot_loss_options *term)
{
    if (term->loss == OT_LOSS_CUSTOM || term->loss == OT_LOSS_NONE)
        return NULL;
    if (term->target)
        return term->target;
    return term->loss == OT_LOSS_CROSS_ENTROPY ? "labels" : "target";
}

// ---- one term ----

static bool is_file(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0;
}

static bool is_value(const ot_model *model, const char *name)
{
    ot_dtype dtype;
    ot_shape shape;

    return ot_model_value_info(model, name, &dtype, &shape) == OT_OK;
}

// The weight before a '*', and the rest of the text.
static int parse_weight(const char *text, double *weight, const char **rest)
{
    const char *star = strchr(text, '*');
    char *end;

    *weight = 1;
    *rest = text;
    if (!star || is_file(text))
        return EXIT_SUCCESS;
    *weight = strtod(text, &end);
    if (end == text || end != star)
        return report_text("--loss: '%.*s' in '%s' is not a weight, and there is no such file",
                           (int)(star - text), text, text);
    if (!isfinite(*weight) || *weight == 0)
        return report_text("--loss: '%s' has weight %g, expected a finite one other than 0", text,
                           *weight);
    *rest = star + 1;
    return EXIT_SUCCESS;
}

// Where the loss ends and ":VALUE" begins. File names may hold colons too.
static size_t loss_length(char *text)
{
    size_t length = strcspn(text, ":");

    if (loss_of_name(text, length) != OT_LOSS_CUSTOM || is_file(text))
        return is_file(text) ? strlen(text) : length;
    for (char *colon = strchr(text, ':'); colon; colon = strchr(colon + 1, ':')) {
        *colon = '\0';
        if (is_file(text))
            length = (size_t)(colon - text);
        *colon = ':';
    }
    return length;
}

// "VALUE" or "VALUE=TARGET"; names of values may hold '='.
static void parse_names(char *text, const ot_model *model, ot_loss_options *term)
{
    char *equals = strrchr(text, '=');

    term->input = text;
    if (!equals || is_value(model, text))
        return;
    *equals = '\0';
    term->target = equals + 1;
}

static int parse_term(char *text, const ot_model *model, ot_loss_options *term, ot_model **custom)
{
    const size_t length = loss_length(text);
    const bool has_names = text[length] == ':';

    text[length] = '\0';
    term->loss = loss_of_name(text, length);
    if (term->loss == OT_LOSS_CUSTOM) {
        if (ot_model_load(text, NULL, custom) != OT_OK)
            return report_error();
        term->custom = *custom;
    }
    if (!has_names)
        return EXIT_SUCCESS;
    parse_names(text + length + 1, model, term);
    if (!*term->input || (term->target && !*term->target))
        return report_text("--loss: '%s:%s%s' lacks a name", text, term->input,
                           term->target ? "=" : "");
    if (term->loss == OT_LOSS_NONE && term->target)
        return report_text("--loss: none compares with nothing, but a target '%s' is named",
                           term->target);
    return EXIT_SUCCESS;
}

// ---- all terms ----

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

// Weights apart, the same term twice: a slip, and never needed.
static int check_twice(const loss_terms *terms, const text_list *strings, const ot_model *model)
{
    const int last = terms->count - 1;
    const ot_loss_options *b = &terms->items[last];
    const char *output = ot_model_output_name(model, 0);

    for (int i = 0; i < last; i++) {
        const ot_loss_options *a = &terms->items[i];
        if (a->loss == b->loss && a->loss != OT_LOSS_CUSTOM &&
            same_text(a->input ? a->input : output, b->input ? b->input : output) &&
            same_text(loss_target(a), loss_target(b)))
            return report_text("--loss: '%s' and '%s' are the same term", strings->items[i],
                               strings->items[last]);
    }
    return EXIT_SUCCESS;
}

int loss_terms_init(loss_terms *terms, int most)
{
    const size_t n = (size_t)most + 1;

    *terms = (loss_terms){.items = calloc(n, sizeof(*terms->items)),
                          .names = calloc(n, sizeof(*terms->names)),
                          .custom = calloc(n, sizeof(ot_model *))};
    return terms->items && terms->names && terms->custom ? EXIT_SUCCESS
                                                         : report_text("out of memory");
}

int loss_terms_parse(loss_terms *terms, const text_list *strings, const ot_model *model)
{
    if (loss_terms_init(terms, strings->count) != EXIT_SUCCESS)
        return EXIT_FAILED;
    for (int i = 0; i < strings->count; i++) {
        ot_loss_options *term = &terms->items[i];
        const char *rest;
        double weight;
        int code = parse_weight(strings->items[i], &weight, &rest);
        if (code != EXIT_SUCCESS)
            return code;
        terms->names[i] = strdup(rest);
        if (!terms->names[i])
            return report_text("out of memory");
        *term = (ot_loss_options)OT_LOSS_OPTIONS_INIT;
        terms->count++;
        term->factor = weight;
        code = parse_term(terms->names[i], model, term, &terms->custom[i]);
        if (code == EXIT_SUCCESS)
            code = check_twice(terms, strings, model);
        if (code != EXIT_SUCCESS)
            return code;
    }
    return EXIT_SUCCESS;
}

void loss_terms_deinit(loss_terms *terms)
{
    for (int i = 0; i < terms->count; i++) {
        ot_model_destroy(terms->custom[i]);
        free(terms->names[i]);
    }
    free(terms->items);
    free(terms->names);
    free(terms->custom);
    *terms = (loss_terms){0};
}
