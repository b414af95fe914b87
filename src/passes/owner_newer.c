// SPDX-License-Identifier: Apache-2.0
// Parameters of the exported program: what the newer exporter's metadata say of them.
#include "passes/owner.h"
#include "passes/passes.h"

#include <string.h>

// Longer strings of a file say nothing.
enum { MAX_CALL = 16384 };

#define CALL "pkg.torch.onnx.fx_node"
#define FOLDED_FROM "pkg.onnxscript.optimizer.folded_from"

typedef struct ot__placeholder {
    const char *target;
    bool is_buffer;
    bool is_taken;  // by an operator
    bool is_folded; // a tensor under another name is what became of it alone
} placeholder;      // an input of the exported program

// One line of the signature: "p_l_weight: PARAMETER target='l.weight'". Others are skipped.
static ot_status owner_line(ot__owners *p, const char *line, size_t length)
{
    ot__arena *arena = p->graph->model->arena;
    char *name = ot__arena_strndup(arena, line, length);
    const char *kind, *target;
    placeholder *made;

    OT_TRY(ot__made(name));
    if (!ot__metadata_input(name, &kind, &target))
        return OT_OK;
    made = ot__arena_alloc(arena, sizeof *made);
    OT_TRY(ot__made(made));
    made->target = target;
    made->is_buffer = !ot__starts_with(kind, "PARAMETER");
    return ot__made(
        ot__arena_push(arena, &p->inputs, &p->inputs_capacity, &p->n_inputs, &made, sizeof made) &&
        ot__map_put(&p->signature, name, made) && ot__map_put(&p->targets, made->target, made));
}

ot_status ot__owners_read_signature(ot__owners *p, const char *text)
{
    while (text && *text) {
        const size_t length = strcspn(text, "\n");

        OT_TRY(owner_line(p, text, length));
        text += length + (text[length] == '\n');
    }
    return OT_OK;
}

// Where calls have a bias among their arguments, and those of normalisations a scale; -1: nowhere.
typedef struct ot__call_kind {
    const char *target;
    int scale, bias;
} call_kind;

static const call_kind *call_kind_of(const char *call)
{
    static const call_kind kinds[] = {
        {"aten.linear.", -1, 2},    {"aten.addmm.", -1, 0},     {"aten.conv", -1, 2},
        {"aten.layer_norm.", 2, 3}, {"aten.group_norm.", 2, 3}, {"aten.instance_norm.", 1, 2},
        {"aten.rms_norm.", 2, -1},
    };

    for (size_t i = 0; i < OT_COUNT(kinds); i++)
        if (strstr(call, kinds[i].target))
            return &kinds[i];
    return NULL;
}

// The i-th argument of "...(args = (%x, [8], None), kwargs = {...})"; NULL: the list is shorter.
static const char *call_argument(const char *call, int i)
{
    static const char start[] = "(args = (";
    const char *at = i < 0 ? NULL : strstr(call, start);
    int depth = 0;

    for (at = at ? at + strlen(start) : NULL; at && i > 0; i--) {
        for (; *at && depth >= 0 && !(*at == ',' && depth == 0); at++)
            depth += strchr("([{", *at) ? 1 : strchr(")]}", *at) ? -1 : 0;
        at = *at == ',' && depth == 0 ? at + 1 + (at[1] == ' ') : NULL;
    }
    return at && *at && *at != ')' ? at : NULL;
}

// Is this the parameter of its operator that the node reads so?
static bool owner_fits(const ot_node *node, const char *leaf, const char *target)
{
    static const char *const others[] = {"bias", "running_mean", "running_var"};

    if (*leaf == '\0' && strcmp(ot__match_leaf(node), "bias") == 0)
        leaf = "bias";
    if (ot__index_of(others, (int)OT_COUNT(others), leaf) >= 0)
        return ot__ends_with(target, leaf);
    for (size_t i = 0; i < OT_COUNT(others); i++)
        if (ot__ends_with(target, others[i]))
            return false;
    return true;
}

