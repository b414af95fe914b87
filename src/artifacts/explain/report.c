// SPDX-License-Identifier: Apache-2.0
// Whether and what of a model can be trained.
#include <string.h>

#include "artifacts/training_model.h"

typedef struct text_lines {
    const char **items;
    int n, capacity;
} text_lines;

struct ot_report {
    ot__arena *arena;
    ot_parameter_report *parameters;
    int n_parameters;
    int parameters_capacity;
    text_lines problems, notes;
};

static ot_status report_line(ot_report *report, text_lines *to, const char *text)
{
    char *copy = text ? ot__arena_strdup(report->arena, text) : NULL;

    return ot__made(copy && ot__arena_push(report->arena, &to->items, &to->capacity, &to->n, &copy,
                                           sizeof copy));
}

static ot_status add_problem(ot_report *report, const char *text)
{
    return report_line(report, &report->problems, text);
}

// One problem per operator that is missing.
static ot_status add_unknown_operators(ot_report *report, const ot_model *model)
{
    ot__buf lines = {0};
    ot_status st = ot__pass_unknown_operators(model, &lines);

    // Every line ends with a line feed.
    for (char *line = lines.data, *next; st == OT_OK && line && *line; line = next) {
        next = ot__cut(line, '\n');
        st = add_problem(report,
                         ot__arena_printf(report->arena, "operator %s is not supported", line));
    }
    ot__buf_deinit(&lines);
    return st;
}

// ---- rows ----

static ot_status add_row(ot_report *report, const char *name, ot_dtype dtype, const ot_shape *shape,
                         const char *reason, ot_parameter_report **out)
{
    ot_parameter_report *row;

    OT_TRY(ot__made(ot__arena_grow(report->arena, &report->parameters, &report->parameters_capacity,
                                   report->n_parameters, sizeof *report->parameters)));
    row = &report->parameters[report->n_parameters++];
    *row = (ot_parameter_report){.name = ot__arena_strdup(report->arena, name),
                                 .dtype = dtype,
                                 .shape = *shape,
                                 .reason = ot__arena_strdup(report->arena, reason)};
    *out = row;
    return ot__made(row->name && row->reason);
}

static ot_status add_parameters(ot_report *report, const ot__forward *forward)
{
    const ot__candidates *c = &forward->candidates;

    for (int i = 0; i < c->n; i++) {
        const ot__candidate *item = &c->items[i];
        ot_parameter_report *row;

        OT_TRY(add_row(report, item->value->name, item->value->dtype, &item->value->shape,
                       item->reason[0] ? item->reason : "not examined", &row));
        row->initializer = 1;
        row->trainable = item->role == OT_ROLE_TRAINABLE && !item->is_blocked;
        row->blocked = item->role == OT_ROLE_TRAINABLE && item->is_blocked;
        row->frozen = item->role == OT_ROLE_FROZEN;
        row->folded = row->trainable && ot__candidate_is_folded(item, forward->model);
    }
    return OT_OK;
}

// Tensors that a Constant node holds look like parameters, but never train.
static ot_status report_constant(ot_report *report, const ot_node *node)
{
    const ot_attr *tensor = ot__node_attr(node, "value"),
                  *list = ot__node_attr(node, "value_floats");
    ot_shape shape = {.ndim = 1};
    ot_dtype dtype = OT_F32;
    ot_parameter_report *row;

    if (node->n_outputs < 1 || !node->outputs[0])
        return OT_OK;
    if (tensor && tensor->t && ot__dtype_is_float(tensor->t->dtype)) {
        shape = tensor->t->shape;
        dtype = tensor->t->dtype;
    } else if (list && list->n > 0) {
        shape.dim[0] = list->n;
    } else {
        return OT_OK;
    }
    if (shape.ndim == 0 || (shape.ndim == 1 && shape.dim[0] <= 1))
        return OT_OK;
    return add_row(report, node->outputs[0]->name, dtype, &shape,
                   "value of a Constant node, which never trains: only an initializer does", &row);
}

static ot_status add_constants(ot_report *report, const ot_model *model)
{
    for (int n = 0; n < model->graph->n_nodes; n++) {
        const ot_node *node = model->graph->nodes[n];

        if (ot__is_constant(node))
            OT_TRY(report_constant(report, node));
    }
    return OT_OK;
}

// ---- notes ----

static ot_status say_twins(ot_report *report, const ot__shown_names *twins)
{
    ot__buf text = {0};
    ot_status st;

    ot__buf_names(&text, twins->names, twins->n);
    ot__buf_text(&text, " hold the same elements: weights that were shared before the export train "
                        "separately");
    st = ot__buf_status(&text);
    OT_THEN(st, report_line(report, &report->notes, ot__arena_strdup(report->arena, text.data)));
    ot__buf_deinit(&text);
    return st;
}

