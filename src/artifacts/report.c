// Whether and what of a model can be trained.
#include <string.h>

#include "artifacts/training_model.h"

struct ot_report {
    ot__arena *arena;
    ot_parameter_report *parameters;
    int n_parameters;
    const char **problems;
    int n_problems, problems_capacity;
};

static ot_status add_problem(ot_report *report, const char *text)
{
    char *copy = ot__arena_strdup(report->arena, text);

    if (!copy || !ot__arena_grow(report->arena, &report->problems, &report->problems_capacity,
                                 report->n_problems, sizeof(const char *)))
        return OT_ERR_NO_MEMORY;
    report->problems[report->n_problems++] = copy;
    return OT_OK;
}

static ot_status add_missing(ot_report *report, const char *op)
{
    char *text = ot__arena_printf(report->arena, "operator %s is not supported", op);

    return text ? add_problem(report, text) : OT_ERR_NO_MEMORY;
}

// One problem per operator that is missing.
static ot_status add_unknown_operators(ot_report *report, const ot_model *model)
{
    ot__buf lines = {0};
    ot_status st = ot__pass_unknown_operators(model, &lines);

    for (char *line = lines.data; st == OT_OK && line && *line;) {
        char *end = strchr(line, '\n');

        *end = '\0'; // every line ends with one
        st = add_missing(report, line);
        line = end + 1;
    }
    ot__buf_deinit(&lines);
    return st;
}

static ot_status add_parameters(ot_report *report, const ot__forward *forward)
{
    const ot__candidates *c = &forward->candidates;

    report->parameters =
        ot__arena_alloc(report->arena, (size_t)(c->n + 1) * sizeof *report->parameters);
    if (!report->parameters)
        return OT_ERR_NO_MEMORY;
    for (int i = 0; i < c->n; i++) {
        const ot__candidate *item = &c->items[i];
        ot_parameter_report *row = &report->parameters[report->n_parameters++];

        row->name = ot__arena_strdup(report->arena, item->value->name);
        row->dtype = item->value->dtype;
        row->shape = item->value->shape;
        row->trainable = forward->is_classified && item->role == OT_ROLE_TRAINABLE;
        row->frozen = forward->is_classified && item->role == OT_ROLE_FROZEN;
        row->reason =
            ot__arena_strdup(report->arena, forward->is_classified ? item->reason : "not examined");
        if (!row->name || !row->reason)
            return OT_ERR_NO_MEMORY;
    }
    return OT_OK;
}

// Building is the proof: what fails there is a problem, not an error of the report.
static ot_status try_to_build(const ot_artifacts_options *options, ot__forward *forward)
{
    ot_model *optimizer = NULL, *eval = NULL;
    ot_status st = ot__optimizer_model(&options->optimizer, OT_F32,
                                       ot__model_opset(forward->model, ""), &optimizer);

    if (st == OT_OK)
        st = ot__parameters_to_inputs(forward);
    if (st == OT_OK)
        st = ot__eval_model(forward->model, &eval);
    if (st == OT_OK)
        st = ot__training_model(forward);
    ot_model_destroy(optimizer);
    ot_model_destroy(eval);
    return st;
}

static ot_status examine(const ot_model *model, const ot_artifacts_options *options,
                         ot__forward *forward, ot_report *report)
{
    ot_status st = ot__forward_build(model, options, forward);
    const bool is_built = st == OT_OK;

    if (st == OT_ERR_NO_MEMORY)
        return st;
    if (!is_built && forward->model)
        OT_TRY(add_unknown_operators(report, forward->model));
    if (!is_built && report->n_problems == 0)
        OT_TRY(add_problem(report, ot_error_message()));
    OT_TRY(add_parameters(report, forward));
    if (!is_built)
        return OT_OK;
    st = try_to_build(options, forward);
    if (st == OT_OK || st == OT_ERR_NO_MEMORY)
        return st;
    return add_problem(report, ot_error_message());
}

ot_status ot_report_create(const ot_model *model, const ot_artifacts_options *options,
                           ot_report **out)
{
    ot_artifacts_options taken;
    ot__forward forward = {0};
    ot_report *report;
    ot_status st;

    *out = NULL;
    OT_TRY(ot__options_take(options, &taken));
    report = ot__alloc_zero(1, sizeof *report);
    if (!report)
        return OT_ERR_NO_MEMORY;
    report->arena = ot__arena_create();
    st = report->arena ? examine(model, &taken, &forward, report) : OT_ERR_NO_MEMORY;
    ot__forward_deinit(&forward);
    if (st == OT_OK)
        *out = report;
    else
        ot_report_destroy(report);
    return st;
}

int ot_report_trainable(const ot_report *report)
{
    return report->n_problems == 0;
}

int ot_report_parameter_count(const ot_report *report)
{
    return report->n_parameters;
}

const ot_parameter_report *ot_report_parameter(const ot_report *report, int index)
{
    return index < 0 || index >= report->n_parameters ? NULL : &report->parameters[index];
}

int ot_report_problem_count(const ot_report *report)
{
    return report->n_problems;
}

const char *ot_report_problem(const ot_report *report, int index)
{
    return index < 0 || index >= report->n_problems ? NULL : report->problems[index];
}

void ot_report_destroy(ot_report *report)
{
    if (!report)
        return;
    ot__arena_destroy(report->arena);
    ot__free(report);
}
