// SPDX-License-Identifier: Apache-2.0
// Models from files and from memory, whatever form they have.
#include <string.h>

#include "onnx/onnx.h"

// Bytes of protobuf are recognised by the control characters that its tags and lengths are.
static bool looks_like_text(const void *bytes, size_t n_bytes)
{
    const size_t n_examined = 256;
    const uint8_t *text = bytes;
    uint8_t first = 0;

    for (size_t i = 0; i < OT_MIN(n_bytes, n_examined); i++) {
        bool is_space = ot__is_space((char)text[i]);

        if ((text[i] < ' ' && !is_space) || text[i] == 0x7f)
            return false;
        if (first == 0 && !is_space)
            first = text[i];
    }
    return first == '<' || first == '#' || first == '_' || ot__is_letter((char)first);
}

// What is no model may well be something else that is known.
static ot_status explain_kind(ot_status st, const void *bytes, size_t n_bytes, const char *where)
{
    if (st != OT_ERR_FORMAT)
        return st;
    if (n_bytes == 0)
        return ot__error(st, "%s: is empty, expected a model", where);
    if (ot__ends_with(where, ".onnxtxt"))
        return st; // the line that is wrong says more
    OT_TRY(ot__file_kind_check(bytes, n_bytes, where, OT_FILE_MODEL));
    return st;
}

static bool has_file(const char *folder, const char *name)
{
    char *path = ot__path_join(folder, name);
    const bool is_there = path && ot__path_exists(path);

    ot__free(path);
    return is_there;
}

static ot_status refuse_model_folder(const char *path)
{
    const bool is_artifacts =
        has_file(path, "training_model.onnx") || has_file(path, "training_model.ort");

    return ot__error(OT_ERR_IO, "%s: is a directory%s, not a model", path,
                     is_artifacts                   ? " of artifacts"
                     : has_file(path, "checkpoint") ? " with the checkpoint of a run"
                                                    : "");
}

static ot_status read_binary(const void *bytes, size_t n_bytes, const ot_model_options *options,
                             const char *where, const char *folder, ot_model **out)
{
    if (ot__is_ort(bytes, n_bytes))
        return ot__ort_read(bytes, n_bytes, options, where, out);
    return ot__onnx_read(bytes, n_bytes, options, where, folder, out);
}

// *map is given to the model, whose tensors may point into it.
static ot_status load_map(ot__file_map *map, const char *path, const char *folder,
                          const ot_model_options *options, ot_model **out)
{
    ot_model *model;
    ot_status st;

    if (ot__ends_with(path, ".onnxtxt") || looks_like_text(map->data, map->size))
        return ot__text_read_from(folder, (const char *)map->data, map->size, options, path, out);
    OT_TRY(read_binary(map->data, map->size, options, path, folder, &model));
    st = ot__model_hold_map(model, NULL, map);
    return OT_HAND_OUT(st, out, model, ot_model_destroy);
}

ot_status ot_model_load(const char *path, const ot_model_options *options, ot_model **out)
{
    ot_model_options own;
    bool is_standard_input;
    char *folder = NULL;
    ot__file_map map = {0};
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(path));
    OT_TRY(OT_OPTIONS_READ(ot_model_options, OT_MODEL_OPTIONS_INIT, options, &own));
    is_standard_input = strcmp(path, "-") == 0;
    if (ot__path_is_folder(path))
        return refuse_model_folder(path);
    st = ot__file_map_open_within(&map, path, own.max_memory > 0 ? own.max_memory : OT_STREAM_MAX);
    if (st == OT_OK && !is_standard_input) {
        folder = ot__path_folder(path);
        st = ot__made(folder);
    }
    if (st == OT_OK) {
        const char *where = is_standard_input ? "standard input" : path;

        st = explain_kind(load_map(&map, where, folder, &own, out), map.data, map.size, where);
    }
    ot__file_map_close(&map);
    ot__free(folder);
    return st;
}

ot_status ot_model_load_buffer(const void *bytes, size_t n_bytes, const ot_model_options *options,
                               ot_model **out)
{
    const char *where = "model in memory";
    ot_model_options own;
    ot_tensor *copy = NULL;
    ot_model *model = NULL;
    ot_shape shape = OT_SHAPE((int64_t)n_bytes);
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(bytes));
    OT_TRY(OT_OPTIONS_READ(ot_model_options, OT_MODEL_OPTIONS_INIT, options, &own));
    if (looks_like_text(bytes, n_bytes))
        return ot__text_read_from(own.directory, bytes, n_bytes, &own, where, out);
    OT_TRY(ot_tensor_create(OT_U8, &shape, &copy));
    if (n_bytes > 0)
        memcpy(copy->data, bytes, n_bytes);
    st = read_binary(copy->data, n_bytes, &own, where, own.directory, &model);
    st = explain_kind(st, copy->data, n_bytes, where);
    if (st == OT_OK) {
        st = ot__model_hold_tensor(model, copy); // taken over, also on failure
        copy = NULL;
    }
    ot_tensor_destroy(copy);
    return OT_HAND_OUT(st, out, model, ot_model_destroy);
}
