// SPDX-License-Identifier: Apache-2.0
// Attributes written as text: what gradient rules and tests give to a node.
#include "op/op.h"

#include <string.h>

enum { MAX_LIST = 256 };

typedef struct reader {
    const char *at;
    ot_node *node;
    const char *name; // of the attribute being read
} reader;

typedef struct number {
    double f;
    int64_t i;
    bool is_int;
} number;

static ot_status malformed(const reader *r, const char *expected)
{
    return ot__error(OT_ERR_FORMAT, "%s: attribute '%s': expected %s at '%.20s'", r->node->op_type,
                     r->name, expected, r->at);
}

static void skip(reader *r)
{
    r->at += strspn(r->at, " ,\n\t");
}

static bool accept(reader *r, char c)
{
    skip(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static ot_status read_attr_number(reader *r, number *out)
{
    char text[64];
    size_t length;

    skip(r);
    length = strcspn(r->at, " ,]}\n\t");
    if (length == 0 || length >= sizeof(text))
        return malformed(r, "a number");
    memcpy(text, r->at, length);
    text[length] = '\0';
    out->is_int = ot__parse_int(text, &out->i);
    out->f = (double)out->i;
    if (!out->is_int && !ot__parse_float(text, &out->f))
        return malformed(r, "a number");
    r->at += length;
    return OT_OK;
}

static ot_status read_attr_numbers(reader *r, char end, number *list, int *n)
{
    for (*n = 0; !accept(r, end); (*n)++) {
        if (*n == MAX_LIST)
            return malformed(r, "a shorter list");
        OT_TRY(read_attr_number(r, &list[*n]));
    }
    return OT_OK;
}

// What kind the record wants, OT_ATTR_UNDEFINED when it does not say.
static int wanted_kind(const reader *r)
{
    const ot_attr_spec *s = r->node->op == NULL ? NULL : r->node->op->attrs;

    for (; s != NULL && s->name != NULL; s++)
        if (strcmp(s->name, r->name) == 0)
            return s->kind;
    return OT_ATTR_UNDEFINED;
}

static ot_status set_attr_list(reader *r)
{
    number list[MAX_LIST];
    int64_t ints[MAX_LIST];
    bool all_int = true;
    float *floats;
    ot_attr *a;
    int n;

    OT_TRY(read_attr_numbers(r, ']', list, &n));
    for (int k = 0; k < n; k++) {
        all_int = all_int && list[k].is_int;
        ints[k] = list[k].i;
    }
    if (all_int && wanted_kind(r) != OT_ATTR_FLOATS)
        return ot__made(ot__node_set_ints(r->node, r->name, ints, n));
    floats = ot__arena_alloc(r->node->graph->model->arena, ((size_t)n + 1) * sizeof(*floats));
    OT_TRY(ot__made(floats != NULL));
    for (int k = 0; k < n; k++)
        floats[k] = (float)list[k].f;
    a = ot__node_add_attr(r->node, r->name, OT_ATTR_FLOATS);
    OT_TRY(ot__made(a != NULL));
    a->n = n;
    a->floats = floats;
    return OT_OK;
}

// The rest of a string whose opening quote is read.
static ot_status read_attr_string(reader *r, const char **out)
{
    const size_t length = strcspn(r->at, "\"");

    if (r->at[length] != '"')
        return malformed(r, "a closing quote");
    *out = ot__arena_strndup(r->node->graph->model->arena, r->at, length);
    r->at += length + 1;
    return ot__made(*out != NULL);
}

static ot_status set_string(reader *r)
{
    const char *text = NULL;

    OT_TRY(read_attr_string(r, &text));
    return ot__made(ot__node_set_string(r->node, r->name, text));
}

static ot_status set_strings(reader *r)
{
    ot__string list[MAX_LIST], *kept;
    ot_attr *a;
    int n;

    for (n = 0; !accept(r, ']'); n++) {
        const char *text = NULL;

        if (n == MAX_LIST)
            return malformed(r, "a shorter list");
        if (!accept(r, '"'))
            return malformed(r, "a string");
        OT_TRY(read_attr_string(r, &text));
        list[n] = (ot__string){(const uint8_t *)text, strlen(text)};
    }
    kept = ot__arena_memdup(r->node->graph->model->arena, list, (size_t)n * sizeof *list);
    OT_TRY(ot__made(kept != NULL));
    a = ot__node_add_attr(r->node, r->name, OT_ATTR_STRINGS);
    OT_TRY(ot__made(a != NULL));
    a->n = n;
    a->strings = kept;
    return OT_OK;
}

// "f32[2]{1, 2}"
static ot_status set_tensor(reader *r)
{
    static const ot__cast_rule as_usual = {0};
    const size_t length = strcspn(r->at, "[");
    number list[MAX_LIST];
    ot_shape shape = {0};
    ot_tensor *tensor;
    ot_dtype dtype;
    char name[16];
    int n;

    if (length >= sizeof(name) || r->at[length] != '[')
        return malformed(r, "a number, list, string or tensor");
    memcpy(name, r->at, length);
    name[length] = '\0';
    if (!ot__dtype_from_name(name, &dtype))
        return malformed(r, "an element type");
    r->at += length + 1;
    OT_TRY(read_attr_numbers(r, ']', list, &n));
    if (n > OT_MAX_NDIM)
        return malformed(r, "fewer axes");
    shape.ndim = n;
    for (int k = 0; k < n; k++)
        shape.dim[k] = list[k].i;
    tensor = ot__model_tensor_new(r->node->graph->model, dtype, &shape);
    OT_TRY(ot__made(tensor));
    if (!accept(r, '{'))
        return malformed(r, "'{'");
    OT_TRY(read_attr_numbers(r, '}', list, &n));
    if (n != ot_tensor_count(tensor))
        return malformed(r, "as many elements as the shape has");
    for (int k = 0; k < n; k++) {
        const ot__elements from = list[k].is_int ? (ot__elements){&list[k].i, OT_I64, 0}
                                                 : (ot__elements){&list[k].f, OT_F64, 0};

        if (!ot__convert_range(tensor->data, dtype, k, from, 1, &as_usual))
            return malformed(r, "another element type");
    }
    return ot__made(ot__node_set_tensor(r->node, r->name, tensor));
}

static ot_status set_number(reader *r)
{
    number value;

    OT_TRY(read_attr_number(r, &value));
    if (value.is_int && wanted_kind(r) != OT_ATTR_FLOAT)
        return ot__made(ot__node_set_int(r->node, r->name, value.i));
    return ot__made(ot__node_set_float(r->node, r->name, (float)value.f));
}

static ot_status set_attr_value(reader *r)
{
    skip(r);
    if (accept(r, '[')) {
        skip(r);
        return *r->at == '"' ? set_strings(r) : set_attr_list(r);
    }
    if (accept(r, '"'))
        return set_string(r);
    if (strchr("+-.0123456789", *r->at) != NULL && *r->at != '\0')
        return set_number(r);
    if (ot__starts_with(r->at, "inf") || ot__starts_with(r->at, "nan"))
        return set_number(r);
    return set_tensor(r);
}

ot_status ot__node_set_attrs_text(ot_node *node, const char *text)
{
    reader r = {.at = text, .node = node, .name = ""};

    for (skip(&r); *r.at != '\0'; skip(&r)) {
        const size_t length = strcspn(r.at, " =");

        r.name = ot__arena_strndup(node->graph->model->arena, r.at, length);
        OT_TRY(ot__made(r.name != NULL));
        r.at += length;
        if (!accept(&r, '='))
            return malformed(&r, "'='");
        OT_TRY(set_attr_value(&r));
    }
    return OT_OK;
}
