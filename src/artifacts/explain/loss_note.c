// SPDX-License-Identifier: Apache-2.0
// What a training model says about its loss: a line per term, "weight, loss, value, targets..."
// separated by tabs, so that a run over artifacts alone knows what is a target and what to measure,
// and one over the trained model does as was done before. What is not usual stands behind the loss:
// "cross-entropy over -1 ignoring -100 reduced sum weighted 1,2,0.5" has classes on the last axis,
// a label that does not count, a sum over the batch, and class weights.
#include <math.h>
#include <string.h>

#include "artifacts/training_model.h"

static const char *const loss_names[] = {
    [OT_LOSS_NONE] = "none",
    [OT_LOSS_CROSS_ENTROPY] = "cross-entropy",
    [OT_LOSS_MSE] = "mse",
    [OT_LOSS_L1] = "l1",
    [OT_LOSS_BCE_WITH_LOGITS] = "bce-with-logits",
    [OT_LOSS_CUSTOM] = "custom",
};

static const char *const reduction_names[] = {
    [OT_REDUCTION_MEAN] = "mean", [OT_REDUCTION_SUM] = "sum", [OT_REDUCTION_NONE] = "none"};

const char *ot__loss_name(ot_loss loss)
{
    return (size_t)loss < OT_COUNT(loss_names) ? loss_names[loss] : "?";
}

const char *ot__reduction_name(ot_reduction reduction)
{
    return (size_t)reduction < OT_COUNT(reduction_names) ? reduction_names[reduction] : "?";
}

static ot_status find_probabilities(ot_artifacts *artifacts)
{
    int n = 0;

    for (int i = 0; i < artifacts->n_loss_terms; i++)
        n += artifacts->loss_terms[i].n_targets;
    artifacts->probabilities =
        ot__arena_alloc(artifacts->arena, (size_t)(n + 1) * sizeof *artifacts->probabilities);
    OT_TRY(ot__made(artifacts->probabilities != NULL));
    artifacts->n_probabilities = 0;
    for (int i = 0; i < artifacts->n_loss_terms; i++) {
        const ot__loss_term *term = &artifacts->loss_terms[i];

        for (int k = 0; term->loss == OT_LOSS_BCE_WITH_LOGITS && k < term->n_targets; k++)
            artifacts->probabilities[artifacts->n_probabilities++] = term->targets[k];
    }
    return OT_OK;
}

// ---- what the options say ----

static ot_status copy_name(ot__arena *arena, const char *name, const char **out)
{
    *out = ot__arena_strdup(arena, name);
    return ot__made(*out);
}

// Of a custom loss, the inputs that the model did not have.
static ot_status take_targets(ot__arena *arena, const ot_graph *graph, const ot_graph *original,
                              const ot_loss_options *options, ot__loss_term *term)
{
    if (options->loss == OT_LOSS_NONE)
        return OT_OK;
    if (options->loss != OT_LOSS_CUSTOM)
        return copy_name(arena, ot__loss_target(options), &term->targets[term->n_targets++]);
    for (int i = 0; i < graph->n_inputs; i++) {
        const ot_value *input = graph->inputs[i];

        if (!input->is_initializer && !ot__has_input(original, input->name))
            OT_TRY(copy_name(arena, input->name, &term->targets[term->n_targets++]));
    }
    return OT_OK;
}

static ot_status take_classes(ot__arena *arena, const ot_loss_options *options, ot__loss_term *term)
{
    const ot_tensor *weight = options->weight;
    const int64_t n = weight ? ot_tensor_count(weight) : 0;

    term->class_axis = options->class_axis < 0 ? -1 : 1;
    term->has_ignored_label = options->has_ignore_index != 0;
    term->ignored_label = options->ignore_index;
    if (n == 0)
        return OT_OK;
    term->weights = ot__arena_alloc(arena, (size_t)n * sizeof *term->weights);
    OT_TRY(ot__made(term->weights));
    term->n_weights = (int)n;
    term->weights_dtype = ot_tensor_dtype(weight) == OT_F32 ? OT_F32 : OT_F64;
    for (int64_t i = 0; i < n; i++)
        term->weights[i] = ot__tensor_get_f64(weight, i);
    return OT_OK;
}

