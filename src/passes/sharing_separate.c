// SPDX-License-Identifier: Apache-2.0
// One tensor that stands for several parameters: each gets its own, by who reads it.
#include <string.h>

#include "passes/sharing_readers.h"

#define KIND "pkg.torch.export.graph_signature.InputSpec.kind"

typedef ot__shared_reader reader;
typedef ot__shared_tensor tensor;

typedef struct ot__shared_group { // readers of one parameter
    const char *name;
    ot_value *value; // the tensor that it has now
    ot_node *named;  // the Identity that has its name
    int first, last; // of its readers
    int n_readers;
    bool is_buffer;
} group;

// ---- groups ----

static group *group_of(const tensor *t, const ot__map *by_name, const reader *r)
{
    const uintptr_t number = (uintptr_t)ot__map_get(by_name, r->name);

    return number > 0 ? &t->groups[number - 1] : NULL;
}

static ot_status add_to_group(tensor *t, int i_reader, ot__map *by_name)
{
    ot__arena *arena = t->s->graph->model->arena;
    reader *r = &t->readers[i_reader];
    group *g = group_of(t, by_name, r);

    r->next = -1;
    if (g) {
        t->readers[g->last].next = i_reader;
        g->last = i_reader;
        g->n_readers++;
        return OT_OK;
    }
    OT_TRY(ot__made(
        ot__arena_grow(arena, &t->groups, &t->groups_capacity, t->n_groups, sizeof *t->groups)));
    g = &t->groups[t->n_groups++];
    *g = (group){.name = r->name,
                 .is_buffer = r->owner.is_buffer,
                 .first = i_reader,
                 .last = i_reader,
                 .n_readers = 1};
    if (strcmp(r->name, t->value->name) == 0)
        g->value = t->value;
    // Groups move while the list grows: the map keeps their numbers, from 1 on.
    return ot__made(ot__map_put(by_name, r->name, (void *)(uintptr_t)t->n_groups));
}

// As the exporter says it of what its framework does not train.
static ot_status set_buffer(ot_model *model, ot_value *value)
{
    const char *const pair[] = {KIND, "BUFFER"};
    const char **pairs = ot__arena_memdup(model->arena, pair, sizeof pair);

    if (pairs)
        value->metadata = (ot__metadata){pairs, 1};
    return ot__made(pairs);
}

// A tensor with the same elements, under the name of the group or a like one.
static ot_status make_value(tensor *t, group *g)
{
    ot_graph *graph = t->s->graph;

    if (g->named) {
        g->value = g->named->outputs[0];
        g->named->outputs[0] = NULL; // dropped at the end
        g->value->producer = NULL;
    } else {
        g->value = ot__graph_new_value(graph, g->name);
        OT_TRY(ot__made(g->value));
    }
    g->name = g->value->name;
    OT_TRY(ot__made(ot__graph_add_initializer(graph, g->value, t->value->constant)));
    return g->is_buffer ? set_buffer(graph->model, g->value) : OT_OK;
}

// A tensor whose name was generated has that of its first parameter from now on.
static ot_status take_part_name(tensor *t, group *g)
{
    const char *old = t->value->name;

    OT_TRY(ot__made(ot__graph_rename_value(t->s->graph, t->value, g->name)));
    t->value->alias = old;
    g->value = t->value;
    g->name = t->value->name;
    return g->is_buffer && !ot__metadata_get(&t->value->metadata, KIND)
               ? set_buffer(t->s->graph->model, t->value)
               : OT_OK;
}

static bool has_own_group(const tensor *t)
{
    for (int i = 0; i < t->n_groups; i++)
        if (t->groups[i].value == t->value)
            return true;
    return t->value->is_output || t->value->is_input;
}

static ot_status make_separate(tensor *t)
{
    const char *name = t->value->name;
    const char **parts =
        ot__arena_alloc(t->s->graph->model->arena, (size_t)t->n_groups * sizeof *parts);
    int n = 0;

    OT_TRY(ot__made(parts));
    if (!has_own_group(t) && t->is_generated && !t->groups[0].named)
        OT_TRY(take_part_name(t, &t->groups[0]));
    if (!has_own_group(t))
        OT_TRY(ot__sharing_forget(t->s, t->value));
    for (int i = 0; i < t->n_groups; i++)
        if (t->groups[i].value == t->value && !t->groups[i].is_buffer)
            parts[n++] = t->groups[i].name;
    for (int i = 0; i < t->n_groups; i++) {
        if (t->groups[i].value == t->value)
            continue;
        OT_TRY(make_value(t, &t->groups[i]));
        if (!t->groups[i].is_buffer)
            parts[n++] = t->groups[i].name;
    }
    return n < 2 ? OT_OK : ot__sharing_say(t->s, OT_SHARING_SEPARATED, name, parts, n);
}

