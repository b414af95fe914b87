// SPDX-License-Identifier: Apache-2.0
// What initializers were in the framework: what PyTorch's newer exporter writes into metadata.
#include <string.h>

#include "artifacts/explain/origins.h"

#define KEY_SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"
#define KEY_KIND "pkg.torch.export.graph_signature.InputSpec.kind"
#define KEY_FOLDED "pkg.onnxscript.optimizer.folded_from"
#define KEY_SCOPES "pkg.torch.onnx.name_scopes"

// ---- the signature ----

static bool is_origin_word(const char *text, const char *word)
{
    const size_t n = strlen(word);

    return strncmp(text, word, n) == 0 && (text[n] == '\0' || text[n] == ' ');
}

static ot__origin origin_of(const char *kind)
{
    if (is_origin_word(kind, "BUFFER") || is_origin_word(kind, "CONSTANT_TENSOR"))
        return OT_ORIGIN_BUFFER;
    return is_origin_word(kind, "PARAMETER") ? OT_ORIGIN_PARAMETER : OT_ORIGIN_UNKNOWN;
}

// "b_pe: BUFFER target='pe' persistent=True"
static ot_status read_line(ot__origins *o, char *line)
{
    const char *kind, *target;
    ot__origin origin;

    if (!ot__metadata_input(line, &kind, &target))
        return OT_OK;
    origin = origin_of(kind);
    return origin == OT_ORIGIN_UNKNOWN || ot__map_put(&o->names, target, (void *)(uintptr_t)origin)
               ? OT_OK
               : OT_ERR_NO_MEMORY;
}

bool ot__origins_are_listed(const ot_graph *graph)
{
    return ot__metadata_get(&graph->metadata, KEY_SIGNATURE) != NULL;
}

ot_status ot__origins_init(ot__origins *o, const ot_graph *graph)
{
    const char *text = ot__metadata_get(&graph->metadata, KEY_SIGNATURE);
    char *line;
    ot_status st = OT_OK;

    *o = (ot__origins){.arena = graph->model->arena};
    if (!text)
        return OT_OK;
    line = ot__arena_strdup(o->arena, text);
    OT_TRY(ot__made(line));
    for (char *next; st == OT_OK && line; line = next) {
        next = ot__cut(line, '\n');
        st = read_line(o, line);
    }
    return st;
}

void ot__origins_deinit(ot__origins *o)
{
    ot__map_deinit(&o->names);
    ot__map_deinit(&o->paths);
}

// ---- values ----

static ot__origin look_up_origin(const ot__origins *o, const char *name)
{
    return (ot__origin)(uintptr_t)ot__map_get(&o->names, name);
}

// What is computed from a parameter, and from whatever else, stands for that parameter. The list
// has all that it was computed from, however far back.
static ot_status find_folded(const ot__origins *o, const char *text, ot__origin *origin,
                             const char **name)
{
    int n;
    const char *const *list = ot__metadata_list(o->arena, text, &n);

    OT_TRY(ot__made(list));
    for (int i = 0; i < n && *origin != OT_ORIGIN_PARAMETER; i++) {
        const ot__origin found = look_up_origin(o, list[i]);

        if (found == OT_ORIGIN_UNKNOWN)
            continue;
        *origin = found;
        *name = list[i];
    }
    if (*origin == OT_ORIGIN_UNKNOWN && n >= 0 && o->names.count > 0)
        *origin = OT_ORIGIN_CODE;
    return OT_OK;
}

ot_status ot__origins_find(const ot__origins *o, const ot_value *value, ot__origin *origin,
                           const char **name)
{
    const char *kind = ot__metadata_get(&value->metadata, KEY_KIND),
               *folded = ot__metadata_get(&value->metadata, KEY_FOLDED);

    *name = value->name;
    *origin = kind ? origin_of(kind) : look_up_origin(o, value->name);
    if (*origin == OT_ORIGIN_UNKNOWN && folded)
        return find_folded(o, folded, origin, name);
    return OT_OK;
}

// ---- modules ----

enum { MAX_SCOPES = 4096 }; // longer strings say nothing

typedef struct scope_path {
    const char *const *modules;
    int n;
} scope_path;

// A text is parsed once, however many parameters its nodes read. NULL: out of memory.
static const scope_path *find_path(ot__origins *o, const char *scopes)
{
    scope_path *path = ot__map_get(&o->paths, scopes);

    if (path)
        return path;
    path = ot__arena_alloc(o->arena, sizeof *path);
    if (!path)
        return NULL;
    path->modules = ot__metadata_list(o->arena, scopes, &path->n);
    return path->modules && ot__map_put(&o->paths, scopes, path) ? path : NULL;
}

// "layers.0.mask" is of the module "layers.0".
static bool is_of_module(const char *name, const char *module)
{
    const char *dot = strrchr(name, '.');
    const size_t n = dot ? (size_t)(dot - name) : 0;

    return strlen(module) == n && strncmp(name, module, n) == 0;
}

ot_status ot__origins_place(ot__origins *o, const ot_node *reader, const char *name,
                            ot__nearness *out)
{
    const char *scopes = ot__metadata_get(&reader->metadata, KEY_SCOPES);
    const scope_path *path;

    *out = OT_PLACE_OWN;
    if (!scopes || strlen(scopes) > MAX_SCOPES)
        return OT_OK;
    path = find_path(o, scopes);
    OT_TRY(ot__made(path));
    *out = OT_PLACE_ELSEWHERE;
    for (int i = 0; i + 1 < path->n; i++) { // the last is the node itself
        if (is_of_module(name, path->modules[i]))
            *out = OT_PLACE_OWN;
        else if (*out == OT_PLACE_OWN)
            *out = OT_PLACE_INSIDE;
    }
    return OT_OK;
}
