// SPDX-License-Identifier: Apache-2.0
// One table of the kinds of attributes, for all forms that a model has as bytes and text.
#ifndef OT_ONNX_ATTR_KINDS_H
#define OT_ONNX_ATTR_KINDS_H

#include "graph/graph.h"

enum { OT_ATTR_KINDS = OT_ATTR_TYPE_PROTOS + 1 };
enum { OT_MAX_ATTRS = 1024 }; // of a node

typedef struct ot__attr_row {
    const char *name, *word; // "FLOATS" in messages, "floats" in the textual syntax
    uint32_t field;          // of AttributeProto, which has the value
    ot_attr_kind element;    // of a kind of lists; else undefined
    size_t size, offset; // of an element; of the value, or the list, in ot_attr. 0: kept as bytes
} ot__attr_row;
extern const ot__attr_row ot__attr_rows[OT_ATTR_KINDS];
const char *ot__attr_kind_name(ot_attr_kind kind);

// The value as elements: one, or those of a list. Of a kind that is kept as bytes, none.
typedef struct ot__attr_items {
    ot_attr_kind element;
    const void *data;
    int n;
    bool is_list;
} ot__attr_items;
ot__attr_items ot__attr_items_of(const ot_attr *attr);
// Where the elements of the value go: of a list kind new room in the arena for n. NULL: no memory.
void *ot__attr_room(ot__arena *arena, ot_attr *attr, size_t n);
// The value is a list with these elements.
bool ot__attr_set_list(ot__arena *arena, ot_attr *attr, const void *elements, size_t n);

#endif