// The input of the program that the text begins with, "%p_l_weight, ...", and the length of its
// name; NULL: it is none.
static placeholder *input_at(const ot__owners *p, const char *text, size_t *length)
{
    char name[256];

    for (*length = 1; ot__is_word_character(text[*length]);)
        ++*length;
    if (*text != '%' || *length > sizeof name)
        return NULL;
    memcpy(name, text + 1, *length - 1);
    name[*length - 1] = '\0';
    return ot__map_get(&p->signature, name);
}

// The next of them among the arguments of a call, "(args = (%x, %p_l_weight), ...)"; NULL: none is
// left.
static placeholder *next_argument(const ot__owners *p, const char **at)
{
    size_t length;

    while (*at && (*at = strchr(*at, '%')) != NULL) {
        placeholder *found = input_at(p, *at, &length);

        *at += length;
        if (found)
            return found;
    }
    return NULL;
}

// "%linear : [num_users=1] = call_function[...](args = (%x, %p_l_weight, %p_l_bias), kwargs = {})":
// the only argument that fits. NULL: none, or several.
static const placeholder *find_argument(const ot__owners *p, const ot_node *node, const char *call,
                                        const char *leaf)
{
    const placeholder *fitting = NULL, *only = NULL, *found;
    int n_fitting = 0, n = 0;

    for (const char *at = strchr(call, '('); (found = next_argument(p, &at)) != NULL;) {
        if (found == only)
            continue;
        only = found;
        n++;
        if (owner_fits(node, leaf, found->target)) {
            fitting = found;
            n_fitting++;
        }
    }
    return n_fitting == 1 ? fitting : n == 1 ? only : NULL;
}

// What the exporter made of several tensors is none of them, and a number is no weight.
static ot_status take_folded(const ot__owners *p, const ot_value *value)
{
    const char *folded = ot__metadata_get(&value->metadata, FOLDED_FROM);
    const char *const *list;
    int n;

    if (!folded)
        return OT_OK;
    list = ot__metadata_list(p->graph->model->arena, folded, &n);
    OT_TRY(ot__made(list));
    for (int i = 0; i < n; i++) {
        placeholder *source = ot__map_get(&p->targets, list[i]);

        if (!source)
            continue;
        if (n > 1 || value->shape.ndim == 0)
            source->is_taken = true;
        else
            source->is_folded = true;
    }
    return OT_OK;
}

// Of a batch normalisation without scale nothing else is left to name.
static ot_status is_unscaled_mean(const ot__owners *p, const char *target, bool *out)
{
    static const char leaf[] = "running_mean";
    const size_t length = strlen(target);
    const char *weight;

    *out = false;
    if (!ot__ends_with(target, leaf) || length > MAX_CALL)
        return OT_OK;
    weight = ot__arena_printf(p->graph->model->arena, "%.*sweight", (int)(length - strlen(leaf)),
                              target);
    OT_TRY(ot__made(weight));
    *out = !ot__map_get(&p->targets, weight);
    return OT_OK;
}

// Who is mentioned by what is left of the graph.
static ot_status mark_taken(const ot__owners *p)
{
    for (int k = 0; k < p->graph->n_nodes; k++) {
        const char *call = ot__metadata_get(&p->graph->nodes[k]->metadata, CALL);
        const char *at = call ? strchr(call, '(') : NULL;

        for (placeholder *taken; (taken = next_argument(p, &at)) != NULL;)
            taken->is_taken = true;
    }
    for (int i = 0; i < p->graph->n_initializers; i++)
        OT_TRY(take_folded(p, p->graph->initializers[i]));
    return OT_OK;
}

