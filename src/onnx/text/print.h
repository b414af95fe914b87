// SPDX-License-Identifier: Apache-2.0
// Shared by the files that write ONNX's textual syntax, in the form of onnx.printer.
#ifndef OT_ONNX_TEXT_PRINT_H
#define OT_ONNX_TEXT_PRINT_H

#include "onnx/protobuf/write.h"

typedef struct ot__printer {
    ot__buf *out;
    const ot_model *model;
    int max_elements; // 0: all
    int indent;
    ot_status status; // of what has no textual form
} ot__printer;

// write.c
void ot__print_quoted(ot__buf *out, const void *bytes, size_t n_bytes);
void ot__print_name(ot__buf *out, const void *bytes,
                    size_t n_bytes); // quoted when it is no identifier
void ot__print_id(ot__buf *out, const char *name);
void ot__print_graph(ot__printer *printer, const ot_graph *graph);

// type.c: a TypeProto
void ot__print_type(ot__buf *out, ot__bytes bytes);
bool ot__is_type_word(ot__bytes word);

// tensor.c: type, name and elements; `equals`: with the sign that initializers have
void ot__print_tensor(ot__printer *printer, const ot_tensor *tensor, const char *name, bool equals);

// attr_write.c
void ot__print_attr(ot__printer *printer, const ot_attr *attr);

#endif