static void give(const tensor *t, const ot__map *by_name)
{
    for (int i = 0; i < t->n_readers; i++) {
        const reader *r = &t->readers[i];
        const group *g = group_of(t, by_name, r);

        if (r->use.i_input >= 0 && g->named != r->use.node)
            r->use.node->inputs[r->use.i_input] = g->value;
    }
}

// ---- what is left ----

// Several modules that read one parameter.
static ot_status say_left(const tensor *t, const group *g)
{
    ot__arena *arena = t->s->graph->model->arena;
    const char **parts = ot__arena_alloc(arena, (size_t)(g->n_readers + 1) * sizeof *parts);
    bool is_known = false;
    ot__map seen = {0};
    ot_status st = ot__made(parts);
    int n = 0;

    for (int i = g->first; st == OT_OK && i >= 0; i = t->readers[i].next) {
        const reader *r = &t->readers[i];
        const char *where = r->owner.module;

        if (r->use.i_input < 0)
            continue;
        is_known = is_known || r->role != OT_PORT_ROLE_OTHER;
        if (r->is_named)
            where = r->name;
        if (!where)
            where = ot__arena_strdup(arena, OT_LABEL(r->use.node));
        if (!where || (!ot__map_get(&seen, where) && !ot__map_put(&seen, where, t->value)))
            st = OT_ERR_NO_MEMORY;
        else if ((size_t)n < seen.count)
            parts[n++] = *where ? where : "the model itself";
    }
    ot__map_deinit(&seen);
    if (st == OT_OK && n > 1 && is_known)
        st = ot__sharing_say(t->s, OT_SHARING_LEFT, g->name, parts, n);
    return st;
}

// "val_2", folded from "l.weight" alone, is what that weight became.
static ot_status name_folded(tensor *t)
{
    const char *folded =
        ot__metadata_get(&t->value->metadata, "pkg.onnxscript.optimizer.folded_from");
    const char *const *list;
    int n;

    if (!folded || !t->is_generated || t->value->constant->shape.ndim != 2 || t->n_readers == 0 ||
        t->readers[0].role != OT_PORT_ROLE_WEIGHT || t->value->is_output || t->value->is_input)
        return OT_OK;
    list = ot__metadata_list(t->s->graph->model->arena, folded, &n);
    OT_TRY(ot__made(list));
    if (n != 1 || !ot__is_parameter_name(t->s->graph, list[0]) ||
        ot__graph_find(t->s->graph, list[0]))
        return OT_OK;
    t->groups[0].name = list[0];
    return take_part_name(t, &t->groups[0]);
}

// ---- the whole ----

static ot_status separate_by(tensor *t, ot__map *by_name)
{
    for (int i = 0; i < t->n_readers; i++)
        OT_TRY(add_to_group(t, i, by_name));
    for (int i = 0; i < t->n_readers; i++) {
        const reader *r = &t->readers[i];
        group *g = group_of(t, by_name, r);

        if (r->is_named && g->value != t->value)
            g->named = r->use.node;
    }
    if (t->n_groups > 1) {
        OT_TRY(make_separate(t));
        give(t, by_name);
    } else if (t->n_groups == 1) {
        if (t->groups[0].is_buffer && t->is_generated &&
            !ot__metadata_get(&t->value->metadata, KIND))
            OT_TRY(take_part_name(t, &t->groups[0]));
        OT_TRY(name_folded(t));
    }
    for (int i = 0; i < t->n_groups; i++)
        OT_TRY(say_left(t, &t->groups[i]));
    return OT_OK;
}

// What the exporter made for operators that normalise by ones and zeros.
static bool is_made_of_units(const tensor *t)
{
    for (int i = 0; i < t->n_readers; i++)
        if (!t->readers[i].owner.is_buffer)
            return false;
    return t->n_readers > 0;
}

static ot_status separate_value(ot__separation *s, ot_value *value)
{
    tensor t = {.s = s,
                .value = value,
                .is_generated = !ot__is_parameter_name(s->graph, value->name),
                .is_uniform = ot__tensor_is_uniform(value->constant)};
    ot__map by_name = {0};
    bool is_nobodys;
    ot_status st;

    OT_TRY(ot__owner_is_nobody(&s->owners, value, &is_nobodys));
    st = ot__sharing_find_readers(&t);
    if (st == OT_OK && is_nobodys && !is_made_of_units(&t))
        return OT_OK;
    OT_THEN(st, ot__sharing_name_readers(&t));
    OT_THEN(st, separate_by(&t, &by_name));
    ot__map_deinit(&by_name);
    return st;
}

ot_status ot__sharing_separate(ot__separation *s)
{
    const int n = s->graph->n_initializers; // what comes behind is what they became

    for (int i = 0; i < n; i++)
        if (ot__is_parameter(s->graph->initializers[i]))
            OT_TRY(separate_value(s, s->graph->initializers[i]));
    return ot__sharing_drop_forgotten(s);
}
