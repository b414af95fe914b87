// SPDX-License-Identifier: Apache-2.0
// Checkpoint file, versions 1 and 2, into a checkpoint. Field numbers are those of
// docs/file-formats.md.
#include <string.h>

#include "ckpt/ckpt.h"

enum { VERSION_MIN = 1, VERSION_MAX = 2 };

typedef struct reader {
    ot__fb fb;
    ot_checkpoint *checkpoint;
    const ot__file_map *file;
    ot__file_map data;     // external data
    uint64_t inline_bytes; // elements copied so far: honest files do not share them
    uint64_t data_bytes;
} reader;

static ot_status check_state_type(reader *r, const char *name, int64_t type)
{
    if (type <= 0 || type > INT32_MAX || ot_dtype_size((ot_dtype)type) == 0)
        ot__fb_fail(&r->fb,
                    "tensor '%s' has element type %" PRId64 ", which a checkpoint cannot hold",
                    name, type);
    return r->fb.status;
}

static ot_status read_state_shape(reader *r, const char *name, const ot__fb_table *table,
                                  ot_shape *shape)
{
    ot__fb_vector dims;

    if (!ot__fb_has(&r->fb, table, 2))
        ot__fb_fail(&r->fb, "tensor '%s' has no dims", name);
    dims = ot__fb_subvector(&r->fb, table, 2, 8);
    if (r->fb.status == OT_OK && dims.count > OT_MAX_NDIM)
        ot__fb_fail(&r->fb, "tensor '%s' has %zu axes, more than %d", name, dims.count,
                    OT_MAX_NDIM);
    OT_TRY(r->fb.status);
    shape->ndim = (int)dims.count;
    if (shape->ndim > 0)
        memcpy(shape->dim, r->fb.bytes + dims.position, dims.count * sizeof shape->dim[0]);
    for (int i = 0; i < shape->ndim; i++)
        if (shape->dim[i] < 0)
            ot__fb_fail(&r->fb, "tensor '%s' has size %" PRId64, name, shape->dim[i]);
    return r->fb.status;
}

// Where the `expected` bytes of a tensor lie: in the file or in the external data. NULL on error.
static const ot__file_map *find_elements(reader *r, const char *name, const ot__fb_table *table,
                                         size_t expected, size_t *position)
{
    int64_t offset = ot__fb_int(&r->fb, table, 6, 8, -1);
    ot__fb_vector raw = ot__fb_subvector(&r->fb, table, 4, 1);
    bool has_raw = ot__fb_has(&r->fb, table, 4);

    if (r->fb.status != OT_OK)
        return NULL;
    if (!has_raw && offset < 0) {
        ot__fb_fail(&r->fb, "tensor '%s' has neither elements nor a position in the external data",
                    name);
        return NULL;
    }
    if (has_raw) {
        r->inline_bytes += raw.count;
        if (raw.count != expected)
            ot__fb_fail(&r->fb, "tensor '%s' has %zu bytes of elements, its shape needs %zu", name,
                        raw.count, expected);
        else if (r->inline_bytes > r->fb.size)
            ot__fb_fail(&r->fb, "tensor '%s' shares its elements with another one", name);
        *position = raw.position;
        return r->fb.status == OT_OK ? r->file : NULL;
    }
    if (!r->data.data || (uint64_t)offset > r->data.size ||
        expected > r->data.size - (uint64_t)offset) {
        ot__fb_fail(&r->fb,
                    "tensor '%s' needs bytes %" PRId64 " to %" PRIu64 " of %zu external ones", name,
                    offset, (uint64_t)offset + expected, r->data.size);
        return NULL;
    }
    r->data_bytes += expected;
    if (r->data_bytes > r->data.size)
        ot__fb_fail(&r->fb, "tensor '%s' shares its external elements with another one", name);
    *position = (size_t)offset;
    return r->fb.status == OT_OK ? &r->data : NULL;
}

