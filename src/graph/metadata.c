#include <string.h>

#include "graph/graph.h"

static int find(const ot_model *model, const char *key)
{
    for (int i = 0; i < model->n_metadata; i++)
        if (strcmp(model->metadata[2 * i], key) == 0)
            return i;
    return -1;
}

const char *ot_model_metadata(const ot_model *model, const char *key)
{
    const int i = find(model, key);

    return i < 0 ? NULL : model->metadata[2 * i + 1];
}

ot_status ot_model_set_metadata(ot_model *model, const char *key, const char *value)
{
    const char *key_copy = ot__arena_strdup(model->arena, key);
    const char *value_copy = ot__arena_strdup(model->arena, value);
    int i = find(model, key);

    if (!key_copy || !value_copy)
        return OT_ERR_NO_MEMORY;
    if (i < 0) {
        const char **grown =
            ot__arena_alloc(model->arena, (size_t)(model->n_metadata + 1) * 2 * sizeof(*grown));
        if (!grown)
            return OT_ERR_NO_MEMORY;
        if (model->n_metadata > 0)
            memcpy(grown, model->metadata, (size_t)model->n_metadata * 2 * sizeof(*grown));
        model->metadata = grown;
        i = model->n_metadata++;
    }
    model->metadata[2 * i] = key_copy;
    model->metadata[2 * i + 1] = value_copy;
    return OT_OK;
}
