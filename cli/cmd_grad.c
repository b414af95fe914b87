// SPDX-License-Identifier: Apache-2.0
// onnxtrain grad: gradients of a value of a model, as a model or, with data, as arrays.
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "commands.h"
#include "model_options.h"
#include "onnxtrain/onnxtrain.h"
#include "op_libraries.h"
#include "output_files.h"
#include "report.h"

typedef struct grad_values {
    const char *of, *out, *seed;
    text_list wrt, data, bind, op_libraries;
    int64_t rows, threads, memory_max;
    double scale;
    bool ones, keep_operators, json;
} grad_values;

#define AT(member) offsetof(grad_values, member)

static const option_spec grad_table[] = {
    {.help = "Gradients"},
    {"of", OPTION_TEXT, AT(of), "NAME", "value to differentiate, an output or any other", NULL,
     NULL, 0},
    {"wrt", OPTION_LIST, AT(wrt), "NAME",
     "input, initializer or computed value to differentiate by", NULL, NULL, 0},
    {"ones", OPTION_FLAG, AT(ones), NULL,
     "differentiate the sum of the value's elements; else a value of more than one element gets an "
     "input NAME_grad, by which its gradients are weighted",
     NULL, NULL, 0},
    {"out", OPTION_TEXT, AT(out), "FILE",
     "the model that computes them (.onnx, .onnxtxt), or with --data the arrays: .npz, or .npy for "
     "one gradient",
     NULL, NULL, 0},
    {"keep-operators", OPTION_FLAG, AT(keep_operators), NULL,
     "keep operators in the model that only training runtimes have", NULL, NULL, 0},
    {.help = "Data"},
    {"data", OPTION_LIST, AT(data), "[NAME=]FILE",
     "arrays for the inputs, by their names: .npz, .npy, CSV or IDX, each also gzipped", NULL, NULL,
     0},
    {"seed", OPTION_TEXT, AT(seed), "FILE", "array of the value's shape that weights its gradients",
     NULL, NULL, 0},
    {"bind", OPTION_LIST, AT(bind), "INPUT=FIELD",
     "array or CSV columns (a,b or first:last) that an input takes", NULL, NULL, 0},
    {"scale", OPTION_REAL, AT(scale), "X", "factor on the arrays of real numbers", "1", NULL,
     ANY_NUMBER},
    {"rows", OPTION_INT, AT(rows), "N", "at most so many rows; 0: all", "0", NULL, 0},
    {.help = "Running"},
    OP_LIBRARY_OPTION(AT(op_libraries)),
    {"threads", OPTION_INT, AT(threads), "N", "0: all processors", "0", NULL, 0},
    MEMORY_MAX_OPTION(AT(memory_max)),
    {"json", OPTION_FLAG, AT(json), NULL, "print one JSON object", NULL, NULL, 0},
    {0},
};

typedef struct gradient_run {
    const grad_values *values;
    ot_model *model;
    ot_gradients *gradients;
    array_files files, seed_files;
    ot_tensor **inputs, **outputs; // of the gradient model
    int n_inputs, n_outputs;
} gradient_run;

// ---- options ----

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_array_file(const char *path)
{
    return ends_with(path, ".npz") || ends_with(path, ".npy");
}

typedef int output_check(const char *option, const char *path, const char *const *inputs,
                         int n_inputs);

static int check_outputs(const grad_values *v, const char *model, output_check *check)
{
    int code = check("out", v->out, &model, 1);

    if (code == EXIT_SUCCESS)
        code = check("out", v->out, v->data.items, v->data.count);
    return code == EXIT_SUCCESS ? check("out", v->out, &v->seed, v->seed ? 1 : 0) : code;
}

static int grad_check(const void *values, const char *const *arguments)
{
    const grad_values *v = values;
    const bool has_data = v->data.count > 0;
    int code;

    if (!v->of)
        return report_usage("--of is missing");
    if (v->wrt.count == 0)
        return report_usage("--wrt is missing");
    if (!v->out)
        return report_usage("--out is missing");
    if (has_data != is_array_file(v->out))
        return report_usage(has_data ? "--out: with --data arrays are written, to .npz or .npy"
                                     : "--out: arrays need --data");
    if (ends_with(v->out, ".npy") && v->wrt.count > 1)
        return report_usage("--out: an .npy holds one array, %d are wanted", v->wrt.count);
    if (!has_data && (v->seed || v->bind.count > 0))
        return report_usage("--%s needs --data", v->seed ? "seed" : "bind");
    if (v->seed && v->ones)
        return report_usage("--seed and --ones exclude each other");
    code = check_outputs(v, arguments[0], check_output_name);
    return code == EXIT_SUCCESS ? check_threads(v->threads) : code;
}

