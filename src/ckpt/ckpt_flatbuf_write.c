// SPDX-License-Identifier: Apache-2.0
// A checkpoint as a version 2 file: front to back, one field list per table.
#include <string.h>

#include "ckpt/ckpt.h"

enum { VERSION = 2, FILE_MAX = INT32_MAX };

typedef struct writer {
    const ot_checkpoint *checkpoint;
    const ot__ckpt_write_options *options;
    ot__pieces *pieces;
    ot__buf *buf; // what the pieces own: where tables, names and small tensors go
    ot_status status;
} writer;

// The offset at `field` leads to `target`, over what is referred to between them.
static void patch(writer *w, size_t field, size_t target)
{
    ot__fb_patch(w->buf, field,
                 field + ot__pieces_place(w->pieces, target) - ot__pieces_place(w->pieces, field));
}

static uint64_t property_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

// Elements outside the file: at multiples of 4, of 8 for 8-byte types.
static int64_t write_state_external(ot__pieces *external, const ot_tensor *tensor)
{
    size_t position;

    ot__fb_align(&external->own, ot_dtype_size(tensor->dtype) >= 8 ? 8 : 4, 0);
    position = ot__pieces_size(external);
    ot__pieces_append(external, tensor->data, tensor->n_bytes);
    return (int64_t)position;
}

// A vector of bytes, as ot__fb_write_bytes() writes it.
static size_t write_elements(writer *w, const ot_tensor *tensor)
{
    const size_t position = ot__fb_write_bytes(w->buf, NULL, 0);

    ot__fb_patch(w->buf, position, position + tensor->n_bytes); // its count
    ot__pieces_append(w->pieces, tensor->data, tensor->n_bytes);
    return position;
}

static size_t write_state_tensor(writer *w, const char *name, const char *doc,
                                 const ot_tensor *tensor, bool nominal, ot__pieces *external)
{
    enum { NAME, DOC, DIMS, TYPE, RAW, STRINGS, OFFSET, N_FIELDS };
    bool is_external = external && !nominal;
    ot__fb_field fields[N_FIELDS] = {
        [NAME] = {.text = name},
        [DOC] = {.text = doc},
        [DIMS] = {.n_bytes = 4},
        [TYPE] = {.n_bytes = 4, .value = (uint64_t)tensor->dtype},
        [RAW] = {.n_bytes = is_external ? 0 : 4},
        [OFFSET] = {.n_bytes = is_external ? 8 : 0},
    };
    size_t position;

    if (tensor->n_bytes > FILE_MAX && !is_external && w->status == OT_OK)
        w->status =
            ot__error(OT_ERR_UNSUPPORTED, "'%s' has %zu bytes, more than a checkpoint file holds",
                      name, tensor->n_bytes);
    if (w->status != OT_OK)
        return 0;
    if (is_external)
        fields[OFFSET].value = (uint64_t)write_state_external(external, tensor);
    position = ot__fb_write_table(w->buf, fields, N_FIELDS);
    patch(w, fields[DIMS].position,
          ot__fb_write_i64s(w->buf, tensor->shape.dim, nominal ? 0 : tensor->shape.ndim));
    if (!is_external)
        patch(w, fields[RAW].position,
              nominal ? ot__fb_write_bytes(w->buf, NULL, 0) : write_elements(w, tensor));
    return position;
}

static const ot__parameter *parameter_at(const writer *w, int i)
{
    if (w->options->names)
        return ot__ckpt_find(w->checkpoint, w->options->names[i]);
    return w->checkpoint->parameters[i];
}

static int parameter_count(const writer *w)
{
    return w->options->names ? w->options->n_names : w->checkpoint->n_parameters;
}

static size_t write_parameters(writer *w, bool trainable)
{
    bool nominal = w->options->nominal || w->checkpoint->is_nominal;
    size_t count = 0, position, written = 0;

    for (int i = 0; i < parameter_count(w); i++)
        count += parameter_at(w, i)->trainable == trainable;
    position = ot__fb_write_offsets(w->buf, count);
    for (int i = 0; i < parameter_count(w); i++) {
        const ot__parameter *p = parameter_at(w, i);
        if (p->trainable != trainable)
            continue;
        patch(w, position + 4 + 4 * written++,
              write_state_tensor(w, p->name, w->options->as_artifact ? p->doc : NULL, p->value,
                                 nominal, w->options->external));
    }
    return position;
}

static size_t write_module(writer *w)
{
    enum { TRAINABLE, FROZEN, NOMINAL, EXTERNAL, N_FIELDS };
    bool nominal = w->options->nominal || w->checkpoint->is_nominal;
    bool is_external = w->options->external != NULL && !nominal;
    ot__fb_field fields[N_FIELDS] = {
        [TRAINABLE] = {.n_bytes = 4},
        [FROZEN] = {.n_bytes = 4},
        [NOMINAL] = {.n_bytes = nominal, .value = 1},
        [EXTERNAL] = {.n_bytes = is_external, .value = 1},
    };
    size_t position = ot__fb_write_table(w->buf, fields, N_FIELDS);

    patch(w, fields[TRAINABLE].position, write_parameters(w, true));
    patch(w, fields[FROZEN].position, write_parameters(w, false));
    return position;
}

