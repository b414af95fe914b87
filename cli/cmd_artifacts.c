// SPDX-License-Identifier: Apache-2.0
// onnxtrain artifacts: the four files of training from a forward model.
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "model_options.h"
#include "onnxtrain/onnxtrain.h"
#include "op_libraries.h"
#include "output_files.h"
#include "report.h"

typedef struct artifacts_values {
    model_values model;
    const char *out, *prefix;
    text_list outputs;
    bool ort_format, standard_ops;
    int64_t memory_max;
} artifacts_values;

#define AT(member) offsetof(artifacts_values, member)

static const option_spec artifacts_table[] = {
    {.help = "Files"},
    {"out", OPTION_TEXT, AT(out), "DIR", "directory to write to; made when missing", ".", NULL, 0},
    {"prefix", OPTION_TEXT, AT(prefix), "TEXT", "put before every file name", NULL, NULL, 0},
    {"output", OPTION_LIST, AT(outputs), "NAME",
     "value that the training and eval model give after the loss", "what the first --loss takes",
     NULL, 0},
    {"ort-format", OPTION_FLAG, AT(ort_format), NULL,
     "write the models in ONNX Runtime's .ort format too", NULL, NULL, 0},
    {"standard-ops", OPTION_FLAG, AT(standard_ops), NULL,
     "write the training model, gradients included, in ONNX's own operators where they can say it; "
     "a note names the others",
     NULL, NULL, 0},
    {.help = "Running"},
    MEMORY_MAX_OPTION(AT(memory_max)),
    {0},
};

static int artifacts_check(const void *values, const char *const *arguments)
{
    const artifacts_values *v = values;

    (void)arguments;
    if (v->out && !*v->out)
        return report_usage("--out: the name is empty");
    if (v->prefix && strchr(v->prefix, '/'))
        return report_usage("--prefix: '%s' contains '/', but begins the names of files",
                            v->prefix);
    if (v->model.batch_norm == BATCH_NORM_SYNC)
        return report_usage("--batch-norm sync: artifacts are of one process; make them with "
                            "--batch-norm batch, and train them with --sync-batch-norm");
    return model_values_check(&v->model);
}

static int artifacts_run(const void *values, const char *const *arguments)
{
    const artifacts_values *v = values;
    ot_model *model = NULL;
    model_setup setup = {0};
    ot_artifacts *artifacts = NULL;
    const char *folder = v->out ? v->out : ".", *prefix = v->prefix ? v->prefix : "";
    int code = check_artifact_files(folder, prefix, arguments, 1);

    if (code == EXIT_SUCCESS)
        code = check_artifact_files(folder, prefix, v->model.loss.items, v->model.loss.count);

    set_memory_max(v->memory_max);
    if (code == EXIT_SUCCESS)
        code = load_op_libraries(&v->model.op_libraries);
    if (code == EXIT_SUCCESS)
        code = load_model(arguments[0], &model);
    if (code == EXIT_SUCCESS)
        code = model_setup_init(&setup, &v->model, model);
    if (code == EXIT_SUCCESS) {
        setup.options.ort_format = v->ort_format;
        setup.options.standard_ops = v->standard_ops;
        if (v->outputs.count) {
            setup.options.additional_outputs = v->outputs.items;
            setup.options.n_additional_outputs = v->outputs.count;
        } else if (setup.options.n_additional_outputs > 1) {
            setup.options.n_additional_outputs = 1; // as ONNX Runtime: no more than is asked for
        }
        if (ot_artifacts_generate(model, &setup.options, &artifacts) != OT_OK ||
            ot_artifacts_save(artifacts, folder, prefix) != OT_OK)
            code = report_error();
        report_notes(artifacts);
    }
    ot_artifacts_destroy(artifacts);
    model_setup_deinit(&setup);
    ot_model_destroy(model);
    return code;
}

const command command_artifacts = {
    .name = "artifacts",
    .summary = "write the training, eval and optimizer model and a checkpoint",
    .arguments = "MODEL",
    .n_arguments = 1,
    .description = "Writes training_model.onnx, eval_model.onnx, optimizer_model.onnx and "
                   "checkpoint for the forward "
                   "model MODEL, in the format of ONNX Runtime 1.19.2.",
    .example = "onnxtrain artifacts model.onnx --loss mse --optimizer sgd --out artifacts",
    .tables = {{artifacts_table, 0}, {model_option_table, AT(model)}},
    .values_size = sizeof(artifacts_values),
    .check = artifacts_check,
    .run = artifacts_run,
};
