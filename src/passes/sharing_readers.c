// SPDX-License-Identifier: Apache-2.0
// Which parameters a tensor stands for: those that its readers had before the export.
#include <string.h>

#include "passes/sharing_readers.h"

typedef ot__shared_reader reader;
typedef ot__shared_tensor tensor;

// ---- readers ----

static bool is_separate_copy(const ot_node *node)
{
    return ot__match_copy(node) && node->n_inputs == 1 && node->n_outputs == 1 &&
           node->outputs[0] && !node->outputs[0]->is_output && node->metadata.n == 0;
}

static bool is_generated_copy(const ot__use *use)
{
    return use->i_input == 0 && is_separate_copy(use->node) &&
           ot__starts_with(use->node->outputs[0]->name, "onnx::");
}

static const char *join_separate(const tensor *t, const char *module, const char *name)
{
    return ot__arena_printf(t->s->graph->model->arena, "%s%s%s", module, *module ? "." : "", name);
}

// A node that the exporter made for itself, such as the Split of a packed bias, says nothing; those
// that read what it makes say which module has it. There the parameter is called as the tensor is
// in its own.
static ot_status find_owner_behind(const tensor *t, const ot_node *node, ot__owner *out)
{
    const ot__separation *s = t->s;
    const char *dot = strrchr(t->value->name, '.');
    const ot_value *y = node->n_outputs > 0 ? node->outputs[0] : NULL;
    const int first = y ? ot__uses_first(&s->uses, y) : 0;
    const char *parameter;
    ot__owner owner;

    if (!y || !dot || first == ot__uses_end(&s->uses, y) || s->uses.use[first].i_input < 0)
        return OT_OK;
    OT_TRY(ot__owner_find(&s->owners, s->uses.use[first].node, "", &owner));
    if (owner.source != OT_OWNER_SCOPES && owner.source != OT_OWNER_EXACT)
        return OT_OK;
    parameter = join_separate(t, owner.module, dot + 1);
    OT_TRY(ot__made(parameter));
    if (ot__owners_list(&s->owners, parameter))
        *out =
            (ot__owner){.source = OT_OWNER_EXACT, .module = owner.module, .parameter = parameter};
    return OT_OK;
}

// `is_direct`: it reads the tensor itself, no copy of it.
static ot_status add_reader(tensor *t, const ot__use *use, bool is_direct)
{
    ot__separation *s = t->s;
    reader *r;

    OT_TRY(ot__made(ot__arena_grow(s->graph->model->arena, &t->readers, &t->readers_capacity,
                                   t->n_readers, sizeof *t->readers)));
    r = &t->readers[t->n_readers++];
    *r = (reader){.use = *use, .is_copy = !is_direct};
    r->role = ot__sharing_role(s, use, &r->leaf);
    r->is_named = is_direct && use->i_input == 0 && is_separate_copy(use->node) &&
                  ot__is_parameter_name(s->graph, use->node->outputs[0]->name);
    if (use->i_input < 0)
        return OT_OK;
    OT_TRY(ot__owner_find(&s->owners, use->node, r->leaf, &r->owner));
    return r->owner.source == OT_OWNER_NONE ? find_owner_behind(t, use->node, &r->owner) : OT_OK;
}

// Behind a copy with a generated name stand its readers.
ot_status ot__sharing_find_readers(tensor *t)
{
    const ot__uses *uses = &t->s->uses;
    const int first = ot__uses_first(uses, t->value), end = ot__uses_end(uses, t->value);

    for (int u = first; u < end; u++)
        if (!is_generated_copy(&uses->use[u]))
            OT_TRY(add_reader(t, &uses->use[u], true));
    for (int u = first; u < end; u++) {
        ot_value *y;

        if (!is_generated_copy(&uses->use[u]))
            continue;
        t->n_copies++;
        y = uses->use[u].node->outputs[0];
        OT_TRY(ot__sharing_forget(t->s, y));
        for (int k = ot__uses_first(uses, y); k < ot__uses_end(uses, y); k++)
            OT_TRY(add_reader(t, &uses->use[k], false));
    }
    return OT_OK;
}

// ---- names ----

// What the tensor's name has behind that of the module; NULL when it is none of its parameters.
static const char *behind_module(const tensor *t, const char *module)
{
    const char *name = t->value->name;
    const size_t n = strlen(module);

    if (t->is_generated)
        return NULL;
    if (n == 0)
        return strchr(name, '.') ? NULL : name;
    return ot__starts_with(name, module) && name[n] == '.' ? name + n + 1 : NULL;
}

// The reader in the module whose parameter the tensor is by its name; NULL: none.
static const reader *find_home(const tensor *t)
{
    const reader *home = NULL;

    for (int i = 0; i < t->n_readers; i++) {
        const reader *r = &t->readers[i];
        const char *rest =
            r->owner.source == OT_OWNER_SCOPES ? behind_module(t, r->owner.module) : NULL;

        if (rest && (r->role == OT_PORT_ROLE_OTHER || ot__ends_with(rest, r->leaf)) &&
            (!home || strlen(r->owner.module) > strlen(home->owner.module)))
            home = r;
    }
    return home;
}

