// SPDX-License-Identifier: Apache-2.0
// Attributes: <alpha = 0.5, axes: ints = [0, 1], body = graph (...) => (...) {...}, of_function =
// @alpha>.
#include <string.h>

#include "onnx/text/parse.h"
#include "onnx/text/print.h"

static ot_attr_kind list_kind(ot_attr_kind element)
{
    int kind = OT_ATTR_FLOATS;

    while (ot__attr_rows[kind].element != element)
        kind++;
    return (ot_attr_kind)kind;
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
    return ot__made(attr->notes);
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
        OT_TRY(ot__made(ot__arena_grow(p->model->arena, &items->items, &items->capacity, items->n,
                                       sizeof *items->items)));
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

// As the list of `attr`, in `storage`; `notes` of tensors.
static void store_items(const list *items, ot_attr *attr, char *storage, ot__tensor_note *notes)
{
    const size_t size = ot__attr_rows[attr->kind].size;

    for (int i = 0; i < items->n; i++) {
        const ot_attr *item = &items->items[i];

        memcpy(storage + (size_t)i * size, ot__attr_items_of(item).data, size);
        if (notes)
            notes[i] = item->notes ? *item->notes : (ot__tensor_note){"", "", {0}};
    }
    attr->notes = notes;
}

// Types are kept as the fields that hold them.
static ot_status store_types(ot__parser *p, const list *items, ot_attr *attr)
{
    const uint32_t number = attr->kind == OT_ATTR_TYPE_PROTO ? 14 : 15;
    ot__buf fields = {0};
    ot__wire wire = ot__wire_to(&fields);

    for (int i = 0; i < items->n; i++)
        ot__wire_put_bytes(&wire, number, items->items[i].bytes.data, items->items[i].bytes.size);
    return ot__keep_bytes(&p->reader, wire.status, &fields, &attr->bytes);
}

static ot_status parse_list(ot__parser *p, ot_graph *graph, ot_attr *attr)
{
    ot_attr_kind element = ot__attr_rows[attr->kind].element;
    ot__tensor_note *notes = NULL;
    list items = {0};
    char *storage;

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
    OT_TRY(ot__parse_expect(p, ']'));
    if (element == OT_ATTR_TYPE_PROTO)
        return store_types(p, &items, attr);
    storage = ot__attr_room(p->model->arena, attr, (size_t)items.n);
    if (element == OT_ATTR_TENSOR)
        notes = ot__arena_alloc(p->model->arena, (size_t)items.n * sizeof *notes);
    OT_TRY(ot__made(storage && (element != OT_ATTR_TENSOR || notes)));
    store_items(&items, attr, storage, notes);
    return OT_OK;
}

// ---- attributes ----

static ot_status parse_kind(ot__parser *p, ot_attr_kind *kind)
{
    ot__bytes word = ot__parse_peek_word(p);

    for (int i = OT_ATTR_FLOAT; i < OT_ATTR_KINDS; i++) {
        if (!ot__word_is(word, ot__attr_rows[i].word))
            continue;
        p->at += word.size;
        *kind = (ot_attr_kind)i;
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

        if (node->n_attrs == OT_MAX_ATTRS)
            return ot__parse_error(p, "more than %d attributes", OT_MAX_ATTRS);
        OT_TRY(ot__parse_name(p, &name));
        if (ot__node_attr(node, name))
            return ot__parse_error(p, "attribute '%s' is given twice", name);
        OT_TRY(ot__parse_attr(p, node->graph, name, &read));
        attr = ot__node_add_attr(node, name, read.kind);
        OT_TRY(ot__made(attr));
        *attr = read;
    } while (ot__parse_accept(p, ','));
    return ot__parse_expect(p, '>');
}
