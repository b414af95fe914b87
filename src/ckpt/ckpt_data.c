// SPDX-License-Identifier: Apache-2.0
// The data file beside a checkpoint with external data. No rename replaces two files at once, so
// the data file ends with an id that the checkpoint states in a property, and the old data file
// stays under a second name until the new checkpoint is in place: whichever checkpoint a kill
// leaves, its data are there, and are told from those of another.
//
//   checkpoint   .data   .data.old
//       A          A         -
//       A          -         A       rename
//       A          B         A       write the data
//       B          B         A       write the checkpoint
//       B          B         -       remove
#include <string.h>

#include "ckpt/ckpt.h"

#define PROPERTY_DATA_ID "onnxtrain.data_id"
#define DATA_ID_MARK "onnxtrain data id "
enum { MARK_LENGTH = sizeof(DATA_ID_MARK) - 1, ID_LENGTH = OT_HEX_ID_LENGTH };

typedef struct data_paths {
    const char *present, *old;
    ot__buf texts[2];
} data_paths;

static ot_status paths_init(data_paths *paths, const char *path)
{
    *paths = (data_paths){0};
    ot__buf_printf(&paths->texts[0], "%s.data", path);
    ot__buf_printf(&paths->texts[1], "%s.data.old", path);
    paths->present = paths->texts[0].data;
    paths->old = paths->texts[1].data;
    OT_TRY(ot__buf_status(&paths->texts[0]));
    return ot__buf_status(&paths->texts[1]);
}

static void paths_deinit(data_paths *paths)
{
    ot__buf_deinit(&paths->texts[0]);
    ot__buf_deinit(&paths->texts[1]);
}

// ---- whose data ----

typedef enum owner {
    OWNER_NONE,  // there is no such file
    OWNER_OTHER, // another checkpoint
    OWNER_ANY,   // another program has written it, without an id
    OWNER_THIS,
} owner;

// NULL when the checkpoint states none, as those of other programs.
static const char *stated_id(const ot_checkpoint *head)
{
    const ot__property *id = ot__ckpt_property(head, PROPERTY_DATA_ID);

    return id && id->s && strlen(id->s) == ID_LENGTH ? id->s : NULL;
}

static ot_status find_data_owner(const char *path, const char *id, owner *out)
{
    ot__file_map map = {0};
    const uint8_t *end;

    *out = OWNER_NONE;
    if (!ot__path_exists(path))
        return OT_OK;
    OT_TRY(ot__file_map_open(&map, path));
    *out = OWNER_ANY;
    if (map.size >= MARK_LENGTH + ID_LENGTH) {
        end = map.data + map.size;
        if (memcmp(end - ID_LENGTH - MARK_LENGTH, DATA_ID_MARK, MARK_LENGTH) == 0)
            *out = id && memcmp(end - ID_LENGTH, id, ID_LENGTH) == 0 ? OWNER_THIS : OWNER_OTHER;
    }
    ot__file_map_close(&map);
    return OT_OK;
}

// *out: the data file that belongs to the checkpoint, NULL when neither does. A program that knows
// no ids may have saved over a checkpoint and kept the property, so its data count for any.
static ot_status choose_file(const ot_checkpoint *head, const data_paths *paths, const char **out)
{
    const char *id = stated_id(head);
    owner present, old;

    *out = NULL;
    OT_TRY(find_data_owner(paths->present, id, &present));
    OT_TRY(find_data_owner(paths->old, id, &old));
    if (present == OWNER_THIS || old == OWNER_THIS)
        *out = present == OWNER_THIS ? paths->present : paths->old;
    else if (present == OWNER_ANY || old == OWNER_ANY)
        *out = present == OWNER_ANY ? paths->present : paths->old;
    return OT_OK;
}

ot_status ot__ckpt_data_open(const ot_checkpoint *head, const char *path, ot__file_map *out)
{
    data_paths paths;
    const char *chosen = NULL;
    ot_status st = paths_init(&paths, path);

    OT_THEN(st, choose_file(head, &paths, &chosen));
    if (st == OT_OK && !chosen && ot__path_exists(paths.present))
        st = ot__error(OT_ERR_FORMAT, "%s: is not the data file of %s", paths.present, path);
    else if (st == OT_OK)
        st = ot__file_map_open(out, chosen ? chosen : paths.present);
    paths_deinit(&paths);
    return st;
}

