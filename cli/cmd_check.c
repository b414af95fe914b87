// SPDX-License-Identifier: Apache-2.0
// onnxtrain check: whether a model can be trained, what trains, what does not and why.
#include <jansson.h>
#include <stdlib.h>

#include "commands.h"
#include "model_options.h"
#include "onnxtrain/onnxtrain.h"
#include "op_libraries.h"
#include "report.h"

typedef struct check_values {
    model_values model;
    bool json;
} check_values;

#define AT(member) offsetof(check_values, member)

static const option_spec check_table[] = {
    {.help = "Output"},
    {"json", OPTION_FLAG, AT(json), NULL, "print one JSON object", NULL, NULL, 0},
    {0},
};

static void print_shape(const ot_shape *shape)
{
    printf("[");
    for (int i = 0; i < shape->ndim; i++)
        printf("%s%lld", i ? "," : "", (long long)shape->dim[i]);
    printf("]");
}

static const char *role_of(const ot_parameter_report *p)
{
    return p->trainable ? "trains" : p->blocked ? "blocked" : p->frozen ? "frozen" : "constant";
}

static void print_text(const ot_report *report)
{
    for (int i = 0; i < ot_report_parameter_count(report); i++) {
        const ot_parameter_report *p = ot_report_parameter(report, i);
        printf("%-8s %s %s", role_of(p), p->name, ot_dtype_name(p->dtype));
        print_shape(&p->shape);
        printf(": %s%s\n", p->reason, p->folded ? ", folded by an exporter" : "");
    }
    for (int i = 0; i < ot_report_note_count(report); i++)
        printf("note     %s\n", ot_report_note(report, i));
    for (int i = 0; i < ot_report_problem_count(report); i++)
        printf("problem  %s\n", ot_report_problem(report, i));
    printf(ot_report_trainable(report) ? "the model can be trained\n"
                                       : "the model cannot be trained as it is\n");
}

static json_t *lines_json(const ot_report *report, const char *(*line)(const ot_report *, int),
                          int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(list, text_json(line(report, i)));
    return list;
}

static json_t *parameter_json(const ot_parameter_report *p)
{
    json_t *object = json_object();

    json_object_set_new(object, "name", text_json(p->name));
    json_object_set_new(object, "dtype", json_string(ot_dtype_name(p->dtype)));
    json_object_set_new(object, "shape", shape_json(&p->shape));
    json_object_set_new(object, "role", json_string(role_of(p)));
    json_object_set_new(object, "trains", json_boolean(p->trainable));
    json_object_set_new(object, "initializer", json_boolean(p->initializer));
    json_object_set_new(object, "folded", json_boolean(p->folded));
    json_object_set_new(object, "reason", text_json(p->reason));
    return object;
}

static void print_json(const ot_report *report)
{
    json_t *parameters = json_array(), *object = json_object();

    for (int i = 0; i < ot_report_parameter_count(report); i++)
        json_array_append_new(parameters, parameter_json(ot_report_parameter(report, i)));
    json_object_set_new(object, "trainable", json_boolean(ot_report_trainable(report)));
    json_object_set_new(object, "parameters", parameters);
    json_object_set_new(object, "notes",
                        lines_json(report, ot_report_note, ot_report_note_count(report)));
    json_object_set_new(object, "problems",
                        lines_json(report, ot_report_problem, ot_report_problem_count(report)));
    write_json(stdout, object, JSON_INDENT(1));
}

static int check_run(const void *values, const char *const *arguments)
{
    const check_values *v = values;
    ot_model *model = NULL;
    model_setup setup = {0};
    ot_report *report = NULL;
    int code = load_op_libraries(&v->model.op_libraries);

    if (code == EXIT_SUCCESS)
        code = load_model(arguments[0], &model);
    if (code == EXIT_SUCCESS)
        code = model_setup_init(&setup, &v->model, model);
    if (code == EXIT_SUCCESS) {
        if (ot_report_create(model, &setup.options, &report) != OT_OK) {
            code = report_error();
        } else {
            (v->json ? print_json : print_text)(report);
            code = ot_report_trainable(report) ? EXIT_SUCCESS : EXIT_FAILED;
        }
    }
    ot_report_destroy(report);
    model_setup_deinit(&setup);
    ot_model_destroy(model);
    return code;
}

const command command_check = {
    .name = "check",
    .summary = "say whether a model can be trained, and what is in the way",
    .arguments = "MODEL",
    .n_arguments = 1,
    .description = "Lists every initializer of MODEL with whether it trains and why, and "
                   "everything that keeps the model "
                   "from being trained. Ends with 0 when it can be trained, else with 1.",
    .example = "onnxtrain check model.onnx --loss cross-entropy",
    .tables = {{check_table, 0}, {model_option_table, AT(model)}},
    .values_size = sizeof(check_values),
    .check = model_command_check,
    .run = check_run,
};
