// SPDX-License-Identifier: Apache-2.0
// States from HDF5 files, as ONNX Runtime's ORTTrainer has them. A '/' in the name of a parameter
// has made groups there, which are one name again here.
#include <string.h>

#include "trainer/aggregate.h"

// ---- names ----

// What of a section the names of parameters are keys of.
typedef enum joined_kind {
    JOINED_VALUES, // a value each
    JOINED_DICTS,  // a dict of values each, and nothing else
} joined_kind;

// The part of a name that a link stands for: HDF5 has none of "" and ".".
static const char *part_of_link(const char *link)
{
    return strcmp(link, "%") == 0 || strcmp(link, "%.") == 0 ? link + 1 : link;
}

static bool has_values(const ot_dict *dict)
{
    ot_dict_kind kind;

    for (int i = 0; i < ot_dict_count(dict); i++)
        if (ot_dict_kind_of(dict, ot_dict_name(dict, i), &kind) == OT_OK && kind != OT_DICT_DICT)
            return true;
    return ot_dict_count(dict) == 0;
}

// Python's float and a tensor of f64 without axes are the same in a file.
static ot_status set_real_tensor(ot_dict *dict, const char *name, double value)
{
    ot_tensor *tensor;
    ot_status st;

    OT_TRY(ot_tensor_create(OT_F64, &OT_SHAPE_SCALAR, &tensor));
    *(double *)tensor->data = value;
    st = ot_dict_take_tensor(dict, name, tensor);
    if (st != OT_OK)
        ot_tensor_destroy(tensor);
    return st;
}

static ot_status make_tensors(ot_dict *dict)
{
    double value;

    for (int i = 0; i < ot_dict_count(dict); i++) {
        const char *name = ot_dict_name(dict, i);
        ot_dict_kind kind;

        OT_TRY(ot_dict_kind_of(dict, name, &kind));
        if (kind != OT_DICT_FLOAT)
            continue;
        OT_TRY(ot_dict_get_float(dict, name, &value));
        OT_TRY(set_real_tensor(dict, name, value));
    }
    return OT_OK;
}

static ot_status join_state_names(ot_dict *from, ot__buf *prefix, ot_dict *to, joined_kind kind);

static ot_status join_entry(ot_dict *from, const char *link, ot__buf *name, ot_dict *to,
                            joined_kind kind)
{
    ot_dict_kind of_entry;
    ot_dict *inner = NULL;

    OT_TRY(ot_dict_kind_of(from, link, &of_entry));
    if (of_entry == OT_DICT_DICT)
        OT_TRY(ot_dict_get_dict(from, link, &inner));
    if (inner == NULL || (kind == JOINED_DICTS && has_values(inner))) {
        OT_TRY(ot__dict_move(from, link, to, name->data));
        return inner != NULL ? make_tensors(inner) : OT_OK;
    }
    ot__buf_text(name, "/");
    OT_TRY(ot__buf_status(name));
    return join_state_names(inner, name, to, kind);
}

// Empties `from`.
static ot_status join_state_names(ot_dict *from, ot__buf *prefix, ot_dict *to, joined_kind kind)
{
    const size_t length = prefix->length;
    ot_status st = OT_OK;

    for (int i = 0; st == OT_OK && i < ot_dict_count(from); i++) {
        const char *link = ot_dict_name(from, i);

        prefix->length = length;
        ot__buf_text(prefix, part_of_link(link));
        st = ot__buf_status(prefix);
        OT_THEN(st, join_entry(from, link, prefix, to, kind));
    }
    return st;
}

// The dict `name` of `dict` with its names joined, in its place.
static ot_status join_section(ot_dict *dict, const char *name, joined_kind kind)
{
    ot_dict *from, *made, *to;
    ot__buf prefix = {0};
    ot_dict_kind is;
    ot_status st;

    if (!ot__state_has(dict, name))
        return OT_OK;
    OT_TRY(ot_dict_kind_of(dict, name, &is));
    if (is != OT_DICT_DICT) // whoever takes it says so
        return OT_OK;
    OT_TRY(ot_dict_get_dict(dict, name, &from));
    OT_TRY(ot_dict_create(&made));
    st = ot_dict_set_dict(made, name, &to);
    OT_THEN(st, join_state_names(from, &prefix, to, kind));
    OT_THEN(st, kind == JOINED_VALUES ? make_tensors(to) : OT_OK);
    OT_THEN(st, ot__dict_move(made, name, dict, name));
    ot__buf_deinit(&prefix);
    ot_dict_destroy(made);
    return st;
}

