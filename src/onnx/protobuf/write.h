// SPDX-License-Identifier: Apache-2.0
// Shared by the files that turn a model into protobuf messages.
#ifndef OT_ONNX_WRITE_H
#define OT_ONNX_WRITE_H

#include "onnx/attr_kinds.h"
#include "onnx/protobuf/wire.h"

// An initializer whose elements go to another file.
typedef struct ot__placement {
    const ot_value *value;
    uint64_t offset;
} ot__placement;
typedef struct ot__placements { // ot__wire.extra; NULL: there are none
    const ot__placement *items; // sorted by value
    int count;
    const char *location; // name of that file
} ot__placements;
int ot__compare_placements(const void *a,
                           const void *b); // by value, for qsort and bsearch; write_tensor.c

// write.c
void ot__write_model(ot__wire *wire, const void *model); // an ot__wire_message
void ot__write_graph(ot__wire *wire, const void *graph);

// write_node.c
void ot__write_node(ot__wire *wire, const void *node);
void ot__write_attr(ot__wire *wire, const void *attr);

// write_tensor.c
void ot__write_initializer(ot__wire *wire, const void *value);
typedef struct ot__noted_tensor {
    const ot_tensor *tensor;
    const ot__tensor_note *note; // NULL: nameless
} ot__noted_tensor;
void ot__write_tensor(ot__wire *wire, const void *noted_tensor);

// write_type.c
typedef struct ot__typed_value { // a value of a model, whose symbols it needs
    const ot_model *model;
    const ot_value *value;
} ot__typed_value;
void ot__write_value_info(ot__wire *wire, const void *typed_value);
void ot__write_type(ot__wire *wire, const void *typed_value);        // a TypeProto
void ot__write_tensor_type(ot__wire *wire, const void *typed_value); // a TypeProto.Tensor

#endif
