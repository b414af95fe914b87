// SPDX-License-Identifier: Apache-2.0
// Checkpoint file, versions 1 and 2, into a checkpoint. Field numbers are those of
// docs/file-formats.md.
#include <string.h>

#include "ckpt/ckpt.h"

enum { VERSION_MIN = 1, VERSION_MAX = 2 };
enum { NOT_READ = -1 }; // ot__parameter.n_updates

typedef struct reader {
    ot__fb fb;
    ot_checkpoint *checkpoint;
    const ot__file_map *file;
    ot__file_map data;     // external data
    bool is_view;          // tensors of parameters stay in the maps
    uint64_t inline_bytes; // elements copied so far: honest files do not share them
    uint64_t data_bytes;
} reader;

// Reads a tensor of the optimizer's state of a parameter.
typedef ot_status tensor_reader(reader *r, const ot__fb_table *table, ot__parameter *parameter,
                                const char *name);

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

// Over the bytes, which nobody writes to, or a copy of them.
static ot_status make_state_tensor(const ot__file_map *map, size_t position, ot_dtype dtype,
                                   const ot_shape *shape, size_t n_bytes, bool is_view,
                                   ot_tensor **out)
{
    if (is_view)
        return ot_tensor_wrap(dtype, shape, (void *)(uintptr_t)(map->data + position), n_bytes,
                              out);
    OT_TRY(ot_tensor_create(dtype, shape, out));
    ot__file_map_copy(map, (*out)->data, position, n_bytes);
    return OT_OK;
}

