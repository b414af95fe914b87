// SPDX-License-Identifier: Apache-2.0
// Artifacts in memory and as files.
#include <string.h>

#include "artifacts/artifacts.h"

#define FILE_TRAINING "training_model"
#define FILE_EVAL "eval_model"
#define FILE_OPTIMIZER "optimizer_model"
#define FILE_CHECKPOINT "checkpoint"
#define FILE_NOMINAL "nominal_checkpoint"
#define ONNX ".onnx"
#define ORT ".ort"

ot_status ot__artifacts_create(ot_artifacts **out)
{
    ot_artifacts *artifacts = ot__alloc_zero(1, sizeof *artifacts);
    ot_status st;

    *out = NULL;
    OT_TRY(ot__made(artifacts));
    OT_ENTER(artifacts);
    artifacts->arena = ot__arena_create();
    st = ot__made(artifacts->arena);
    return OT_HAND_OUT(st, out, artifacts, ot_artifacts_destroy);
}

int ot_artifacts_note_count(const ot_artifacts *artifacts)
{
    return OT_IS_LIVE(artifacts) ? artifacts->n_notes : 0;
}

const char *ot_artifacts_note(const ot_artifacts *artifacts, int index, ot_log_level *level)
{
    const bool is_one = index >= 0 && index < ot_artifacts_note_count(artifacts);

    if (level)
        *level = is_one ? artifacts->notes[index].level : OT_LOG_INFO;
    return is_one ? artifacts->notes[index].text : NULL;
}

void ot_artifacts_destroy(ot_artifacts *artifacts)
{
    if (!OT_ENDS(artifacts))
        return;
    ot_model_destroy(artifacts->training);
    ot_model_destroy(artifacts->eval);
    ot_model_destroy(artifacts->optimizer);
    ot_checkpoint_destroy(artifacts->checkpoint);
    ot__arena_destroy(artifacts->arena);
    ot__free(artifacts);
}

const ot_model *ot_artifacts_training_model(const ot_artifacts *artifacts)
{
    return OT_IS_LIVE(artifacts) ? artifacts->training : NULL;
}

const ot_model *ot_artifacts_eval_model(const ot_artifacts *artifacts)
{
    return OT_IS_LIVE(artifacts) ? artifacts->eval : NULL;
}

const ot_model *ot_artifacts_optimizer_model(const ot_artifacts *artifacts)
{
    return OT_IS_LIVE(artifacts) ? artifacts->optimizer : NULL;
}

ot_status ot_artifacts_set_optimizer_model(ot_artifacts *artifacts, const ot_model *optimizer)
{
    ot_model *copy = NULL;

    OT_TRY(OT_GIVEN(artifacts));
    OT_TRY(OT_OPTIONAL(optimizer, "optimizer"));
    if (optimizer)
        OT_TRY(ot__model_acquire(optimizer, &copy));
    if (copy && !copy->is_final)
        copy->is_final = true;
    ot_model_destroy(artifacts->optimizer);
    artifacts->optimizer = copy;
    return OT_OK;
}

ot_checkpoint *ot_artifacts_checkpoint(ot_artifacts *artifacts)
{
    return OT_IS_LIVE(artifacts) ? artifacts->checkpoint : NULL;
}

ot_checkpoint *ot_artifacts_take_checkpoint(ot_artifacts *artifacts)
{
    ot_checkpoint *checkpoint = ot_artifacts_checkpoint(artifacts);

    if (OT_IS_LIVE(artifacts))
        artifacts->checkpoint = NULL;
    return checkpoint;
}

// ---- paths ----

static ot_status path_of(const char *folder, const char *prefix, const char *name,
                         const char *ending, char **out)
{
    ot__buf file = {0};
    ot_status st;

    *out = NULL;
    if (prefix && strchr(prefix, '/'))
        return ot__error(OT_ERR_INVALID, "prefix '%s' contains '/': it begins file names", prefix);
    ot__buf_printf(&file, "%s%s%s", prefix ? prefix : "", name, ending);
    st = ot__buf_status(&file);
    if (st == OT_OK) {
        *out = ot__path_join(folder, file.data);
        st = ot__made(*out);
    }
    ot__buf_deinit(&file);
    return st;
}

// ---- saving ----

static ot_status save_model(const ot_model *model, const char *folder, const char *prefix,
                            const char *name, const char *ending)
{
    char *path;
    ot_status st;

    if (!model)
        return OT_OK;
    OT_TRY(path_of(folder, prefix, name, ending, &path));
    st = ot_model_save(model, path, NULL);
    ot__free(path);
    return st;
}

static ot_status save_checkpoint(const ot_artifacts *artifacts, const char *folder,
                                 const char *prefix, const char *name, bool nominal)
{
    char *path;
    ot_status st;

    if (!artifacts->checkpoint)
        return OT_OK;
    OT_TRY(path_of(folder, prefix, name, "", &path));
    st = ot__ckpt_save_artifact(artifacts->checkpoint, path, artifacts->parameter_order,
                                artifacts->n_parameters, nominal);
    ot__free(path);
    return st;
}