static ot_status note_term(ot__arena *arena, const ot_graph *graph, const ot_graph *original,
                           const ot_loss_options *options, ot__loss_term *term)
{
    const char *output = original->n_outputs > 0 ? original->outputs[0]->name : "";
    const bool is_custom = options->loss == OT_LOSS_CUSTOM;

    term->loss = options->loss;
    term->factor = options->factor;
    term->class_axis = 1;
    if (options->loss != OT_LOSS_NONE)
        term->reduction = options->reduction;
    if (options->loss == OT_LOSS_CROSS_ENTROPY)
        OT_TRY(take_classes(arena, options, term));
    if (options->input || !is_custom)
        OT_TRY(copy_name(arena, options->input ? options->input : output, &term->input));
    return take_targets(arena, graph, original, options, term);
}

ot_status ot__loss_take(ot_artifacts *artifacts, const ot__forward *forward,
                        const ot_model *original, const ot_artifacts_options *options)
{
    const ot_graph *graph = forward->model->graph;
    const size_t n = (size_t)options->n_losses;
    const char **targets = ot__arena_alloc(
        artifacts->arena, (n * ((size_t)graph->n_inputs + 1) + 1) * sizeof *targets);

    artifacts->loss_terms = ot__arena_alloc(artifacts->arena, (n + 1) * sizeof(ot__loss_term));
    OT_TRY(ot__made(targets && artifacts->loss_terms));
    for (size_t i = 0; i < n; i++) {
        ot__loss_term *term = &artifacts->loss_terms[i];

        *term = (ot__loss_term){.targets = targets};
        OT_TRY(note_term(artifacts->arena, graph, original->graph, &options->losses[i], term));
        targets += term->n_targets;
    }
    artifacts->n_loss_terms = (int)n;
    return find_probabilities(artifacts);
}

// ---- writing ----

static void say_name(ot__buf *text, bool *is_clean, const char *name)
{
    *is_clean = *is_clean && strpbrk(name, "\t\n") == NULL;
    ot__buf_printf(text, "\t%s", name);
}

static void say_classes(ot__buf *text, const ot__loss_term *term)
{
    const bool is_f32 = term->weights_dtype == OT_F32;

    if (term->class_axis < 0)
        ot__buf_text(text, " over -1");
    if (term->has_ignored_label)
        ot__buf_printf(text, " ignoring %" PRId64, term->ignored_label);
    for (int i = 0; i < term->n_weights; i++) {
        ot__buf_text(text, i > 0 ? "," : is_f32 ? " weighted " : " weighted_f64 ");
        ot__buf_float(text, term->weights[i], is_f32);
    }
}

static void say_term(ot__buf *text, bool *is_clean, const ot__loss_term *term)
{
    ot__buf_float(text, term->factor, false);
    ot__buf_printf(text, "\t%s", loss_names[term->loss]);
    if (term->reduction != OT_REDUCTION_MEAN)
        ot__buf_printf(text, " reduced %s", reduction_names[term->reduction]);
    say_classes(text, term);
    say_name(text, is_clean, term->input ? term->input : "");
    for (int i = 0; i < term->n_targets; i++)
        say_name(text, is_clean, term->targets[i]);
    ot__buf_text(text, "\n");
}

ot_status ot__loss_write(ot_model *model, const ot__loss_term *terms, int n_terms)
{
    ot__buf text = {0};
    bool is_clean = true;
    ot_status st;

    for (int i = 0; i < n_terms; i++)
        say_term(&text, &is_clean, &terms[i]);
    st = ot__buf_status(&text);
    // A name with a tab in it would be read as two: better no note than a wrong one.
    if (st == OT_OK && text.length > 0 && is_clean)
        st = ot_model_set_metadata(model, OT_METADATA_LOSS, text.data);
    ot__buf_deinit(&text);
    return st;
}

// ---- reading ----

static ot_status read_weights(ot__arena *arena, ot__loss_term *term, char *text)
{
    const size_t n = ot__count_char(text, ',') + 1;

    term->weights = ot__arena_alloc(arena, n * sizeof *term->weights);
    OT_TRY(ot__made(term->weights));
    for (char *next; text; text = next) {
        next = ot__cut(text, ',');
        if (!ot__parse_float(text, &term->weights[term->n_weights]) ||
            !isfinite(term->weights[term->n_weights]) || term->weights[term->n_weights] < 0)
            return ot__error(OT_ERR_FORMAT, "'%.40s' is not a class weight", text);
        term->n_weights++;
    }
    return OT_OK;
}