static int create(gradient_run *r)
{
    ot_gradients_options options = OT_GRADIENTS_OPTIONS_INIT;
    ot_session_options session = OT_SESSION_OPTIONS_INIT;
    const grad_values *v = r->values;

    session.n_threads = (int)v->threads;
    session.memory_max = set_memory_max(v->memory_max);
    options.session = &session;
    options.seed = v->ones ? OT_SEED_ONES : v->seed ? OT_SEED_INPUT : OT_SEED_AUTO;
    options.keep_operators = v->keep_operators;
    if (ot_gradients_create(r->model, v->of, v->wrt.items, v->wrt.count, &options, &r->gradients) !=
        OT_OK)
        return report_error();
    return EXIT_SUCCESS;
}

// ---- the model ----

static json_t *names_json(const ot_model *model, const char *(*name)(const ot_model *, int), int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(list, text_json(name(model, i)));
    return list;
}

static int write_model(const gradient_run *r)
{
    const ot_model *model = ot_gradients_model(r->gradients);
    const char *left = ot_model_metadata(model, OT_METADATA_NONSTANDARD);
    json_t *object;

    if (ot_model_save(model, r->values->out, NULL) != OT_OK)
        return report_error();
    if (!r->values->json) {
        printf("%s: %d inputs, %d outputs; %s%s\n", r->values->out, ot_model_input_count(model),
               ot_model_output_count(model),
               left ? "other runtimes lack " : "ONNX's own operators only", left ? left : "");
        return EXIT_SUCCESS;
    }
    object = json_object();
    json_object_set_new(object, "model", text_json(r->values->out));
    json_object_set_new(object, "inputs",
                        names_json(model, ot_model_input_name, ot_model_input_count(model)));
    json_object_set_new(object, "outputs",
                        names_json(model, ot_model_output_name, ot_model_output_count(model)));
    json_object_set_new(object, "nonstandard_operators", left ? text_json(left) : json_null());
    write_json(stdout, object, JSON_COMPACT);
    return EXIT_SUCCESS;
}

// ---- the arrays ----

static bool is_real(ot_dtype dtype)
{
    return dtype == OT_F32 || dtype == OT_F64 || dtype == OT_F16 || dtype == OT_BF16;
}

static int read_seed(gradient_run *r, int index)
{
    const grad_values *v = r->values;
    const ot_model *model = ot_gradients_model(r->gradients);
    const array_request request = {.model = model,
                                   .name = ot_model_input_name(model, index),
                                   .is_only = true,
                                   .max_rows = v->rows,
                                   .scale = 1.0};
    int code;

    if (!v->seed)
        return report_text("'%s' has more than one element: --seed FILE or --ones", v->of);
    code = array_files_open(&r->seed_files, &(text_list){(const char **)&v->seed, 1});
    return code == EXIT_SUCCESS ? array_read(&r->seed_files, &request, &r->inputs[index]) : code;
}

// The seed, if it is an input, is the last one.
static int read_inputs(gradient_run *r)
{
    const grad_values *v = r->values;
    const ot_model *model = ot_gradients_model(r->gradients);
    const char *last = ot_model_input_name(model, ot_model_input_count(model) - 1);
    array_request request = {.model = model, .bind = &v->bind, .max_rows = v->rows};
    ot_dtype dtype;
    ot_shape shape;
    int code = array_files_open(&r->files, &v->data);
    bool has_seed;
    int n;

    r->n_inputs = ot_model_input_count(model);
    r->inputs = calloc((size_t)r->n_inputs + 1, sizeof(*r->inputs));
    if (code == EXIT_SUCCESS && !r->inputs)
        code = report_text("out of memory");
    has_seed = last && ot_model_value_info(r->model, last, &dtype, &shape) != OT_OK;
    n = r->n_inputs - has_seed;
    request.is_only = n == 1;
    for (int i = 0; code == EXIT_SUCCESS && i < n; i++) {
        request.name = ot_model_input_name(model, i);
        if (ot_model_value_info(model, request.name, &dtype, &shape) != OT_OK)
            return report_error();
        request.scale = is_real(dtype) ? v->scale : 1.0;
        code = array_read(&r->files, &request, &r->inputs[i]);
    }
    return code == EXIT_SUCCESS && has_seed ? read_seed(r, n) : code;
}

