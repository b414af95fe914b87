// SPDX-License-Identifier: Apache-2.0
// Attributes: <alpha = 0.5, axes: ints = [0, 1], body = graph (...) => (...) {...}, of_function =
// @alpha>.
#include <string.h>

#include "onnx/text/parse.h"
#include "onnx/text/print.h"

enum { MAX_ATTRS = 1024 };

static const struct {
    const char *word;
    ot_attr_kind kind, element; // element: of list kinds
} kinds[] = {
    {"float", OT_ATTR_FLOAT, OT_ATTR_UNDEFINED},
    {"int", OT_ATTR_INT, OT_ATTR_UNDEFINED},
    {"string", OT_ATTR_STRING, OT_ATTR_UNDEFINED},
    {"tensor", OT_ATTR_TENSOR, OT_ATTR_UNDEFINED},
    {"graph", OT_ATTR_GRAPH, OT_ATTR_UNDEFINED},
    {"sparse_tensor", OT_ATTR_SPARSE_TENSOR, OT_ATTR_UNDEFINED},
    {"type_proto", OT_ATTR_TYPE_PROTO, OT_ATTR_UNDEFINED},
    {"floats", OT_ATTR_FLOATS, OT_ATTR_FLOAT},
    {"ints", OT_ATTR_INTS, OT_ATTR_INT},
    {"strings", OT_ATTR_STRINGS, OT_ATTR_STRING},
    {"tensors", OT_ATTR_TENSORS, OT_ATTR_TENSOR},
    {"graphs", OT_ATTR_GRAPHS, OT_ATTR_GRAPH},
    {"sparse_tensors", OT_ATTR_SPARSE_TENSORS, OT_ATTR_SPARSE_TENSOR},
    {"type_protos", OT_ATTR_TYPE_PROTOS, OT_ATTR_TYPE_PROTO},
};

static ot_attr_kind element_kind(ot_attr_kind kind)
{
    for (size_t i = 0; i < OT_COUNT(kinds); i++)
        if (kinds[i].kind == kind)
            return kinds[i].element;
    return OT_ATTR_UNDEFINED;
}

static ot_attr_kind list_kind(ot_attr_kind element)
{
    for (size_t i = 0; i < OT_COUNT(kinds); i++)
        if (kinds[i].element == element)
            return kinds[i].kind;
    return OT_ATTR_UNDEFINED;
}

// ---- one value ----

// A tensor, or when no elements follow a type.
static ot_status parse_typed(ot__parser *p, ot_attr *attr)
{
    ot__tensor_note note = {"", "", {0}};
    ot_value type = {0};
    ot__bytes bytes;
    char next;

    OT_TRY(ot__parse_type(p, &type, &bytes));
    next = ot__parse_peek(p);
    if (next != '{' && next != '=' && next != '[' && next != '"' &&
        ot__parse_peek_word(p).size == 0) {
        attr->kind = OT_ATTR_TYPE_PROTO;
        attr->bytes = bytes;
        return OT_OK;
    }
    attr->kind = OT_ATTR_TENSOR;
    OT_TRY(ot__parse_optional_name(p, &note.name));
    (void)ot__parse_accept(p, '=');
    OT_TRY(ot__parse_tensor(p, &type, note.name, &attr->t));
    if (!*note.name)
        return OT_OK;
    attr->notes = ot__arena_memdup(p->model->arena, &note, sizeof note);
    return attr->notes ? OT_OK : OT_ERR_NO_MEMORY;
}

static ot_status parse_number_value(ot__parser *p, ot_attr_kind expected, ot_attr *attr)
{
    ot__number number;
    double value;

    OT_TRY(ot__parse_number(p, &number));
    if (!number.is_float && expected != OT_ATTR_FLOAT) {
        attr->kind = OT_ATTR_INT;
        OT_TRY(ot__number_as_integer(p, &number, &attr->i));
        if (attr->i < 0 && number.text[0] != '-')
            return ot__parse_error(p, "%s does not fit 64 bits with a sign", number.text);
        return OT_OK;
    }
    OT_TRY(ot__number_as_f32(p, &number, &value));
    attr->kind = OT_ATTR_FLOAT;
    attr->f = (float)value;
    return OT_OK;
}

