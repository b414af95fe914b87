// SPDX-License-Identifier: Apache-2.0
// onnxtrain export: an inference model from artifacts and a checkpoint.
#include <stdlib.h>

#include "commands.h"
#include "model_options.h"
#include "onnxtrain/onnxtrain.h"
#include "output_files.h"
#include "report.h"

typedef struct export_values {
    const char *out, *checkpoint;
    text_list outputs;
    int64_t memory_max;
} export_values;

#define AT(member) offsetof(export_values, member)

static const option_spec export_table[] = {
    {.help = "Files"},
    {"out", OPTION_TEXT, AT(out), "FILE", "the inference model", NULL, NULL, 0},
    {"checkpoint", OPTION_TEXT, AT(checkpoint), "FILE", "parameters to use", "the artifacts' own",
     NULL, 0},
    {"output", OPTION_LIST, AT(outputs), "NAME", "value of the eval model that becomes an output",
     "its outputs that need no target", NULL, 0},
    {.help = "Running"},
    MEMORY_MAX_OPTION(AT(memory_max)),
    {0},
};

static int export_model(const export_values *v, ot_artifacts *artifacts, ot_checkpoint *checkpoint)
{
    ot_session *session = NULL;
    ot_model *model = NULL;
    int code = EXIT_SUCCESS;

    if (ot_session_create(ot_artifacts_training_model(artifacts),
                          ot_artifacts_eval_model(artifacts), NULL,
                          checkpoint ? checkpoint : ot_artifacts_checkpoint(artifacts), NULL,
                          &session) != OT_OK ||
        ot_session_export_view(session, v->outputs.items, v->outputs.count, &model) != OT_OK ||
        ot_model_save(model, v->out, NULL) != OT_OK)
        code = report_error();
    ot_model_destroy(model);
    ot_session_destroy(session);
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
static int check_outputs(const export_values *v, const char *folder)
{
    int code = check_output("out", v->out, &v->checkpoint, v->checkpoint ? 1 : 0);

    return code == EXIT_SUCCESS ? check_artifact_files(folder, "", &v->out, 1) : code;
}

static int export_run(const void *values, const char *const *arguments)
{
    const export_values *v = values;
    ot_artifacts *artifacts = NULL;
    ot_checkpoint *checkpoint = NULL;
    int code = check_outputs(v, arguments[0]);

    set_memory_max(v->memory_max);
    if (code == EXIT_SUCCESS && ot_artifacts_load(arguments[0], "", &artifacts) != OT_OK)
        code = report_error();
    if (code == EXIT_SUCCESS && v->checkpoint) {
        ot_checkpoint_destroy(ot_artifacts_take_checkpoint(artifacts)); // makes room
        if (ot_checkpoint_load_parameters(v->checkpoint, &checkpoint) != OT_OK)
            code = report_error();
    }
    if (code == EXIT_SUCCESS)
        code = export_model(v, artifacts, checkpoint);
    ot_checkpoint_destroy(checkpoint);
    ot_artifacts_destroy(artifacts);
    return code;
}

const command command_export = {
    .name = "export",
    .summary = "write an inference model from artifacts and a checkpoint",
    .arguments = "DIR",
    .n_arguments = 1,
    .description = "Cuts the eval model in DIR to the outputs wanted, puts the parameters of the "
                   "checkpoint in, and writes an "
                   "ordinary ONNX model.",
    .example =
        "onnxtrain export artifacts --checkpoint run/checkpoint --output logits --out trained.onnx",
    .tables = {{export_table, 0}},
    .values_size = sizeof(export_values),
    .check = export_check,
    .run = export_run,
};
