// SPDX-License-Identifier: Apache-2.0
// onnxtrain export: an inference model from a folder of artifacts, or of a run, and a checkpoint.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt_summary.h"
#include "commands.h"
#include "model_options.h"
#include "onnxtrain/onnxtrain.h"
#include "op_libraries.h"
#include "output_files.h"
#include "report.h"

typedef struct export_values {
    const char *out, *checkpoint;
    text_list outputs, op_libraries;
    int64_t memory_max;
} export_values;

#define AT(member) offsetof(export_values, member)

static const option_spec export_table[] = {
    {.help = "Files"},
    {"out", OPTION_TEXT, AT(out), "FILE", "the inference model", NULL, NULL, 0},
    {"checkpoint", OPTION_TEXT, AT(checkpoint), "FILE",
     "parameters to use: a file or checkpoint directory in DIR, as best or step-7, or any other; "
     "also safetensors files of another tool",
     "checkpoint, or the directory that latest names", NULL, 0},
    {"output", OPTION_LIST, AT(outputs), "NAME", "value of the eval model that becomes an output",
     "of a run: what train --out gives; else the outputs that need no target", NULL, 0},
    {.help = "Running"},
    OP_LIBRARY_OPTION(AT(op_libraries)),
    MEMORY_MAX_OPTION(AT(memory_max)),
    {0},
};

// The file called `name` in the folder when it is there, else what `name` says alone.
static char *find_file(const char *folder, const char *name)
{
    char *path = path_in(folder, "", name);

    if (path && (strchr(name, '/') || access(path, F_OK) != 0)) {
        free(path);
        path = strdup(name);
        if (!path)
            report_text("out of memory");
    }
    return path;
}

static int check_folder(const char *folder, const char *model_path)
{
    struct stat info;

    if (stat(folder, &info) != 0)
        return report_text("%s: there is no such directory", folder);
    if (!S_ISDIR(info.st_mode))
        return report_text("%s: is a file, not a directory of artifacts", folder);
    if (access(model_path, F_OK) != 0)
        return report_text(
            "%s: is not a directory of artifacts, or of a run: it lacks eval_model.onnx", folder);
    return EXIT_SUCCESS;
}

// What a run has saved last.
static char *find_state(const char *folder)
{
    char *file = path_in(folder, "", "checkpoint");

    if (!file || access(file, F_OK) == 0 || !ckpt_is_directory(folder))
        return file;
    free(file);
    return path_in(folder, "", "");
}

static char *find_model(const char *folder)
{
    char *onnx = path_in(folder, "", "eval_model.onnx"),
         *ort = path_in(folder, "", "eval_model.ort");
    const bool is_ort = onnx && ort && access(onnx, F_OK) != 0 && access(ort, F_OK) == 0;

    free(is_ort ? onnx : ort);
    return is_ort ? ort : onnx;
}

static ot_status load_state(const char *folder, const char *path, ot_checkpoint **out)
{
    char *base;
    ot_status st;

    if (!ckpt_is_directory(path) && !ckpt_is_safetensors(path))
        return ot_checkpoint_load_parameters(path, out);
    base = path_in(folder, "", "checkpoint");
    st = base ? ckpt_load_parameters(path, base, out) : OT_ERR_NO_MEMORY;
    free(base);
    return st;
}

static int export_model(const export_values *v, const char *folder, const char *model_path,
                        const char *state_path)
{
    ot_model *eval = NULL, *model = NULL;
    ot_checkpoint *checkpoint = NULL;
    int code = EXIT_SUCCESS;

    if (ot_model_load(model_path, NULL, &eval) != OT_OK ||
        load_state(folder, state_path, &checkpoint) != OT_OK ||
        ot_model_export_view(eval, checkpoint, v->outputs.items, v->outputs.count, &model) !=
            OT_OK ||
        ot_model_save(model, v->out, NULL) != OT_OK)
        code = report_error();
    ot_model_destroy(model);
    ot_checkpoint_destroy(checkpoint);
    ot_model_destroy(eval);
    return code;
}

static int export_check(const void *values, const char *const *arguments)
{
    const export_values *v = values;

    (void)arguments;
    if (!v->out)
        return report_usage("--out is missing");
    if (v->checkpoint && !*v->checkpoint)
        return report_usage("--checkpoint: the name is empty");
    return check_output_name("out", v->out, &v->checkpoint, v->checkpoint ? 1 : 0);
}

// The files of the folder are read, too.
static int check_outputs(const export_values *v, const char *folder, const char *state_path)
{
    int code = check_output("out", v->out, &state_path, 1);

    return code == EXIT_SUCCESS ? check_artifact_files(folder, "", &v->out, 1) : code;
}

static int export_run(const void *values, const char *const *arguments)
{
    const export_values *v = values;
    const char *folder = arguments[0];
    char *model_path = find_model(folder);
    char *state_path = v->checkpoint ? find_file(folder, v->checkpoint) : find_state(folder);
    int code = EXIT_SUCCESS;

    set_memory_max(v->memory_max);
    if (!model_path || !state_path)
        code = EXIT_FAILED;
    if (code == EXIT_SUCCESS)
        code = check_folder(folder, model_path);
    if (code == EXIT_SUCCESS)
        code = check_outputs(v, folder, state_path);
    if (code == EXIT_SUCCESS)
        code = load_op_libraries(&v->op_libraries);
    if (code == EXIT_SUCCESS)
        code = export_model(v, folder, model_path, state_path);
    free(model_path);
    free(state_path);
    return code;
}

const command command_export = {
    .name = "export",
    .summary = "write an inference model from artifacts, or from a training run",
    .arguments = "DIR",
    .n_arguments = 1,
    .description =
        "Cuts the eval model in DIR, a directory of artifacts or the --checkpoint-dir of a "
        "run, to the outputs wanted, puts the parameters of the checkpoint in, and "
        "writes an ordinary ONNX model.",
    .example = "onnxtrain export run --checkpoint best --out trained.onnx",
    .tables = {{export_table, 0}},
    .values_size = sizeof(export_values),
    .check = export_check,
    .run = export_run,
};