// Whatever stands there; *attr has its kind afterwards.
static ot_status parse_any(ot__parser *p, ot_graph *graph, ot_attr_kind expected, ot_attr *attr)
{
    char next = ot__parse_peek(p);

    // Where a graph is expected, its name may be quoted, or be any word.
    if (expected != OT_ATTR_GRAPH) {
        if (next == '"') {
            attr->kind = OT_ATTR_STRING;
            return ot__parse_quoted(p, &attr->s);
        }
        if (ot__parse_is_type(p))
            return parse_typed(p, attr);
        if (ot__parse_peek_word(p).size == 0 || ot__parse_is_float_word(p))
            return parse_number_value(p, expected, attr);
    }
    attr->kind = OT_ATTR_GRAPH;
    attr->g = ot__graph_create(p->model, graph, "");
    return attr->g ? ot__parse_graph(p, attr->g) : OT_ERR_NO_MEMORY;
}

static ot_status parse_single(ot__parser *p, ot_graph *graph, ot_attr_kind expected, ot_attr *attr)
{
    OT_TRY(ot__parse_enter(p));
    OT_TRY(parse_any(p, graph, expected, attr));
    p->depth--;
    if (expected != OT_ATTR_UNDEFINED && attr->kind != expected)
        return ot__parse_error(p, "a value of kind %s, expected %s", ot__attr_kind_name(attr->kind),
                               ot__attr_kind_name(expected));
    return OT_OK;
}

// ---- lists ----

typedef struct list {
    ot_attr *items;
    int n, capacity;
} list;

static ot_status parse_items(ot__parser *p, ot_graph *graph, ot_attr_kind element, list *items)
{
    do {
        ot_attr item = {.name = ""};

        OT_TRY(parse_single(p, graph, element, &item));
        if (!ot__arena_grow(p->model->arena, &items->items, &items->capacity, items->n,
                            sizeof *items->items))
            return OT_ERR_NO_MEMORY;
        items->items[items->n++] = item;
    } while (ot__parse_accept(p, ','));
    return OT_OK;
}

// Integers among floats are floats.
static ot_status unify(ot__parser *p, list *items, ot_attr_kind *element)
{
    for (int i = 0; i < items->n; i++)
        if (*element == OT_ATTR_UNDEFINED ||
            (*element == OT_ATTR_INT && items->items[i].kind == OT_ATTR_FLOAT))
            *element = items->items[i].kind;
    for (int i = 0; i < items->n; i++) {
        ot_attr *item = &items->items[i];

        if (*element == OT_ATTR_FLOAT && item->kind == OT_ATTR_INT) {
            item->f = (float)item->i;
            item->kind = OT_ATTR_FLOAT;
        }
        if (item->kind != *element)
            return ot__parse_error(p, "a list with elements of kind %s and %s",
                                   ot__attr_kind_name(*element), ot__attr_kind_name(item->kind));
    }
    return OT_OK;
}

static size_t item_size(ot_attr_kind element)
{
    switch (element) {
    case OT_ATTR_FLOAT:
        return sizeof(float);
    case OT_ATTR_INT:
        return sizeof(int64_t);
    case OT_ATTR_STRING:
        return sizeof(ot__string);
    default:
        return sizeof(void *);
    }
}

static void store_items(const list *items, ot_attr *attr, void *storage, ot__tensor_note *notes)
{
    for (int i = 0; i < items->n; i++) {
        const ot_attr *item = &items->items[i];

        switch (item->kind) {
        case OT_ATTR_FLOAT:
            ((float *)storage)[i] = item->f;
            attr->floats = storage;
            break;
        case OT_ATTR_INT:
            ((int64_t *)storage)[i] = item->i;
            attr->ints = storage;
            break;
        case OT_ATTR_STRING:
            ((ot__string *)storage)[i] = item->s;
            attr->strings = storage;
            break;
        case OT_ATTR_TENSOR:
            ((ot_tensor **)storage)[i] = item->t;
            notes[i] = item->notes ? *item->notes : (ot__tensor_note){"", "", {0}};
            attr->tensors = storage;
            attr->notes = notes;
            break;
        default:
            ((ot_graph **)storage)[i] = item->g;
            attr->graphs = storage;
            break;
        }
    }
}