static void print_arrays(const gradient_run *r, const char *const *names)
{
    for (int i = 0; i < r->n_outputs; i++) {
        const ot_shape *shape = ot_tensor_shape(r->outputs[i]);

        printf("%s %s[", names[i], ot_dtype_name(ot_tensor_dtype(r->outputs[i])));
        for (int k = 0; k < shape->ndim; k++)
            printf("%s%lld", k > 0 ? "," : "", (long long)shape->dim[k]);
        printf("]\n");
    }
}

static json_t *arrays_json(const gradient_run *r, const char *const *names)
{
    json_t *object = json_object(), *arrays = json_object();

    for (int i = 0; i < r->n_outputs; i++) {
        json_t *array = json_object();

        json_object_set_new(array, "dtype",
                            json_string(ot_dtype_name(ot_tensor_dtype(r->outputs[i]))));
        json_object_set_new(array, "shape", shape_json(ot_tensor_shape(r->outputs[i])));
        json_object_set_new(arrays, names[i], array);
    }
    json_object_set_new(object, "file", text_json(r->values->out));
    json_object_set_new(object, "arrays", arrays);
    return object;
}

static int write_arrays(gradient_run *r)
{
    const ot_model *model = ot_gradients_model(r->gradients);
    const int first = ends_with(r->values->out, ".npy"); // an .npy holds the gradient alone
    const char **names;
    int code = EXIT_SUCCESS;

    r->n_outputs = ot_model_output_count(model);
    r->outputs = calloc((size_t)r->n_outputs + 1, sizeof(*r->outputs));
    names = calloc((size_t)r->n_outputs + 1, sizeof(*names));
    if (!r->outputs || !names) {
        free(names);
        return report_text("out of memory");
    }
    for (int i = 0; i < r->n_outputs; i++)
        names[i] = ot_model_output_name(model, i);
    if (ot_gradients_run(r->gradients, (const ot_tensor *const *)r->inputs, r->n_inputs, r->outputs,
                         r->n_outputs) != OT_OK ||
        ot_arrays_save(r->values->out, names + first, (const ot_tensor *const *)r->outputs + first,
                       r->n_outputs - first) != OT_OK)
        code = report_error();
    else if (r->values->json)
        write_json(stdout, arrays_json(r, names), JSON_COMPACT);
    else
        print_arrays(r, names);
    free(names);
    return code;
}

static int grad_run(const void *values, const char *const *arguments)
{
    gradient_run r = {.values = values};
    int code = check_outputs(r.values, arguments[0], check_output);

    if (code == EXIT_SUCCESS)
        code = load_op_libraries(&r.values->op_libraries);
    if (code == EXIT_SUCCESS)
        code = load_model(arguments[0], &r.model);
    if (code == EXIT_SUCCESS)
        code = create(&r);
    if (code == EXIT_SUCCESS && r.values->data.count == 0)
        code = write_model(&r);
    else if (code == EXIT_SUCCESS && (code = read_inputs(&r)) == EXIT_SUCCESS)
        code = write_arrays(&r);
    for (int i = 0; r.inputs && i < r.n_inputs; i++)
        ot_tensor_destroy(r.inputs[i]);
    for (int i = 0; r.outputs && i < r.n_outputs; i++)
        ot_tensor_destroy(r.outputs[i]);
    free(r.inputs);
    free(r.outputs);
    array_files_deinit(&r.files);
    array_files_deinit(&r.seed_files);
    ot_gradients_destroy(r.gradients);
    ot_model_destroy(r.model);
    return code;
}

const command command_grad = {
    .name = "grad",
    .summary = "gradients of a value with respect to inputs or parameters",
    .arguments = "MODEL",
    .n_arguments = 1,
    .description =
        "Writes a model that computes a value of MODEL and its gradients, in ONNX's own "
        "operators where they can express it; or, with --data, computes them and writes "
        "the arrays. MODEL counts as an inference model: BatchNormalization uses stored "
        "statistics, Dropout drops nothing. Otherwise it is taken as it is: what `train` "
        "puts right first, such as merged parameters, is left.",
    .example = "onnxtrain grad model.onnx --of scores --wrt image --ones --out gradient.onnx",
    .tables = {{grad_table, 0}},
    .values_size = sizeof(grad_values),
    .check = grad_check,
    .run = grad_run,
};