static ot_status read_detail(ot__arena *arena, ot__loss_term *term, const char *word, char *value)
{
    const int reduction = ot__index_of(reduction_names, OT_COUNT(reduction_names), value);

    if (strcmp(word, "over") == 0 && strcmp(value, "-1") == 0) {
        term->class_axis = -1;
        return OT_OK;
    }
    if (strcmp(word, "ignoring") == 0 && ot__parse_int(value, &term->ignored_label)) {
        term->has_ignored_label = true;
        return OT_OK;
    }
    if (strcmp(word, "reduced") == 0 && reduction >= 0) {
        term->reduction = (ot_reduction)reduction;
        return OT_OK;
    }
    if (ot__starts_with(word, "weighted") && term->n_weights == 0) {
        term->weights_dtype = word[strlen("weighted")] == '\0' ? OT_F32 : OT_F64;
        if (term->weights_dtype == OT_F32 || strcmp(word, "weighted_f64") == 0)
            return read_weights(arena, term, value);
    }
    return ot__error(OT_ERR_FORMAT, "'%.40s %.40s' says nothing of a loss", word, value);
}

// A loss, and pairs of words behind it.
static ot_status read_loss(ot__arena *arena, ot__loss_term *term, char *text)
{
    char *rest = ot__cut(text, ' ');
    const int loss = ot__index_of(loss_names, OT_COUNT(loss_names), text);

    if (loss < 0)
        return ot__error(OT_ERR_FORMAT, "'%.40s' is not a loss", text);
    term->loss = (ot_loss)loss;
    term->class_axis = 1;
    while (rest) {
        char *value = ot__cut(rest, ' '), *next;

        if (!value)
            return ot__error(OT_ERR_FORMAT, "'%.40s' lacks its value", rest);
        next = ot__cut(value, ' ');
        OT_TRY(read_detail(arena, term, rest, value));
        rest = next;
    }
    return OT_OK;
}

// The fields of a line; `targets` has room for all of them.
static ot_status read_term(ot__arena *arena, ot__loss_term *term, char *line, const char **targets)
{
    enum { WEIGHT, LOSS, VALUE, TARGETS };
    int field = WEIGHT;

    *term = (ot__loss_term){.targets = targets};
    for (char *next; line != NULL; line = next, field++) {
        next = ot__cut(line, '\t');
        if (field == WEIGHT && (!ot__parse_float(line, &term->factor) || !isfinite(term->factor)))
            return ot__error(OT_ERR_FORMAT, "'%.40s' is not a weight", line);
        if (field == LOSS)
            OT_TRY(read_loss(arena, term, line));
        if (field == VALUE && *line != '\0')
            term->input = line;
        if (field >= TARGETS)
            targets[term->n_targets++] = line;
    }
    return field > VALUE ? OT_OK : ot__error(OT_ERR_FORMAT, "lacks the loss or its value");
}

ot_status ot__loss_parse(ot__arena *arena, const char *note, ot__loss_term **terms, int *n_terms)
{
    const size_t n_lines = ot__count_char(note, '\n') + 1,
                 n_fields = n_lines + ot__count_char(note, '\t');
    char *line = ot__arena_strdup(arena, note);
    const char **targets = ot__arena_alloc(arena, n_fields * sizeof *targets);

    *n_terms = 0;
    *terms = ot__arena_alloc(arena, n_lines * sizeof **terms);
    OT_TRY(ot__made(line != NULL && targets != NULL && *terms != NULL));
    for (char *next; *line != '\0'; line = next) {
        ot__loss_term *term = &(*terms)[*n_terms];
        ot_status st;

        next = ot__cut(line, '\n');
        if (next == NULL)
            return ot__error(OT_ERR_FORMAT, "line %d has no end", *n_terms + 1);
        st = read_term(arena, term, line, targets);
        if (st != OT_OK)
            return ot__error_prefix(st, "line %d", *n_terms + 1);
        targets += term->n_targets;
        ++*n_terms;
    }
    return OT_OK;
}

ot_status ot__loss_read(ot_artifacts *artifacts)
{
    const char *note = ot_model_metadata(artifacts->training, OT_METADATA_LOSS);
    ot_status st;

    if (note == NULL)
        return OT_OK;
    st = ot__loss_parse(artifacts->arena, note, &artifacts->loss_terms, &artifacts->n_loss_terms);
    if (st == OT_ERR_FORMAT)
        artifacts->n_loss_terms = 0;
    return st == OT_OK ? find_probabilities(artifacts) : st == OT_ERR_FORMAT ? OT_OK : st;
}

ot_status ot__record_drop(ot_model *model)
{
    static const char *const keys[] = {OT_METADATA_LOSS, OT_METADATA_SCALE, OT_METADATA_MEAN,
                                       OT_METADATA_STD, OT_METADATA_CLASSES};

    for (size_t i = 0; i < OT_COUNT(keys); i++)
        OT_TRY(ot__model_drop_metadata(model, keys[i]));
    return OT_OK;
}
