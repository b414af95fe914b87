// SPDX-License-Identifier: Apache-2.0
// Places: from node names of the classic exporter; owner_newer.c has them from metadata of the
// newer one.
#include "passes/owner.h"
#include "passes/passes.h"

#include <stdlib.h>
#include <string.h>

// Longer strings of a file say nothing.
enum { MAX_NAME = 1024, MAX_SCOPES = 4096, MAX_ELEMENTS = 64 };

#define SCOPES "pkg.torch.onnx.name_scopes"
#define SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"

// ---- names ----

bool ot__is_value_name(const char *name)
{
    const char *digits = name + strlen(name);

    while (digits > name && ot__is_digit(digits[-1]))
        digits--;
    if (*digits == '\0' || digits - name < 2 || digits[-1] != '_')
        return false;
    for (const char *p = name; p < digits; p++)
        if (*p != '_' && !(*p >= 'a' && *p <= 'z'))
            return false;
    return true;
}

bool ot__is_parameter_name(const ot_graph *graph, const char *name)
{
    for (const char *p = name; *p; p++)
        if (!ot__is_word_character(*p) && *p != '.')
            return false;
    return *name && !(ot__metadata_get(&graph->metadata, SIGNATURE) && ot__is_value_name(name));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Is there a name that starts with this?
static bool has_prefix(const char *const *sorted, int n, const char *prefix)
{
    int low = 0, high = n;

    while (low < high) {
        const int middle = low + (high - low) / 2;

        if (strcmp(sorted[middle], prefix) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && ot__starts_with(sorted[low], prefix);
}

// ---- the classic exporter ----

// How long an element is without a call number: the "l" of "l_1".
static size_t without_call_number(const char *element, size_t length)
{
    size_t end = length;

    while (end > 0 && ot__is_digit(element[end - 1]))
        end--;
    return end < length && end >= 2 && element[end - 1] == '_' ? end - 1 : length;
}

// A second call of a module "l" is "l_1", unless a module of that name has parameters; the first is
// there too.
static bool is_call_number(const ot__owners *p, const char *module, const char *parent,
                           const char *element, size_t length, size_t base)
{
    ot__buf text = {0};
    bool is_module, has_first;

    ot__buf_printf(&text, "%s%s%.*s.", module, *module ? "." : "", (int)length, element);
    is_module = text.data && has_prefix(p->parameters, p->n_parameters, text.data);
    text.length = 0;
    ot__buf_printf(&text, "%s/%.*s/", parent, (int)base, element);
    has_first = text.data && has_prefix(p->nodes, p->n_nodes, text.data);
    ot__buf_deinit(&text);
    return !is_module && has_first;
}

typedef struct path {
    ot__buf module; // "enc.0"
    ot__buf scope;  // "/enc/enc.0", without call numbers
    size_t last;    // where the last element of `module` begins
} path;

static void add_element(const ot__owners *p, path *to, const char *element, size_t length)
{
    const char *module = to->module.data ? to->module.data : "";
    const char *before = module + to->last;
    const size_t n_before = strlen(before), base = without_call_number(element, length);

    if (base < length &&
        is_call_number(p, module, to->scope.data ? to->scope.data : "", element, length, base))
        length = base;
    ot__buf_printf(&to->scope, "/%.*s", (int)length, element);
    // Children of a Sequential are called by its name and theirs.
    if (n_before > 0 && length > n_before && strncmp(element, before, n_before) == 0 &&
        element[n_before] == '.') {
        to->module.length = to->last;
        ot__buf_printf(&to->module, "%.*s", (int)length, element);
        return;
    }
    to->last = to->module.length + (to->module.length > 0);
    ot__buf_printf(&to->module, "%s%.*s", to->module.length > 0 ? "." : "", (int)length, element);
}

// "/l/MatMul/MatMulAddFusion/" is what an optimiser made of "/l/MatMul": the length of that.
static size_t without_fusions(const char *name)
{
    static const char fusion[] = "Fusion";
    const size_t n = sizeof fusion - 1;
    size_t length = strlen(name);

    while (length > 0) {
        size_t end = length;

        while (end > 0 && name[end - 1] == '/')
            end--;
        if (end < n || strncmp(name + end - n, fusion, n) != 0)
            return end;
        length = end;
        while (length > 0 && name[length - 1] != '/')
            length--;
    }
    return strlen(name);
}

static ot_status find_classic(const ot__owners *p, const ot_node *node, ot__owner *out)
{
    const char *at =
        ot__arena_strndup(p->graph->model->arena, node->name, without_fusions(node->name));
    int n_elements = 0;
    path to = {0};
    ot_status st;

    OT_TRY(ot__made(at));
    for (const char *slash = at; (slash = strchr(slash, '/')) != NULL; slash++)
        n_elements++;
    if (at[0] != '/' || strlen(at) > MAX_NAME || n_elements > MAX_ELEMENTS)
        return OT_OK;
    for (const char *end; (end = strchr(at + 1, '/')) != NULL; at = end)
        add_element(p, &to, at + 1, (size_t)(end - at - 1));
    st = ot__buf_status(&to.module);
    OT_THEN(st, ot__buf_status(&to.scope));
    if (st == OT_OK) {
        out->source = OT_OWNER_CLASSIC;
        out->module =
            ot__arena_strdup(p->graph->model->arena, to.module.data ? to.module.data : "");
        st = ot__made(out->module);
    }
    ot__buf_deinit(&to.module);
    ot__buf_deinit(&to.scope);
    return st;
}

// ---- what was found ----

typedef struct ot__found_owner {
    const char *leaf;
    ot__owner owner;
    struct ot__found_owner *next;
} found_owner;

typedef struct ot__node_owners {
    const ot_node *node;
    found_owner *first;
} node_owners;

static int by_node(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const node_owners *)a)->node,
                    y = (uintptr_t)((const node_owners *)b)->node;

    return (x > y) - (x < y);
}

// NULL: the node was not in the graph at first.
static node_owners *find_node(const ot__owners *p, const ot_node *node)
{
    const node_owners key = {.node = node};

    return p->n_nodes > 0 ? bsearch(&key, p->found, (size_t)p->n_nodes, sizeof *p->found, by_node)
                          : NULL;
}

static ot_status keep_owner(const ot__owners *p, node_owners *of, const char *leaf,
                            const ot__owner *owner)
{
    found_owner *found = ot__arena_alloc(p->graph->model->arena, sizeof *found);

    OT_TRY(ot__made(found));
    *found = (found_owner){ot__arena_strdup(p->graph->model->arena, leaf), *owner, of->first};
    OT_TRY(ot__made(found->leaf));
    of->first = found;
    return OT_OK;
}

// ---- the whole ----

ot_status ot__owners_init(ot__owners *p, ot_graph *graph)
{
    const size_t n_nodes = (size_t)graph->n_nodes;

    *p = (ot__owners){.graph = graph};
    p->parameters = ot__arena_alloc(graph->model->arena,
                                    ((size_t)graph->n_initializers + n_nodes + 1) * sizeof(char *));
    p->nodes = ot__arena_alloc(graph->model->arena, (n_nodes + 1) * sizeof(char *));
    p->found = ot__arena_alloc(graph->model->arena, (n_nodes + 1) * sizeof *p->found);
    OT_TRY(ot__made(p->parameters && p->nodes && p->found));
    for (int i = 0; i < graph->n_initializers; i++)
        p->parameters[p->n_parameters++] = graph->initializers[i]->name;
    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];

        p->found[n] = (node_owners){.node = node};
        p->nodes[p->n_nodes++] = node->name;
        if (ot__match_copy(node) && node->n_outputs == 1 && node->outputs[0])
            p->parameters[p->n_parameters++] = node->outputs[0]->name;
    }
    qsort(p->parameters, (size_t)p->n_parameters, sizeof(char *), by_text);
    qsort(p->nodes, (size_t)p->n_nodes, sizeof(char *), by_text);
    qsort(p->found, (size_t)p->n_nodes, sizeof *p->found, by_node);
    return ot__owners_read_signature(p, ot__metadata_get(&graph->metadata, SIGNATURE));
}

void ot__owners_deinit(ot__owners *p)
{
    ot__map_deinit(&p->signature);
    ot__map_deinit(&p->targets);
}

static ot_status find_owner(const ot__owners *p, const ot_node *node, const char *leaf,
                            ot__owner *out)
{
    const char *scopes = ot__metadata_get(&node->metadata, SCOPES);

    *out = (ot__owner){0};
    if (!scopes)
        return find_classic(p, node, out);
    return strlen(scopes) <= MAX_SCOPES ? ot__owner_find_newer(p, node, scopes, leaf, out) : OT_OK;
}

// A node may read parameters in very many places: its strings are looked through once for each
// leaf.
ot_status ot__owner_find(const ot__owners *p, const ot_node *node, const char *leaf, ot__owner *out)
{
    node_owners *of = find_node(p, node);

    for (const found_owner *found = of ? of->first : NULL; found; found = found->next)
        if (strcmp(found->leaf, leaf) == 0) {
            *out = found->owner;
            return OT_OK;
        }
    OT_TRY(find_owner(p, node, leaf, out));
    return of ? keep_owner(p, of, leaf, out) : OT_OK;
}