static ot_status join_below(ot_dict *state, const char *section, const char *const *names, int n)
{
    ot_dict *dict = NULL;
    ot_dict_kind kind;

    if (!ot__state_has(state, section))
        return OT_OK;
    OT_TRY(ot_dict_kind_of(state, section, &kind));
    if (kind != OT_DICT_DICT)
        return OT_OK;
    OT_TRY(ot_dict_get_dict(state, section, &dict));
    if (names == NULL)
        for (int i = 0; i < ot_dict_count(dict); i++)
            OT_TRY(join_section(dict, ot_dict_name(dict, i), JOINED_VALUES));
    for (int i = 0; i < n; i++)
        OT_TRY(join_section(dict, names[i], JOINED_VALUES));
    return OT_OK;
}

static ot_status join_state(ot_dict *state)
{
    static const char *const own[] = {OT_KEY_UPDATES, OT_KEY_AVERAGES, OT_KEY_GRADIENTS,
                                      OT_KEY_STATISTICS};

    OT_TRY(join_below(state, OT_KEY_MODEL, NULL, 0));
    OT_TRY(join_below(state, OT_KEY_OWN, own, (int)OT_COUNT(own)));
    OT_TRY(join_section(state, OT_KEY_OPTIMIZER, JOINED_DICTS));
    return join_section(state, OT_KEY_PARTITION, JOINED_DICTS);
}

ot_status ot__state_load_hdf5(const char *path, bool is_apart, ot_dict **out)
{
    ot_dict *state;
    ot_status st;

    OT_TRY(is_apart ? ot_dict_load_hdf5_apart(path, NULL, &state)
                    : ot_dict_load_hdf5(path, NULL, &state));
    st = join_state(state);
    return OT_HAND_OUT(st, out, state, ot_dict_destroy);
}

// Its tensors are views of the map, as far as the file has them as they are here: so a state lies
// in memory once only while it is loaded.
static ot_status view_state_hdf5(const char *path, ot__file_map *map, ot_dict **out)
{
    ot_dict *state;
    ot_status st;

    OT_TRY(ot__dict_view_hdf5(path, map, &state));
    st = join_state(state);
    if (st != OT_OK)
        ot__file_map_close(map);
    return OT_HAND_OUT(st, out, state, ot_dict_destroy);
}

// ---- loading ----

// Files have f32 where the trainer has bf16.
static ot_status narrow_tensor(ot_dict *dict, const char *name, const ot_tensor *own)
{
    const ot_tensor *wide = ot__state_tensor(dict, name);
    ot_tensor *narrow;
    ot_status st;

    if (own == NULL || own->dtype != OT_BF16 || wide == NULL || wide->dtype != OT_F32)
        return OT_OK;
    OT_TRY(ot_tensor_create(OT_BF16, &wide->shape, &narrow));
    (void)ot__convert(narrow->data, OT_BF16, wide->data, OT_F32, ot_tensor_count(wide));
    st = ot_dict_take_tensor(dict, name, narrow);
    if (st != OT_OK)
        ot_tensor_destroy(narrow);
    return st;
}

static ot_dict *state_part(const ot_dict *dict, const char *name)
{
    return (ot_dict *)(uintptr_t)ot__state_dict(dict, name);
}

