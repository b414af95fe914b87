// SPDX-License-Identifier: Apache-2.0
// Checkpoints to and from files, and to memory.
#include <string.h>

#include "ckpt/ckpt.h"

static const size_t external_from = (size_t)1800 << 20; // bytes, as ONNX Runtime's default

// ---- loading ----

static ot_status refuse_checkpoint_folder(const char *path)
{
    char *inside = ot__path_join(path, "checkpoint");
    char *index = ot__path_join(path, "otckpt.index.json");
    ot_status st = OT_ERR_NO_MEMORY;

    if (inside && index && ot__path_exists(index))
        st = ot__error(OT_ERR_FORMAT,
                       "%s: is a checkpoint directory, which ot_shards_load() and `onnxtrain ckpt` "
                       "read",
                       path);
    else if (inside && ot__path_exists(inside))
        st = ot__error(OT_ERR_FORMAT, "%s: is a directory, whose checkpoint is '%s'", path, inside);
    else if (inside)
        st = ot__error(
            OT_ERR_FORMAT,
            "%s: is a directory; checkpoints from before ONNX Runtime 1.16 cannot be read", path);
    ot__free(index);
    ot__free(inside);
    return st;
}

static ot_status open_state(const char *path, ot__file_map *map)
{
    *map = (ot__file_map){0};
    if (ot__path_is_folder(path))
        return refuse_checkpoint_folder(path);
    OT_TRY(ot__file_map_open(map, path));
    return ot__file_kind_check(map->data, map->size, path, OT_FILE_CHECKPOINT);
}

static ot_status load_state(const char *path, unsigned flags, ot_checkpoint **out)
{
    ot__file_map map;
    ot_status st = open_state(path, &map);

    OT_THEN(st, ot__flatbuf_read(&map, path, flags, false, out));
    ot__file_map_close(&map);
    return st;
}

ot_status ot__ckpt_view(const char *path, ot_checkpoint **out)
{
    ot__file_map map;
    ot_status st = open_state(path, &map);

    *out = NULL;
    OT_THEN(st, ot__flatbuf_read(&map, path, OT_CHECKPOINT_OPTIMIZER_STATE, true, out));
    ot__file_map_close(&map); // unless it has been taken over
    return st;
}

void ot__ckpt_view_forget(const ot_checkpoint *view, const ot_tensor *tensor)
{
    const ot__file_map *const maps[] = {&view->file, &view->data};
    const uintptr_t at = (uintptr_t)tensor->data;

    for (size_t i = 0; i < OT_COUNT(maps); i++) {
        const uintptr_t first = (uintptr_t)maps[i]->data;

        if (at >= first && at - first < maps[i]->size)
            ot__file_map_forget(maps[i], at - first, tensor->n_bytes);
    }
}

ot_status ot_checkpoint_load(const char *path, ot_checkpoint **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(path));
    return load_state(path, OT_CHECKPOINT_OPTIMIZER_STATE, out);
}

ot_status ot_checkpoint_load_parameters(const char *path, ot_checkpoint **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(path));
    return load_state(path, 0, out);
}

ot_status ot_checkpoint_load_buffer(const void *bytes, size_t n_bytes, ot_checkpoint **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(bytes));
    return ot__flatbuf_read(&(ot__file_map){.data = bytes, .size = n_bytes}, NULL,
                            OT_CHECKPOINT_OPTIMIZER_STATE, false, out);
}

// ---- saving ----

static size_t parameter_bytes(const ot_checkpoint *checkpoint)
{
    size_t total = 0;

    for (int i = 0; i < checkpoint->n_parameters; i++)
        total += checkpoint->parameters[i]->value->n_bytes;
    return total;
}

static size_t moment_bytes(const ot_checkpoint *checkpoint)
{
    const ot_tensor *tensors[OT_STATE_TENSORS];
    size_t total = 0;

    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const int n = ot__ckpt_state_tensors(checkpoint, checkpoint->parameters[i], tensors);

        for (int k = 0; k < n; k++)
            total += tensors[k]->n_bytes;
    }
    for (int g = 0; g < checkpoint->n_other_groups; g++)
        for (int i = 0; i < checkpoint->other_groups[g].n_states; i++)
            for (int k = 0; k < checkpoint->other_groups[g].states[i].n_moments; k++)
                total += checkpoint->other_groups[g].states[i].moments[k].value->n_bytes;
    return total;
}

// What the file itself has no room for. Moments leave it last: ONNX Runtime looks for them there.
static void choose_external(const ot_checkpoint *checkpoint, ot__pieces *data,
                            ot__ckpt_write_options *options)
{
    const size_t n_moments =
        options->flags & OT_CHECKPOINT_OPTIMIZER_STATE ? moment_bytes(checkpoint) : 0;

    if (options->nominal || checkpoint->is_nominal)
        return;
    if (checkpoint->has_external_data || parameter_bytes(checkpoint) + n_moments >= external_from)
        options->external = data;
    options->external_moments = n_moments >= external_from;
}