static ot_status read_tensor(reader *r, const ot__fb_table *table, const char *name,
                             ot_tensor **out)
{
    ot_shape shape = {0};
    int64_t type = ot__fb_int(&r->fb, table, 3, 4, 0), count;
    size_t expected = 0, position = 0;
    const ot__file_map *map;

    *out = NULL;
    OT_TRY(r->fb.status);
    OT_TRY(check_state_type(r, name, type));
    OT_TRY(read_state_shape(r, name, table, &shape));
    if (r->checkpoint->is_nominal)
        return ot_tensor_create((ot_dtype)type, &(ot_shape){1, {0}}, out);
    if (!ot__shape_count(&shape, &count) || !ot__dtype_bytes((ot_dtype)type, count, &expected)) {
        ot__fb_fail(&r->fb, "tensor '%s' has a shape whose size overflows", name);
        return r->fb.status;
    }
    map = find_elements(r, name, table, expected, &position);
    OT_TRY(r->fb.status);
    OT_TRY(ot_tensor_create((ot_dtype)type, &shape, out));
    ot__file_map_copy(map, (*out)->data, position, expected);
    return OT_OK;
}

static const char *required_name(reader *r, const ot__fb_table *table, const char *what)
{
    const char *name = ot__fb_string(&r->fb, table, 0);

    if (!name)
        ot__fb_fail(&r->fb, "%s has no name", what);
    return r->fb.status == OT_OK ? name : NULL;
}

static ot_status read_parameters(reader *r, const ot__fb_table *module, int slot, bool trainable)
{
    ot__fb_vector tensors = ot__fb_subvector(&r->fb, module, slot, 4);
    ot__fb_table table;

    if (r->fb.status == OT_OK && !ot__fb_has(&r->fb, module, slot))
        ot__fb_fail(&r->fb, "has no list of %s parameters", trainable ? "trainable" : "frozen");
    while (ot__fb_next(&r->fb, &tensors, &table)) {
        const char *name = required_name(r, &table, "a parameter"), *doc;
        ot__parameter *parameter;
        ot_tensor *value;

        OT_TRY(r->fb.status);
        if (ot__ckpt_find(r->checkpoint, name))
            continue; // the first of a name wins, as in ONNX Runtime
        OT_TRY(read_tensor(r, &table, name, &value));
        OT_TRY(ot__ckpt_add(r->checkpoint, name, value, trainable, &parameter));
        doc = ot__fb_string(&r->fb, &table, 1);
        OT_TRY(ot__made(!doc || (parameter->doc = ot__strdup(doc))));
    }
    return r->fb.status;
}

static ot_status read_module(reader *r, const ot__fb_table *root)
{
    ot__fb_table module = ot__fb_subtable(&r->fb, root, 1);

    OT_TRY(r->fb.status);
    if (!ot__fb_has(&r->fb, root, 1))
        return OT_OK;
    OT_TRY(read_parameters(r, &module, 0, true));
    return read_parameters(r, &module, 1, false);
}

// group0: the moments belong to the parameters.
static ot_status read_moments(reader *r, const ot__fb_table *state, const char *name)
{
    static const char *const moment_names[OT_MAX_MOMENTS] = {"momentum0", "momentum1"};
    ot__parameter *parameter = ot__ckpt_find(r->checkpoint, name);
    ot__fb_vector moments = ot__fb_subvector(&r->fb, state, 1, 4);
    ot__fb_table table;

    if (r->fb.status == OT_OK && !parameter)
        ot__fb_fail(&r->fb, "has optimizer state for '%s', which is not a parameter", name);
    if (r->fb.status == OT_OK && !ot__fb_has(&r->fb, state, 1))
        ot__fb_fail(&r->fb, "optimizer state of '%s' has no moments", name);
    while (ot__fb_next(&r->fb, &moments, &table)) {
        const char *moment_name = required_name(r, &table, "a moment");
        ot_tensor *moment = NULL;
        int k = 0;

        OT_TRY(r->fb.status);
        while (k < OT_MAX_MOMENTS && strcmp(moment_name, moment_names[k]) != 0)
            k++;
        if (k == OT_MAX_MOMENTS || parameter->moments[k]) {
            ot__fb_fail(&r->fb, "optimizer state of '%s': moment '%s' is %s", name, moment_name,
                        k == OT_MAX_MOMENTS ? "not momentum0 or momentum1" : "there twice");
            break;
        }
        OT_TRY(read_tensor(r, &table, moment_name, &moment));
        parameter->moments[k] = moment;
        if (moment->dtype != parameter->value->dtype ||
            !ot__shape_equal(&moment->shape, &parameter->value->shape))
            ot__fb_fail(&r->fb, "optimizer state of '%s': %s differs from it in type or shape",
                        name, moment_name);
    }
    return r->fb.status;
}