// What PyTorch is likely to call it.
static const char *leaf_of(const reader *r)
{
    if (*r->leaf)
        return r->leaf;
    return *ot__match_leaf(r->use.node) ? ot__match_leaf(r->use.node) : "parameter";
}

// By module and role, as that at home is called.
static const char *derive(const tensor *t, const reader *r, const reader *home)
{
    if (home && r->role == home->role) {
        if (strcmp(r->owner.module, home->owner.module) == 0)
            return t->value->name;
        return join_separate(t, r->owner.module, behind_module(t, home->owner.module));
    }
    return join_separate(t, r->owner.module, leaf_of(r));
}

// In files of the classic exporter. Biases of one module beside several folded weights, as of
// queries, keys and values, are several: "attn.bias_174" is the one beside "onnx::MatMul_174".
static const char *derive_classic(const tensor *t, const reader *r)
{
    const char *name = derive(t, r, NULL);
    const ot_value *weight =
        r->role == OT_PORT_ROLE_BIAS ? ot__sharing_weight_beside(&r->use) : NULL;
    const char *number = weight ? strrchr(weight->name, '_') : NULL;

    return name && number && ot__starts_with(weight->name, "onnx::")
               ? ot__arena_printf(t->s->graph->model->arena, "%s%s", name, number)
               : name;
}

static bool is_norm_or_bias(const reader *r)
{
    return r->role == OT_PORT_ROLE_SCALE || r->role == OT_PORT_ROLE_BIAS;
}

// Another tensor has this name, so that what is read here is something else.
static bool is_elsewhere(const tensor *t, const char *name)
{
    const ot_value *value = ot__graph_find(t->s->graph, name);

    return value && value != t->value;
}

// Rule by rule; the tensor's own name where nothing says that the parameter is another.
static const char *separate_name(const tensor *t, const reader *r, const reader *home, int number)
{
    const ot__separation *s = t->s;
    const bool is_small = ot_tensor_count(t->value->constant) <= OT_MERGED_MAX;
    const char *own = t->value->name;

    if (r->use.i_input < 0)
        return own;
    if (r->is_named)
        return s->has_equal ? own : r->use.node->outputs[0]->name;
    switch (r->owner.source) {
    case OT_OWNER_EXACT:
        if (r->owner.is_unit)
            return r->owner.parameter; // or a like name
        return is_small && !is_elsewhere(t, r->owner.parameter) ? r->owner.parameter : own;
    case OT_OWNER_SCOPES:
        if (t->is_generated && r->role == OT_PORT_ROLE_OTHER)
            return own; // a number that the exporter itself computed with
        if (!is_small || s->has_small_equal || (!home && !t->is_generated && !t->is_uniform))
            return own;
        return derive(t, r, home);
    case OT_OWNER_CLASSIC:
        if (s->is_optimised && !s->has_equal && !t->is_generated && t->is_uniform &&
            is_norm_or_bias(r))
            return derive_classic(t, r);
        return (t->is_generated || r->is_copy) && t->n_copies > 0 && !s->has_equal &&
                       (r->role != OT_PORT_ROLE_OTHER || !ot__sharing_is_beside_weight(&r->use))
                   ? derive_classic(t, r)
                   : own;
    case OT_OWNER_NONE:
        break;
    }
    if (!t->is_uniform || !is_norm_or_bias(r) || s->has_equal || number == 0)
        return own;
    return ot__arena_printf(s->graph->model->arena, "%s_%d", own, number);
}

// An embedding's table that is a product's weight too was one parameter before the export.
static void keep_ties(tensor *t)
{
    bool has_table = false, has_weight = false;

    for (int i = 0; i < t->n_readers; i++) {
        if (t->readers[i].owner.source == OT_OWNER_EXACT)
            continue;
        has_table = has_table || t->readers[i].role == OT_PORT_ROLE_TABLE;
        has_weight = has_weight || t->readers[i].role == OT_PORT_ROLE_WEIGHT;
    }
    for (int i = 0; has_table && has_weight && i < t->n_readers; i++)
        if (t->readers[i].owner.source != OT_OWNER_EXACT)
            t->readers[i].name = t->value->name;
}

// Some reader's module is known: the tensor is rather its parameter than a nameless reader's.
static bool has_named_module(const tensor *t)
{
    for (int i = 0; i < t->n_readers; i++)
        if (t->readers[i].owner.source != OT_OWNER_NONE && is_norm_or_bias(&t->readers[i]))
            return true;
    return false;
}

ot_status ot__sharing_name_readers(tensor *t)
{
    const reader *home = find_home(t);
    int n_nameless = has_named_module(t);

    for (int i = 0; i < t->n_readers; i++) {
        reader *r = &t->readers[i];
        const bool is_nameless =
            r->owner.source == OT_OWNER_NONE && is_norm_or_bias(r) && !r->is_named;

        r->name = separate_name(t, r, home, n_nameless);
        n_nameless += is_nameless;
        OT_TRY(ot__made(r->name));
    }
    keep_ties(t);
    for (int i = 0; i < t->n_readers; i++) {
        reader *r = &t->readers[i];

        if (r->name != t->value->name && strcmp(r->name, t->value->name) != 0 &&
            (ot__sharing_stays(t->s, t->value->name) || ot__sharing_stays(t->s, r->name)))
            r->name = t->value->name;
    }
    return OT_OK;
}
