// SPDX-License-Identifier: Apache-2.0
// Which values of a graph are computed alike.
#include <string.h>

#include "passes/region.h"

enum { MAX_CONSTANT = 4096 }; // bytes up to which constants are compared by their elements

typedef struct classing {
    ot__classes *c;
    ot__arena *keys;
    const ot_value **view_of; // per value: what it is a view of; NULL: none
    ot__map nodes, constants; // by what they are: node, value
    ot__buf text;             // of what is at hand
} classing;

// ---- what a thing is, as text ----

static void append_hex(ot__buf *text, const void *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *b = bytes;

    for (size_t i = 0; i < n; i++) {
        const char two[2] = {digits[b[i] >> 4], digits[b[i] & 15]};

        ot__buf_append(text, two, sizeof two);
    }
}

// Large ones are the same when they are the same tensor.
static void class_tensor(ot__buf *text, const ot_tensor *t)
{
    const size_t n_bytes = ot_tensor_bytes(t);

    ot__buf_printf(text, "%d[", (int)t->dtype);
    for (int k = 0; k < t->shape.ndim; k++)
        ot__buf_printf(text, "%" PRId64 ",", t->shape.dim[k]);
    ot__buf_text(text, "]");
    if (t->dtype == OT_STRING || n_bytes > MAX_CONSTANT)
        ot__buf_printf(text, "%p", t->data);
    else
        append_hex(text, t->data, n_bytes);
}

// False: of a kind that is not compared.
static bool class_attr(ot__buf *text, const ot_attr *a)
{
    ot__buf_printf(text, ";%s=%d:", a->name, (int)a->kind);
    switch (a->kind) {
    case OT_ATTR_FLOAT:
        append_hex(text, &a->f, sizeof a->f);
        return true;
    case OT_ATTR_INT:
        append_hex(text, &a->i, sizeof a->i);
        return true;
    case OT_ATTR_STRING:
        append_hex(text, a->s.data, a->s.size);
        return true;
    case OT_ATTR_TENSOR:
        class_tensor(text, a->t);
        return true;
    case OT_ATTR_FLOATS:
        append_hex(text, a->floats, (size_t)a->n * sizeof *a->floats);
        return true;
    case OT_ATTR_INTS:
        append_hex(text, a->ints, (size_t)a->n * sizeof *a->ints);
        return true;
    default:
        return false;
    }
}

// Their order does not matter.
static bool class_attrs(ot__buf *text, const ot_node *node)
{
    const ot_attr *last = NULL;

    for (int k = 0; k < node->n_attrs; k++) {
        const ot_attr *next = NULL;

        for (int a = 0; a < node->n_attrs; a++)
            if ((last == NULL || strcmp(node->attrs[a]->name, last->name) > 0) &&
                (next == NULL || strcmp(node->attrs[a]->name, next->name) < 0))
                next = node->attrs[a];
        if (next == NULL || !class_attr(text, next))
            return false;
        last = next;
    }
    return true;
}

// Nodes that make the same of the same inputs.
static bool is_function(const ot_node *node)
{
    return (node->op->flags & OT_OP_RANDOM) == 0 && !ot__op_is_foreign(node) &&
           !ot__op_writes_state(node) && !ot__next_subgraph(&(ot__subgraphs){.node = node});
}

static bool makes_view(const ot_node *node)
{
    return (node->op->flags & OT_OP_VIEW) != 0 && node->n_outputs == 1 &&
           node->outputs[0] != NULL && node->outputs[0]->has_shape && node->n_inputs > 0 &&
           node->inputs[0] != NULL;
}

// ---- classes ----

static int *class_at(const classing *c, const ot_value *value)
{
    return &c->c->of[ot__value_number(&c->c->uses.numbers, value)];
}

static int new_class(classing *c)
{
    return c->c->n++;
}

// What is called `key` already; else it is `thing` from now on.
static void *find_or_put(classing *c, ot__map *map, void *thing)
{
    void *found;
    const char *key;

    if (c->text.failed)
        return NULL;
    found = ot__map_get(map, c->text.data);
    if (found != NULL)
        return found;
    key = ot__arena_strdup(c->keys, c->text.data);
    if (key == NULL || !ot__map_put(map, key, thing))
        c->text.failed = true;
    return thing;
}

