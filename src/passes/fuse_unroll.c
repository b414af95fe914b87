// SPDX-License-Identifier: Apache-2.0
// The turns of a Loop or Scan, one after the other.
#include <string.h>

#include "passes/unroll.h"

enum {
    MAX_TURNS = 4096,
    AXES_INPUT_OPSET = 13, // of Unsqueeze: they were an attribute before
};

// A body takes what a Loop leads with (its turn and condition), what is carried from turn to turn,
// and places of what is scanned; it makes the condition, what is carried, and places.
typedef struct unrolling {
    ot_graph *graph;
    const ot_graph *body;
    const ot_node *node;
    int64_t n_turns;
    int n_leading, n_carried, n_scanned, n_scanned_out;
    ot_value **given, **made;
    ot_value **scanned_out; // by output, of each turn
} unrolling;

// ---- the node ----

const ot_graph *ot__body_of(const ot_node *node, const char *attr)
{
    const ot_attr *found = ot__node_attr(node, attr);

    return found && found->kind == OT_ATTR_GRAPH ? found->g : NULL;
}

static int64_t int_of_list(const ot_node *node, const char *name, int i)
{
    const ot_attr *attr = ot__node_attr(node, name);

    return attr && attr->kind == OT_ATTR_INTS && i < attr->n ? attr->ints[i] : 0;
}

static int scanned_count(const ot_node *node)
{
    const ot_attr *attr = ot__node_attr(node, "num_scan_inputs");
    const int64_t n = attr && attr->kind == OT_ATTR_INT ? attr->i : 0;

    return n > 0 && n <= node->n_inputs ? (int)n : 0;
}

ot__scanned ot__scanned_input(const ot_node *node, int i)
{
    const int n = scanned_count(node);

    return (ot__scanned){.value = i < n ? node->inputs[node->n_inputs - n + i] : NULL,
                         .axis = int_of_list(node, "scan_input_axes", i),
                         .is_backward = int_of_list(node, "scan_input_directions", i) != 0};
}

static ot__scanned scanned_output(const unrolling *u, int i)
{
    return (ot__scanned){.value = u->node->outputs[u->n_carried + i],
                         .axis = int_of_list(u->node, "scan_output_axes", i),
                         .is_backward = int_of_list(u->node, "scan_output_directions", i) != 0};
}

// ---- building ----

static ot_value *new_number(ot_graph *graph, ot_dtype dtype, const ot_shape *shape, int64_t number)
{
    ot_tensor *tensor = ot__model_tensor_new(graph->model, dtype, shape);
    ot_value *value = tensor ? ot__graph_new_value(graph, "turn") : NULL;

    if (!value || !ot__graph_add_initializer(graph, value, tensor))
        return NULL;
    (void)ot__convert(tensor->data, dtype, &number, OT_I64, 1);
    return value;
}

static ot_status add_unrolled(ot_graph *graph, const char *op_type, ot_value *const *x, int n,
                              ot_value *y, ot_node **out)
{
    *out = ot__graph_add_node(graph, "", op_type, "", x, n, &y, 1);
    return ot__made(*out);
}

ot_status ot__hand_on(ot_graph *graph, ot_value *x, ot_value *y)
{
    ot_node *node;

    return y ? add_unrolled(graph, "Identity", &x, 1, y, &node) : OT_OK;
}

static ot_status take_place(const unrolling *u, const ot__scanned *in, int64_t turn, ot_value **out)
{
    const int64_t place = in->is_backward ? u->n_turns - 1 - turn : turn;
    ot_value *ends[] = {in->value, new_number(u->graph, OT_I64, &OT_SHAPE_SCALAR, place)};
    ot_node *node;

    *out = ends[1] ? ot__graph_new_value(u->graph, in->value->name) : NULL;
    OT_TRY(ot__made(*out));
    OT_TRY(add_unrolled(u->graph, "Gather", ends, 2, *out, &node));
    return ot__made(ot__node_set_int(node, "axis", in->axis));
}

// A new axis, along which turns follow.
static ot_status add_turn_axis(const unrolling *u, ot_value *x, int64_t axis, ot_value *axes,
                               ot_value **out)
{
    ot_value *const ends[] = {x, axes};
    ot_node *node;

    *out = ot__graph_new_value(u->graph, x->name);
    OT_TRY(ot__made(*out));
    OT_TRY(add_unrolled(u->graph, "Unsqueeze", ends, axes ? 2 : 1, *out, &node));
    return ot__made(axes || ot__node_set_ints(node, "axes", &axis, 1));
}

