// SPDX-License-Identifier: Apache-2.0
// Model-local functions:
//   <domain: "local", opset_import: ["" : 21]> name <alpha, beta: float = 1.0> (x, y) => (z) { z =
//   Add (x, y) }
#include <string.h>

#include "onnx/text/parse.h"

ot_status ot__parse_opsets(ot__parser *p, ot__opset **out, int *n_out)
{
    int capacity = 0;

    *out = NULL;
    *n_out = 0;
    OT_TRY(ot__parse_expect(p, '['));
    if (ot__parse_accept(p, ']'))
        return OT_OK;
    do {
        ot__opset opset = {0};

        OT_TRY(ot__parse_text(p, &opset.domain));
        OT_TRY(ot__parse_expect(p, ':'));
        OT_TRY(ot__parse_integer(p, &opset.version));
        OT_TRY(ot__add_opset(p->model, out, n_out, &capacity, opset));
        OT_TRY(ot__parse_enter(p));
        p->depth--;
    } while (ot__parse_accept(p, ','));
    return ot__parse_expect(p, ']');
}

static ot_status text_function_header(ot__parser *p, ot__function *function)
{
    if (!ot__parse_accept(p, '<'))
        return OT_OK;
    do {
        ot__bytes key = ot__parse_peek_word(p);

        p->at += key.size;
        OT_TRY(ot__parse_expect(p, ':'));
        if (ot__word_is(key, "opset_import"))
            OT_TRY(ot__parse_opsets(p, &function->opsets, &function->n_opsets));
        else if (ot__word_is(key, "doc_string"))
            OT_TRY(ot__parse_text(p, &function->doc));
        else if (ot__word_is(key, "domain"))
            OT_TRY(ot__parse_text(p, &function->domain));
        else if (ot__word_is(key, "overload"))
            OT_TRY(ot__parse_text(p, &function->overload));
        else
            return ot__parse_error(p, "a function has no '%.*s'", (int)OT_MIN(key.size, (size_t)40),
                                   (const char *)key.data);
    } while (ot__parse_accept(p, ','));
    return ot__parse_expect(p, '>');
}

static ot_status text_add_name(ot__parser *p, const char ***list, int *n, int *capacity,
                               const char *name)
{
    if (!*name)
        return ot__parse_error(p, "an empty name");
    for (int i = 0; i < *n; i++)
        if (strcmp((*list)[i], name) == 0)
            return ot__parse_error(p, "'%s' is listed twice", name);
    OT_TRY(ot__made(ot__arena_grow(p->model->arena, list, capacity, *n, sizeof **list)));
    (*list)[(*n)++] = name;
    OT_TRY(ot__parse_enter(p));
    p->depth--;
    return OT_OK;
}

// <name, name: type = default>
static ot_status parse_attrs(ot__parser *p, ot__function *function)
{
    int n_attrs = 0, n_defaults = 0;

    if (!ot__parse_accept(p, '<'))
        return OT_OK;
    do {
        const char *name;
        ot_attr *attr;
        char next;

        OT_TRY(ot__parse_name(p, &name));
        next = ot__parse_peek(p);
        if (next != ':' && next != '=') {
            OT_TRY(text_add_name(p, &function->attrs, &function->n_attrs, &n_attrs, name));
            continue;
        }
        attr = ot__arena_alloc(p->model->arena, sizeof *attr);
        OT_TRY(ot__made(attr && ot__arena_grow(p->model->arena, &function->attr_defaults,
                                               &n_defaults, function->n_attr_defaults,
                                               sizeof *function->attr_defaults)));
        OT_TRY(ot__parse_attr(p, function->body, name, attr));
        function->attr_defaults[function->n_attr_defaults++] = attr;
    } while (ot__parse_accept(p, ','));
    return ot__parse_expect(p, '>');
}

// (x, float[N] y): types are those of inner values, which have no place of their own
static ot_status parse_ends(ot__parser *p, ot__function *function, bool are_inputs)
{
    const char ***list = are_inputs ? &function->inputs : &function->outputs;
    int *n = are_inputs ? &function->n_inputs : &function->n_outputs;
    int capacity = 0;

    OT_TRY(ot__parse_expect(p, '('));
    if (ot__parse_accept(p, ')'))
        return OT_OK;
    do {
        ot_value type = {0}, *value;
        const char *name;

        if (ot__parse_is_type(p))
            OT_TRY(ot__parse_type(p, &type, NULL));
        OT_TRY(ot__parse_name(p, &name));
        OT_TRY(text_add_name(p, list, n, &capacity, name));
        if (!are_inputs)
            continue;
        value = ot__graph_value(function->body, name);
        OT_TRY(ot__made(ot__graph_add_input(function->body, value)));
    } while (ot__parse_accept(p, ','));
    return ot__parse_expect(p, ')');
}

// <float[N] h>: types of inner values, read and left, because they differ from call to call
static ot_status skip_infos(ot__parser *p)
{
    if (!ot__parse_accept(p, '<') || ot__parse_accept(p, '>'))
        return OT_OK;
    do {
        ot_value type = {0};
        const char *name;

        if (ot__parse_is_type(p))
            OT_TRY(ot__parse_type(p, &type, NULL));
        OT_TRY(ot__parse_name(p, &name));
    } while (ot__parse_accept(p, ','));
    return ot__parse_expect(p, '>');
}

static ot_status parse_function(ot__parser *p, ot__function *function)
{
    function->domain = function->overload = function->doc = "";
    OT_TRY(text_function_header(p, function));
    OT_TRY(ot__parse_name(p, &function->name));
    function->body = ot__graph_create(p->model, NULL, function->name);
    OT_TRY(ot__made(function->body));
    OT_TRY(parse_attrs(p, function));
    OT_TRY(parse_ends(p, function, true));
    OT_TRY(ot__parse_arrow(p));
    OT_TRY(parse_ends(p, function, false));
    OT_TRY(skip_infos(p));
    OT_TRY(ot__parse_nodes(p, function->body));
    return ot__add_function_outputs(function);
}

ot_status ot__parse_function(ot__parser *p, ot__function **out)
{
    *out = ot__arena_alloc(p->model->arena, sizeof **out);
    OT_TRY(ot__made(*out));
    OT_TRY(ot__parse_enter(p));
    p->reader.in_function = true;
    OT_TRY(parse_function(p, *out));
    p->reader.in_function = false;
    p->depth--;
    return OT_OK;
}