// ---- saving ----

static uint64_t mix_moments(uint64_t hash, const ot_checkpoint *checkpoint)
{
    const ot_tensor *tensors[OT_STATE_TENSORS];

    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const int n = ot__ckpt_state_tensors(checkpoint, checkpoint->parameters[i], tensors);

        for (int k = 0; k < n; k++)
            hash = ot__id_mix(hash, tensors[k]->data, tensors[k]->n_bytes);
    }
    for (int g = 0; g < checkpoint->n_other_groups; g++)
        for (int i = 0; i < checkpoint->other_groups[g].n_states; i++) {
            const ot__param_state *state = &checkpoint->other_groups[g].states[i];

            for (int k = 0; k < state->n_moments; k++)
                hash = ot__id_mix(hash, state->moments[k].value->data,
                                  state->moments[k].value->n_bytes);
        }
    return hash;
}

// The id is made from all that decides the bytes of the data file, so that the same state makes the
// same files.
ot_status ot__ckpt_data_name(ot_checkpoint *checkpoint, const ot__ckpt_write_options *options)
{
    uint64_t hash = 0;
    char id[OT_HEX_ID_LENGTH + 1];

    for (int i = 0; i < options->n_names; i++)
        hash = ot__id_mix(hash, options->names[i], strlen(options->names[i]));
    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const ot__parameter *parameter = checkpoint->parameters[i];

        hash = ot__id_mix(hash, parameter->name, strlen(parameter->name));
        hash = ot__id_mix_word(hash, (uint64_t)parameter->value->dtype * 2 + parameter->trainable);
        hash = ot__id_mix(hash, parameter->value->data, parameter->value->n_bytes);
    }
    if (options->external_moments)
        hash = mix_moments(hash, checkpoint);
    ot__id_text(hash, id);
    return ot_checkpoint_set_string(checkpoint, PROPERTY_DATA_ID, id);
}

ot_status ot__ckpt_data_mark(const ot_checkpoint *checkpoint, ot__pieces *data)
{
    ot__buf_text(&data->own, DATA_ID_MARK);
    ot__buf_text(&data->own, stated_id(checkpoint));
    return ot__buf_status(&data->own);
}

// The data that the checkpoint at `path` needs get the second name, unless they have it already.
static ot_status keep_old(const char *path, const data_paths *paths)
{
    ot__file_map map = {0};
    ot_checkpoint *head = NULL;
    const char *chosen = NULL;
    ot_status st;

    if (!ot__path_exists(path))
        return OT_OK;
    st = ot__file_map_open(&map, path);
    OT_THEN(st, ot__flatbuf_read_head(map.data, map.size, path, &head));
    ot__file_map_close(&map);
    if (st == OT_ERR_FORMAT) // no checkpoint: nothing to keep
        return OT_OK;
    if (st == OT_OK && head->has_external_data)
        st = choose_file(head, paths, &chosen);
    ot_checkpoint_destroy(head);
    if (st == OT_OK && chosen == paths->present)
        st = ot__file_rename(paths->present, paths->old);
    return st;
}

static ot_status write_new(ot__file_writer **out, const char *path, const ot__pieces *pieces)
{
    ot_status st = ot__file_writer_open(out, path);

    OT_THEN(st, ot__pieces_write(pieces, *out));
    return st;
}

static bool is_old(const void *context, const char *name)
{
    const data_paths *paths = context;
    const char *slash = strrchr(paths->old, '/');

    return strcmp(name, slash ? slash + 1 : paths->old) == 0;
}

ot_status ot__ckpt_save_pair(const char *path, const ot__pieces *main_file,
                             const ot__pieces *data_file)
{
    ot__file_writer *file = NULL, *data = NULL;
    data_paths paths;
    const ot__file_names old_data = {is_old, &paths};
    ot_status st = paths_init(&paths, path);

    OT_THEN(st, write_new(&file, path, main_file));
    OT_THEN(st, write_new(&data, paths.present, data_file));
    OT_THEN(st, keep_old(path, &paths));
    if (st == OT_OK) {
        st = ot__file_pair_commit(path, data, file, &old_data);
    } else {
        ot__file_writer_abort(data);
        ot__file_writer_abort(file);
    }
    paths_deinit(&paths);
    return st;
}