static ot_status save_part(const char *path, const ot__pieces *pieces)
{
    ot__file_writer *file;
    ot_status st;

    OT_TRY(ot__file_writer_open(&file, path));
    st = ot__pieces_write(pieces, file);
    if (st == OT_OK)
        return ot__file_writer_commit(file);
    ot__file_writer_abort(file);
    return st;
}

// One file has parameters whole, or their names alone.
static ot_status check_saved_whole(const ot_checkpoint *checkpoint,
                                   const ot__ckpt_write_options *options)
{
    const bool with_state = (options->flags & OT_CHECKPOINT_OPTIMIZER_STATE) != 0;

    return options->nominal ? OT_OK : ot__ckpt_check_whole(checkpoint, with_state);
}

static ot_status save_state(ot_checkpoint *checkpoint, const char *path,
                            ot__ckpt_write_options options)
{
    ot__pieces pieces = {0}, external = {0};
    ot_status st = OT_OK;

    OT_TRY(check_saved_whole(checkpoint, &options));
    for (int i = 0; i < checkpoint->n_parameters; i++)
        ot__ckpt_unpack(checkpoint, checkpoint->parameters[i]);
    choose_external(checkpoint, &external, &options);
    if (options.external)
        st = ot__ckpt_data_name(checkpoint, &options);
    OT_THEN(st, ot__flatbuf_write(checkpoint, &options, &pieces));
    if (st == OT_OK && options.external)
        st = ot__ckpt_data_mark(checkpoint, &external);
    OT_THEN(st, options.external ? ot__ckpt_save_pair(path, &pieces, &external)
                                 : save_part(path, &pieces));
    ot__pieces_deinit(&pieces);
    ot__pieces_deinit(&external);
    return st;
}

ot_status ot_checkpoint_save(ot_checkpoint *checkpoint, const char *path, unsigned flags)
{
    const ot__ckpt_write_options options = {.flags = flags,
                                            .nominal = (flags & OT_CHECKPOINT_NOMINAL) != 0};

    OT_TRY(OT_GIVEN(path));
    OT_TRY(ot__ckpt_enter(checkpoint));
    return ot__ckpt_leave(checkpoint, save_state(checkpoint, path, options));
}

static ot_status copy_piece(void *context, const void *bytes, size_t n_bytes)
{
    uint8_t **to = context;

    memcpy(*to, bytes, n_bytes);
    *to += n_bytes;
    return OT_OK;
}

static ot_status copy_pieces(const ot__pieces *pieces, uint8_t *to, size_t capacity,
                             size_t *n_bytes)
{
    *n_bytes = ot__pieces_size(pieces);
    if (to == NULL)
        return ot__buf_status(&pieces->own);
    if (*n_bytes > capacity)
        return ot__error(OT_ERR_INVALID, "a checkpoint of %zu bytes into a buffer of %zu", *n_bytes,
                         capacity);
    return ot__pieces_each(pieces, copy_piece, &to);
}

static ot_status save_buffer(const ot_checkpoint *checkpoint, unsigned flags, void *to,
                             size_t capacity, size_t *n_bytes)
{
    const ot__ckpt_write_options options = {.flags = flags,
                                            .nominal = (flags & OT_CHECKPOINT_NOMINAL) != 0};
    const size_t total = parameter_bytes(checkpoint) +
                         (flags & OT_CHECKPOINT_OPTIMIZER_STATE ? moment_bytes(checkpoint) : 0);
    ot__pieces pieces = {0};
    ot_status st;

    if (total >= external_from)
        return ot__error(OT_ERR_UNSUPPORTED, "a checkpoint of %zu bytes in one file", total);
    OT_TRY(check_saved_whole(checkpoint, &options));
    for (int i = 0; i < checkpoint->n_parameters; i++)
        ot__ckpt_unpack(checkpoint, checkpoint->parameters[i]);
    st = ot__flatbuf_write(checkpoint, &options, &pieces);
    OT_THEN(st, copy_pieces(&pieces, to, capacity, n_bytes));
    ot__pieces_deinit(&pieces);
    return st;
}

ot_status ot_checkpoint_save_buffer(ot_checkpoint *checkpoint, unsigned flags, void *to,
                                    size_t capacity, size_t *n_bytes)
{
    OT_TRY(OT_GIVEN(n_bytes));
    *n_bytes = 0;
    OT_TRY(ot__ckpt_enter(checkpoint));
    return ot__ckpt_leave(checkpoint, save_buffer(checkpoint, flags, to, capacity, n_bytes));
}

ot_status ot__ckpt_save_artifact(ot_checkpoint *checkpoint, const char *path,
                                 const char *const *names, int n_names, bool nominal)
{
    const ot__ckpt_write_options options = {
        .names = names, .n_names = n_names, .as_artifact = true, .nominal = nominal};

    OT_TRY(ot__ckpt_enter(checkpoint));
    return ot__ckpt_leave(checkpoint, save_state(checkpoint, path, options));
}