static size_t write_state(writer *w, const char *param_name, const ot__moment *moments,
                          int n_moments)
{
    ot__pieces *external = w->options->external_moments ? w->options->external : NULL;
    ot__fb_field fields[2] = {{.text = param_name}, {.n_bytes = 4}};
    size_t position = ot__fb_write_table(w->buf, fields, 2);
    size_t list = ot__fb_write_offsets(w->buf, (size_t)n_moments);

    patch(w, fields[1].position, list);
    for (int k = 0; k < n_moments; k++)
        patch(w, list += 4,
              write_state_tensor(w, moments[k].name, NULL, moments[k].value, false, external));
    return position;
}

static size_t write_group_head(writer *w, const char *name, int64_t step, float initial_lr,
                               size_t n_states, size_t *list)
{
    ot__fb_field fields[4] = {
        {.text = name},
        {.n_bytes = step != 0 ? 8 : 0, .value = (uint64_t)step},
        {.n_bytes = initial_lr != 0.0f ? 4 : 0, .value = property_bits(initial_lr)},
        {.n_bytes = 4},
    };
    size_t position = ot__fb_write_table(w->buf, fields, 4);

    *list = ot__fb_write_offsets(w->buf, n_states);
    patch(w, fields[3].position, *list);
    return position;
}

// What one of our two groups has of a parameter.
typedef struct own_state {
    ot__moment tensors[OT_STATE_TENSORS + 1];
    int n;
    ot_tensor updates; // one of them
} own_state;
typedef void state_lister(const ot_checkpoint *checkpoint, const ot__parameter *p, own_state *out);

static void list_moments(const ot_checkpoint *checkpoint, const ot__parameter *p, own_state *out)
{
    (void)checkpoint;
    for (out->n = 0; out->n < OT_SLOT_MOMENTS && p->slots[out->n]; out->n++)
        out->tensors[out->n] = (ot__moment){ot__slot_names[out->n], p->slots[out->n]};
}

static void list_own(const ot_checkpoint *checkpoint, const ot__parameter *p, own_state *out)
{
    out->n = 0;
    if (p->slots[OT_SLOT_AVERAGE])
        out->tensors[out->n++] =
            (ot__moment){ot__slot_names[OT_SLOT_AVERAGE], p->slots[OT_SLOT_AVERAGE]};
    if (checkpoint->n_accumulated > 0 && p->trainable && p->gradient)
        out->tensors[out->n++] = (ot__moment){OT_STATE_GRADIENT, p->gradient};
    if (!p->trainable || p->n_updates == checkpoint->step)
        return;
    out->updates = (ot_tensor){.dtype = OT_I64,
                               .shape = OT_SHAPE(1),
                               .n_bytes = sizeof p->n_updates,
                               .data = (void *)(uintptr_t)&p->n_updates};
    out->tensors[out->n++] = (ot__moment){OT_STATE_UPDATES, &out->updates};
}

static size_t count_states(const ot_checkpoint *checkpoint, state_lister *list)
{
    size_t n_states = 0;
    own_state state;

    for (int i = 0; i < checkpoint->n_parameters; i++) {
        list(checkpoint, checkpoint->parameters[i], &state);
        n_states += state.n > 0;
    }
    return n_states;
}

static size_t write_own_group(writer *w, const char *name, int64_t step, float initial_lr,
                              state_lister *list)
{
    const ot_checkpoint *checkpoint = w->checkpoint;
    size_t states;
    size_t position =
        write_group_head(w, name, step, initial_lr, count_states(checkpoint, list), &states);
    own_state state;

    for (int i = 0; i < checkpoint->n_parameters; i++) {
        list(checkpoint, checkpoint->parameters[i], &state);
        if (state.n > 0)
            patch(w, states += 4,
                  write_state(w, checkpoint->parameters[i]->name, state.tensors, state.n));
    }
    return position;
}

static size_t write_foreign_group(writer *w, const ot__optimizer_group *group)
{
    size_t list, position = write_group_head(w, group->name, group->step, group->initial_lr,
                                             (size_t)group->n_states, &list);

    for (int i = 0; i < group->n_states; i++)
        patch(w, list += 4,
              write_state(w, group->states[i].param_name, group->states[i].moments,
                          group->states[i].n_moments));
    return position;
}

static size_t write_group(writer *w, const char *name)
{
    const ot_checkpoint *checkpoint = w->checkpoint;

    return strcmp(name, OT_GROUP_OWN) == 0
               ? write_own_group(w, name, checkpoint->n_accumulated, 0.0f, list_own)
               : write_own_group(w, name, checkpoint->step, checkpoint->initial_lr, list_moments);
}

