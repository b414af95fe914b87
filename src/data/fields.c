// SPDX-License-Identifier: Apache-2.0
// Which fields a text names.
#include <string.h>

#include "data/data.h"

enum { MOST_LETTERS = 128 }; // of a name in a message

int ot__dataset_find_name(const ot_dataset *dataset, const char *name, size_t length)
{
    for (int i = 0; i < dataset->n_fields; i++)
        if (strlen(dataset->fields[i].name) == length &&
            memcmp(dataset->fields[i].name, name, length) == 0)
            return i;
    return -1;
}

int ot__dataset_find(const ot_dataset *dataset, const char *name, size_t length)
{
    const int found = ot__dataset_find_name(dataset, name, length);
    char copy[64];
    int64_t position;

    if (found >= 0 || length >= sizeof(copy))
        return found;
    memcpy(copy, name, length);
    copy[length] = '\0';
    if (!ot__parse_int(copy[0] == '#' ? copy + 1 : copy, &position))
        return -1;
    if (position < 0)
        position += dataset->n_fields;
    return position >= 0 && position < dataset->n_fields ? (int)position : -1;
}

ot_status ot__dataset_no_field(const ot_dataset *dataset, const char *name)
{
    ot__names names = {.wanted = name};

    for (int i = 0; i < dataset->n_fields; i++)
        ot__names_add(&names, dataset->fields[i].name);
    return ot__error(OT_ERR_NOT_FOUND, "the data has no field '%s', but %s%s", name,
                     ot__names_list(&names, "fields"), ot__names_hint(&names));
}

static ot_status find_required(const ot_dataset *dataset, const char *input, const char *name,
                               size_t length, int *out)
{
    char copy[MOST_LETTERS];

    *out = ot__dataset_find(dataset, name, length);
    if (*out >= 0)
        return OT_OK;
    snprintf(copy, sizeof copy, "%.*s", (int)OT_MIN(length, sizeof copy), name);
    return ot__error_prefix(ot__dataset_no_field(dataset, copy), "input '%s'", input);
}

ot_status ot__dataset_next_fields(const ot_dataset *dataset, const char *input, const char **text,
                                  int *first, int *last)
{
    const char *from = *text, *colon;
    const size_t length = strcspn(from, ",");
    size_t first_length;

    *last = *first =
        ot__dataset_find_name(dataset, from, strlen(from)); // names may hold commas and colons
    if (*first >= 0) {
        *text = NULL;
        return OT_OK;
    }
    colon = memchr(from, ':', length);
    first_length = colon ? (size_t)(colon - from) : length;
    OT_TRY(find_required(dataset, input, from, first_length, first));
    *last = *first;
    if (colon)
        OT_TRY(find_required(dataset, input, colon + 1, length - first_length - 1, last));
    *text = from[length] == '\0' ? NULL : from + length + 1;
    if (*last < *first)
        return ot__error(OT_ERR_INVALID, "input '%s': field '%s' stands before '%s'", input,
                         dataset->fields[*last].name, dataset->fields[*first].name);
    return OT_OK;
}