static void classify_source(classing *c, ot_value *value)
{
    const ot_value *same = value;

    if (*class_at(c, value) >= 0)
        return;
    if (value->constant != NULL && !value->is_input) {
        c->text.length = 0;
        class_tensor(&c->text, value->constant);
        same = find_or_put(c, &c->constants, value);
    }
    *class_at(c, value) =
        same != NULL && *class_at(c, same) >= 0 ? *class_at(c, same) : new_class(c);
}

static void classify_outputs(classing *c, const ot_node *node, const ot_node *same)
{
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *other = same != NULL && i < same->n_outputs ? same->outputs[i] : NULL;

        if (node->outputs[i] != NULL)
            *class_at(c, node->outputs[i]) =
                other != NULL && *class_at(c, other) >= 0 ? *class_at(c, other) : new_class(c);
    }
}

// The elements of another value under another shape: of that value where views follow each other,
// and itself where the shape is its own again.
static void classify_view(classing *c, ot_node *node)
{
    const ot__numbers *numbers = &c->c->uses.numbers;
    const ot_value *x = node->inputs[0], *y = node->outputs[0];

    if (c->view_of[ot__value_number(numbers, x)] != NULL)
        x = c->view_of[ot__value_number(numbers, x)];
    c->view_of[ot__value_number(numbers, y)] = x;
    c->text.length = 0;
    ot__buf_printf(&c->text, "view,%d", *class_at(c, x));
    for (int k = 0; k < y->shape.ndim; k++)
        ot__buf_printf(&c->text, ",%" PRId64, y->shape.dim[k]);
    if (x->has_shape && ot__shape_equal(&x->shape, &y->shape))
        *class_at(c, y) = *class_at(c, x);
    else
        classify_outputs(c, node, find_or_put(c, &c->nodes, node));
}

static void classify_node(classing *c, ot_node *node)
{
    bool comparable = is_function(node);

    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] != NULL)
            classify_source(c, node->inputs[i]); // what a node makes has a class by then
    if (makes_view(node)) {
        classify_view(c, node);
        return;
    }
    c->text.length = 0;
    ot__buf_printf(&c->text, "%p", (const void *)node->op);
    for (int i = 0; i < node->n_inputs; i++)
        ot__buf_printf(&c->text, ",%d", node->inputs[i] ? *class_at(c, node->inputs[i]) : -1);
    comparable = comparable && class_attrs(&c->text, node);
    classify_outputs(c, node, comparable ? find_or_put(c, &c->nodes, node) : NULL);
    if (ot__node_is_identity(node))
        *class_at(c, node->outputs[0]) = *class_at(c, node->inputs[0]);
}

ot_status ot__classes_build(const ot_graph *graph, ot__classes *classes)
{
    classing c = {.c = classes};
    size_t n_values;
    ot_status st;

    *classes = (ot__classes){0};
    OT_TRY(ot__uses_build(graph, &classes->uses));
    n_values = (size_t)classes->uses.numbers.n_values;
    classes->of = ot__alloc((n_values + 1) * sizeof *classes->of);
    c.keys = ot__arena_create();
    c.view_of = ot__alloc_zero(n_values + 1, sizeof *c.view_of);
    st = ot__made(classes->of != NULL && c.keys != NULL && c.view_of != NULL);
    for (size_t v = 0; st == OT_OK && v < n_values; v++)
        classes->of[v] = -1;
    for (int n = 0; st == OT_OK && n < graph->n_nodes; n++)
        classify_node(&c, graph->nodes[n]);
    for (size_t v = 0; st == OT_OK && v < n_values; v++)
        if (classes->of[v] < 0)
            classes->of[v] = new_class(&c);
    OT_THEN(st, ot__buf_status(&c.text));
    ot__buf_deinit(&c.text);
    ot__map_deinit(&c.nodes);
    ot__map_deinit(&c.constants);
    ot__arena_destroy(c.keys);
    ot__free(c.view_of);
    if (st != OT_OK)
        ot__classes_deinit(classes);
    return st;
}

void ot__classes_deinit(ot__classes *classes)
{
    ot__uses_deinit(&classes->uses);
    ot__free(classes->of);
    *classes = (ot__classes){0};
}