ot_status ot__owners_missing(const ot__owners *p, ot__missing *out)
{
    ot__arena *arena = p->graph->model->arena;
    const size_t n_bytes = ((size_t)p->n_inputs + 1) * sizeof(char *);

    *out = (ot__missing){ot__arena_alloc(arena, n_bytes), ot__arena_alloc(arena, n_bytes), 0, 0};
    OT_TRY(ot__made(out->lost && out->unused));
    OT_TRY(mark_taken(p));
    for (int i = 0; i < p->n_inputs; i++) {
        const placeholder *input = p->inputs[i];
        const ot_value *value = ot__graph_find(p->graph, input->target);
        bool counts = !input->is_buffer;

        if (value && value->is_initializer)
            continue;
        if (input->is_taken && input->is_buffer)
            OT_TRY(is_unscaled_mean(p, input->target, &counts));
        if (counts && input->is_taken)
            out->lost[out->n_lost++] = input->target;
        else if (counts && !input->is_folded)
            out->unused[out->n_unused++] = input->target;
    }
    return OT_OK;
}

bool ot__owners_list(const ot__owners *p, const char *name)
{
    const placeholder *found = ot__map_get(&p->targets, name);

    return found && !found->is_buffer;
}

const char *ot__owner_bias(const ot__owners *p, const ot_node *node)
{
    const char *call = ot__metadata_get(&node->metadata, CALL);
    const call_kind *kind = call && strlen(call) <= MAX_CALL ? call_kind_of(call) : NULL;
    const char *argument = kind && kind->scale < 0 ? call_argument(call, kind->bias) : NULL;
    size_t length;
    const placeholder *found = argument ? input_at(p, argument, &length) : NULL;

    return found && !found->is_buffer ? found->target : NULL;
}

ot_status ot__owner_is_nobody(const ot__owners *p, const ot_value *value, bool *out)
{
    const char *folded = ot__metadata_get(&value->metadata, FOLDED_FROM);
    const char *const *list;
    int n;

    *out = false;
    if (!folded || p->targets.count == 0 || ot__map_get(&p->targets, value->name))
        return OT_OK;
    list = ot__metadata_list(p->graph->model->arena, folded, &n);
    OT_TRY(ot__made(list));
    *out = n > 0;
    for (int i = 0; i < n; i++)
        *out = *out && !ot__map_get(&p->targets, list[i]);
    return OT_OK;
}

// Is this argument there, and no None?
static bool has_argument(const char *call, int i)
{
    const char *argument = call_argument(call, i);

    return argument && !ot__starts_with(argument, "None");
}

// A GroupNorm becomes an InstanceNormalization by ones and zeros, and has its own scale behind it;
// a module that has no scale or no bias normalises by ones and zeros, too.
static bool is_unscaled(const ot_node *node, const call_kind *kind, const char *call, bool is_bias)
{
    if (!kind || kind->scale < 0)
        return false;
    return (ot__match_unit_norm(node) && strstr(kind->target, "group_norm")) ||
           !has_argument(call, is_bias ? kind->bias : kind->scale);
}

ot_status ot__owner_find_newer(const ot__owners *p, const ot_node *node, const char *scopes,
                               const char *leaf, ot__owner *out)
{
    const char *call = ot__metadata_get(&node->metadata, CALL);
    const placeholder *argument;
    const char *const *path;
    bool is_bias;
    int n;

    path = ot__metadata_list(p->graph->model->arena, scopes, &n);
    OT_TRY(ot__made(path));
    if (n < 1)
        return OT_OK;
    out->source = OT_OWNER_SCOPES;
    out->module = n >= 2 ? path[n - 2] : ""; // the last is the node itself
    if (!call || strlen(call) > MAX_CALL)
        return OT_OK;
    is_bias = strcmp(*leaf ? leaf : ot__match_leaf(node), "bias") == 0;
    if (is_unscaled(node, call_kind_of(call), call, is_bias)) {
        out->source = OT_OWNER_EXACT;
        out->parameter = ot__arena_printf(p->graph->model->arena, "%s%sunit_%s", out->module,
                                          *out->module ? "." : "",
                                          *leaf     ? leaf
                                          : is_bias ? "summand"
                                                    : "factor");
        out->is_buffer = out->is_unit = true;
        return ot__made(out->parameter);
    }
    argument = find_argument(p, node, call, leaf);
    if (argument) {
        out->source = OT_OWNER_EXACT;
        out->parameter = argument->target;
        out->is_buffer = argument->is_buffer;
    }
    return OT_OK;
}