static ot_status join_places(const unrolling *u, const ot__scanned *out, ot_value **of_turns)
{
    const bool is_input = ot__model_opset(u->graph->model, "") >= AXES_INPUT_OPSET;
    ot_value *axes = is_input ? new_number(u->graph, OT_I64, &OT_SHAPE(1), out->axis) : NULL;
    ot_node *node;

    OT_TRY(ot__made(!is_input || axes));
    for (int64_t i = 0; i < u->n_turns; i++)
        OT_TRY(add_turn_axis(u, of_turns[i], out->axis, axes, &of_turns[i]));
    for (int64_t i = 0, k = u->n_turns - 1; out->is_backward && i < k; i++, k--) {
        ot_value *first = of_turns[i];

        of_turns[i] = of_turns[k];
        of_turns[k] = first;
    }
    OT_TRY(add_unrolled(u->graph, "Concat", of_turns, (int)u->n_turns, out->value, &node));
    return ot__made(ot__node_set_int(node, "axis", out->axis));
}

// ---- turns ----

static ot_status unroll_turn(unrolling *u, int64_t turn)
{
    ot_value **carried = u->given + u->n_leading, **places = carried + u->n_carried;
    ot_value **made = u->made + (u->n_leading > 0);

    if (u->n_leading > 0) {
        u->given[0] = new_number(u->graph, OT_I64, &OT_SHAPE_SCALAR, turn);
        u->given[1] = new_number(u->graph, OT_BOOL, &OT_SHAPE_SCALAR, 1);
        OT_TRY(ot__made(u->given[0] && u->given[1]));
    }
    for (int i = 0; i < u->n_scanned; i++) {
        const ot__scanned in = ot__scanned_input(u->node, i);

        OT_TRY(take_place(u, &in, turn, &places[i]));
    }
    OT_TRY(ot__graph_inline_body(u->graph, u->body, u->given, u->made));
    for (int i = 0; i < u->n_carried; i++)
        carried[i] = made[i];
    for (int i = 0; i < u->n_scanned_out; i++)
        u->scanned_out[i * u->n_turns + turn] = made[u->n_carried + i];
    return OT_OK;
}

static ot_status unroll_all(unrolling *u, ot_node *node)
{
    ot_value **carried = u->given + u->n_leading;

    for (int i = 0; i < u->n_carried; i++)
        carried[i] = node->inputs[u->n_leading + i];
    ot__node_detach(node);
    for (int64_t turn = 0; turn < u->n_turns; turn++)
        OT_TRY(unroll_turn(u, turn));
    for (int i = 0; i < u->n_carried && i < node->n_outputs; i++)
        OT_TRY(ot__hand_on(u->graph, carried[i], node->outputs[i]));
    for (int i = 0; i < u->n_scanned_out && u->n_carried + i < node->n_outputs; i++) {
        const ot__scanned out = scanned_output(u, i);

        if (out.value)
            OT_TRY(join_places(u, &out, u->scanned_out + i * u->n_turns));
    }
    return OT_OK;
}

static bool is_cast_to_bool(const ot_node *node)
{
    const ot_attr *to = ot__match_cast(node) ? ot__node_attr(node, "to") : NULL;

    return to && to->kind == OT_ATTR_INT && to->i == OT_BOOL;
}

// The value that a turn of a Loop leaves as condition is that which it got, or true; both may have
// gone through a Cast.
bool ot__goes_on_always(const ot_graph *body)
{
    const ot_value *value = body->outputs[0];
    const ot_tensor *constant;

    while ((ot__match_copy(value->producer) || is_cast_to_bool(value->producer)) &&
           value->producer->n_inputs > 0 && value->producer->inputs[0])
        value = value->producer->inputs[0];
    if (value == body->inputs[1])
        return true;
    constant = ot__match_constant_value(value);
    return constant && (constant->dtype == OT_BOOL || ot__dtype_is_int(constant->dtype)) &&
           ot_tensor_count(constant) == 1 && ot__tensor_get_i64(constant, 0) != 0;
}

