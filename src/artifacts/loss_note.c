// SPDX-License-Identifier: Apache-2.0
// What a training model says about its loss: a line per term, "weight, loss, value, targets..."
// separated by tabs, so that a run over artifacts alone knows what is a target and what to measure.
// Classes on the last axis and a label that does not count are told as in "cross-entropy over -1
// ignoring -100".
#include <string.h>

#include "artifacts/training_model.h"

static const char over_last[] = " over -1", ignoring[] = " ignoring ";

static const char *const loss_names[] = {
    [OT_LOSS_NONE] = "none",
    [OT_LOSS_CROSS_ENTROPY] = "cross-entropy",
    [OT_LOSS_MSE] = "mse",
    [OT_LOSS_L1] = "l1",
    [OT_LOSS_BCE_WITH_LOGITS] = "bce-with-logits",
    [OT_LOSS_CUSTOM] = "custom",
};

// ---- writing ----

static bool is_input_of(const ot_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_inputs; i++)
        if (strcmp(graph->inputs[i]->name, name) == 0)
            return true;
    return false;
}

static void say_name(ot__buf *text, bool *is_clean, const char *name)
{
    *is_clean = *is_clean && strpbrk(name, "\t\n") == NULL;
    ot__buf_printf(text, "\t%s", name);
}

static void say_term(ot__buf *text, bool *is_clean, const ot__forward *forward,
                     const ot_graph *original, const ot_loss_options *term)
{
    const ot_graph *graph = forward->model->graph;
    const char *output = original->n_outputs > 0 ? original->outputs[0]->name : "";

    ot__buf_printf(text, "%.17g\t%s", term->factor, loss_names[term->loss]);
    if (term->loss == OT_LOSS_CROSS_ENTROPY && term->class_axis < 0)
        ot__buf_text(text, over_last);
    if (term->loss == OT_LOSS_CROSS_ENTROPY && term->has_ignore_index)
        ot__buf_printf(text, "%s%" PRId64, ignoring, term->ignore_index);
    if (term->loss != OT_LOSS_CUSTOM) {
        say_name(text, is_clean, term->input ? term->input : output);
        if (term->loss != OT_LOSS_NONE)
            say_name(text, is_clean, ot__loss_target(term));
    } else {
        say_name(text, is_clean, term->input ? term->input : "");
        for (int i = 0; i < graph->n_inputs; i++)
            if (!graph->inputs[i]->is_initializer && !is_input_of(original, graph->inputs[i]->name))
                say_name(text, is_clean, graph->inputs[i]->name);
    }
    ot__buf_text(text, "\n");
}

ot_status ot__loss_note(const ot__forward *forward, const ot_model *original,
                        const ot_artifacts_options *options, char **out)
{
    ot__buf text = {0};
    bool is_clean = true;
    ot_status st;

    *out = NULL;
    for (int i = 0; i < options->n_losses; i++)
        say_term(&text, &is_clean, forward, original->graph, &options->losses[i]);
    st = ot__buf_status(&text);
    // A name with a tab in it would be read as two: better no note than a wrong one.
    if (st == OT_OK && text.length > 0 && is_clean) {
        *out = ot__arena_strdup(forward->model->arena, text.data);
        st = *out ? OT_OK : OT_ERR_NO_MEMORY;
    }
    ot__buf_deinit(&text);
    return st;
}

// ---- reading ----

static bool read_loss(ot__loss_term *term, char *text)
{
    char *label = strstr(text, ignoring), *axis;

    if (label != NULL) {
        *label = '\0';
        term->has_ignored_label = true;
        if (!ot__parse_int(label + sizeof ignoring - 1, &term->ignored_label))
            return false;
    }
    axis = strstr(text, over_last);
    term->class_axis = axis != NULL ? -1 : 1;
    if (axis != NULL)
        *axis = '\0';
    for (size_t i = 0; i < OT_COUNT(loss_names); i++)
        if (strcmp(text, loss_names[i]) == 0) {
            term->loss = (ot_loss)i;
            return true;
        }
    return false;
}

// The fields of a line; `targets` has room for all of them.
static bool read_term(ot__loss_term *term, char *line, const char **targets)
{
    enum { WEIGHT, LOSS, VALUE, TARGETS };
    int field = WEIGHT;

    term->targets = targets;
    for (char *next; line != NULL; line = next, field++) {
        next = strchr(line, '\t');
        if (next != NULL)
            *next++ = '\0';
        if ((field == WEIGHT && !ot__parse_float(line, &term->factor)) ||
            (field == LOSS && !read_loss(term, line)))
            return false;
        if (field == VALUE && *line != '\0')
            term->input = line;
        if (field >= TARGETS)
            targets[term->n_targets++] = line;
    }
    return field > VALUE;
}

static ot_status find_probabilities(ot_artifacts *artifacts, size_t n_fields)
{
    artifacts->probabilities =
        ot__arena_alloc(artifacts->arena, n_fields * sizeof *artifacts->probabilities);
    if (artifacts->probabilities == NULL)
        return OT_ERR_NO_MEMORY;
    artifacts->n_probabilities = 0;
    for (int i = 0; i < artifacts->n_loss_terms; i++) {
        const ot__loss_term *term = &artifacts->loss_terms[i];

        for (int k = 0; term->loss == OT_LOSS_BCE_WITH_LOGITS && k < term->n_targets; k++)
            artifacts->probabilities[artifacts->n_probabilities++] = term->targets[k];
    }
    return OT_OK;
}

ot_status ot__loss_read(ot_artifacts *artifacts)
{
    const char *note = ot_model_metadata(artifacts->training, OT_METADATA_LOSS), **targets;
    size_t n_lines = 0, n_fields = 1;
    char *line;

    if (note == NULL)
        return OT_OK;
    for (const char *p = note; *p != '\0'; p++) {
        n_lines += *p == '\n';
        n_fields += *p == '\n' || *p == '\t';
    }
    line = ot__arena_strdup(artifacts->arena, note);
    targets = ot__arena_alloc(artifacts->arena, n_fields * sizeof *targets);
    artifacts->loss_terms =
        ot__arena_alloc(artifacts->arena, (n_lines + 1) * sizeof *artifacts->loss_terms);
    if (line == NULL || targets == NULL || artifacts->loss_terms == NULL)
        return OT_ERR_NO_MEMORY;
    for (size_t i = 0; i < n_lines; i++) {
        ot__loss_term *term = &artifacts->loss_terms[i];
        char *end = strchr(line, '\n');

        *end = '\0';
        *term = (ot__loss_term){0};
        if (!read_term(term, line, targets)) {
            artifacts->n_loss_terms = 0;
            return OT_OK;
        }
        artifacts->n_loss_terms++;
        targets += term->n_targets;
        line = end + 1;
    }
    return find_probabilities(artifacts, n_fields);
}
