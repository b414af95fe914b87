// SPDX-License-Identifier: Apache-2.0
// onnxtrain info: inputs, outputs, parameters and operators of a model; memory and plan of a step.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt_summary.h"
#include "commands.h"
#include "info_state.h"
#include "info_step.h"
#include "model_options.h"
#include "onnxtrain/onnxtrain.h"
#include "op_libraries.h"
#include "output_files.h"
#include "parallel_ranks.h"
#include "precision_options.h"
#include "report.h"

typedef struct info_values {
    model_values model;
    int64_t batch_size, memory_max;
    int precision;
    text_list recompute;
    const char *parallel;
    bool json, text, plan, untrusted;
} info_values;

#define AT(member) offsetof(info_values, member)

static const option_spec info_table[] = {
    {.help = "Output"},
    {"json", OPTION_FLAG, AT(json), NULL, "print one JSON object", NULL, NULL, 0},
    {"text", OPTION_FLAG, AT(text), NULL, "print the model in ONNX's textual syntax", NULL, NULL,
     0},
    {"plan", OPTION_FLAG, AT(plan), NULL,
     "print the plan of a training step, each kernel with the reason", NULL, NULL, 0},
    {"untrusted", OPTION_FLAG, AT(untrusted), NULL,
     "read a state in HDF5 in a process of its own, which it cannot harm", NULL, NULL, 0},
    {.help = "Step"},
    {"batch-size", OPTION_INT, AT(batch_size), "N", "rows of a batch", "32", NULL, 1},
    {"memory-max", OPTION_BYTES, AT(memory_max), "BYTES",
     "plan under the ceiling that a training run would have: 512M, 8G", "none", NULL, 0},
    PRECISION_OPTION(AT(precision)),
    RECOMPUTE_OPTION(AT(recompute)),
    {"parallel", OPTION_TEXT, AT(parallel), "TEXT",
     "what each of D processes would take and send, with batches of N rows for all of them: "
     "\"D=8 zero=3 slices=8 accumulate=4 sync-batch-norm=0 reproducible=0\", as options "
     "of train",
     NULL, NULL, 0},
    {0},
};

// What the options say of steps, as a configuration; the exit code.
static int configure_step(const info_values *v, ot_config **config)
{
    int code;

    if (ot_config_create(config) != OT_OK)
        return report_error();
    code = config_give(*config, "options.onnxtrain.precision",
                       json_string(precision_names[v->precision]), OT_CONFIG_FLAG);
    if (code == EXIT_SUCCESS)
        code = recompute_give(*config, &v->recompute, OT_CONFIG_FLAG);
    return code == EXIT_SUCCESS && ot_config_check(*config, NULL) != OT_OK ? report_error() : code;
}

// ---- the model ----

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

