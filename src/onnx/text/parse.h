// SPDX-License-Identifier: Apache-2.0
// Shared by the files that read ONNX's textual syntax. The grammar is that of onnx.parser, plus:
// any name may be quoted (domains, operators, attributes too), lists may hold tensors, graphs and
// types, and a list of integers and floats is one of floats.
#ifndef OT_ONNX_TEXT_PARSE_H
#define OT_ONNX_TEXT_PARSE_H

#include "onnx/protobuf/read.h"

typedef struct ot__parser {
    const char *begin, *at, *end;
    ot__reader reader; // for types, which are brought into protobuf's form first
    ot_model *model;
    int depth;
    int64_t n_items; // nodes, values and attributes
} ot__parser;

// ---- characters and tokens (lex.c); all skip space and comments first ----

char ot__parse_peek(ot__parser *p); // '\0' at the end
bool ot__parse_at_end(ot__parser *p);
bool ot__parse_accept(ot__parser *p, char c);
ot_status ot__parse_expect(ot__parser *p, char c);
ot_status ot__parse_arrow(ot__parser *p); // =>
// An error at the present position.
ot_status ot__parse_error(ot__parser *p, const char *format, ...) OT_PRINTF(2, 3);
// Puts the present position before the message of a failure of other files.
ot_status ot__parse_locate(ot__parser *p, ot_status status);
ot_status ot__parse_enter(ot__parser *p); // one level deeper, one more thing; undone by p->depth--

// The identifier that comes next, not taken: empty when there is none.
ot__bytes ot__parse_peek_word(ot__parser *p);
bool ot__word_is(ot__bytes word, const char *text);
ot_status ot__parse_word(ot__parser *p, const char **out);          // an identifier
ot_status ot__parse_name(ot__parser *p, const char **out);          // quoted or not
ot_status ot__parse_optional_name(ot__parser *p, const char **out); // "" when there is none
ot_status ot__parse_quoted(ot__parser *p,
                           ot__string *out);               // "...", zero-terminated behind its size
ot_status ot__parse_text(ot__parser *p, const char **out); // the same, without zero bytes

typedef struct ot__number {
    bool is_float; // written with a point or an exponent, or inf or nan
    char text[72]; // as written
} ot__number;
bool ot__parse_is_float_word(ot__parser *p); // inf, infinity or nan comes next
ot_status ot__parse_number(ot__parser *p, ot__number *out);
ot_status ot__parse_integer(ot__parser *p, int64_t *out);
ot_status ot__number_as_integer(ot__parser *p, const ot__number *number, int64_t *out);
ot_status ot__number_as_float(ot__parser *p, const ot__number *number, double *out);
ot_status ot__number_as_f32(ot__parser *p, const ot__number *number, double *out); // in its range

// ---- parts ----

// type.c
bool ot__parse_is_type(ot__parser *p); // the name of a type comes next
// The type of `value`, whose other fields stay. *bytes (may be NULL): the same as a TypeProto.
ot_status ot__parse_type(ot__parser *p, ot_value *value, ot__bytes *bytes);

// tensor.c: {elements}, ["external": "data"] or nothing, for a tensor of the type of `value`
ot_status ot__parse_tensor(ot__parser *p, const ot_value *type, const char *name, ot_tensor **out);

// attr.c
ot_status ot__parse_attr(ot__parser *p, ot_graph *graph, const char *name, ot_attr *attr);
ot_status ot__parse_attr_list(ot__parser *p, ot_node *node); // <...>, or nothing

// graph.c
ot_status ot__parse_graph(ot__parser *p, ot_graph *graph);
ot_status ot__parse_nodes(ot__parser *p, ot_graph *graph); // {...}

// function.c
ot_status ot__parse_opsets(ot__parser *p, ot__opset **out, int *n_out); // ["" : 21, ...]
ot_status ot__parse_function(ot__parser *p, ot__function **out);

#endif
