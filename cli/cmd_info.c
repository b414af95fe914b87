// SPDX-License-Identifier: Apache-2.0
// onnxtrain info: inputs, outputs, parameters and operators of a model; memory and plan of a step.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt_summary.h"
#include "commands.h"
#include "info_state.h"
#include "model_options.h"
#include "onnxtrain/onnxtrain.h"
#include "op_libraries.h"
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

// Memory of a training step at the given batch size; no plan when the model cannot be trained as it
// is.
typedef struct step_info {
    size_t state_bytes, plan_bytes;
    ot_memory memory;
    ot_parallel_ranks ranks; // of --parallel, what one takes, and what it sends for an update
    ot_memory rank_memory;
    int64_t n_sent;
    bool has_ranks;
    bool json; // what the plan is wanted as
    char *plan;
    char problem[512]; // why there is none
} step_info;

// Of the inputs that train steps take: those of a trainer without a description.
static ot_status shape_input(const ot_session *session, int index, int64_t batch_size,
                             ot_shape *shape)
{
    ot_dtype dtype;
    ot_status st;

    *shape = (ot_shape){.ndim = 0};
    st = ot_session_input_info(session, OT_MODE_TRAIN, index, &dtype, shape);
    for (int k = 0; k < shape->ndim; k++)
        if (shape->dim[k] < 0)
            shape->dim[k] = k == 0 ? batch_size : 1;
    return st;
}

// A slice of a batch.
static int64_t rows_of_slice(int64_t batch_size, int n_slices)
{
    return batch_size / n_slices + (batch_size % n_slices != 0);
}

static ot_status predict_rank(ot_trainer *trainer, int64_t batch_size, step_info *out)
{
    const int n = ot_trainer_input_count(trainer);
    ot_shape *shapes = calloc((size_t)n + 1, sizeof(*shapes));
    ot_status st = shapes ? OT_OK : OT_ERR_NO_MEMORY;

    for (int i = 0; st == OT_OK && i < n; i++)
        st = shape_input(ot_trainer_session(trainer), i,
                         rows_of_slice(batch_size, out->ranks.slices), &shapes[i]);
    if (st == OT_OK)
        st = ot_trainer_predict(trainer, &out->ranks, shapes, n, &out->rank_memory, &out->n_sent);
    free(shapes);
    return st;
}

// The plan's memory is not touched, so there may be more of it than the machine has.
static void describe_trainer(ot_trainer *trainer, int64_t batch_size, step_info *out)
{
    ot_session *session = ot_trainer_session(trainer);
    const int n = ot_trainer_input_count(trainer);
    ot_shape *shapes = calloc((size_t)n + 1, sizeof(*shapes));
    ot_status st = shapes ? OT_OK : OT_ERR_NO_MEMORY;

    for (int i = 0; st == OT_OK && i < n; i++)
        st = shape_input(session, i, batch_size, &shapes[i]);
    if (st == OT_OK)
        st = ot_trainer_memory(trainer, shapes, n, &out->memory);
    if (st == OT_OK)
        st = (out->json ? ot_session_plan_json : ot_session_describe_plan)(
            session, OT_MODE_TRAIN, shapes, ot_session_input_count(session, OT_MODE_TRAIN),
            &out->plan);
    if (st == OT_OK) {
        out->state_bytes = ot_session_state_bytes(session);
        out->plan_bytes = ot_session_plan_bytes(session);
    }
    free(shapes);
}

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

static void measure_step(const ot_model *model, const info_values *v, const ot_config *config,
                         const model_setup *setup, step_info *out)
{
    ot_trainer_options options = *ot_config_options(config);
    ot_artifacts *artifacts = NULL;
    ot_trainer *trainer = NULL;

    out->memory = out->rank_memory = (ot_memory)OT_MEMORY_INIT;
    options.memory_max = v->memory_max < INT64_MAX ? (size_t)v->memory_max : 0;
    if (ot_trainer_generate_artifacts(model, &setup->options, &options, &artifacts) == OT_OK) {
        set_memory_max(INT64_MAX);
        if (ot_trainer_create_from_artifacts(artifacts, NULL, &options, &trainer) == OT_OK)
            describe_trainer(trainer, v->batch_size, out);
    }
    out->has_ranks = out->plan && v->parallel && predict_rank(trainer, v->batch_size, out) == OT_OK;
    if (!out->plan)
        snprintf(out->problem, sizeof(out->problem), "%s", ot_error_message());
    ot_trainer_destroy(trainer);
    ot_artifacts_destroy(artifacts);
}

// ---- its parts ----

static const struct {
    const char *name;
    size_t offset;
} memory_parts[] = {
    {"parameters", offsetof(ot_memory, parameters)},
    {"gradients", offsetof(ot_memory, gradients)},
    {"moments", offsetof(ot_memory, moments)},
    {"derived", offsetof(ot_memory, derived)},
    {"activations", offsetof(ot_memory, activations)},
    {"scratch", offsetof(ot_memory, scratch)},
    {"outputs", offsetof(ot_memory, outputs)},
    {"structure", offsetof(ot_memory, structure)},
    {"staging", offsetof(ot_memory, staging)},
};
enum { N_PARTS = sizeof memory_parts / sizeof memory_parts[0] };

