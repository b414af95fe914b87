// SPDX-License-Identifier: Apache-2.0
#include "onnx/attr_kinds.h"

#include <stddef.h>
#include <string.h>

#define ONE(type, member) OT_ATTR_UNDEFINED, sizeof(type), offsetof(ot_attr, member)
#define LIST(element, type, member) OT_ATTR_##element, sizeof(type), offsetof(ot_attr, member)

const ot__attr_row ot__attr_rows[OT_ATTR_KINDS] = {
    [OT_ATTR_UNDEFINED] = {"UNDEFINED", "undefined", 0, OT_ATTR_UNDEFINED, 0, 0},
    [OT_ATTR_FLOAT] = {"FLOAT", "float", 2, ONE(float, f)},
    [OT_ATTR_INT] = {"INT", "int", 3, ONE(int64_t, i)},
    [OT_ATTR_STRING] = {"STRING", "string", 4, ONE(ot__string, s)},
    [OT_ATTR_TENSOR] = {"TENSOR", "tensor", 5, ONE(ot_tensor *, t)},
    [OT_ATTR_GRAPH] = {"GRAPH", "graph", 6, ONE(ot_graph *, g)},
    [OT_ATTR_FLOATS] = {"FLOATS", "floats", 7, LIST(FLOAT, float, floats)},
    [OT_ATTR_INTS] = {"INTS", "ints", 8, LIST(INT, int64_t, ints)},
    [OT_ATTR_STRINGS] = {"STRINGS", "strings", 9, LIST(STRING, ot__string, strings)},
    [OT_ATTR_TENSORS] = {"TENSORS", "tensors", 10, LIST(TENSOR, ot_tensor *, tensors)},
    [OT_ATTR_GRAPHS] = {"GRAPHS", "graphs", 11, LIST(GRAPH, ot_graph *, graphs)},
    [OT_ATTR_SPARSE_TENSOR] = {"SPARSE_TENSOR", "sparse_tensor", 22, OT_ATTR_UNDEFINED, 0, 0},
    [OT_ATTR_SPARSE_TENSORS] = {"SPARSE_TENSORS", "sparse_tensors", 23, OT_ATTR_SPARSE_TENSOR, 0,
                                0},
    [OT_ATTR_TYPE_PROTO] = {"TYPE_PROTO", "type_proto", 14, OT_ATTR_UNDEFINED, 0, 0},
    [OT_ATTR_TYPE_PROTOS] = {"TYPE_PROTOS", "type_protos", 15, OT_ATTR_TYPE_PROTO, 0, 0},
};

const char *ot__attr_kind_name(ot_attr_kind kind)
{
    return (unsigned)kind < OT_ATTR_KINDS ? ot__attr_rows[kind].name : "unknown";
}

ot__attr_items ot__attr_items_of(const ot_attr *attr)
{
    const ot__attr_row *row = &ot__attr_rows[attr->kind];
    ot__attr_items items = {
        .element = attr->kind, .data = (const char *)attr + row->offset, .n = 1};

    if (row->size == 0)
        return (ot__attr_items){.is_list = true};
    if (row->element == OT_ATTR_UNDEFINED)
        return items;
    items = (ot__attr_items){.element = row->element, .n = attr->n, .is_list = true};
    memcpy(&items.data, (const char *)attr + row->offset, sizeof items.data);
    return items;
}

void *ot__attr_room(ot__arena *arena, ot_attr *attr, size_t n)
{
    const ot__attr_row *row = &ot__attr_rows[attr->kind];
    char *place = (char *)attr + row->offset;
    void *list;

    if (row->element == OT_ATTR_UNDEFINED)
        return place;
    list = ot__arena_alloc(arena, n * row->size);
    memcpy(place, &list, sizeof list);
    attr->n = (int)n;
    return list;
}

bool ot__attr_set_list(ot__arena *arena, ot_attr *attr, const void *elements, size_t n)
{
    void *room = ot__attr_room(arena, attr, n);

    if (room && n > 0)
        memcpy(room, elements, n * ot__attr_rows[attr->kind].size);
    return room != NULL;
}
