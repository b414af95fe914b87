// SPDX-License-Identifier: Apache-2.0
// Elements stored in files beside the model.
#include <string.h>

#include "onnx/onnx.h"

static bool has_parent_step(const char *location)
{
    for (const char *at = location; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return true;
    }
    return false;
}

static ot_status open_file(ot_model *model, const char *location, const ot__file_map **out)
{
    ot__file_map map = {0};

    *out = ot__model_find_map(model, location);
    if (*out)
        return OT_OK;
    if (!model->folder)
        return ot__error(OT_ERR_FORMAT,
                         "external data file '%s' of a model that was not read from a folder",
                         location);
    if (!*location || *location == '/' || has_parent_step(location))
        return ot__error(OT_ERR_FORMAT, "external data file '%s' leaves the model's folder",
                         location);
    OT_TRY(ot__external_open(&map, model->folder, location));
    OT_TRY(ot__model_hold_map(model, location, &map));
    *out = ot__model_find_map(model, location);
    return OT_OK;
}

static ot_status find_range(ot_model *model, const char *location, int64_t offset, int64_t length,
                            size_t expected, const void **data)
{
    const ot__file_map *map;

    if (length >= 0 && (uint64_t)length != expected)
        return ot__error(OT_ERR_FORMAT, "external data has length %" PRId64 ", expected %zu",
                         length, expected);
    OT_TRY(open_file(model, location, &map));
    if ((uint64_t)offset > map->size || expected > map->size - (size_t)offset)
        return ot__error(OT_ERR_FORMAT,
                         "external data ends at byte %" PRId64 " + %zu, but '%s' has %zu bytes",
                         offset, expected, location, map->size);
    *data = map->data + offset;
    return OT_OK;
}

ot_status ot__external_read(ot_model *model, const char *location, int64_t offset, int64_t length,
                            size_t expected, const void **data)
{
    *data = NULL;
    if (offset < 0)
        return ot__error(OT_ERR_FORMAT, "external data starts at byte %" PRId64, offset);
    return find_range(model, location, offset, length, expected, data);
}
