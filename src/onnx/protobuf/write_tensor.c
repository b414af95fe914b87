// SPDX-License-Identifier: Apache-2.0
// Constants, written: raw bytes, strings, or where they are in another file.
#include <stdlib.h>
#include <string.h>

#include "onnx/protobuf/write.h"

enum { EXTERNAL = 1 };

typedef struct entry {
    const char *key, *value;
} entry;

static void write_entry(ot__wire *wire, const void *object)
{
    const entry *e = object;

    ot__wire_put_name(wire, 1, e->key);
    ot__wire_put_name(wire, 2, e->value);
}

static void write_head(ot__wire *wire, const ot_tensor *tensor)
{
    for (int i = 0; i < tensor->shape.ndim; i++)
        ot__wire_put_int(wire, 1, tensor->shape.dim[i]);
    ot__wire_put_int(wire, 2, tensor->dtype);
}

// Field numbers 6, 8 and 9: elements stand around the name.
static void write_name_and_elements(ot__wire *wire, const ot_tensor *tensor, const char *name)
{
    if (tensor->dtype == OT_STRING) {
        const ot__string *strings = tensor->data;

        for (size_t i = 0; i < tensor->n_bytes / sizeof *strings; i++)
            ot__wire_put_bytes(wire, 6, strings[i].data, strings[i].size);
    }
    ot__wire_put_text(wire, 8, name);
    if (tensor->dtype != OT_STRING && tensor->n_bytes > 0)
        ot__wire_put_bytes(wire, 9, tensor->data, tensor->n_bytes);
}

int ot__compare_placements(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const ot__placement *)a)->value;
    uintptr_t y = (uintptr_t)((const ot__placement *)b)->value;

    return x < y ? -1 : x > y;
}

static const ot__placement *placement_of(const ot__wire *wire, const ot_value *value)
{
    const ot__placements *all = wire->extra;
    const ot__placement key = {.value = value};

    if (!all || all->count == 0)
        return NULL;
    return bsearch(&key, all->items, (size_t)all->count, sizeof key, ot__compare_placements);
}

static void write_placement(ot__wire *wire, const ot__placement *placement)
{
    const ot__placements *all = wire->extra;
    char offset[24], length[24];
    const entry entries[] = {{"location", all->location}, {"offset", offset}, {"length", length}};

    snprintf(offset, sizeof offset, "%" PRIu64, placement->offset);
    snprintf(length, sizeof length, "%zu", placement->value->constant->n_bytes);
    for (size_t i = 0; i < OT_COUNT(entries); i++)
        ot__wire_put_message(wire, 13, write_entry, &entries[i]);
    ot__wire_put_int(wire, 14, EXTERNAL);
}

void ot__write_initializer(ot__wire *wire, const void *object)
{
    const ot_value *value = object;
    const ot__placement *placement = placement_of(wire, value);

    write_head(wire, value->constant);
    if (placement)
        ot__wire_put_name(wire, 8, value->name);
    else
        write_name_and_elements(wire, value->constant, value->name);
    ot__wire_put_text(wire, 12, value->tensor_doc);
    if (placement)
        write_placement(wire, placement);
    ot__wire_raw(wire, value->tensor_extra.data, value->tensor_extra.size);
}

void ot__write_tensor(ot__wire *wire, const void *noted_tensor)
{
    const ot__noted_tensor *noted = noted_tensor;

    write_head(wire, noted->tensor);
    write_name_and_elements(wire, noted->tensor, noted->note ? noted->note->name : "");
    if (!noted->note)
        return;
    ot__wire_put_text(wire, 12, noted->note->doc);
    ot__wire_raw(wire, noted->note->extra.data, noted->note->extra.size);
}
