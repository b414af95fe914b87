// SPDX-License-Identifier: Apache-2.0
// What initializers were in the framework: what PyTorch's newer exporter writes into metadata.
#include <string.h>

#include "artifacts/origins.h"

#define KEY_SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"
#define KEY_KIND "pkg.torch.export.graph_signature.InputSpec.kind"
#define KEY_FOLDED "pkg.onnxscript.optimizer.folded_from"
#define KEY_SCOPES "pkg.torch.onnx.name_scopes"

// ---- texts ----

// The next text of "['a', 'b']", cut out of the list in place; NULL at its end.
static char *next_text(char **list)
{
    char *start = strpbrk(*list, "'\""), *end = start ? strchr(start + 1, *start) : NULL;

    if (!end)
        return NULL;
    *end = '\0';
    *list = end + 1;
    return start + 1;
}

static bool is_word(const char *text, const char *word)
{
    const size_t n = strlen(word);

    return strncmp(text, word, n) == 0 && (text[n] == '\0' || text[n] == ' ');
}

static ot__origin origin_of(const char *kind)
{
    static const char *const others[] = {"BUFFER", "CONSTANT_TENSOR"};

    for (size_t i = 0; i < OT_COUNT(others); i++)
        if (is_word(kind, others[i]))
            return OT_ORIGIN_BUFFER;
    return is_word(kind, "PARAMETER") ? OT_ORIGIN_PARAMETER : OT_ORIGIN_UNKNOWN;
}

// ---- the signature ----

// "b_pe: BUFFER target='pe' persistent=True"
static ot_status read_line(ot__origins *o, char *line)
{
    char *kind = strstr(line, ": "), *target = kind ? strstr(kind, " target=") : NULL, *name;
    ot__origin origin;

    if (!target)
        return OT_OK;
    origin = origin_of(kind + 2);
    name = next_text(&target);
    if (!name || origin == OT_ORIGIN_UNKNOWN)
        return OT_OK;
    return ot__map_put(&o->names, name, (void *)(uintptr_t)origin) ? OT_OK : OT_ERR_NO_MEMORY;
}

ot_status ot__origins_init(ot__origins *o, const ot_graph *graph)
{
    const char *text = ot__graph_metadata(graph, KEY_SIGNATURE);
    char *line;
    ot_status st = OT_OK;

    *o = (ot__origins){.arena = graph->model->arena};
    if (!text)
        return OT_OK;
    line = ot__arena_strdup(o->arena, text);
    if (!line)
        return OT_ERR_NO_MEMORY;
    while (st == OT_OK && line) {
        char *end = strchr(line, '\n');

        if (end)
            *end = '\0';
        st = read_line(o, line);
        line = end ? end + 1 : NULL;
    }
    return st;
}

void ot__origins_deinit(ot__origins *o)
{
    ot__map_deinit(&o->names);
}

// ---- values ----

static ot__origin look_up(const ot__origins *o, const char *name)
{
    return (ot__origin)(uintptr_t)ot__map_get(&o->names, name);
}

// What is computed from a parameter, and from whatever else, stands for that parameter. The list
// has all that it was computed from, however far back.
static ot_status find_folded(const ot__origins *o, const char *list, ot__origin *origin,
                             const char **name)
{
    char *text = ot__arena_strdup(o->arena, list);

    if (!text)
        return OT_ERR_NO_MEMORY;
    for (const char *from = next_text(&text); from; from = next_text(&text)) {
        const ot__origin found = look_up(o, from);

        if (found == OT_ORIGIN_UNKNOWN || *origin == OT_ORIGIN_PARAMETER)
            continue;
        *origin = found;
        *name = from;
    }
    if (*origin == OT_ORIGIN_UNKNOWN && o->names.count > 0)
        *origin = OT_ORIGIN_CODE;
    return OT_OK;
}

ot_status ot__origins_find(const ot__origins *o, const ot_value *value, ot__origin *origin,
                           const char **name)
{
    const char *kind = ot__value_metadata(value, KEY_KIND),
               *folded = ot__value_metadata(value, KEY_FOLDED);

    *name = value->name;
    *origin = kind ? origin_of(kind) : look_up(o, value->name);
    if (*origin == OT_ORIGIN_UNKNOWN && folded)
        return find_folded(o, folded, origin, name);
    return OT_OK;
}

// ---- modules ----

// "layers.0.mask" is of the module "layers.0".
static bool is_of_module(const char *name, const char *module)
{
    const char *dot = strrchr(name, '.');
    const size_t n = dot ? (size_t)(dot - name) : 0;

    return strlen(module) == n && strncmp(name, module, n) == 0;
}

ot_status ot__origins_place(const ot__origins *o, const ot_node *reader, const char *name,
                            ot__nearness *out)
{
    const char *scopes = ot__node_metadata(reader, KEY_SCOPES);
    char *text = scopes ? ot__arena_strdup(o->arena, scopes) : NULL;
    const char *module, *next;

    *out = OT_PLACE_OWN;
    if (!text)
        return scopes ? OT_ERR_NO_MEMORY : OT_OK;
    *out = OT_PLACE_ELSEWHERE;
    // The last text is the node itself.
    for (module = next_text(&text); module && (next = next_text(&text)); module = next) {
        if (is_of_module(name, module))
            *out = OT_PLACE_OWN;
        else if (*out == OT_PLACE_OWN)
            *out = OT_PLACE_INSIDE;
    }
    return OT_OK;
}