// What is wrong with the node is told by who checks it.
static bool may_unroll(const unrolling *u)
{
    const ot_graph *body = u->body;

    if (!body || body->n_inputs != u->node->n_inputs || u->n_carried < 0 || u->n_scanned_out < 0 ||
        u->node->n_outputs > u->n_carried + u->n_scanned_out)
        return false;
    for (int i = u->n_leading; i < u->node->n_inputs; i++)
        if (!u->node->inputs[i])
            return false;
    return u->n_turns <= MAX_TURNS && (u->n_turns > 0 || u->n_scanned_out == 0) &&
           (u->n_leading == 0 || ot__goes_on_always(body));
}

// With those of graphs inside.
static int64_t count_all_nodes(const ot_graph *graph)
{
    int64_t count = graph->n_nodes + 1;

    for (int n = 0; n < graph->n_nodes; n++)
        for (ot__subgraphs s = {.node = graph->nodes[n]}; ot__next_subgraph(&s);)
            count += count_all_nodes(s.graph);
    return count;
}

ot_status ot__unroll(ot_graph *graph, ot_node *node, int64_t n_turns, int64_t *n_left,
                     bool *has_changed)
{
    const bool is_loop = ot__node_is(node, "", "Loop");
    unrolling u = {.graph = graph,
                   .body = ot__body_of(node, "body"),
                   .node = node,
                   .n_turns = n_turns,
                   .n_leading = is_loop ? 2 : 0,
                   .n_scanned = is_loop ? 0 : scanned_count(node)};
    int64_t n_nodes;
    ot_status st;

    u.n_carried = node->n_inputs - u.n_leading - u.n_scanned;
    u.n_scanned_out = u.body ? u.body->n_outputs - is_loop - u.n_carried : -1;
    if (!may_unroll(&u))
        return OT_OK;
    n_nodes = n_turns * count_all_nodes(u.body);
    if (n_nodes > *n_left)
        return OT_OK;
    *n_left -= n_nodes;
    u.given = ot__alloc_zero((size_t)u.body->n_inputs + 1, sizeof(ot_value *));
    u.made = ot__alloc_zero((size_t)u.body->n_outputs + 1, sizeof(ot_value *));
    u.scanned_out =
        ot__alloc_zero((size_t)u.n_scanned_out * (size_t)n_turns + 1, sizeof(ot_value *));
    st = ot__made(u.given && u.made && u.scanned_out);
    OT_THEN(st, unroll_all(&u, node));
    ot__free(u.given);
    ot__free(u.made);
    ot__free(u.scanned_out);
    *has_changed = true;
    return st;
}

// ---- turn by turn ----

#define MADE "onnxtrain_turns" // attribute of a Loop: turns that stand before it already

// Behind what is carried, such a Loop takes the places that its turns have made.
typedef struct turning {
    const ot_graph *body;
    int n_carried, n_places;
} turning;

int64_t ot__turns_made(const ot_node *loop)
{
    const ot_attr *attr = ot__node_attr(loop, MADE);

    // A file may have the attribute too.
    return attr != NULL && attr->kind == OT_ATTR_INT && attr->i >= 0 && attr->i <= MAX_TURNS
               ? attr->i
               : 0;
}

static bool read_turning(const ot_node *loop, turning *t)
{
    t->body = ot__body_of(loop, "body");
    if (t->body == NULL || t->body->n_inputs < 2)
        return false;
    t->n_carried = t->body->n_inputs - 2;
    t->n_places = t->body->n_outputs - 1 - t->n_carried;
    if (t->n_places < 0 || loop->n_outputs > t->n_carried + t->n_places ||
        loop->n_inputs != 2 + t->n_carried + t->n_places * ot__turns_made(loop))
        return false;
    for (int i = 2; i < loop->n_inputs; i++)
        if (loop->inputs[i] == NULL)
            return false;
    return true;
}