// Other groups are carried along.
static ot_status read_foreign_state(reader *r, const ot__fb_table *table, const char *name,
                                    ot__param_state *state)
{
    ot__fb_vector moments = ot__fb_subvector(&r->fb, table, 1, 4);
    ot__fb_table moment;

    OT_TRY(r->fb.status);
    state->param_name = ot__strdup(name);
    state->moments = ot__alloc_zero(moments.count ? moments.count : 1, sizeof(*state->moments));
    OT_TRY(ot__made(state->param_name && state->moments));
    while (ot__fb_next(&r->fb, &moments, &moment)) {
        const char *moment_name = required_name(r, &moment, "a moment");
        ot__moment *out = &state->moments[state->n_moments];

        OT_TRY(r->fb.status);
        state->n_moments++;
        out->name = ot__strdup(moment_name);
        OT_TRY(ot__made(out->name));
        OT_TRY(read_tensor(r, &moment, moment_name, &out->value));
    }
    return r->fb.status;
}

static ot_status read_group(reader *r, const ot__fb_table *table, ot__optimizer_group *foreign)
{
    ot__fb_vector states = ot__fb_subvector(&r->fb, table, 3, 4);
    ot__fb_table state;

    if (r->fb.status == OT_OK && !ot__fb_has(&r->fb, table, 3))
        ot__fb_fail(&r->fb, "an optimizer group has no states");
    OT_TRY(r->fb.status);
    if (foreign) {
        foreign->states = ot__alloc_zero(states.count ? states.count : 1, sizeof(*foreign->states));
        OT_TRY(ot__made(foreign->states));
    }
    while (ot__fb_next(&r->fb, &states, &state)) {
        const char *name = required_name(r, &state, "an optimizer state");

        OT_TRY(r->fb.status);
        if (foreign)
            OT_TRY(read_foreign_state(r, &state, name, &foreign->states[foreign->n_states++]));
        else
            OT_TRY(read_moments(r, &state, name));
    }
    return r->fb.status;
}

static ot_status read_groups(reader *r, const ot__fb_table *root)
{
    ot__fb_vector groups = ot__fb_subvector(&r->fb, root, 2, 4);
    ot_checkpoint *checkpoint = r->checkpoint;
    ot__fb_table table;

    OT_TRY(r->fb.status);
    checkpoint->other_groups =
        ot__alloc_zero(groups.count ? groups.count : 1, sizeof(*checkpoint->other_groups));
    OT_TRY(ot__made(checkpoint->other_groups));
    while (ot__fb_next(&r->fb, &groups, &table)) {
        const char *name = required_name(r, &table, "an optimizer group");
        int64_t step = ot__fb_int(&r->fb, &table, 1, 8, 0);
        float initial_lr = ot__fb_float(&r->fb, &table, 2);
        ot__optimizer_group *foreign = NULL;
        bool is_ours, is_twice;

        OT_TRY(r->fb.status);
        is_ours = strcmp(name, "group0") == 0;
        is_twice = is_ours && checkpoint->has_optimizer_state;
        for (int k = 0; k < checkpoint->n_other_groups; k++)
            is_twice = is_twice || strcmp(checkpoint->other_groups[k].name, name) == 0;
        if (is_twice || step < 0) {
            ot__fb_fail(&r->fb, "optimizer group '%s' %s", name,
                        is_twice ? "is there twice" : "has a negative step");
            return r->fb.status;
        }
        if (is_ours) {
            checkpoint->has_optimizer_state = true;
            checkpoint->step = step;
            checkpoint->initial_lr = initial_lr;
        } else {
            foreign = &checkpoint->other_groups[checkpoint->n_other_groups++];
            foreign->step = step;
            foreign->initial_lr = initial_lr;
            OT_TRY(ot__made((foreign->name = ot__strdup(name))));
        }
        OT_TRY(read_group(r, &table, foreign));
    }
    return r->fb.status;
}

