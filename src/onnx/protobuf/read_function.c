// SPDX-License-Identifier: Apache-2.0
// Model-local functions and opset imports.
#include <string.h>

#include "onnx/protobuf/read.h"

enum { FUNCTION_NODE = 7, FUNCTION_ATTRIBUTE_PROTO = 11, FUNCTION_VALUE_INFO = 12 };

ot_status ot__add_opset(ot_model *model, ot__opset **list, int *n, int *capacity, ot__opset opset)
{
    const int max_opsets = 1024; // the search for repeated domains is a plain loop

    for (int i = 0; i < *n; i++) {
        if (strcmp((*list)[i].domain, opset.domain) != 0)
            continue;
        // ONNX Runtime writes a domain twice at times, and believes the last entry.
        (*list)[i] = opset;
        return OT_OK;
    }
    if (*n == max_opsets)
        return ot__error(OT_ERR_FORMAT, "more than %d opset imports", max_opsets);
    OT_TRY(ot__made(ot__arena_grow(model->arena, list, capacity, *n, sizeof **list)));
    (*list)[(*n)++] = opset;
    return OT_OK;
}

ot_status ot__read_opsets(ot__reader *reader, Onnx__OperatorSetIdProto *const *opsets, size_t n,
                          ot__opset **out, int *n_out)
{
    int capacity = 0;

    *out = NULL;
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        ot__opset opset = {.domain = ot__read_text(reader, opsets[i]->domain),
                           .version = opsets[i]->version};

        OT_TRY(ot__made(opset.domain));
        OT_TRY(ot__read_unknown(reader, &opsets[i]->base, &opset.extra));
        OT_TRY(ot__add_opset(reader->model, out, n_out, &capacity, opset));
    }
    return OT_OK;
}

static ot_status read_names(ot__reader *reader, char *const *names, size_t n, const char ***out,
                            int *n_out)
{
    if (n > INT32_MAX)
        return ot__error(OT_ERR_FORMAT, "%zu names", n);
    *out = ot__arena_alloc(reader->model->arena, (n + 1) * sizeof **out);
    OT_TRY(ot__made(*out));
    for (size_t i = 0; i < n; i++) {
        (*out)[i] = ot__read_text(reader, names[i]);
        OT_TRY(ot__made((*out)[i]));
    }
    *n_out = (int)n;
    return OT_OK;
}

static ot_status read_fields(ot__reader *reader, const Onnx__FunctionProto *proto,
                             ot__function *function)
{
    function->name = ot__read_text(reader, proto->name);
    function->domain = ot__read_text(reader, proto->domain);
    function->overload = ot__read_text(reader, proto->overload);
    function->doc = ot__read_text(reader, proto->doc_string);
    OT_TRY(ot__made(function->name && function->domain && function->overload && function->doc));
    if (!function->name[0])
        return ot__error(OT_ERR_FORMAT, "no name");
    OT_TRY(
        read_names(reader, proto->input, proto->n_input, &function->inputs, &function->n_inputs));
    OT_TRY(read_names(reader, proto->output, proto->n_output, &function->outputs,
                      &function->n_outputs));
    OT_TRY(read_names(reader, proto->attribute, proto->n_attribute, &function->attrs,
                      &function->n_attrs));
    return ot__read_opsets(reader, proto->opset_import, proto->n_opset_import, &function->opsets,
                           &function->n_opsets);
}

static ot_status pb_define_inputs(const ot__function *function)
{
    for (int i = 0; i < function->n_inputs; i++) {
        if (!function->inputs[i][0] || ot__graph_find(function->body, function->inputs[i]))
            return ot__error(OT_ERR_FORMAT, "input '%s' has no name or is listed twice",
                             function->inputs[i]);
        OT_TRY(ot__made(ot__graph_add_input(function->body,
                                            ot__graph_value(function->body, function->inputs[i]))));
    }
    return OT_OK;
}

ot_status ot__add_function_outputs(const ot__function *function)
{
    for (int i = 0; i < function->n_outputs; i++)
        OT_TRY(ot__made(ot__graph_add_output(
            function->body, ot__graph_value(function->body, function->outputs[i]))));
    return OT_OK;
}

static ot_status read_default(ot__reader *reader, ot__function *function, ot__bytes bytes,
                              int *capacity)
{
    ot_attr *attr = ot__arena_alloc(reader->model->arena, sizeof *attr);

    OT_TRY(ot__made(attr &&
                    ot__arena_grow(reader->model->arena, &function->attr_defaults, capacity,
                                   function->n_attr_defaults, sizeof *function->attr_defaults)));
    OT_TRY(ot__read_attr(reader, function->body, bytes, attr));
    function->attr_defaults[function->n_attr_defaults++] = attr;
    return OT_OK;
}

static ot_status read_body(ot__reader *reader, ot__bytes bytes, ot__function *function)
{
    ot__walk walk = ot__walk_over(bytes);
    int capacity = 0;
    ot__bytes info;
    ot__field field;

    function->body = ot__graph_create(reader->model, NULL, function->name);
    OT_TRY(ot__made(function->body));
    OT_TRY(pb_define_inputs(function));
    while (ot__wire_next(&walk, &field)) {
        const ot__bytes inner = {field.data, field.size};

        if (field.number == FUNCTION_NODE)
            OT_TRY(ot__read_node(reader, function->body, inner));
        else if (field.number == FUNCTION_ATTRIBUTE_PROTO)
            OT_TRY(read_default(reader, function, inner, &capacity));
    }
    walk = ot__walk_over(bytes);
    while (ot__wire_next_of(&walk, FUNCTION_VALUE_INFO, &info))
        OT_TRY(ot__read_value_info(reader, function->body, info));
    return ot__add_function_outputs(function);
}

ot_status ot__read_function(ot__reader *reader, ot__bytes bytes, ot__function **out)
{
    const uint64_t kept = OT_FIELD_BIT(1) | OT_FIELD_BIT(4) | OT_FIELD_BIT(5) | OT_FIELD_BIT(6) |
                          OT_FIELD_BIT(8) | OT_FIELD_BIT(9) | OT_FIELD_BIT(10) | OT_FIELD_BIT(13);
    const uint64_t apart = OT_FIELD_BIT(FUNCTION_NODE) | OT_FIELD_BIT(FUNCTION_ATTRIBUTE_PROTO) |
                           OT_FIELD_BIT(FUNCTION_VALUE_INFO);
    ot__function *function = ot__arena_alloc(reader->model->arena, sizeof *function);
    ot__unpacked unpacked;
    ot_status st;

    *out = function;
    OT_TRY(ot__made(function));
    OT_TRY(ot__unpack(reader, &onnx__function_proto__descriptor, bytes, kept, apart, &unpacked));
    function->extra = unpacked.parts.rest;
    st = read_fields(reader, (const Onnx__FunctionProto *)unpacked.message, function);
    ot__unpacked_deinit(&unpacked);
    OT_THEN(st, read_body(reader, bytes, function));
    return ot__error_prefix(st, "function '%s'", function->name ? function->name : "");
}
