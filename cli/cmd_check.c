// onnxtrain check: whether a model can be trained, what trains, what does not and why.
#include <jansson.h>
#include <stdlib.h>

#include "commands.h"
#include "model_options.h"
#include "onnxtrain/onnxtrain.h"
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

static void print_text(const ot_report *report)
{
    for (int i = 0; i < ot_report_parameter_count(report); i++) {
        const ot_parameter_report *p = ot_report_parameter(report, i);
        printf("%-8s %s %s",
               p->trainable ? "trains"
               : p->frozen  ? "frozen"
                            : "constant",
               p->name, ot_dtype_name(p->dtype));
        print_shape(&p->shape);
        printf(": %s\n", p->reason);
    }
    for (int i = 0; i < ot_report_problem_count(report); i++)
        printf("problem  %s\n", ot_report_problem(report, i));
    printf(ot_report_trainable(report) ? "the model can be trained\n"
                                       : "the model cannot be trained as it is\n");
}

static void print_json(const ot_report *report)
{
    json_t *parameters = json_array(), *problems = json_array(), *object;

    for (int i = 0; i < ot_report_parameter_count(report); i++) {
        const ot_parameter_report *p = ot_report_parameter(report, i);
        json_t *dims = json_array();
        for (int k = 0; k < p->shape.ndim; k++)
            json_array_append_new(dims, json_integer(p->shape.dim[k]));
        json_array_append_new(parameters, json_pack("{s:s,s:s,s:o,s:b,s:s}", "name", p->name,
                                                    "dtype", ot_dtype_name(p->dtype), "shape", dims,
                                                    "trains", p->trainable, "reason", p->reason));
    }
    for (int i = 0; i < ot_report_problem_count(report); i++)
        json_array_append_new(problems, json_string(ot_report_problem(report, i)));
    object = json_pack("{s:b,s:o,s:o}", "trainable", ot_report_trainable(report), "parameters",
                       parameters, "problems", problems);
    json_dumpf(object, stdout, JSON_INDENT(1));
    printf("\n");
    json_decref(object);
}

static int check_run(const void *values, const char *const *arguments)
{
    const check_values *v = values;
    ot_model *model = NULL;
    model_setup setup = {0};
    ot_report *report = NULL;
    int code = load_model(arguments[0], &model);

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
    .run = check_run,
};