// Sorted by name: ours stand among the others.
static size_t write_groups(writer *w)
{
    const ot_checkpoint *checkpoint = w->checkpoint;
    const bool wanted = (w->options->flags & OT_CHECKPOINT_OPTIMIZER_STATE) != 0;
    const char *own[2];
    size_t n_own = 0, n, written = 0, position, entry;

    if (wanted && checkpoint->has_optimizer_state)
        own[n_own++] = OT_GROUP_OPTIMIZER;
    if (wanted && (checkpoint->n_accumulated > 0 || count_states(checkpoint, list_own) > 0))
        own[n_own++] = OT_GROUP_OWN;
    n = wanted ? (size_t)checkpoint->n_other_groups + n_own : 0;
    entry = position = ot__fb_write_offsets(w->buf, n);
    for (int i = 0; wanted && i < checkpoint->n_other_groups; i++) {
        const ot__optimizer_group *group = &checkpoint->other_groups[i];

        while (written < n_own && strcmp(own[written], group->name) < 0)
            patch(w, entry += 4, write_group(w, own[written++]));
        patch(w, entry += 4, write_foreign_group(w, group));
    }
    while (written < n_own)
        patch(w, entry += 4, write_group(w, own[written++]));
    return position;
}

static size_t write_property(writer *w, const ot__property *property)
{
    ot__fb_field fields[2] = {{.text = property->name}, {.text = property->s}};

    if (property->kind == OT_PROPERTY_INT)
        fields[1] =
            (ot__fb_field){.n_bytes = property->i != 0 ? 8 : 0, .value = (uint64_t)property->i};
    else if (property->kind == OT_PROPERTY_FLOAT)
        fields[1] = (ot__fb_field){.n_bytes = 4, .value = property_bits(property->f)};
    return ot__fb_write_table(w->buf, fields, 2);
}

static size_t write_properties(writer *w)
{
    const ot_checkpoint *checkpoint = w->checkpoint;
    ot__fb_field fields[3] = {{.n_bytes = 4}, {.n_bytes = 4}, {.n_bytes = 4}};
    size_t position = ot__fb_write_table(w->buf, fields, 3);

    for (int kind = 0; kind < 3; kind++) {
        size_t count = 0, list;
        for (int i = 0; i < checkpoint->n_properties; i++)
            count += (int)checkpoint->properties[i].kind == kind;
        list = ot__fb_write_offsets(w->buf, count);
        patch(w, fields[kind].position, list);
        for (int i = 0; i < checkpoint->n_properties; i++)
            if ((int)checkpoint->properties[i].kind == kind)
                patch(w, list += 4, write_property(w, &checkpoint->properties[i]));
    }
    return position;
}

static void write_root(writer *w)
{
    enum { ROOT_VERSION, MODULE, GROUPS, PROPERTIES, N_FIELDS };
    ot__fb_field fields[N_FIELDS] = {
        [ROOT_VERSION] = {.n_bytes = 4, .value = VERSION},
        [MODULE] = {.n_bytes = parameter_count(w) > 0 ? 4 : 0},
        [GROUPS] = {.n_bytes = w->options->as_artifact ? 0 : 4},
        [PROPERTIES] = {.n_bytes = w->checkpoint->n_properties > 0 ? 4 : 0},
    };

    ot__buf_append(w->buf, "\0\0\0\0ODTC", 8);
    patch(w, 0, ot__fb_write_table(w->buf, fields, N_FIELDS));
    if (fields[MODULE].n_bytes)
        patch(w, fields[MODULE].position, write_module(w));
    if (fields[GROUPS].n_bytes)
        patch(w, fields[GROUPS].position, write_groups(w));
    if (fields[PROPERTIES].n_bytes)
        patch(w, fields[PROPERTIES].position, write_properties(w));
    ot__fb_align(w->buf, 8, 0);
}

ot_status ot__flatbuf_write(const ot_checkpoint *checkpoint, const ot__ckpt_write_options *options,
                            ot__pieces *out)
{
    writer w = {.checkpoint = checkpoint, .options = options, .pieces = out, .buf = &out->own};

    for (int i = 0; i < options->n_names; i++)
        if (!ot__ckpt_find(checkpoint, options->names[i]))
            return ot__ckpt_no_parameter(checkpoint, options->names[i]);
    write_root(&w);
    OT_TRY(w.status);
    OT_TRY(ot__buf_status(&out->own));
    if (options->external)
        OT_TRY(ot__buf_status(&options->external->own));
    if (ot__pieces_size(out) > FILE_MAX)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "the checkpoint has %zu bytes, more than the %d of its format",
                         ot__pieces_size(out), FILE_MAX);
    return OT_OK;
}
