// SPDX-License-Identifier: Apache-2.0
// onnxtrain info: inputs, outputs, parameters and operators of a model; memory and plan of a step.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "info_state.h"
#include "model_options.h"
#include "onnxtrain/onnxtrain.h"
#include "report.h"

typedef struct info_values {
    model_values model;
    int64_t batch_size;
    bool json, text, plan, untrusted;
} info_values;

#define AT(member) offsetof(info_values, member)

static const option_spec info_table[] = {
    {.help = "Output"},
    {"json", OPTION_FLAG, AT(json), NULL, "print one JSON object", NULL, NULL, 0},
    {"text", OPTION_FLAG, AT(text), NULL, "print the model in ONNX's textual syntax", NULL, NULL,
     0},
    {"plan", OPTION_FLAG, AT(plan), NULL, "print the plan of a training step, a line a kernel",
     NULL, NULL, 0},
    {"untrusted", OPTION_FLAG, AT(untrusted), NULL,
     "read a state in HDF5 in a process of its own, which it cannot harm", NULL, NULL, 0},
    {"batch-size", OPTION_INT, AT(batch_size), "N", "for the memory and the plan of a step", "32",
     NULL, 1},
    {0},
};

// Memory of a training step at the given batch size; 0 bytes when the model cannot be trained as it
// is.
typedef struct step_info {
    size_t state_bytes, plan_bytes;
    char *plan;
    char problem[512]; // why there is none
} step_info;

// The plan's memory is not touched, so there may be more of it than the machine has.
static void describe_session(ot_session *session, int64_t batch_size, step_info *out)
{
    const int n = ot_session_input_count(session, OT_MODE_TRAIN);
    ot_shape *shapes = calloc((size_t)n + 1, sizeof(*shapes));
    ot_dtype dtype;

    for (int i = 0; shapes && i < n; i++) {
        if (ot_session_input_info(session, OT_MODE_TRAIN, i, &dtype, &shapes[i]) != OT_OK)
            break;
        for (int k = 0; k < shapes[i].ndim; k++)
            if (shapes[i].dim[k] < 0)
                shapes[i].dim[k] = k == 0 ? batch_size : 1;
    }
    set_memory_max(INT64_MAX);
    if (shapes &&
        ot_session_describe_plan(session, OT_MODE_TRAIN, shapes, n, &out->plan) == OT_OK) {
        out->state_bytes = ot_session_state_bytes(session);
        out->plan_bytes = ot_session_plan_bytes(session);
    }
    free(shapes);
}

static void measure_step(const ot_model *model, const info_values *v, const model_setup *setup,
                         step_info *out)
{
    ot_artifacts *artifacts = NULL;
    ot_session *session = NULL;

    if (ot_artifacts_generate(model, &setup->options, &artifacts) == OT_OK &&
        ot_session_create_from_artifacts(artifacts, NULL, &session) == OT_OK)
        describe_session(session, v->batch_size, out);
    if (!out->plan)
        snprintf(out->problem, sizeof(out->problem), "%s", ot_error_message());
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
}

static json_t *value_json(const ot_model *model, const char *name)
{
    ot_dtype dtype = OT_DTYPE_UNDEFINED;
    ot_shape shape = {.ndim = -1};
    json_t *dims = json_array(), *object;

    (void)ot_model_value_info(model, name, &dtype, &shape);
    for (int i = 0; i < shape.ndim; i++)
        json_array_append_new(dims, shape.dim[i] < 0 ? json_null() : json_integer(shape.dim[i]));
    object = json_pack("{s:s,s:s}", "name", name, "dtype", ot_dtype_name(dtype));
    json_object_set_new(object, "shape", shape.ndim < 0 ? json_null() : json_incref(dims));
    json_decref(dims);
    return object;
}

static void count_parameters(const ot_model *model, const model_setup *setup, json_t *object)
{
    ot_report *report = NULL;
    json_int_t tensors = 0, elements = 0, trained = 0;

    if (ot_report_create(model, &setup->options, &report) == OT_OK) {
        for (int i = 0; i < ot_report_parameter_count(report); i++) {
            const ot_parameter_report *p = ot_report_parameter(report, i);
            json_int_t count = 1;
            for (int k = 0; k < p->shape.ndim; k++)
                count *= p->shape.dim[k];
            if (!p->initializer)
                continue;
            tensors++;
            elements += count;
            trained += p->trainable ? count : 0;
        }
        json_object_set_new(object, "parameters",
                            json_pack("{s:I,s:I,s:I}", "tensors", tensors, "elements", elements,
                                      "trainable", trained));
    }
    ot_report_destroy(report);
}

static json_t *operators_json(const ot_model *model)
{
    json_t *counts = json_object();

    for (int i = 0; i < ot_model_node_count(model); i++) {
        const char *name = ot_model_node_operator(model, i);
        const json_int_t count = json_integer_value(json_object_get(counts, name));
        json_object_set_new(counts, name, json_integer(count + 1));
    }
    return counts;
}