static ot_status read_tensor(reader *r, const ot__fb_table *table, const char *name, bool is_view,
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
    return make_state_tensor(map, position, (ot_dtype)type, &shape, expected, is_view, out);
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
        OT_TRY(read_tensor(r, &table, name, r->is_view, &value));
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

// ---- optimizer groups ----

// Of the type and shape of the parameter.
static ot_status read_like(reader *r, const ot__fb_table *table, const ot__parameter *parameter,
                           const char *name, ot_tensor **to)
{
    OT_TRY(read_tensor(r, table, name, r->is_view, to));
    if ((*to)->dtype != parameter->value->dtype ||
        !ot__shape_equal(&(*to)->shape, &parameter->value->shape))
        ot__fb_fail(&r->fb, "optimizer state of '%s': %s differs from it in type or shape",
                    parameter->name, name);
    return r->fb.status;
}

static ot_status read_moment(reader *r, const ot__fb_table *table, ot__parameter *parameter,
                             const char *name)
{
    int k = 0;

    while (k < OT_SLOT_MOMENTS && strcmp(name, ot__slot_names[k]) != 0)
        k++;
    if (k == OT_SLOT_MOMENTS || parameter->slots[k]) {
        ot__fb_fail(&r->fb, "optimizer state of '%s': moment '%s' is %s", parameter->name, name,
                    k == OT_SLOT_MOMENTS ? "not momentum0 or momentum1" : "there twice");
        return r->fb.status;
    }
    return read_like(r, table, parameter, name, &parameter->slots[k]);
}

static ot_status read_updates(reader *r, const ot__fb_table *table, ot__parameter *parameter)
{
    ot_tensor *number = NULL;
    ot_status st = read_tensor(r, table, OT_STATE_UPDATES, false, &number);

    if (st == OT_OK && (number->dtype != OT_I64 || !ot__shape_equal(&number->shape, &OT_SHAPE(1))))
        ot__fb_fail(&r->fb, "optimizer state of '%s': %s is %s%s, expected i64[1]", parameter->name,
                    OT_STATE_UPDATES, ot_dtype_name(number->dtype), OT_SHAPE_TEXT(&number->shape));
    else if (st == OT_OK && ot__tensor_get_i64(number, 0) < 0)
        ot__fb_fail(&r->fb, "optimizer state of '%s': %s is %" PRId64 ", expected at least 0",
                    parameter->name, OT_STATE_UPDATES, ot__tensor_get_i64(number, 0));
    else if (st == OT_OK)
        parameter->n_updates = ot__tensor_get_i64(number, 0);
    ot_tensor_destroy(number);
    return st == OT_OK ? r->fb.status : st;
}

// Left out, a tensor would be lost with the next save.
static ot_status read_own(reader *r, const ot__fb_table *table, ot__parameter *parameter,
                          const char *name)
{
    ot_tensor **const average = &parameter->slots[OT_SLOT_AVERAGE];
    const bool is_average = strcmp(name, ot__slot_names[OT_SLOT_AVERAGE]) == 0;
    const bool is_gradient = strcmp(name, OT_STATE_GRADIENT) == 0;

    if (strcmp(name, OT_STATE_UPDATES) == 0 && parameter->n_updates == NOT_READ)
        return read_updates(r, table, parameter);
    if (is_average && !*average)
        return read_like(r, table, parameter, name, average);
    if (is_gradient && !parameter->gradient && parameter->trainable) {
        parameter->gradient_is_given = true;
        return read_like(r, table, parameter, name, &parameter->gradient);
    }
    ot__fb_fail(&r->fb, "optimizer state of '%s': '%s' is there twice, or unknown here",
                parameter->name, name);
    return r->fb.status;
}

// What `read` takes belongs to the parameters.
static ot_status read_state(reader *r, const ot__fb_table *state, const char *name,
                            tensor_reader *read)
{
    ot__parameter *parameter = ot__ckpt_find(r->checkpoint, name);
    ot__fb_vector tensors = ot__fb_subvector(&r->fb, state, 1, 4);
    ot__fb_table table;

    if (r->fb.status == OT_OK && !parameter)
        ot__fb_fail(&r->fb, "has optimizer state for '%s', which is not a parameter", name);
    if (r->fb.status == OT_OK && !ot__fb_has(&r->fb, state, 1))
        ot__fb_fail(&r->fb, "optimizer state of '%s' has no moments", name);
    while (ot__fb_next(&r->fb, &tensors, &table)) {
        const char *tensor_name = required_name(r, &table, "a moment");

        OT_TRY(r->fb.status);
        OT_TRY(read(r, &table, parameter, tensor_name));
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
        OT_TRY(read_tensor(r, &moment, moment_name, false, &out->value));
    }
    return r->fb.status;
}

// `read` NULL: into `foreign`.
static ot_status read_group(reader *r, const ot__fb_table *table, tensor_reader *read,
                            ot__optimizer_group *foreign)
{
    ot__fb_vector states = ot__fb_subvector(&r->fb, table, 3, 4);
    ot__fb_table state;

    if (r->fb.status == OT_OK && !ot__fb_has(&r->fb, table, 3))
        ot__fb_fail(&r->fb, "an optimizer group has no states");
    OT_TRY(r->fb.status);
    if (!read) {
        foreign->states = ot__alloc_zero(states.count ? states.count : 1, sizeof(*foreign->states));
        OT_TRY(ot__made(foreign->states));
    }
    while (ot__fb_next(&r->fb, &states, &state)) {
        const char *name = required_name(r, &state, "an optimizer state");

        OT_TRY(r->fb.status);
        OT_TRY(read ? read_state(r, &state, name, read)
                    : read_foreign_state(r, &state, name, &foreign->states[foreign->n_states++]));
    }
    return r->fb.status;
}

static ot_status take_group(reader *r, const ot__fb_table *table, const char *name, int64_t step,
                            float initial_lr)
{
    ot_checkpoint *checkpoint = r->checkpoint;
    ot__optimizer_group *foreign;

    if (strcmp(name, OT_GROUP_OPTIMIZER) == 0) {
        checkpoint->has_optimizer_state = true;
        checkpoint->step = step;
        checkpoint->initial_lr = initial_lr;
        return read_group(r, table, read_moment, NULL);
    }
    if (strcmp(name, OT_GROUP_OWN) == 0) {
        checkpoint->n_accumulated = step;
        return read_group(r, table, read_own, NULL);
    }
    foreign = &checkpoint->other_groups[checkpoint->n_other_groups++];
    foreign->step = step;
    foreign->initial_lr = initial_lr;
    OT_TRY(ot__made((foreign->name = ot__strdup(name))));
    return read_group(r, table, NULL, foreign);
}

static bool is_group_known(const ot_checkpoint *checkpoint, const char *name, bool has_own)
{
    for (int k = 0; k < checkpoint->n_other_groups; k++)
        if (strcmp(checkpoint->other_groups[k].name, name) == 0)
            return true;
    return (strcmp(name, OT_GROUP_OPTIMIZER) == 0 && checkpoint->has_optimizer_state) ||
           (strcmp(name, OT_GROUP_OWN) == 0 && has_own);
}

// An accumulation goes on with the gradients of all parameters that train, or with none.
static ot_status check_accumulation(reader *r)
{
    const ot_checkpoint *checkpoint = r->checkpoint;
    const bool is_expected = checkpoint->n_accumulated > 0;

    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const ot__parameter *p = checkpoint->parameters[i];

        if (p->trainable && (p->gradient != NULL) != is_expected)
            ot__fb_fail(&r->fb, "has %s of parameter '%s', but those of %" PRId64 " micro-batches",
                        is_expected ? "no gradient" : "a gradient", p->name,
                        checkpoint->n_accumulated);
    }
    return r->fb.status;
}