static ot_status note_twins(ot_report *report, const ot__candidates *c)
{
    ot__shown_names *of; // per candidate, it and those that come later with its elements
    const int *twin;

    if (c->n == 0) // then there may be no graph
        return OT_OK;
    OT_TRY(ot__candidates_find_twins(c, &twin));
    of = ot__arena_alloc(report->arena, (size_t)c->n * sizeof *of);
    OT_TRY(ot__made(of));
    for (int i = 0; i < c->n; i++) {
        const char *name = c->items[i].value->name;

        of[i] = (ot__shown_names){.names = {name}, .n = 1};
        if (twin[i] >= 0 && c->items[i].role == OT_ROLE_TRAINABLE)
            ot__shown_names_add(&of[twin[i]], name);
    }
    for (int i = 0; i < c->n; i++)
        if (of[i].n > 1)
            OT_TRY(say_twins(report, &of[i]));
    return OT_OK;
}

// ---- the whole ----

// Building is the proof: what fails there is a problem, not an error of the report.
static ot_status try_to_build(const ot_artifacts_options *options, ot__forward *forward)
{
    const ot__optimizer_wiring wiring = {.candidates = &forward->candidates};
    ot_model *optimizer = NULL, *eval = NULL;
    ot_status st = ot__optimizer_model(options->optimizer, &wiring, OT_F32,
                                       ot__model_opset(forward->model, ""), &optimizer);

    OT_THEN(st, ot__parameters_to_inputs(forward));
    OT_THEN(st, ot__eval_model(forward->model, NULL, &eval));
    OT_THEN(st, ot__training_model(forward, options));
    ot_model_destroy(optimizer);
    ot_model_destroy(eval);
    return st;
}

// What the structure tells where the whole could not be built.
static ot_status examine_structure(const ot_artifacts_options *options, ot__forward *forward)
{
    if (!forward->model || forward->is_classified || forward->candidates.n == 0 ||
        ot__graph_verify(forward->model->graph) != OT_OK)
        return OT_OK;
    return ot__candidates_examine(&forward->candidates, options);
}

static ot_status examine(const ot_model *model, const ot_artifacts_options *options,
                         ot__forward *forward, ot_report *report)
{
    ot_status st = ot__forward_build(model, options, OT_FOREIGN_REFUSED, forward);
    const bool is_built = st == OT_OK;

    if (st == OT_ERR_NO_MEMORY)
        return st;
    if (!is_built && forward->model)
        OT_TRY(add_unknown_operators(report, forward->model));
    if (!is_built && report->problems.n == 0)
        OT_TRY(add_problem(report, ot_error_message()));
    if (!is_built)
        OT_TRY(examine_structure(options, forward));
    OT_TRY(add_parameters(report, forward));
    OT_TRY(add_constants(report, model));
    for (int i = 0; i < forward->n_notes; i++)
        OT_TRY(report_line(report, &report->notes, forward->notes[i].text));
    OT_TRY(note_twins(report, &forward->candidates));
    if (!is_built)
        return OT_OK;
    st = try_to_build(options, forward);
    if (st == OT_OK || st == OT_ERR_NO_MEMORY)
        return st;
    return add_problem(report, ot_error_message());
}

static ot_status new_report(const ot_model *model, const ot_artifacts_options *options,
                            ot_report **out)
{
    ot__forward forward = {0};
    ot_report *report = ot__alloc_zero(1, sizeof *report);
    ot_status st;

    OT_TRY(ot__made(report));
    OT_ENTER(report);
    report->arena = ot__arena_create();
    st = report->arena ? examine(model, options, &forward, report) : OT_ERR_NO_MEMORY;
    ot__forward_deinit(&forward);
    return OT_HAND_OUT(st, out, report, ot_report_destroy);
}

ot_status ot_report_create(const ot_model *model, const ot_artifacts_options *options,
                           ot_report **out)
{
    ot__options_taken taken;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(model));
    st = ot__options_take(options, &taken);
    OT_THEN(st, new_report(model, &taken.options, out));
    ot__options_drop(&taken);
    return st;
}

int ot_report_trainable(const ot_report *report)
{
    return OT_IS_LIVE(report) && report->problems.n == 0;
}

int ot_report_parameter_count(const ot_report *report)
{
    return OT_IS_LIVE(report) ? report->n_parameters : 0;
}

const ot_parameter_report *ot_report_parameter(const ot_report *report, int index)
{
    return !OT_IS_LIVE(report) || index < 0 || index >= report->n_parameters
               ? NULL
               : &report->parameters[index];
}

static const char *line_of(const text_lines *list, int index)
{
    return index < 0 || index >= list->n ? NULL : list->items[index];
}

int ot_report_problem_count(const ot_report *report)
{
    return OT_IS_LIVE(report) ? report->problems.n : 0;
}

const char *ot_report_problem(const ot_report *report, int index)
{
    return OT_IS_LIVE(report) ? line_of(&report->problems, index) : NULL;
}

int ot_report_note_count(const ot_report *report)
{
    return OT_IS_LIVE(report) ? report->notes.n : 0;
}

const char *ot_report_note(const ot_report *report, int index)
{
    return OT_IS_LIVE(report) ? line_of(&report->notes, index) : NULL;
}

void ot_report_destroy(ot_report *report)
{
    if (!OT_ENDS(report))
        return;
    ot__arena_destroy(report->arena);
    ot__free(report);
}