static size_t memory_part(const ot_memory *memory, int i)
{
    size_t n_bytes;

    memcpy(&n_bytes, (const char *)memory + memory_parts[i].offset, sizeof n_bytes);
    return n_bytes;
}

static json_t *memory_json(const ot_memory *memory)
{
    json_t *object = json_object();

    for (int i = 0; i < N_PARTS; i++)
        json_object_set_new(object, memory_parts[i].name,
                            json_integer((json_int_t)memory_part(memory, i)));
    json_object_set_new(object, "total", json_integer((json_int_t)memory->total));
    return object;
}

static void print_memory(const char *title, const ot_memory *memory)
{
    const char *before = ": ";
    char text[32];

    printf("%-10s %s", title, bytes_text(memory->total, text, sizeof text));
    for (int i = 0; i < N_PARTS; i++) {
        if (memory_part(memory, i) == 0)
            continue;
        printf("%s%s %s", before, memory_parts[i].name,
               bytes_text(memory_part(memory, i), text, sizeof text));
        before = ", ";
    }
    printf("\n");
}

static json_t *ranks_json(const step_info *step)
{
    return json_pack("{s:i,s:i,s:i,s:i,s:b,s:b,s:o,s:I}", "ranks", step->ranks.n_ranks, "zero",
                     step->ranks.zero, "slices", step->ranks.slices, "accumulate",
                     step->ranks.accumulation, "sync_batch_norm", step->ranks.sync_batch_norm,
                     "reproducible", step->ranks.reproducible, "memory",
                     memory_json(&step->rank_memory), "sent_bytes", (json_int_t)step->n_sent);
}

static void print_ranks(const step_info *step)
{
    char text[32];

    printf("parallel   D=%d zero=%d slices=%d accumulate=%d%s%s: each process sends %s for an "
           "update\n",
           step->ranks.n_ranks, step->ranks.zero, step->ranks.slices, step->ranks.accumulation,
           step->ranks.sync_batch_norm != 0 ? " sync-batch-norm=1" : "",
           step->ranks.reproducible != 0 ? " reproducible=1" : "",
           bytes_text((size_t)step->n_sent, text, sizeof text));
    print_memory("of each", &step->rank_memory);
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
                            json_pack("{s:I,s:I,s:I,s:o}", "batch_size", (json_int_t)v->batch_size,
                                      "state_bytes", (json_int_t)step->state_bytes, "plan_bytes",
                                      (json_int_t)step->plan_bytes, "memory",
                                      memory_json(&step->memory)));
    if (step->has_ranks)
        json_object_set_new(object, "parallel", ranks_json(step));
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
    if (step->plan)
        print_memory("memory", &step->memory);
    if (step->has_ranks)
        print_ranks(step);
}

// As text or as JSON, which are many lines.
static int print_plan(const step_info *step)
{
    json_t *plan;

    if (!step->plan)
        return report_error();
    if (!step->json) {
        fputs(step->plan, stdout);
        print_memory("memory", &step->memory);
        return EXIT_SUCCESS;
    }
    plan = json_loads(step->plan, 0, NULL);
    json_object_set_new(plan, "memory", memory_json(&step->memory));
    write_json(stdout, plan, JSON_INDENT(1));
    return EXIT_SUCCESS;
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
    ot_config *config = NULL;
    model_setup setup = {0};
    step_info step = {0};
    json_t *info;
    int code;

    if (ot_hdf5_is_file(arguments[0]))
        return info_state(arguments[0], v->untrusted, v->json);
    if (ckpt_is_directory(arguments[0]) || ckpt_is_safetensors(arguments[0]))
        return ckpt_summary(arguments[0], v->json);
    code = load_op_libraries(&v->model.op_libraries);
    if (code == EXIT_SUCCESS)
        code = load_model(arguments[0], &model);
    if (code != EXIT_SUCCESS)
        return code;
    if (v->parallel) // which has been checked
        (void)parallel_ranks_parse(v->parallel, &step.ranks);
    if (v->parallel && v->model.batch_norm == BATCH_NORM_SYNC)
        step.ranks.sync_batch_norm = 1;
    if (v->text) {
        code = print_model(model);
        ot_model_destroy(model);
        return code;
    }
    code = configure_step(v, &config);
    if (code == EXIT_SUCCESS)
        code = model_setup_init(&setup, &v->model, model);
    if (code != EXIT_SUCCESS) {
        ot_config_destroy(config);
        model_setup_deinit(&setup);
        ot_model_destroy(model);
        return code;
    }
    step.json = v->json;
    measure_step(model, v, config, &setup, &step);
    ot_config_destroy(config);
    if (v->plan) {
        code = print_plan(&step);
    } else if (v->parallel && !step.has_ranks) {
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
    .description = "Shows what MODEL is made of and what a training step of it needs. Of a "
                   "trainer's state in an HDF5 file, which may be in the place of MODEL, it shows "
                   "names, types and values; of a checkpoint directory who wrote what and when.",
    .example = "onnxtrain info model.onnx --batch-size 64",
    .tables = {{info_table, 0}, {model_option_table, AT(model)}},
    .values_size = sizeof(info_values),
    .check = info_check,
    .run = info_run,
};