static ot_status save_models(const ot_artifacts *artifacts, const char *folder, const char *prefix,
                             const char *ending)
{
    OT_TRY(save_model(artifacts->training, folder, prefix, FILE_TRAINING, ending));
    OT_TRY(save_model(artifacts->eval, folder, prefix, FILE_EVAL, ending));
    return save_model(artifacts->optimizer, folder, prefix, FILE_OPTIMIZER, ending);
}

ot_status ot_artifacts_save(const ot_artifacts *artifacts, const char *folder, const char *prefix)
{
    OT_TRY(OT_GIVEN(artifacts));
    OT_TRY(OT_GIVEN(folder));
    OT_TRY(ot__path_make_folder(folder));
    if (artifacts->ort_format) // first: not every model has this form
        OT_TRY(save_models(artifacts, folder, prefix, ORT));
    OT_TRY(save_models(artifacts, folder, prefix, ONNX));
    return save_checkpoint(artifacts, folder, prefix, FILE_CHECKPOINT, false);
}

ot_status ot_artifacts_save_nominal(const ot_artifacts *artifacts, const char *folder,
                                    const char *prefix)
{
    OT_TRY(OT_GIVEN(artifacts));
    OT_TRY(OT_GIVEN(folder));
    OT_TRY(ot__path_make_folder(folder));
    return save_checkpoint(artifacts, folder, prefix, FILE_NOMINAL, true);
}

// ---- loading ----

static ot_status load_model(const char *folder, const char *prefix, const char *name,
                            bool is_optional, ot_model **out)
{
    char *path, *ort_path;
    const char *found;
    ot_status st;

    OT_TRY(path_of(folder, prefix, name, ONNX, &path));
    st = path_of(folder, prefix, name, ORT, &ort_path);
    found = st == OT_OK && !ot__path_exists(path) && ot__path_exists(ort_path) ? ort_path : path;
    if (st == OT_OK && (!is_optional || ot__path_exists(found)))
        st = ot_model_load(found, NULL, out);
    if (*out)
        (*out)->is_final = true;
    ot__free(path);
    ot__free(ort_path);
    return st;
}

static ot_status load_checkpoint(ot_artifacts *artifacts, const char *folder, const char *prefix)
{
    char *path;
    ot_status st;

    OT_TRY(path_of(folder, prefix, FILE_CHECKPOINT, "", &path));
    st = ot_checkpoint_load(path, &artifacts->checkpoint);
    ot__free(path);
    return st;
}

// Parameters are the training model's inputs that the checkpoint knows.
static ot_status find_parameters(ot_artifacts *artifacts)
{
    const ot_graph *graph = artifacts->training->graph;

    artifacts->parameter_order =
        ot__arena_alloc(artifacts->arena, (size_t)(graph->n_inputs + 1) * sizeof(const char *));
    OT_TRY(ot__made(artifacts->parameter_order));
    for (int i = 0; i < graph->n_inputs; i++) {
        const ot__parameter *parameter =
            ot__ckpt_find(artifacts->checkpoint, graph->inputs[i]->name);
        const char **name = &artifacts->parameter_order[artifacts->n_parameters];

        if (!parameter)
            continue;
        *name = ot__arena_strdup(artifacts->arena, parameter->name);
        OT_TRY(ot__made(*name));
        artifacts->n_parameters++;
    }
    return OT_OK;
}

static ot_status load_stored(ot_artifacts *artifacts, const char *folder, const char *prefix)
{
    OT_TRY(load_model(folder, prefix, FILE_TRAINING, false, &artifacts->training));
    OT_TRY(load_model(folder, prefix, FILE_EVAL, true, &artifacts->eval));
    OT_TRY(load_model(folder, prefix, FILE_OPTIMIZER, true, &artifacts->optimizer));
    OT_TRY(load_checkpoint(artifacts, folder, prefix));
    OT_TRY(ot__loss_read(artifacts));
    return find_parameters(artifacts);
}

static ot_status check_folder(const char *folder, const char *prefix)
{
    char *path = NULL, *ort_path = NULL;
    ot_status st;

    if (!ot__path_exists(folder))
        return ot__error(OT_ERR_IO, "%s: there is no such directory", folder);
    if (!ot__path_is_folder(folder))
        return ot__error(OT_ERR_IO, "%s: is a file, not a directory of artifacts", folder);
    st = path_of(folder, prefix, FILE_TRAINING, ONNX, &path);
    OT_THEN(st, path_of(folder, prefix, FILE_TRAINING, ORT, &ort_path));
    if (st == OT_OK && !ot__path_exists(path) && !ot__path_exists(ort_path))
        st = ot__error(OT_ERR_IO,
                       "%s: is not a directory of artifacts: it lacks %s" FILE_TRAINING ONNX,
                       folder, prefix ? prefix : "");
    ot__free(path);
    ot__free(ort_path);
    return st;
}

ot_status ot_artifacts_load(const char *folder, const char *prefix, ot_artifacts **out)
{
    ot_artifacts *artifacts;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(folder));
    OT_TRY(check_folder(folder, prefix));
    OT_TRY(ot__artifacts_create(&artifacts));
    st = load_stored(artifacts, folder, prefix);
    return OT_HAND_OUT(st, out, artifacts, ot_artifacts_destroy);
}
