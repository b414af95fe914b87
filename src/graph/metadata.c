// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "graph/graph.h"

static int find_metadata(const ot_model *model, const char *key)
{
    for (int i = 0; i < model->n_metadata; i++)
        if (strcmp(model->metadata[2 * i], key) == 0)
            return i;
    return -1;
}

const char *ot_model_metadata(const ot_model *model, const char *key)
{
    const int i = OT_IS_LIVE(model) && key ? find_metadata(model, key) : -1;

    return i < 0 ? NULL : model->metadata[2 * i + 1];
}

int ot_model_metadata_count(const ot_model *model)
{
    return OT_IS_LIVE(model) ? model->n_metadata : 0;
}

const char *ot_model_metadata_key(const ot_model *model, int index)
{
    return OT_IS_LIVE(model) && index >= 0 && index < model->n_metadata ? model->metadata[2 * index]
                                                                        : NULL;
}

// A copy of the pairs, which models that were made of each other share, with room for one more.
static ot_status own_pairs(ot_model *model)
{
    const size_t n = (size_t)model->n_metadata;
    const char **pairs = ot__arena_alloc(model->arena, (n + 1) * 2 * sizeof(*pairs));

    OT_TRY(ot__made(pairs));
    if (n > 0)
        memcpy(pairs, model->metadata, n * 2 * sizeof(*pairs));
    model->metadata = pairs;
    return OT_OK;
}

ot_status ot_model_set_metadata(ot_model *model, const char *key, const char *value)
{
    const char *key_copy, *value_copy;
    int i;

    OT_TRY(OT_GIVEN(model));
    OT_TRY(OT_GIVEN(key));
    OT_TRY(OT_GIVEN(value));
    key_copy = ot__arena_strdup(model->arena, key);
    value_copy = ot__arena_strdup(model->arena, value);
    OT_TRY(ot__made(key_copy && value_copy));
    OT_TRY(own_pairs(model));
    i = find_metadata(model, key);
    if (i < 0)
        i = model->n_metadata++;
    model->metadata[2 * i] = key_copy;
    model->metadata[2 * i + 1] = value_copy;
    return OT_OK;
}

ot_status ot__model_set_metadata_text(ot_model *model, const char *key, ot__buf *text)
{
    ot_status st = ot__buf_status(text);

    OT_THEN(st, ot_model_set_metadata(model, key, text->data));
    ot__buf_deinit(text);
    return st;
}

// A file may have the key many times.
ot_status ot__model_drop_metadata(ot_model *model, const char *key)
{
    const int n_extra = model->n_metadata_extra;
    ot__bytes *extra = NULL;
    int n = 0;

    if (find_metadata(model, key) < 0)
        return OT_OK;
    if (n_extra > 0) {
        extra =
            ot__arena_memdup(model->arena, model->metadata_extra, (size_t)n_extra * sizeof(*extra));
        OT_TRY(ot__made(extra));
    }
    OT_TRY(own_pairs(model));
    model->n_metadata_extra = 0;
    for (int i = 0; i < model->n_metadata; i++) {
        if (strcmp(model->metadata[2 * i], key) == 0)
            continue;
        model->metadata[2 * n] = model->metadata[2 * i];
        model->metadata[2 * n + 1] = model->metadata[2 * i + 1];
        n++;
        if (i < n_extra)
            extra[model->n_metadata_extra++] = extra[i];
    }
    model->n_metadata = n;
    model->metadata_extra = extra;
    return OT_OK;
}

const char *ot_model_text(const ot_model *model, ot_model_field field)
{
    static const ot_model none;
    static const ot_graph no_graph;
    const ot_model *of = OT_IS_LIVE(model) ? model : &none;
    const ot_graph *graph = OT_IS_LIVE(model) ? model->graph : &no_graph;
    const char *const strings[] = {
        [OT_MODEL_PRODUCER_NAME] = of->producer_name,
        [OT_MODEL_PRODUCER_VERSION] = of->producer_version,
        [OT_MODEL_DOMAIN] = of->domain,
        [OT_MODEL_DESCRIPTION] = of->doc,
        [OT_MODEL_GRAPH_NAME] = graph->name,
        [OT_MODEL_GRAPH_DESCRIPTION] = graph->doc,
    };
    const bool is_known = (size_t)field < sizeof strings / sizeof strings[0];

    return is_known && strings[field] ? strings[field] : "";
}

int64_t ot_model_version(const ot_model *model)
{
    return OT_IS_LIVE(model) ? model->model_version : 0;
}

// ---- nodes, values and graphs ----

const char *ot__metadata_get(const ot__metadata *metadata, const char *key)
{
    for (int i = 0; i < metadata->n; i++)
        if (strcmp(metadata->pairs[2 * i], key) == 0)
            return metadata->pairs[2 * i + 1];
    return NULL;
}