static ot_status read_groups(reader *r, const ot__fb_table *root)
{
    ot__fb_vector groups = ot__fb_subvector(&r->fb, root, 2, 4);
    ot_checkpoint *checkpoint = r->checkpoint;
    ot__fb_table table;
    bool has_own = false;

    OT_TRY(r->fb.status);
    checkpoint->other_groups =
        ot__alloc_zero(groups.count ? groups.count : 1, sizeof(*checkpoint->other_groups));
    OT_TRY(ot__made(checkpoint->other_groups));
    for (int i = 0; i < checkpoint->n_parameters; i++)
        checkpoint->parameters[i]->n_updates = NOT_READ;
    while (ot__fb_next(&r->fb, &groups, &table)) {
        const char *name = required_name(r, &table, "an optimizer group");
        int64_t step = ot__fb_int(&r->fb, &table, 1, 8, 0);
        float initial_lr = ot__fb_float(&r->fb, &table, 2);
        bool is_twice;

        OT_TRY(r->fb.status);
        is_twice = is_group_known(checkpoint, name, has_own);
        if (is_twice || step < 0)
            ot__fb_fail(&r->fb, "optimizer group '%s' %s", name,
                        is_twice ? "is there twice" : "has a negative step");
        OT_TRY(r->fb.status);
        has_own = has_own || strcmp(name, OT_GROUP_OWN) == 0;
        OT_TRY(take_group(r, &table, name, step, initial_lr));
    }
    for (int i = 0; i < checkpoint->n_parameters; i++)
        if (checkpoint->parameters[i]->n_updates == NOT_READ)
            checkpoint->parameters[i]->n_updates = checkpoint->step;
    return check_accumulation(r);
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
    if (r->is_view) {
        OT_TRY(ot__file_map_check(r->file, path));
        OT_TRY(ot__file_map_check(&r->data, path));
    }
    OT_TRY(read_module(r, &root));
    return flags & OT_CHECKPOINT_OPTIMIZER_STATE ? read_groups(r, &root) : OT_OK;
}

static ot_status finish_states(reader *r, ot_status st, ot_checkpoint **out)
{
    *out = NULL;
    ot__file_map_close(&r->data);
    return OT_HAND_OUT(st, out, r->checkpoint, ot_checkpoint_destroy);
}

ot_status ot__flatbuf_read(ot__file_map *file, const char *path, unsigned flags, bool is_view,
                           ot_checkpoint **out)
{
    reader r = {
        .fb = {.bytes = file->data, .size = file->size, .where = path ? path : "checkpoint"},
        .file = file,
        .is_view = is_view,
    };
    ot_status st = ot_checkpoint_create(&r.checkpoint);

    OT_THEN(st, read_root(&r, path, flags));
    if (st == OT_OK && is_view) {
        r.checkpoint->file = *file;
        r.checkpoint->data = r.data;
        *file = r.data = (ot__file_map){0};
    }
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
