// SPDX-License-Identifier: Apache-2.0
// Writes the files that the command has no way to; check.py calls it.
//   write_files model IN OUT [BYTES]    a model read and saved; tensors of BYTES or more outside
//   write_files inferred IN OUT         as above, after ot_model_infer()
//   write_files checkpoint IN OUT       a checkpoint read and saved with its optimizer state
//   write_files nominal FOLDER          nominal_checkpoint in a folder of artifacts
//   write_files session FOLDER OUT      checkpoint of a session that has done no step
//   write_files gradients FOLDER IN...  FOLDER/<name of IN>.<input>.onnx: gradients of
//                                       IN's first output by every input that has one
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/onnxtrain.h"

enum { PATH_MAX_LENGTH = 1000 };

static ot_status write_model(char **arguments, int n)
{
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    ot_model *model = NULL;
    ot_status st = ot_model_load(arguments[0], NULL, &model);

    if (n > 2)
        options.external_from = (size_t)strtoul(arguments[2], NULL, 10);
    if (st == OT_OK)
        st = ot_model_save(model, arguments[1], &options);
    ot_model_destroy(model);
    return st;
}

static ot_status write_inferred(char **arguments, int n)
{
    ot_model *model = NULL;
    ot_status st = ot_model_load(arguments[0], NULL, &model);

    (void)n;
    if (st == OT_OK)
        st = ot_model_infer(model);
    if (st == OT_OK)
        st = ot_model_save(model, arguments[1], NULL);
    ot_model_destroy(model);
    return st;
}

static ot_status write_checkpoint(char **arguments, int n)
{
    ot_checkpoint *checkpoint = NULL;
    ot_status st = ot_checkpoint_load(arguments[0], &checkpoint);

    (void)n;
    if (st == OT_OK)
        st = ot_checkpoint_save(checkpoint, arguments[1], OT_CHECKPOINT_OPTIMIZER_STATE);
    ot_checkpoint_destroy(checkpoint);
    return st;
}

static ot_status write_nominal(char **arguments, int n)
{
    ot_artifacts *artifacts = NULL;
    ot_status st = ot_artifacts_load(arguments[0], NULL, &artifacts);

    (void)n;
    if (st == OT_OK)
        st = ot_artifacts_save_nominal(artifacts, arguments[0], NULL);
    ot_artifacts_destroy(artifacts);
    return st;
}

static ot_status write_session(char **arguments, int n)
{
    ot_artifacts *artifacts = NULL;
    ot_session *session = NULL;
    ot_status st = ot_artifacts_load(arguments[0], NULL, &artifacts);

    (void)n;
    if (st == OT_OK)
        st = ot_session_create_from_artifacts(artifacts, NULL, &session);
    if (st == OT_OK)
        st = ot_session_save(session, arguments[1]);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    return st;
}

static ot_status save_gradient(const ot_model *model, int i_input, const char *path)
{
    const char *wrt = ot_model_input_name(model, i_input);
    ot_gradients *gradients = NULL;
    ot_status st;

    // Refusals are the business of other tests; here the file is missing then.
    if (ot_gradients_create(model, ot_model_output_name(model, 0), &wrt, 1, NULL, &gradients) !=
        OT_OK)
        return OT_OK;
    st = ot_model_save(ot_gradients_model(gradients), path, NULL);
    ot_gradients_destroy(gradients);
    return st;
}

static ot_status write_gradients(char **arguments, int n)
{
    ot_status st = OT_OK;

    for (int a = 1; a < n && st == OT_OK; a++) {
        const char *slash = strrchr(arguments[a], '/');
        ot_model *model = NULL;

        st = ot_model_load(arguments[a], NULL, &model);
        for (int i = 0; st == OT_OK && i < ot_model_input_count(model); i++) {
            char path[PATH_MAX_LENGTH];

            snprintf(path, sizeof path, "%s/%s.%d.onnx", arguments[0],
                     slash ? slash + 1 : arguments[a], i);
            st = save_gradient(model, i, path);
        }
        ot_model_destroy(model);
    }
    return st;
}

static const struct {
    const char *name;
    int n_arguments; // at least
    ot_status (*write)(char **arguments, int n);
} kinds[] = {
    {"model", 2, write_model},           {"inferred", 2, write_inferred},
    {"checkpoint", 2, write_checkpoint}, {"nominal", 1, write_nominal},
    {"session", 2, write_session},       {"gradients", 2, write_gradients},
};

int main(int argc, char **argv)
{
    for (size_t k = 0; argc > 1 && k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(argv[1], kinds[k].name) == 0 && argc - 2 >= kinds[k].n_arguments) {
            if (kinds[k].write(argv + 2, argc - 2) == OT_OK)
                return 0;
            fprintf(stderr, "write_files: %s\n", ot_error_message());
            return 1;
        }
    fprintf(stderr, "usage: write_files KIND ARGUMENT...: see the source\n");
    return 2;
}