static ot_status make_turn(ot_graph *graph, ot_node *loop, const turning *t, ot_value **given,
                           ot_value **made)
{
    const int64_t turn = ot__turns_made(loop);
    const int n_inputs = loop->n_inputs + t->n_places;
    ot_value **inputs =
        ot__arena_alloc(graph->model->arena, (size_t)(n_inputs + 1) * sizeof(ot_value *));

    given[0] = new_number(graph, OT_I64, &OT_SHAPE_SCALAR, turn);
    given[1] = new_number(graph, OT_BOOL, &OT_SHAPE_SCALAR, 1);
    OT_TRY(ot__made(inputs != NULL && given[0] != NULL && given[1] != NULL));
    memcpy(given + 2, loop->inputs + 2, (size_t)t->n_carried * sizeof(ot_value *));
    OT_TRY(ot__graph_inline_body(graph, t->body, given, made));
    memcpy(inputs, loop->inputs, (size_t)loop->n_inputs * sizeof(ot_value *));
    inputs[1] = made[0];
    memcpy(inputs + 2, made + 1, (size_t)t->n_carried * sizeof(ot_value *));
    memcpy(inputs + loop->n_inputs, made + 1 + t->n_carried,
           (size_t)t->n_places * sizeof(ot_value *));
    loop->inputs = inputs;
    loop->n_inputs = n_inputs;
    return ot__made(ot__node_set_int(loop, MADE, turn + 1));
}

ot_status ot__next_turn(ot_graph *graph, ot_node *loop, int64_t *n_left, bool *has_changed)
{
    ot_value **given, **made;
    turning t;
    ot_status st;

    if (!read_turning(loop, &t) || ot__turns_made(loop) >= MAX_TURNS)
        return OT_OK;
    *n_left -= count_all_nodes(t.body);
    if (*n_left < 0)
        return OT_OK;
    given = ot__alloc_zero((size_t)t.body->n_inputs + 1, sizeof(ot_value *));
    made = ot__alloc_zero((size_t)t.body->n_outputs + 1, sizeof(ot_value *));
    st = ot__made(given != NULL && made != NULL);
    OT_THEN(st, make_turn(graph, loop, &t, given, made));
    ot__free(given);
    ot__free(made);
    *has_changed = true;
    return st;
}

// Places of no turns, as far as the body says their shape.
static ot_status make_no_places(ot_graph *graph, const ot_value *place, ot_value *y)
{
    ot_shape shape = {.ndim = place->shape.ndim + 1};
    ot_tensor *tensor;
    ot_node *node;

    memcpy(shape.dim + 1, place->shape.dim, (size_t)place->shape.ndim * sizeof *shape.dim);
    tensor = ot__model_tensor_new(graph->model, place->dtype, &shape);
    OT_TRY(ot__made(tensor != NULL));
    OT_TRY(add_unrolled(graph, "Constant", NULL, 0, y, &node));
    return ot__made(ot__node_set_tensor(node, "value", tensor));
}

static bool may_make_no_places(const ot_node *loop, const turning *t)
{
    for (int k = 0; k < t->n_places && t->n_carried + k < loop->n_outputs; k++) {
        const ot_value *place = t->body->outputs[1 + t->n_carried + k];

        if (!place->has_shape || !ot__shape_is_static(&place->shape) ||
            place->shape.ndim >= OT_MAX_NDIM || place->dtype == OT_STRING)
            return false;
    }
    return true;
}

ot_status ot__end_turns(ot_graph *graph, ot_node *loop, bool *has_changed)
{
    const int64_t n_turns = ot__turns_made(loop);
    unrolling u = {.graph = graph, .n_turns = n_turns};
    ot_value **places;
    turning t;
    ot_status st = OT_OK;

    if (!read_turning(loop, &t) || (n_turns == 0 && !may_make_no_places(loop, &t)))
        return OT_OK;
    places = ot__alloc_zero((size_t)n_turns + 1, sizeof(ot_value *));
    OT_TRY(ot__made(places != NULL));
    ot__node_detach(loop);
    for (int i = 0; i < loop->n_outputs && st == OT_OK; i++) {
        const int k = i - t.n_carried;
        const ot__scanned out = {.value = loop->outputs[i]};

        for (int64_t turn = 0; k >= 0 && turn < n_turns; turn++)
            places[turn] = loop->inputs[2 + t.n_carried + turn * t.n_places + k];
        if (k < 0)
            st = ot__hand_on(graph, loop->inputs[2 + i], out.value);
        else if (out.value != NULL)
            st = n_turns > 0 ? join_places(&u, &out, places)
                             : make_no_places(graph, t.body->outputs[1 + i], out.value);
    }
    ot__free(places);
    *has_changed = true;
    return st;
}