// Types are kept as the fields that hold them.
static ot_status store_types(ot__parser *p, const list *items, ot_attr *attr)
{
    const uint32_t number = attr->kind == OT_ATTR_TYPE_PROTO ? 14 : 15;
    ot__buf fields = {0};
    ot_status st = OT_OK;

    for (int i = 0; i < items->n && st == OT_OK; i++)
        st = ot__type_as_field(&fields, number, items->items[i].bytes);
    if (st == OT_OK && fields.length > 0) {
        attr->bytes.size = fields.length;
        attr->bytes.data = ot__arena_memdup(p->model->arena, fields.data, fields.length);
        st = attr->bytes.data ? OT_OK : OT_ERR_NO_MEMORY;
    }
    ot__buf_deinit(&fields);
    return st;
}

static ot_status parse_list(ot__parser *p, ot_graph *graph, ot_attr *attr)
{
    ot_attr_kind element = element_kind(attr->kind);
    ot__tensor_note *notes = NULL;
    list items = {0};
    void *storage;

    if (attr->kind != OT_ATTR_UNDEFINED && element == OT_ATTR_UNDEFINED)
        return ot__parse_error(p, "a list for an attribute of kind %s",
                               ot__attr_kind_name(attr->kind));
    if (ot__parse_accept(p, ']')) {
        if (attr->kind == OT_ATTR_UNDEFINED)
            return ot__parse_error(p, "an empty list needs its type stated");
        return OT_OK;
    }
    OT_TRY(parse_items(p, graph, element, &items));
    OT_TRY(unify(p, &items, &element));
    attr->kind = list_kind(element);
    attr->n = items.n;
    OT_TRY(ot__parse_expect(p, ']'));
    if (element == OT_ATTR_TYPE_PROTO)
        return store_types(p, &items, attr);
    storage = ot__arena_alloc(p->model->arena, (size_t)items.n * item_size(element));
    if (element == OT_ATTR_TENSOR)
        notes = ot__arena_alloc(p->model->arena, (size_t)items.n * sizeof *notes);
    if (!storage || (element == OT_ATTR_TENSOR && !notes))
        return OT_ERR_NO_MEMORY;
    store_items(&items, attr, storage, notes);
    return OT_OK;
}

// ---- attributes ----

static ot_status parse_kind(ot__parser *p, ot_attr_kind *kind)
{
    ot__bytes word = ot__parse_peek_word(p);

    for (size_t i = 0; i < OT_COUNT(kinds); i++) {
        if (!ot__word_is(word, kinds[i].word))
            continue;
        p->at += word.size;
        *kind = kinds[i].kind;
        return OT_OK;
    }
    return ot__parse_error(p, "expected the type of an attribute");
}

ot_status ot__parse_attr(ot__parser *p, ot_graph *graph, const char *name, ot_attr *attr)
{
    ot__bytes type;

    *attr = (ot_attr){.name = name};
    if (ot__parse_accept(p, ':'))
        OT_TRY(parse_kind(p, &attr->kind));
    OT_TRY(ot__parse_expect(p, '='));
    if (ot__parse_accept(p, '@')) {
        if (!p->reader.in_function)
            return ot__parse_error(p, "'%s' refers to a function's attribute, but is in none",
                                   name);
        return ot__parse_name(p, &attr->ref_name);
    }
    if (ot__parse_accept(p, '['))
        return parse_list(p, graph, attr);
    OT_TRY(parse_single(p, graph, attr->kind, attr));
    if (attr->kind != OT_ATTR_TYPE_PROTO)
        return OT_OK;
    type = attr->bytes;
    return store_types(p, &(list){.items = &(ot_attr){.bytes = type}, .n = 1}, attr);
}

ot_status ot__parse_attr_list(ot__parser *p, ot_node *node)
{
    if (!ot__parse_accept(p, '<'))
        return OT_OK;
    do {
        const char *name;
        ot_attr read, *attr;

        if (node->n_attrs == MAX_ATTRS)
            return ot__parse_error(p, "more than %d attributes", MAX_ATTRS);
        OT_TRY(ot__parse_name(p, &name));
        if (ot__node_attr(node, name))
            return ot__parse_error(p, "attribute '%s' is given twice", name);
        OT_TRY(ot__parse_attr(p, node->graph, name, &read));
        attr = ot__node_add_attr(node, name, read.kind);
        if (!attr)
            return OT_ERR_NO_MEMORY;
        *attr = read;
    } while (ot__parse_accept(p, ','));
    return ot__parse_expect(p, '>');
}
