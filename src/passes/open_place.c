// SPDX-License-Identifier: Apache-2.0
// Where the batch lies in a value, followed from the inputs through every node.
#include <string.h>

#include "passes/open.h"

enum { NOWHERE = -1, SPREAD = -2 };

static const ot__place nowhere = {.axis = NOWHERE, .outer = 1, .inner = 1};

const ot_shape *ot__open_was(const ot__opener *o, const ot_value *value)
{
    const ot__was *was;

    if (!value || !ot__has_number(o->numbers, value))
        return value && value->has_shape ? &value->shape : NULL;
    was = &o->was[ot__value_number(o->numbers, value)];
    return was->has_shape ? &was->shape : NULL;
}

const ot__place *ot__open_place(const ot__opener *o, const ot_value *value)
{
    return value && o->numbers && ot__has_number(o->numbers, value)
               ? &o->places[ot__value_number(o->numbers, value)]
               : &nowhere;
}

// `extent` / batch where that is a number, else 0.
static int64_t coefficient(const ot__opener *o, int64_t extent)
{
    int64_t c;

    if (!ot__dim_is_symbol(extent))
        return 0;
    c = ot__dim_div(o->model, extent, o->symbol);
    return ot__dim_is_number(c) && ot__dim_mul(o->model, c, o->symbol) == extent ? c : 0;
}

typedef struct probe {
    const ot__opener *o;
    int64_t batch;
} probe;

static int64_t look_up_place(void *context, const char *name)
{
    enum { ANY_OTHER = 1009 };
    const probe *p = context;

    return strcmp(name, ot__dim_name(p->o->model, p->o->symbol)) == 0 ? p->batch : ANY_OTHER;
}

static bool follows_batch(const ot__opener *o, int64_t extent)
{
    probe a = {o, o->batch}, b = {o, 2 * o->batch};

    return ot__dim_is_symbol(extent) && ot__dim_evaluate(o->model, extent, look_up_place, &a) !=
                                            ot__dim_evaluate(o->model, extent, look_up_place, &b);
}

static int64_t place_product(const ot_shape *shape, int first, int end)
{
    int64_t p = 1;

    for (int k = first; k < end; k++)
        if (!ot__dim_is_number(shape->dim[k]) || ot__mul_overflows(p, shape->dim[k], &p))
            return 0;
    return p;
}

// Small: likely. An extent that is the batch alone, the batch in front of others but not among the
// innermost elements, an extent that ends with the batch, anything else.
static int unlikeliness(const ot__place *place, const ot_shape *y)
{
    if (place->outer == 1)
        return place->inner == 1 ? 0 : place->axis + 1 < y->ndim ? 1 : 3;
    return place->inner == 1 ? 2 : 4;
}

// The number of elements in front of the batch; 0: unknown.
static int64_t elements_in_front(const ot__opener *o, const ot_value *x)
{
    const ot__place *place = ot__open_place(o, x);
    const ot_shape *shape = ot__open_was(o, x);
    int64_t front;

    if (!shape || !ot__place_is_known(place) ||
        ot__mul_overflows(place_product(shape, 0, place->axis), place->outer, &front))
        return 0;
    return front;
}

int ot__open_places_in_view(const ot__opener *o, const ot_value *x, const ot_shape *y,
                            ot__place *out)
{
    const int64_t front = elements_in_front(o, x);
    int64_t before = 1;
    int n = 0;

    if (front == 0 || place_product(y, 0, y->ndim) == 0)
        return 0;
    for (int k = 0; k < y->ndim && before <= front; before *= y->dim[k++]) {
        ot__place here = {k, front / before, 1};
        int at = n;

        if (front % before != 0 || y->dim[k] % (here.outer * o->batch) != 0)
            continue;
        here.inner = y->dim[k] / (here.outer * o->batch);
        for (; at > 0 && unlikeliness(&out[at - 1], y) > unlikeliness(&here, y); at--)
            out[at] = out[at - 1];
        out[at] = here;
        n++;
    }
    return n;
}

// The batch keeps its neighbours where an extent stays what it was.
static void place_as_in_inputs(const ot__opener *o, const ot_node *node, int64_t c, ot__place *out)
{
    bool found = false;

    for (int i = 0; i < node->n_inputs; i++) {
        const ot__place *x = ot__open_place(o, node->inputs[i]);

        if (!ot__place_is_known(x) || x->outer * x->inner != c)
            continue;
        if (found && (x->outer != out->outer || x->inner != out->inner)) {
            out->axis = SPREAD;
            return;
        }
        out->outer = x->outer;
        out->inner = x->inner;
        found = true;
    }
    if (!found)
        out->axis = SPREAD;
}

// Equal pieces one behind the other.
static bool place_in_concat(const ot__opener *o, const ot_node *node, int axis, ot__place *out)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const ot__place *x = ot__open_place(o, node->inputs[i]);

        if (x->axis != axis || x->outer != 1 || (i > 0 && x->inner != out->inner))
            return false;
        out->inner = x->inner;
    }
    out->outer = node->n_inputs;
    return true;
}

static bool is_view(const ot_node *node)
{
    return (node->op->flags & OT_OP_VIEW) != 0 && node->n_inputs > 0 && node->inputs[0];
}

ot__place ot__open_find_place(const ot__opener *o, const ot_node *node, const ot_value *y)
{
    const ot_shape *was = ot__open_was(o, y);
    ot__place place = nowhere;
    int64_t c = 0;

    for (int k = 0; y->has_shape && k < y->shape.ndim; k++) {
        if (!follows_batch(o, y->shape.dim[k]))
            continue;
        c = coefficient(o, y->shape.dim[k]);
        place.axis = place.axis == NOWHERE && c > 0 ? k : SPREAD;
    }
    if (!ot__place_is_known(&place) || c == 1)
        return place;
    if (is_view(node)) {
        const int64_t front = elements_in_front(o, node->inputs[0]);
        const int64_t before = was ? place_product(was, 0, place.axis) : 0;

        if (front == 0 || before == 0 || front % before != 0 || c % (front / before) != 0) {
            place.axis = SPREAD;
        } else {
            place.outer = front / before;
            place.inner = c / place.outer;
        }
    } else if (ot__match_open(node) != OT_OPEN_CONCAT ||
               !place_in_concat(o, node, place.axis, &place)) {
        place_as_in_inputs(o, node, c, &place);
    }
    return place;
}