static ot_status read_property(reader *r, const ot__fb_table *entry, ot_property_kind kind)
{
    const char *name = required_name(r, entry, "a property"), *text;

    OT_TRY(r->fb.status);
    if (kind == OT_PROPERTY_INT)
        return ot_checkpoint_set_int(r->checkpoint, name, ot__fb_int(&r->fb, entry, 1, 8, 0));
    if (kind == OT_PROPERTY_FLOAT)
        return ot_checkpoint_set_float(r->checkpoint, name, ot__fb_float(&r->fb, entry, 1));
    text = ot__fb_string(&r->fb, entry, 1);
    if (!text)
        ot__fb_fail(&r->fb, "property '%s' has no value", name);
    OT_TRY(r->fb.status);
    return ot_checkpoint_set_string(r->checkpoint, name, text);
}

static ot_status read_properties(reader *r, const ot__fb_table *root)
{
    ot__fb_table bag = ot__fb_subtable(&r->fb, root, 3), entry;

    for (int kind = OT_PROPERTY_INT; kind <= OT_PROPERTY_STRING && bag.position != 0; kind++) {
        ot__fb_vector entries = ot__fb_subvector(&r->fb, &bag, kind, 4);

        while (ot__fb_next(&r->fb, &entries, &entry))
            OT_TRY(read_property(r, &entry, (ot_property_kind)kind));
    }
    return r->fb.status;
}

// All that can be known without the external data.
static ot_status read_state_head(reader *r, ot__fb_table *root)
{
    ot__fb_table module;
    int64_t version;

    *root = ot__fb_root(&r->fb, "ODTC", "checkpoint");
    version = ot__fb_int(&r->fb, root, 0, 4, 0);
    if (r->fb.status == OT_OK && (version < VERSION_MIN || version > VERSION_MAX))
        ot__fb_fail(&r->fb, "is a checkpoint of version %" PRId64 ", expected %d to %d", version,
                    VERSION_MIN, VERSION_MAX);
    OT_TRY(r->fb.status);
    module = ot__fb_subtable(&r->fb, root, 1);
    if (ot__fb_has(&r->fb, root, 1)) {
        r->checkpoint->is_nominal = ot__fb_int(&r->fb, &module, 2, 1, 0) != 0;
        r->checkpoint->has_external_data = ot__fb_int(&r->fb, &module, 3, 1, 0) != 0;
    }
    OT_TRY(r->fb.status);
    return read_properties(r, root);
}

static ot_status read_root(reader *r, const char *path, unsigned flags)
{
    ot__fb_table root;

    OT_TRY(read_state_head(r, &root));
    if (r->checkpoint->has_external_data && !path)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "%s: has external data, which needs the checkpoint's path", r->fb.where);
    if (r->checkpoint->has_external_data)
        OT_TRY(ot__ckpt_data_open(r->checkpoint, path, &r->data));
    OT_TRY(read_module(r, &root));
    return flags & OT_CHECKPOINT_OPTIMIZER_STATE ? read_groups(r, &root) : OT_OK;
}

static ot_status finish_states(reader *r, ot_status st, ot_checkpoint **out)
{
    *out = NULL;
    ot__file_map_close(&r->data);
    return OT_HAND_OUT(st, out, r->checkpoint, ot_checkpoint_destroy);
}

ot_status ot__flatbuf_read(const ot__file_map *file, const char *path, unsigned flags,
                           ot_checkpoint **out)
{
    reader r = {
        .fb = {.bytes = file->data, .size = file->size, .where = path ? path : "checkpoint"},
        .file = file,
    };
    ot_status st = ot_checkpoint_create(&r.checkpoint);

    OT_THEN(st, read_root(&r, path, flags));
    return finish_states(&r, st, out);
}

ot_status ot__flatbuf_read_head(const void *bytes, size_t n_bytes, const char *path,
                                ot_checkpoint **out)
{
    reader r = {.fb = {.bytes = bytes, .size = n_bytes, .where = path}};
    ot_status st = ot_checkpoint_create(&r.checkpoint);
    ot__fb_table root;

    OT_THEN(st, read_state_head(&r, &root));
    return finish_states(&r, st, out);
}