static json_t *collect(const ot_model *model, const info_values *v, const model_setup *setup,
                       const step_info *step)
{
    json_t *object = json_object(), *inputs = json_array(), *outputs = json_array();

    const int n_inputs = ot_model_input_count(model);

    for (int i = 0; i < n_inputs; i++)
        json_array_append_new(inputs, value_json(model, ot_model_input_name(model, i)));
    for (int i = 0; i < ot_model_output_count(model); i++)
        json_array_append_new(outputs, value_json(model, ot_model_output_name(model, i)));
    json_object_set_new(object, "inputs", inputs);
    json_object_set_new(object, "outputs", outputs);
    json_object_set_new(object, "operators", operators_json(model));
    count_parameters(model, setup, object);
    if (step->plan)
        json_object_set_new(object, "step",
                            json_pack("{s:I,s:I,s:I}", "batch_size", (json_int_t)v->batch_size,
                                      "state_bytes", (json_int_t)step->state_bytes, "plan_bytes",
                                      (json_int_t)step->plan_bytes));
    return object;
}

static void print_values(const char *title, const json_t *values)
{
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *value = json_array_get(values, i), *shape = json_object_get(value, "shape");
        printf("%-10s %s %s", title, json_string_value(json_object_get(value, "name")),
               json_string_value(json_object_get(value, "dtype")));
        if (json_is_array(shape)) {
            printf("[");
            for (size_t k = 0; k < json_array_size(shape); k++) {
                const json_t *dim = json_array_get(shape, k);
                printf(k ? "," : "");
                if (json_is_null(dim))
                    printf("?");
                else
                    printf("%lld", (long long)json_integer_value(dim));
            }
            printf("]");
        }
        printf("\n");
    }
}

static void print_text(const json_t *info, const step_info *step, int64_t batch_size)
{
    const json_t *parameters = json_object_get(info, "parameters");
    const char *name;
    json_t *count;
    char state[32], plan[32];

    print_values("input", json_object_get(info, "inputs"));
    print_values("output", json_object_get(info, "outputs"));
    if (parameters)
        printf("parameters %lld tensors, %lld elements, %lld of them trainable\n",
               (long long)json_integer_value(json_object_get(parameters, "tensors")),
               (long long)json_integer_value(json_object_get(parameters, "elements")),
               (long long)json_integer_value(json_object_get(parameters, "trainable")));
    printf("operators ");
    json_object_foreach(json_object_get(info, "operators"), name, count)
        printf(" %s %lld", name, (long long)json_integer_value(count));
    printf("\n");
    if (step->plan)
        printf("step       %s of parameters, gradients and moments, %s of activations at batch "
               "size %lld\n",
               bytes_text(step->state_bytes, state, sizeof(state)),
               bytes_text(step->plan_bytes, plan, sizeof(plan)), (long long)batch_size);
    else
        printf("step       none: %s\n", step->problem);
}

static int print_model(const ot_model *model)
{
    char *text;

    if (ot_model_to_text(model, &text) != OT_OK)
        return report_error();
    fputs(text, stdout);
    ot_string_free(text);
    return EXIT_SUCCESS;
}

static int info_run(const void *values, const char *const *arguments)
{
    const info_values *v = values;
    ot_model *model = NULL;
    model_setup setup = {0};
    step_info step = {0};
    json_t *info;
    int code;

    if (ot_hdf5_is_file(arguments[0]))
        return info_state(arguments[0], v->untrusted, v->json);
    code = load_model(arguments[0], &model);
    if (code != EXIT_SUCCESS)
        return code;
    if (v->text) {
        code = print_model(model);
        ot_model_destroy(model);
        return code;
    }
    code = model_setup_init(&setup, &v->model, model);
    if (code != EXIT_SUCCESS) {
        model_setup_deinit(&setup);
        ot_model_destroy(model);
        return code;
    }
    measure_step(model, v, &setup, &step);
    if (v->plan) {
        if (step.plan)
            fputs(step.plan, stdout);
        else
            code = report_error();
    } else {
        info = collect(model, v, &setup, &step);
        if (!v->json)
            print_text(info, &step, v->batch_size);
        else
            write_json(stdout, json_incref(info), JSON_INDENT(1));
        json_decref(info);
    }
    ot_string_free(step.plan);
    model_setup_deinit(&setup);
    ot_model_destroy(model);
    return code;
}

const command command_info = {
    .name = "info",
    .summary = "show inputs, outputs, parameters, operators and the memory of a step",
    .arguments = "MODEL",
    .n_arguments = 1,
    .description = "Shows what MODEL is made of and what a training step of it needs. Of a "
                   "trainer's state in an HDF5 file, which may be in the place of MODEL, it shows "
                   "names, types and values.",
    .example = "onnxtrain info model.onnx --batch-size 64",
    .tables = {{info_table, 0}, {model_option_table, AT(model)}},
    .values_size = sizeof(info_values),
    .check = model_command_check,
    .run = info_run,
};