// Of artifacts their checkpoint tells.
static void count_kept(const ot_checkpoint *checkpoint, json_t *object)
{
    const int n = ot_checkpoint_parameter_count(checkpoint);
    json_int_t elements = 0, trained = 0;

    for (int i = 0; i < n; i++) {
        const char *name = ot_checkpoint_parameter_name(checkpoint, i);
        ot_dtype dtype;
        ot_shape shape = {.ndim = 0};
        json_int_t count = 1;

        (void)ot_checkpoint_parameter_info(checkpoint, name, &dtype, &shape);
        for (int k = 0; k < shape.ndim; k++)
            count *= shape.dim[k];
        elements += count;
        trained += ot_checkpoint_parameter_trainable(checkpoint, name) > 0 ? count : 0;
    }
    json_object_set_new(
        object, "parameters",
        json_pack("{s:i,s:I,s:I}", "tensors", n, "elements", elements, "trainable", trained));
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

// `checkpoint`: of artifacts, whose parameters are inputs of their models; else NULL.
static json_t *collect(const ot_model *model, const ot_checkpoint *checkpoint, const info_values *v,
                       const model_setup *setup, const step_info *step)
{
    json_t *object = json_object(), *inputs = json_array(), *outputs = json_array();

    const int n_inputs = ot_model_input_count(model);

    for (int i = 0; i < n_inputs; i++) {
        const char *name = ot_model_input_name(model, i);

        if (!checkpoint || ot_checkpoint_parameter_trainable(checkpoint, name) < 0)
            json_array_append_new(inputs, value_json(model, name));
    }
    for (int i = 0; i < ot_model_output_count(model); i++)
        json_array_append_new(outputs, value_json(model, ot_model_output_name(model, i)));
    json_object_set_new(object, "inputs", inputs);
    json_object_set_new(object, "outputs", outputs);
    json_object_set_new(object, "operators", operators_json(model));
    if (checkpoint)
        count_kept(checkpoint, object);
    else
        count_parameters(model, setup, object);
    info_step_add(step, v->batch_size, object);
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
    info_step_print(step, batch_size);
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

// A directory that has a training model; of others the reader of models tells what they are.
static bool has_artifacts(const char *path)
{
    static const char *const names[] = {"training_model.onnx", "training_model.ort"};
    bool is_there = false;

    for (size_t i = 0; !is_there && i < sizeof names / sizeof names[0]; i++) {
        char *name = path_in(path, "", names[i]);

        is_there = name && access(name, F_OK) == 0;
        free(name);
    }
    return is_there;
}

// What is looked at: a forward model, or artifacts.
typedef struct info_source {
    ot_model *forward;
    ot_artifacts *artifacts;
    const ot_model *model; // that is shown: the forward or the eval model
    const ot_checkpoint *checkpoint;
} info_source;

static int load_artifacts(const info_values *v, const char *path, info_source *source)
{
    static const char *const apply[] = {"op-library", NULL};
    const char *given = option_given(model_option_table, apply);

    if (given)
        return report_text("--%s: the artifacts in '%s' have this built in", given, path);
    if (v->text)
        return report_text("--text: '%s' is a directory, expected a model", path);
    if (ot_artifacts_load(path, "", &source->artifacts) != OT_OK)
        return report_error();
    source->model = ot_artifacts_eval_model(source->artifacts);
    if (!source->model)
        source->model = ot_artifacts_training_model(source->artifacts);
    source->checkpoint = ot_artifacts_checkpoint(source->artifacts);
    return EXIT_SUCCESS;
}

static int load_source(const info_values *v, const char *path, info_source *source)
{
    int code = load_op_libraries(&v->model.op_libraries);

    if (code != EXIT_SUCCESS)
        return code;
    if (has_artifacts(path))
        return load_artifacts(v, path, source);
    code = load_model(path, &source->forward);
    source->model = source->forward;
    return code;
}

static int show_step(const info_values *v, const info_source *source, const model_setup *setup,
                     const step_info *step)
{
    json_t *info;

    if (v->plan)
        return info_step_print_plan(step);
    if (v->parallel && !step->has_ranks)
        return report_error();
    info = collect(source->model, source->checkpoint, v, setup, step);
    if (!v->json)
        print_text(info, step, v->batch_size);
    else
        write_json(stdout, json_incref(info), JSON_INDENT(1));
    json_decref(info);
    return EXIT_SUCCESS;
}

static int show_source(const info_values *v, const info_source *source)
{
    ot_config *config = NULL;
    model_setup setup = {0};
    step_info step = {0};
    int code;

    if (v->parallel) // which has been checked
        (void)parallel_ranks_parse(v->parallel, &step.ranks);
    if (v->parallel && v->model.batch_norm == BATCH_NORM_SYNC)
        step.ranks.sync_batch_norm = 1;
    if (v->text)
        return print_model(source->model);
    code = configure_step(v, &config);
    if (code == EXIT_SUCCESS && source->forward)
        code = model_setup_init(&setup, &v->model, source->forward);
    if (code == EXIT_SUCCESS) {
        step.json = v->json;
        info_step_measure(source->forward, source->artifacts, v->memory_max, v->batch_size, config,
                          &setup, &step);
        code = show_step(v, source, &setup, &step);
    }
    ot_config_destroy(config);
    ot_string_free(step.plan);
    model_setup_deinit(&setup);
    return code;
}

static int info_run(const void *values, const char *const *arguments)
{
    const info_values *v = values;
    info_source source = {0};
    int code;

    if (ot_hdf5_is_file(arguments[0]))
        return info_state(arguments[0], v->untrusted, v->json);
    if (ckpt_is_directory(arguments[0]) || ckpt_is_safetensors(arguments[0]))
        return ckpt_summary(arguments[0], v->json);
    code = load_source(v, arguments[0], &source);
    if (code == EXIT_SUCCESS)
        code = show_source(v, &source);
    ot_artifacts_destroy(source.artifacts);
    ot_model_destroy(source.forward);
    return code;
}

static int info_check(const void *values, const char *const *arguments)
{
    const info_values *v = values;
    ot_parallel_ranks ignored;

    if (v->parallel && (v->plan || v->text))
        return report_usage("--parallel and --%s exclude each other", v->plan ? "plan" : "text");
    if (v->parallel && parallel_ranks_parse(v->parallel, &ignored) != EXIT_SUCCESS)
        return EXIT_USAGE;
    return model_command_check(values, arguments);
}

const command command_info = {
    .name = "info",
    .summary = "show inputs, outputs, parameters, operators and the memory of a step",
    .arguments = "MODEL",
    .n_arguments = 1,
    .description =
        "Shows what MODEL is made of and what a training step of it needs. Of a "
        "trainer's state in an HDF5 file, which may be in the place of MODEL, it shows "
        "names, types and values; of a checkpoint directory who wrote what and when; of a "
        "directory of artifacts what it shows of models.",
    .example = "onnxtrain info model.onnx --batch-size 64",
    .tables = {{info_table, 0}, {model_option_table, AT(model)}},
    .values_size = sizeof(info_values),
    .check = info_check,
    .run = info_run,
};