static ot_status narrow_state(const ot_checkpoint *checkpoint, ot_dict *state)
{
    ot_dict *values = state_part(state_part(state, OT_KEY_MODEL), OT_KEY_FULL_PRECISION);
    ot_dict *averages = state_part(state_part(state, OT_KEY_OWN), OT_KEY_AVERAGES);
    ot_dict *gradients = state_part(state_part(state, OT_KEY_OWN), OT_KEY_GRADIENTS);

    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const ot__parameter *p = checkpoint->parameters[i];
        ot_dict *moments = state_part(state_part(state, OT_KEY_OPTIMIZER), p->name);

        OT_TRY(narrow_tensor(values, p->name, p->value));
        OT_TRY(narrow_tensor(averages, p->name, p->slots[OT_SLOT_AVERAGE]));
        OT_TRY(narrow_tensor(gradients, p->name, p->gradient));
        for (int k = 0; k < OT_SLOT_MOMENTS; k++)
            OT_TRY(narrow_tensor(moments, ot__moment_keys[k], p->slots[k]));
    }
    return OT_OK;
}

static ot_status take_user_dict(const ot_dict *state, char **out)
{
    const char *text;

    if (out == NULL || !ot__state_has(state, OT_KEY_USER_DICT))
        return OT_OK;
    OT_TRY(ot_dict_get_string(state, OT_KEY_USER_DICT, &text));
    *out = ot__strdup(text);
    return ot__made(*out != NULL);
}

static void drop_user_dict(char **user_dict)
{
    if (user_dict == NULL)
        return;
    ot__free(*user_dict);
    *user_dict = NULL;
}

// That of one process is none to go on from; the message says which others are missing.
static ot_status check_is_whole(const ot_dict *state, const char *path)
{
    const ot_dict *options = ot__state_dict(state, OT_KEY_OPTIONS);
    int64_t n_processes = 1;
    ot_dict *joined;
    ot_status st;

    if (ot__state_has(options, OT_KEY_WORLD_SIZE))
        OT_TRY(ot_dict_get_int(options, OT_KEY_WORLD_SIZE, &n_processes));
    if (n_processes <= 1 || !ot__state_has(state, OT_KEY_PARTITION))
        return OT_OK;
    st = ot__state_aggregate(&state, &path, 1, -1, &joined);
    ot_dict_destroy(joined);
    return st;
}

// The message of what does not fit begins with `path`; `given`: how the state was read. Destroys
// the state.
static ot_status take_hdf5_state(ot_trainer *trainer, ot_status given, ot_dict *state,
                                 const char *path, ot_strictness strictness, char **user_dict)
{
    ot__pending pending;
    ot_status st = given;

    OT_THEN(st, narrow_state(ot_session_checkpoint(trainer->session), state));
    OT_THEN(st, take_user_dict(state, user_dict));
    st = ot__pending_make(trainer, st, state, strictness, &pending);
    if (st == OT_OK) {
        ot__pending_take(trainer, &pending);
    } else {
        if (given == OT_OK && st != OT_ERR_NO_MEMORY)
            (void)ot__error_prefix(st, "%s", path);
        drop_user_dict(user_dict);
    }
    ot__pending_drop(&pending);
    ot_dict_destroy(state);
    return st;
}

ot_status ot__trainer_load_hdf5(ot_trainer *trainer, const char *path, bool is_apart,
                                ot_strictness strictness, char **user_dict)
{
    ot__file_map map = {0};
    ot_dict *state = NULL;
    ot_status st =
        is_apart ? ot__state_load_hdf5(path, true, &state) : view_state_hdf5(path, &map, &state);

    OT_THEN(st, check_is_whole(state, path));
    st = take_hdf5_state(trainer, st, state, path, strictness, user_dict);
    ot__file_map_close(&map);
    return st;
}

ot_status ot__trainer_load_shards(ot_trainer *trainer, const char *const *paths, int n_paths,
                                  bool is_apart, ot_strictness strictness, char **user_dict)
{
    const ot_comm *comm = ot__session_comm(trainer->session);
    // Shares of gradients are made of the mean.
    const bool takes_own = comm != NULL && ot_comm_world_size(comm) == n_paths &&
                           ot__session_zero(trainer->session) < 2;
    const int rank = takes_own ? ot_comm_rank(comm) : -1;
    ot_dict *state = NULL;
    const ot_status st = ot__state_aggregate_files(paths, n_paths, rank, is_apart, &state);

    return take_hdf5_state(trainer, st, state, paths[0], strictness, user_dict);
}
